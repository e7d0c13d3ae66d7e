"""What GitHub really answered: the exchanges that PyGithub's tests recorded, from its source distribution.

They are fetched when a test wants them and kept in pytest's cache; nothing of them is part of this repository.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pytest

from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply

__all__ = ["Exchange", "Replay", "recordings"]

_PIP = ("uv", "run", "--quiet", "--no-project", "--with", "pip>=25,<27", "python", "-m", "pip")
_NEXT = re.compile(r"\n\n(?=https?\n[A-Z]+\n)")
_OF_THE_WIRE = ("content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive", "status")


@dataclass(frozen=True)
class Exchange:
    """One request and what came back.

    Attributes:
        name: of the recording it is of, and its place there.
        origin: scheme and host.
    """

    name: str
    verb: str
    origin: str
    target: str
    sent: str
    status: int
    headers: dict[str, str]
    text: str

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def data(self) -> Any:
        """The JSON; None where there is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    def at(self, url: str) -> Exchange:
        """The exchange as if GitHub were at `url`."""
        headers = {name: value.replace(self.origin, url) for name, value in self.headers.items()}
        return replace(self, origin=url, headers=headers, text=self.text.replace(self.origin, url))


class Replay(Oracle):
    """An oracle that answers from a recording first, and else as ever."""

    def __init__(self) -> None:
        super().__init__()
        self._played: Exchange | None = None
        self._strict = True
        self._first: dict[str, dict[str, str]] = {}

    def play(self, exchange: Exchange, *, strict: bool = True) -> Exchange:
        """Answer with `exchange` from now on, and return it as it is sent.

        Args:
            strict: judge requests that are not for it; else they are not found.
        """
        made = exchange.at(self.url)
        self._played, self._strict = made, strict
        self._first.clear()
        self.seen.clear()
        return made

    def reply(self, seen: Seen) -> Reply:
        made = self._played
        assert made is not None
        if made.verb == seen.verb == "GET" and self._strict and self._turned(seen):
            self.seen.append(seen)
            return Reply(200, _nothing_of(made.data))
        if (made.verb, made.path) == (seen.verb, seen.target.partition("?")[0]):
            self._first.setdefault(seen.headers.get("user-agent", ""), seen.query)
            self.seen.append(seen)
            return Reply(made.status, headers=made.headers, raw=made.text.encode("utf-8", "surrogateescape"))
        if self._strict and not seen.path.startswith("/repositories/"):
            return super().reply(seen)
        self.seen.append(seen)
        return Reply(404, {"message": "Not Found"})

    def _turned(self, seen: Seen) -> bool:
        """Whether it asks for another page than its client did first; a link may lead to the repository's number."""
        first = self._first.get(seen.headers.get("user-agent", ""))
        assert self._played is not None
        here = seen.path == self._played.path or seen.path.startswith("/repositories/")
        return first is not None and here and seen.query != first


def recordings(cache: Path) -> list[Exchange]:
    """All exchanges PyGithub of the installed version has recorded, kept in `cache`."""
    wanted = f"pygithub-{version('PyGithub')}"
    archive = cache / f"{wanted}.tar.gz"
    if not archive.exists():
        # Another worker may fetch it at the same time.
        with tempfile.TemporaryDirectory(dir=cache) as passing:
            fetched = subprocess.run(
                (*_PIP, "download", "-q", "--no-deps", "--no-binary=:all:", wanted.replace("-", "=="), "-d", passing),
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if not (arrived := Path(passing, archive.name)).exists():
                pytest.fail(f"{wanted}'s source distribution can't be fetched from PyPI: {fetched.stderr[-500:]}")
            arrived.replace(archive)
    found: list[Exchange] = []
    with tarfile.open(archive) as sdist:
        for member in sdist:
            if "/tests/ReplayData/" in member.name and (content := sdist.extractfile(member)) is not None:
                text = content.read().decode("utf-8", "surrogateescape")
                found += _exchanges(member.name.rpartition("/")[2], text)
    return found


def _exchanges(name: str, text: str) -> list[Exchange]:
    found: list[Exchange] = []
    for number, part in enumerate(_NEXT.split(text)):
        lines = part.split("\n", 9)
        if len(lines) < 10:
            continue
        scheme, verb, host, port, target, _, sent, status, headers, body = lines
        place = host if port in ("None", "443", "80") else f"{host}:{port}"
        given: dict[str, str] = dict(ast.literal_eval(headers))
        kept = {key.lower(): value for key, value in given.items() if key.lower() not in _OF_THE_WIRE}
        body = body.rstrip("\n")
        found.append(Exchange(f"{name} {number}", verb, f"{scheme}://{place}", target, sent, int(status), kept, body))
    return found


def _nothing_of(data: Any) -> Any:
    """The page after the last, of what `data` is a page of."""
    if isinstance(data, dict):
        page = cast("dict[str, Any]", data)
        return {name: list[Any]() if isinstance(value, list) else value for name, value in page.items()}
    return []
