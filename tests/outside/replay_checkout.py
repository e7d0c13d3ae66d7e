"""Replays what other libraries recorded of GitHub's API, from a checkout or an unpacked package of theirs.

    cd tests && python -m outside.replay_checkout FOLDER

Our tools read each recorded answer, and PyGithub reads the same bytes; what differs is printed. Known are mappings of
WireMock (a folder `mappings` with `__files` beside it, as in hub4j/github-api), lists of exchanges as nock writes
them (`normalized-fixture.json` of @octokit/fixtures), and what tests in Go answer with: handlers (google/go-github) and
registered answers with their fixtures (cli/cli). Nothing of the folder is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
from github import Auth, Github
from github.GithubObject import CompletableGithubObject
from github.Requester import Requester
from mcp import Client

from github_server.oracle.description import judged
from github_server.serving import TOKEN, call, served
from mcp_github.client.response import API_VERSION
from outside.pygithub_kinds import KINDS, Kind, different
from outside.pygithub_recordings import Exchange, Replay
from outside.test_pygithub_recordings import EVERY_TOOL, listed_alike

__all__ = ["exchanges_in", "replayed"]

_ORIGIN = "https://api.github.com"
# Who is gone is nobody for PyGithub; we name them as GitHub's pages do.
_GHOST = "author: 'ghost' None"
_LITERAL = r'(`[^`]*`|"(?:[^"\\\n]|\\.)*")'
_REGISTERED = re.compile(
    r'httpmock\.(?:REST|QueryMatcher)\("GET", "([^"]+)"[^\n]*?\),\s*'
    rf"httpmock\.(String|File|StatusString)Response\((?:200, )?{_LITERAL}\)"
)
_OF_THE_WIRE = ("content-length", "content-encoding", "transfer-encoding", "connection")


def exchanges_in(folder: Path) -> Iterator[Exchange]:
    """What was recorded beneath `folder`, in whichever of the known forms."""
    for path in sorted(folder.rglob("*.json")):
        try:
            data: Any = json.loads(path.read_text("utf-8"))
        except (ValueError, OSError):
            continue
        name = str(path.relative_to(folder))
        if isinstance(data, list) and data and isinstance(data[0], dict) and {"scope", "method"} <= data[0].keys():
            yield from (_of_nock(f"{name} {number}", item) for number, item in enumerate(data))
        elif path.parent.name == "mappings" and isinstance(data, dict) and "response" in data:
            yield _of_wiremock(name, path, data)
    yield from _of_go(folder)


def _of_go(folder: Path) -> Iterator[Exchange]:
    """What tests in Go beneath `folder` answer with."""
    for path in sorted(folder.rglob("*_test.go")):
        text = path.read_text("utf-8", "replace")
        name = str(path.relative_to(folder))
        answers = [*_handled(text), *_registered(text, path.parent)]
        for number, (target, body) in enumerate(answers):
            headers = {"content-type": "application/json"}
            yield Exchange(f"{name} {number}", "GET", _ORIGIN, f"/{target.lstrip('/')}", "", 200, headers, body)


def _handled(text: str) -> Iterator[tuple[str, str]]:
    """The path and the body of each handler of net/http that answers a GET with a text of its own."""
    for chunk in text.split("mux.HandleFunc(")[1:]:
        path = re.match(r'"(/[^"]*)"', chunk)
        handler = chunk.partition("\n\t})")[0]
        method = re.search(r'testMethod\(t, r, "(\w+)"\)', handler)
        body = re.search(rf"fmt\.Fprint\(w, {_LITERAL}\)", handler)
        if path and body and (method is None or method[1] == "GET"):
            yield path[1], _unquoted(body[1])


def _registered(text: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The path and the body of each answer to a GET that is registered with gh's `httpmock`."""
    for found in _REGISTERED.finditer(text):
        path, kind, literal = found.groups()
        body = _unquoted(literal)
        if kind == "File":
            file = folder / body
            body = file.read_text("utf-8", "replace") if file.is_file() else ""
        yield path, body


def _unquoted(literal: str) -> str:
    return literal[1:-1] if literal.startswith("`") else str(json.loads(literal))


def _of_nock(name: str, item: dict[str, Any]) -> Exchange:
    body = item.get("response")
    text = body if isinstance(body, str) else json.dumps(body)
    origin = str(item["scope"]).removesuffix(":443")
    headers = _headers(item.get("headers") or {})
    return Exchange(name, item["method"].upper(), origin, item["path"], "", int(item["status"]), headers, text)


def _of_wiremock(name: str, path: Path, mapping: dict[str, Any]) -> Exchange:
    request, response = mapping["request"], mapping["response"]
    text = str(response.get("body") or "")
    if "jsonBody" in response:
        text = json.dumps(response["jsonBody"])
    elif "bodyFileName" in response:
        file = path.parents[1] / "__files" / response["bodyFileName"]
        text = file.read_text("utf-8", "replace") if file.is_file() else ""
    target = str(request.get("url") or request.get("urlPath") or "")
    status, headers = int(response.get("status", 200)), _headers(response.get("headers") or {})
    return Exchange(name, request.get("method", "GET"), _ORIGIN, target, "", status, headers, text)


def _headers(given: dict[str, Any]) -> dict[str, str]:
    """The headers without those of the connection, and those that WireMock would make up."""
    kept = {name.lower(): value for name, value in given.items() if name.lower() not in _OF_THE_WIRE}
    texts = {name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in kept.items()}
    return {name: text for name, text in texts.items() if "{{" not in text}


async def replayed(exchanges: Sequence[Exchange]) -> tuple[Counter[str], list[str]]:
    """How many answers our tools read as PyGithub does, by the template of their paths, and where they differ."""
    read, complaints = Counter[str](), list[str]()
    with Replay() as replay, mock.patch.object(CompletableGithubObject, "_completeIfNeeded", lambda self: None):
        auth = Auth.Token(TOKEN)
        with Github(auth=auth, base_url=replay.url, retry=None, api_version=API_VERSION) as theirs:
            async with served(replay, *EVERY_TOOL) as client:
                for exchange in exchanges:
                    verdict = judged("GET", exchange.path, {}, b"")
                    kinds = [
                        kind for kind in KINDS if verdict.operation and verdict.operation.template == kind.template
                    ]
                    is_elsewhere = exchange.origin != _ORIGIN or "localhost" in exchange.headers.get("link", "")
                    is_read = exchange.verb == "GET" and exchange.status == 200 and exchange.data is not None
                    if not kinds or not is_read or is_elsewhere:
                        read["of no tool, or no answer"] += 1
                        continue
                    made = replay.play(exchange)
                    try:
                        found = await _compared(kinds[0], made, verdict.values, replay, theirs.requester, client)
                    except Exception as error:
                        if not made.name.partition(" ")[0].endswith(".go") or "failed inside" in str(error):
                            raise
                        # Tests in Go answer with a part of an object, which neither has to understand.
                        read["written by hand and incomplete"] += 1
                        continue
                    read[kinds[0].template] += 1
                    complaints += found
    return read, [complaint for complaint in complaints if not complaint.endswith(_GHOST)]


async def _compared(
    kind: Kind, made: Exchange, values: dict[str, str], replay: Replay, theirs: Requester, client: Client
) -> list[str]:
    """Where our tool and PyGithub read an answer otherwise."""
    if kind.listed:
        return await listed_alike(kind, made, values, replay, theirs, client)
    answer = await call(client, kind.tool, **kind.arguments(values))
    return different(kind, made.name, answer["data"], kind.made(theirs, {}, made.data))


def main() -> int:
    """Replay the folder that is named, and return whether something differs."""
    import os

    os.environ["GITHUB_TOKEN"] = TOKEN
    exchanges = list(exchanges_in(Path(sys.argv[1])))
    read, complaints = anyio.run(replayed, exchanges)
    for template, count in read.most_common():
        print(f"{count:6} {template}")
    print(*complaints, sep="\n")
    print(f"{len(exchanges)} exchanges, {len(complaints)} differences")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
