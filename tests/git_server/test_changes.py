"""What anybody does to a repository, told to those it concerns: both eras, both transports, once per state."""

import os
from pathlib import Path

import pytest

from e2e.following import changes_since
from e2e.serving import TRANSPORTS, connected
from git_server.made import Made
from mcp_batteries.testing.wire import MODERN, Wire

UPDATED = "notifications/resources/updated"
KINDS = ("status", "head", "branches", "log", "diff", "stash")


async def told(wire: Wire, *kinds: str) -> None:
    """Wait until each of `kinds` was announced; then none was twice, and nothing else was."""
    for kind in kinds:
        await wire.updated(f"git://app/{kind}")
    # Whatever was begun before is over once `list_changes` has looked.
    await wire.call("list_changes", uris=["git://app/status"])
    heard = [item["params"]["uri"] for item in wire.notifications if item["method"] == UPDATED]
    assert heard == []
    wire.messages.clear()


def made_app(folder: Path) -> Made:
    made = Made(folder / "app")
    made.write(".gitignore", "*.log\nbuild/\n")
    made.commit("first", {"notes.txt": "one\n", "in/side.txt": "side\n"})
    return made


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_anybody_does_is_told_once(transport: str, revision: str, tmp_path: Path) -> None:
    made = made_app(tmp_path)
    async with connected(transport, revision, "mcp_git", [str(made.path)]) as wire:
        for kind in KINDS:
            await wire.subscribe(f"git://app/{kind}")
        made.write("notes.txt", "one\ntwo\n")
        await told(wire, "status", "diff")
        made.git("add", "notes.txt")
        await told(wire, "status")
        made.git("commit", "--quiet", "--message", "second")
        await told(wire, "status", "diff", "head", "log", "branches")
        made.git("switch", "--quiet", "--create", "other")
        await told(wire, "status", "head", "branches", "log")
        made.write("in/deep/er/new.txt", "new\n")
        await told(wire, "status", "diff")
        made.git("add", ".")
        made.git("stash", "--quiet")
        await wire.updated("git://app/stash")
        made.git("stash", "drop", "--quiet")
        await wire.updated("git://app/stash")


@pytest.mark.anyio
async def test_what_changes_no_answer_is_not_told(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    async with connected("stdio", MODERN, "mcp_git", [str(made.path)]) as wire:
        for kind in KINDS:
            await wire.subscribe(f"git://app/{kind}")
        made.write("noise.log", "ignored\n")
        made.write("build/out.txt", "ignored\n")
        os.utime(made.path / "notes.txt")
        made.git("status")
        made.git("update-index", "--refresh")
        made.git("pack-refs", "--all")
        made.git("gc", "--quiet")
        made.write("notes.txt", "one\ntwo\n")
        await told(wire, "status", "diff")


@pytest.mark.anyio
async def test_a_file_of_a_branch_and_list_changes(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("branch", "kept")
    async with connected("stdio", MODERN, "mcp_git", [str(made.path)]) as wire:
        uris = ["git://app/files/main/notes.txt", "git://app/files/kept/notes.txt"]
        for uri in uris:
            await wire.subscribe(uri)
        _, since = await changes_since(wire, None, *uris)
        made.commit("second", {"notes.txt": "one\ntwo\n"})
        await wire.updated(uris[0])
        assert not [item for item in wire.notifications if item["params"].get("uri") == uris[1]]
        names, _ = await changes_since(wire, since)
        assert names == {uris[0]}


@pytest.mark.slow
@pytest.mark.anyio
async def test_each_step_of_a_rebase_that_stops_is_told(tmp_path: Path) -> None:
    made = made_app(tmp_path)
    made.git("switch", "--quiet", "--create", "topic")
    made.commit("their word", {"notes.txt": "topic\n"})
    made.git("switch", "--quiet", "main")
    made.commit("our word", {"notes.txt": "main\n"})
    async with connected("stdio", MODERN, "mcp_git", [str(made.path)]) as wire:
        await wire.subscribe("git://app/status")
        with pytest.raises(AssertionError):
            made.git("rebase", "topic")
        # Git takes its time from step to step, so there may be more than one notice.
        await wire.updated("git://app/status")
        read = await wire.request("resources/read", {"uri": "git://app/status"})
        assert "rebase under way, step 1 of 1, of main; 1 in conflict" in read["contents"][0]["text"]
        made.git("rebase", "--abort")
        await wire.updated("git://app/status")
