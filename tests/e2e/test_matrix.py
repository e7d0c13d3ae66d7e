"""One body for every transport and revision: what a client does in a day with mcp-fs, notices included."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from contract.cases import CASES
from e2e.serving import TRANSPORTS, connected_process, listening
from mcp_batteries.testing.case import Case
from mcp_batteries.testing.wire import MODERN, REVISIONS, HttpWire, Message, StdioWire, Wire
from mcp_batteries.testing.wire.base import SECONDS

UPDATED = "notifications/resources/updated"


def about(uri: str):
    return lambda params: params.get("uri") == uri


async def heard(wire: Wire, uri: str) -> Message:
    """The next notice about `uri`; older ones about it are taken with it."""
    notice = await wire.notification(UPDATED, about(uri))
    wire.messages[:] = [item for item in wire.messages if item.get("params", {}).get("uri") != uri]
    return notice


def text_of(result: Message) -> str:
    assert not result.get("isError"), result
    return result["content"][0]["text"]


@pytest.mark.slow
@pytest.mark.share(2)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_day_with_a_folder(transport: str, revision: str, tmp_path: Path) -> None:
    served = tmp_path / "served"
    (served / "folder").mkdir(parents=True)
    notes, control, folder = served / "notes.txt", served / "control.txt", served / "folder"
    notes.write_text("one\n", "utf-8")
    control.write_text("0", "utf-8")

    async with connected_process(transport, revision, "mcp_fs", [str(served)]) as wire:
        tools = (await wire.request("tools/list"))["tools"]
        assert {"read_text", "write_file", "search_text"} <= {tool["name"] for tool in tools}
        listed = (await wire.request("resources/list"))["resources"]
        assert served.as_uri() in {resource["uri"] for resource in listed}
        templates = (await wire.request("resources/templates/list"))["resourceTemplates"]
        assert "file:///{+path}" in {template["uriTemplate"] for template in templates}
        assert (await wire.request("prompts/list"))["prompts"]

        assert "one\n" in text_of(await wire.call("read_text", path="notes.txt"))
        contents = (await wire.request("resources/read", {"uri": notes.as_uri()}))["contents"]
        assert [(item["uri"], item["text"]) for item in contents] == [(notes.as_uri(), "one\n")]
        [listing] = (await wire.request("resources/read", {"uri": served.as_uri()}))["contents"]
        assert listing["uri"] == served.as_uri()
        assert {"notes.txt", "folder/"} <= {line.partition("\t")[0] for line in listing["text"].splitlines()}

        for uri in (notes.as_uri(), control.as_uri(), folder.as_uri()):
            await wire.subscribe(uri)

        notes.write_text("two\n", "utf-8")
        await heard(wire, notes.as_uri())

        (served / "new").write_text("three\n", "utf-8")
        os.replace(served / "new", notes)
        await heard(wire, notes.as_uri())

        notes.unlink()
        await heard(wire, notes.as_uri())
        notes.write_text("four\n", "utf-8")
        await heard(wire, notes.as_uri())

        (folder / "child").write_text("", "utf-8")
        await heard(wire, folder.as_uri())

        text_of(await wire.call("edit_file", path="notes.txt", edits=[{"old_text": "four", "new_text": "five"}]))
        await heard(wire, notes.as_uri())

        await wire.unsubscribe(notes.as_uri())
        # Whatever was already under way about the notes arrives before this notice of the control.
        control.write_text("1", "utf-8")
        await heard(wire, control.as_uri())
        wire.messages.clear()
        notes.write_text("six\n", "utf-8")
        control.write_text("2", "utf-8")
        await heard(wire, control.as_uri())
        assert await wire.silent(UPDATED, about(notes.as_uri()))


@pytest.mark.share(1)
@pytest.mark.diagonal
@pytest.mark.anyio
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_new_file_changes_the_list_for_those_who_asked(transport: str, revision: str, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("", "utf-8")
    async with connected_process(transport, revision, "mcp_fs", [str(tmp_path)]) as wire:
        before = (await wire.request("resources/list"))["resources"]
        if revision == MODERN:
            await wire.listen({"resourcesListChanged": True})
        (tmp_path / "new.txt").write_text("", "utf-8")
        await wire.notification("notifications/resources/list_changed")
        after = (await wire.request("resources/list"))["resources"]
        assert {item["uri"] for item in after} - {item["uri"] for item in before} == {(tmp_path / "new.txt").as_uri()}


@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_name_that_is_not_utf8_is_listed_read_and_followed(transport: str, tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    try:
        with open(raw, "w", encoding="utf-8") as file:
            file.write("one\n")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes only UTF-8 names")
    uri = tmp_path.as_uri() + "/caf%E9.txt"
    async with connected_process(transport, "2025-11-25", "mcp_fs", [str(tmp_path)]) as wire:
        assert uri in text_of(await wire.call("list_directory", path="."))
        assert uri in {item["uri"] for item in (await wire.request("resources/list"))["resources"]}
        assert "one\n" in text_of(await wire.call("read_text", path=uri))
        contents = (await wire.request("resources/read", {"uri": uri}))["contents"]
        assert [(item["uri"], item["text"]) for item in contents] == [(uri, "one\n")]
        await wire.subscribe(uri)
        with open(raw, "w", encoding="utf-8") as file:
            file.write("two\n")
        await wire.notification(UPDATED, about(uri))


# Every member. Generous for a loaded machine: the rule is one second, a missing one is seen as five or never.
_LEAVES_SECONDS = SECONDS / 8


async def _used(wire: Wire, case: Case) -> tuple[float, float, float]:
    """When the server of `case` was ready, had answered a call and had a subscriber."""
    await wire.open()
    ready = anyio.current_time()
    text_of(await wire.call(case.read[0], **case.read[1]))
    answered = anyio.current_time()
    await wire.subscribe(case.uri)
    return ready, answered, anyio.current_time()


def _seconds(begun: float, *until: float) -> list[float]:
    """From the start until the server was ready, had answered and had a subscriber; from its end until it was gone."""
    return [*(round(at - begun, 2) for at in until), round(anyio.current_time() - until[-1], 2)]


@pytest.mark.share(2, slow=2)
@pytest.mark.anyio
@pytest.mark.parametrize("package", CASES)
async def test_every_server_answers_subscribes_and_leaves_over_stdio(
    package: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    case = CASES[package](tmp_path)
    begun = anyio.current_time()
    async with StdioWire(case.command, revision=REVISIONS[0]) as wire:
        used = await _used(wire, case)
        await wire.close_stdin()
        with anyio.fail_after(_LEAVES_SECONDS):
            assert await wire.wait() == 0
        record_property(f"{package} over stdio", _seconds(begun, *used))
    assert (wire.garbage, wire.stderr) == ([], "")


@pytest.mark.share(2, slow=2)
@pytest.mark.anyio
@pytest.mark.parametrize("package", CASES)
async def test_every_server_answers_subscribes_and_leaves_over_http(
    package: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    case = CASES[package](tmp_path)
    begun = anyio.current_time()
    async with listening(package, *case.arguments) as (process, url):
        async with HttpWire(url, revision=MODERN) as wire:
            used = await _used(wire, case)
            if sys.platform == "win32":
                process.terminate()
            else:
                process.send_signal(signal.SIGINT)
            with anyio.fail_after(_LEAVES_SECONDS):
                status = await process.wait()
        record_property(f"{package} over HTTP", _seconds(begun, *used))
        assert status == (1 if sys.platform == "win32" else 130)
