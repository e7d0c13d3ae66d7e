"""What GitHub answered PyGithub over the years is replayed: our answers agree with what PyGithub's objects hold.

PyGithub is an independent client: it reads the same recorded bytes from the same server, over HTTP.
"""

import re
from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
import pytest
from github import Auth, Github, GithubException
from github.Commit import Commit
from github.ContentFile import ContentFile
from github.File import File
from github.GithubObject import CompletableGithubObject
from github.GitTree import GitTree
from github.PaginatedList import PaginatedList
from github.Requester import Requester
from mcp import Client
from requests.utils import parse_header_links

from github_server.oracle.description import judged
from github_server.serving import TOKEN, call, served, settings, text_of
from github_server.world import no_workflow_runs
from mcp_batteries.errors import Problem
from mcp_github.client.api import Api
from mcp_github.client.http import GRAPHQL
from mcp_github.client.response import API_VERSION
from mcp_github.policy import Policy
from mcp_github.safety.scrub import scrub
from outside.pygithub_kinds import COMMITTED, KINDS, Kind, R, different, of
from outside.pygithub_recordings import Exchange, Replay, recordings

pytestmark = [pytest.mark.process, pytest.mark.slow]  # the recordings are fetched by pip
EVERY_TOOL = ("--toolsets", "all", "--flow", "off")
TURNING = ("page", "after", "before", "cursor", "since")


@pytest.fixture(scope="module")
def exchanges(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Exchange]:
    cache = getattr(request.config, "cache", None)
    return recordings(cache.mkdir("pygithub") if cache else tmp_path_factory.mktemp("pygithub"))


@pytest.fixture(scope="module")
def reads(exchanges: list[Exchange]) -> dict[str, list[tuple[Exchange, dict[str, str]]]]:
    """What was read of GitHub, by the template of the path, with the values in it."""
    found: dict[str, list[tuple[Exchange, dict[str, str]]]] = {}
    for exchange in exchanges:
        if exchange.verb == "GET" and exchange.origin == "https://api.github.com":
            verdict = judged("GET", exchange.path, {}, b"")
            if verdict.operation is not None:
                found.setdefault(verdict.operation.template, []).append((exchange, verdict.values))
    return found


@pytest.fixture
def replay() -> Generator[Replay]:
    with Replay() as replay:
        yield replay
        assert replay.violations == []


@pytest.fixture
def theirs(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> Generator[Requester]:
    # What a list leaves out of its objects is not asked for one by one.
    monkeypatch.setattr(CompletableGithubObject, "_completeIfNeeded", lambda self: None)
    with Github(
        auth=Auth.Token(TOKEN), base_url=replay.url, retry=None, api_version=API_VERSION, seconds_between_requests=0,
        seconds_between_writes=0,
    ) as client:  # fmt: skip
        yield client.requester


# Every answer, as the engine's one client takes it.


@pytest.mark.anyio
@pytest.mark.parametrize("step", [20, pytest.param(1, marks=pytest.mark.weekly)])
async def test_every_recorded_answer_is_read_alike_or_refused_in_our_words(
    step: int, exchanges: list[Exchange], replay: Replay, theirs: Requester
) -> None:
    outcomes = {"the same": 0, "refused alike": 0, "only ours is a refusal": 0}
    told = settings(replay, "--write")
    policy = Policy(told)
    limited, api = True, Api(told, policy)
    for exchange in exchanges[::step]:
        made = replay.play(exchange, strict=False)
        if limited:
            # A limit that was reached holds back what comes next.
            await api.__aexit__()
            api = Api(told, policy)
        try:
            answer, problem = await asked(api, made), None
        except Problem as found:
            answer, problem = None, found
        limited = exchange.status in (403, 429)
        if 300 <= exchange.status < 400 or (exchange.status == 202 and exchange.verb == "GET"):
            # Where it leads to is not recorded, or is another host; for what is in the making PyGithub waits on.
            assert problem is not None or answer is not None
            continue
        status, data = await anyio.to_thread.run_sync(their_answer, theirs, made)
        about = f"{exchange.name}: {exchange.verb} {exchange.target}"
        if problem is not None:
            assert re.search(r"GitHub|token|repository", str(problem)), about
            assert problem.status in (exchange.status, None), about
            outcomes["refused alike" if status >= 400 else "only ours is a refusal"] += 1
            continue
        assert status < 400, about
        assert answer is not None
        if exchange.status < 300 and made.text:
            assert answer.data == (scrub(data)[0] if answer.removed else data), about
        links = {link["rel"]: link["url"] for link in parse_header_links(made.headers.get("link", "")) if "rel" in link}
        assert set(answer.next_page.items()) == turned(links.get("next", "")), about
        outcomes["the same"] += 1
    await api.__aexit__()
    assert outcomes["the same"] > 1900 / step and outcomes["refused alike"] > 80 / step / 2, outcomes
    assert outcomes["only ours is a refusal"] < 60, outcomes
    print(outcomes)


async def asked(api: Api, made: Exchange) -> Any:
    path, what = made.path, "the thing"
    if made.verb == "GET":
        # Its name keeps it apart from another recording of the same place, which may still be kept.
        return await api.get(path, what, {**dict(parse_qsl(made.target.partition("?")[2])), "of": made.name})
    if path.endswith(GRAPHQL):
        return await api.write("POST", path, what, made.sent)
    return await api.write(made.verb, path, what, None)


def their_answer(requester: Requester, made: Exchange) -> tuple[int, Any]:
    try:
        _, data = requester.requestJsonAndCheck(made.verb, made.path)
    except GithubException as problem:
        return problem.status, problem.data
    except ValueError:
        # Of what is no JSON it says so in Python's words.
        return made.status, None
    if isinstance(data, dict) and data.get("url") == made.path:
        # It puts down where it asked.
        del data["url"]
    return 200, data


def turned(url: str) -> set[tuple[str, str]]:
    return {pair for pair in parse_qsl(url.partition("?")[2]) if pair[0] in TURNING}


# What tools show of them, field by field.


@pytest.mark.share(1, slow=16)
@pytest.mark.anyio
@pytest.mark.parametrize("kind", KINDS, ids=[kind.template for kind in KINDS])
async def test_tools_show_what_pygithub_reads(
    kind: Kind, reads: dict[str, list[tuple[Exchange, dict[str, str]]]], replay: Replay, theirs: Requester
) -> None:
    found, complaints = 0, list[str]()
    async with served(replay, *EVERY_TOOL) as client:
        for exchange, values in reads[kind.template]:
            if exchange.status >= 500:
                # Asked for three times: the other test has these.
                continue
            made = replay.play(exchange)
            if exchange.status != 200 or made.data is None or exchange.name.startswith("BadAttributes"):
                # Some were made wrong by hand: they have to be refused in words, if at all.
                result = await client.call_tool(kind.tool, kind.arguments(values))
                complaints += [made.name] if result.is_error and "GitHub" not in text_of(result) else []
                continue
            found += 1
            if kind.listed:
                complaints += await listed_alike(kind, made, values, replay, theirs, client)
            else:
                answer = await call(client, kind.tool, **kind.arguments(values))
                one = kind.made(theirs, {}, made.data)
                complaints += different(kind, made.name, answer["data"], one)
    assert not complaints, f"{len(complaints)}: {complaints[:20]}"
    assert found


async def listed_alike(
    kind: Kind, made: Exchange, values: Mapping[str, str], replay: Replay, theirs: Requester, client: Client
) -> list[str]:
    """Where all pages of ours and theirs differ."""
    pages = PaginatedList(kind.made, theirs, made.path, None, **({"list_item": kind.inside} if kind.inside else {}))
    items = await anyio.to_thread.run_sync(lambda: [one for one in pages if kind.keeps(one)])
    their_turns = [turns(seen) for seen in replay.seen if turns(seen)]
    replay.seen.clear()
    arguments = {**kind.arguments(values), "limit": 100}
    if kind.tool == "list_checks":
        # Of runs of Actions without checks PyGithub's list has none.
        no_workflow_runs(replay, arguments["repo"])
    if kind.takes_fields:
        arguments["fields"] = ",".join(kind.columns)
    rows, cursor, columns = list[list[Any]](), None, list[str]()
    for _ in range(len(items) + 2):
        page = await call(client, kind.tool, **arguments, **({"cursor": cursor} if cursor else {}))
        # Statuses stand below the checks.
        rows, columns = rows + [row for row in page["rows"] if "status" not in row[3:4]], page["columns"]
        if not (cursor := page.get("cursor")):
            break
    our_turns = [turns(seen) for seen in replay.seen if turns(seen)]
    if our_turns[:1] != their_turns[:1] or len(rows) != len(items):
        return [f"{made.name}: {our_turns[:1]} {their_turns[:1]} {len(rows)} {len(items)}"]
    if kind.tool == "list_checks":
        # What failed comes first here.
        rows.sort(key=lambda row: row[columns.index("job")])
        items.sort(key=lambda one: one.id)
    pairs = zip(rows, items, strict=True)
    return [
        said for row, one in pairs for said in different(kind, made.name, dict(zip(columns, row, strict=True)), one)
    ]


@pytest.mark.anyio
async def test_files_and_commits_are_what_pygithub_reads(
    reads: dict[str, list[tuple[Exchange, dict[str, str]]]], replay: Replay, theirs: Requester
) -> None:
    seen, complaints = {"file": 0, "dir": 0, "tree": 0, "commit": 0}, list[str]()
    async with served(replay, *EVERY_TOOL) as client:
        for template in (f"{R}/contents/{{path}}", f"{R}/git/trees/{{tree_sha}}", f"{R}/commits/{{ref}}"):
            for exchange, values in reads[template]:
                made = replay.play(exchange)
                if exchange.status == 200 and made.data and not exchange.name.startswith("BadAttributes"):
                    kind, said = await read_alike(made, values, theirs, client)
                    seen[kind] += 1
                    complaints += said
    assert not complaints, "\n".join(complaints)
    assert min(seen.values()) > 0, seen


async def read_alike(
    made: Exchange, values: Mapping[str, str], theirs: Requester, client: Client
) -> tuple[str, list[str]]:
    """The kind of what was read, and where ours and theirs differ."""
    where, data = of(values), made.data
    if "tree_sha" in values:
        answer = await call(client, "list_files", **where, ref=values["tree_sha"], recursive=True, limit=100)
        names = {"blob": "file", "tree": "dir", "commit": "submodule"}
        expected: Any = [[one.path, names[one.type], one.size] for one in GitTree(theirs, {}, data).tree]
        return "tree", unequal(made, answer["rows"], expected)
    if "ref" in values:
        commit = Commit(theirs, {}, data)
        answer = (await call(client, "get_commit", **where, ref=values["ref"]))["data"]
        read = [File(theirs, {}, item) for item in data["files"]]
        files = [f"{file.filename} {file.status} +{file.additions} -{file.deletions}" for file in read]
        return "commit", different(COMMITTED, made.name, answer, commit) + unequal(made, answer["files"], files[:60])
    if isinstance(data, list):
        answer = await call(client, "list_files", **where, path=values["path"], limit=100)
        files = [ContentFile(theirs, {}, item) for item in data]
        return "dir", unequal(made, [row[:2] for row in answer["rows"]], [[one.path, one.type] for one in files])
    answer = await call(client, "read_file", **where, path=values["path"])
    head, _, text = answer.partition("\n")
    whole, text = ContentFile(theirs, {}, data).decoded_content.decode().rstrip("\n"), text.rstrip("\n")
    return "file", unequal(made, text, whole[: len(text)] if "continue with" in head else whole)


def unequal(made: Exchange, our: Any, their: Any) -> list[str]:
    return [] if our == their else [f"{made.name}: {our!r} {their!r}"]


def turns(seen: Any) -> set[tuple[str, str]]:
    return {(name, value) for name, value in seen.query.items() if name in TURNING and (name, value) != ("page", "1")}
