"""Roots that clients send: a lower bound for nobody, an upper bound for no operator."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from mcp_batteries.testing.wire import StdioWire
from thread_wire import wire_to


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    served, outside = tmp_path / "served", tmp_path / "outside"
    for folder in (served / "a", served / "b", outside):
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text(folder.name, "utf-8")
    return served, outside


@asynccontextmanager
async def connected(served: Path, roots: list[Path] | None, *flags: str) -> AsyncGenerator[StdioWire]:
    """A legacy client that declares roots and answers, unless `roots` is None, each question for them."""
    capabilities = {"roots": {"listChanged": True}}
    async with wire_to("mcp_fs", [*flags, served], revision="2025-11-25", capabilities=capabilities) as wire:
        await wire.open()
        async with anyio.create_task_group() as tasks:

            async def answer() -> None:
                while True:
                    asked = await wire.next_message(lambda message: message.get("method") == "roots/list", seconds=60)
                    if roots is not None:
                        await wire.respond(asked["id"], {"roots": [{"uri": root.as_uri()} for root in roots]})

            tasks.start_soon(answer)
            yield wire
            tasks.cancel_scope.cancel()


async def refused(wire: StdioWire, path: Path) -> bool:
    return bool((await wire.call("read_text", path=str(path))).get("isError"))


@pytest.mark.anyio
async def test_by_default_roots_change_nothing(folders: tuple[Path, Path]) -> None:
    served, outside = folders
    async with connected(served, [served / "a", outside]) as wire:
        assert not await refused(wire, served / "b" / "file.txt")
        assert await refused(wire, outside / "file.txt")


@pytest.mark.anyio
async def test_roots_narrow_and_never_widen(folders: tuple[Path, Path]) -> None:
    served, outside = folders
    roots = [served / "a", outside]
    async with connected(served, roots, "--client-roots", "narrow") as wire:
        assert not await refused(wire, served / "a" / "file.txt")
        assert await refused(wire, served / "b" / "file.txt")
        assert await refused(wire, outside / "file.txt")
        listed = (await wire.request("resources/list"))["resources"]
        assert (served / "a").as_uri() in {item["uri"] for item in listed}
        assert served.as_uri() not in {item["uri"] for item in listed}

        roots[0] = served / "b"
        await wire.notify("notifications/roots/list_changed")
        assert await refused(wire, served / "a" / "file.txt")
        assert not await refused(wire, served / "b" / "file.txt")


@pytest.mark.anyio
async def test_roots_that_change_while_they_are_told_are_asked_for_again(folders: tuple[Path, Path]) -> None:
    served, _ = folders
    arguments = ["--client-roots", "narrow", served]
    capabilities = {"roots": {"listChanged": True}}
    read = {"name": "read_text", "arguments": {"path": str(served / "a" / "file.txt")}}
    async with wire_to("mcp_fs", arguments, revision="2025-11-25", capabilities=capabilities) as wire:
        await wire.open()
        for roots, is_refused in (("a", False), ("b", True)):
            number = await wire.begin("tools/call", read)
            asked = await wire.next_message(lambda message: message.get("method") == "roots/list")
            if not is_refused:
                await wire.notify("notifications/roots/list_changed")
                await wire.request("ping")
            await wire.respond(asked["id"], {"roots": [{"uri": (served / roots).as_uri()}]})
            answer = await wire.next_message(lambda message, number=number: message.get("id") == number)
            assert bool(answer["result"].get("isError")) == is_refused


@pytest.mark.anyio
async def test_a_wider_root_gives_what_is_served_and_no_more(folders: tuple[Path, Path]) -> None:
    served, outside = folders
    async with connected(served, [served.parent], "--client-roots", "narrow") as wire:
        assert not await refused(wire, served / "b" / "file.txt")
        assert await refused(wire, outside / "file.txt")


@pytest.mark.anyio
async def test_no_roots_are_no_information(folders: tuple[Path, Path]) -> None:
    served, _ = folders
    async with connected(served, [], "--client-roots", "narrow") as wire:
        assert not await refused(wire, served / "a" / "file.txt")


@pytest.mark.anyio
async def test_foreign_roots_leave_nothing(folders: tuple[Path, Path]) -> None:
    served, outside = folders
    async with connected(served, [outside], "--client-roots", "narrow") as wire:
        assert await refused(wire, served / "a" / "file.txt")
        assert await refused(wire, outside / "file.txt")


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_client_that_never_answers_is_served(folders: tuple[Path, Path]) -> None:
    served, _ = folders
    async with connected(served, None, "--client-roots", "narrow") as wire:
        assert not await refused(wire, served / "a" / "file.txt")
        assert not await refused(wire, served / "b" / "file.txt")


@pytest.mark.anyio
async def test_a_root_at_a_secret_place_serves_no_secret(folders: tuple[Path, Path]) -> None:
    """Below a folder that were served by itself, the path would no longer tell that a file is a secret."""
    served, _ = folders
    secrets = [served / ".ssh" / "sub" / "notes", served / ".ssh" / "notes", served / ".aws" / "credentials"]
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("secret", "utf-8")
    for roots in ([*{secret.parent for secret in secrets}], [*{secret.parent for secret in secrets}, served / "a"]):
        async with connected(served, roots, "--client-roots", "narrow") as wire:
            for secret in secrets:
                assert await refused(wire, secret)
            assert await refused(wire, served / "a" / "file.txt") is (len(roots) == 3)
