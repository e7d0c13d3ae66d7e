"""`list_changes` says at once what is not there yet: nobody would ever hear of a misspelt name."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from e2e.following import changes_since
from e2e.serving import connected
from git_server.made import Made
from github_server.oracle import Oracle
from github_server.serving import TOKEN
from github_server.world import issue
from mcp_batteries.testing.wire import MODERN, Wire
from postgres import serving as postgres
from sqlite import serving as sqlite
from weather.upstream import Upstream

pytestmark = pytest.mark.anyio


class Case:
    """A running member.

    Attributes:
        there: a URI of what exists.
        missing: URIs of what does not, each with words of why.
        come: makes what the first of `missing` names; None where only another would.
    """

    def __init__(
        self, wire: Wire, there: str, missing: dict[str, str], come: Callable[[], object] | None = None
    ) -> None:
        self.wire, self.there, self.missing, self.come = wire, there, missing, come


@asynccontextmanager
async def running(member: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Case]:
    match member:
        case "mcp_fs":
            (folder / "there.txt").write_text("x")
            come = folder / "src.txt"
            async with connected("stdio", MODERN, member, [str(folder)]) as wire:
                missing = {"src.txt": "src.txt", "*.nope": "No file matches."}
                yield Case(wire, "there.txt", missing, lambda: come.write_text("x"))
        case "mcp_git":
            made = Made(folder / "app")
            made.commit("first", {"a.txt": "a\n"})
            async with connected("stdio", MODERN, member, [str(made.path)]) as wire:
                missing = {"git://app/files/main/b.txt": "b.txt", "git://app/files/nope/a.txt": "nope"}
                come = lambda: made.commit("second", {"b.txt": "b\n"})  # noqa: E731
                yield Case(wire, "git://app/files/main/a.txt", missing, come)
        case "mcp_sqlite":
            path = sqlite.make(folder / "app.db")
            async with connected("stdio", MODERN, member, [str(path)]) as wire:
                missing = {"sqlite://app/tt": "no table or view", "sqlite://app/t/999": "no row"}
                yield Case(wire, "sqlite://app/t", missing, lambda: sqlite.run(path, "CREATE TABLE tt (a)"))
        case "mcp_postgres":
            base = postgres.make()
            async with connected("stdio", MODERN, member, [f"app={base.url()}"]) as wire:
                top = "postgres://app/public"
                missing = {f"{top}/tt": "tt", f"{top}/t/999": "row"}
                yield Case(wire, f"{top}/t", missing, lambda: base.run("CREATE TABLE tt (a int PRIMARY KEY)"))
        case "mcp_github":
            monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
            with Oracle() as oracle:
                oracle.answer("GET", "/repos/octo/app/issues/3", issue(3))
                oracle.answer("GET", "/repos/octo/app/issues/4", {"message": "Not Found"}, status=404)
                words = ["--api-url", oracle.url, "--cache", "memory"]
                async with connected("stdio", MODERN, member, words) as wire:
                    top = "github://octo/app/issues"
                    yield Case(wire, f"{top}/3", {f"{top}/4": "octo/app"})
                    assert len(oracle.seen) == 2
        case _:
            with Upstream() as upstream:
                words = [*upstream.arguments, "--cache", "memory"]
                async with connected("stdio", MODERN, member, words) as wire:
                    yield Case(wire, "weather://47.37,8.55/now", {"weather://nope-town/now": "nope-town"})


@pytest.mark.share(1)
@pytest.mark.parametrize("member", ["mcp_fs", "mcp_git", "mcp_sqlite", "mcp_postgres", "mcp_github", "mcp_weather"])
async def test_what_is_not_there_is_not_followed_in_silence(
    member: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(member, tmp_path, monkeypatch) as case:
        answer = await case.wire.call("list_changes", uris=[case.there, *case.missing])
        said = answer["content"][0]["text"]
        assert not answer.get("isError"), said
        head, *lines = said.splitlines()
        assert head.startswith(f"[following from now on: {case.there}, ")
        assert len(lines) == len(case.missing), said
        for line, (uri, why) in zip(lines, case.missing.items(), strict=True):
            assert line.startswith(f"not there yet: {uri} (") and why in line
        if case.come is not None:
            since = head.split('"')[1]
            case.come()
            name = next(iter(case.missing))
            found, since = await changes_since(case.wire, since)
            assert name in found and not found & {*list(case.missing)[1:]}
            again = await case.wire.call("list_changes", uris=[name])
            assert "not there yet" not in again["content"][0]["text"]
