"""What is answered before the server is there: what the server answers, and for this very configuration only."""

import json
import marshal
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contract.cases import CASES
from e2e.installing import SERVERS, arguments, data
from e2e.starts import ENDS, ERAS, Start, start_twice
from mcp_batteries.testing.wire import REVISIONS, StdioWire
from mcp_batteries.transports.stdio.cached_handshake import replay
from tools.members import Member

KEEPING = [server for server in SERVERS if server.command != "mcp-postgres"]
"""The servers whose description of themselves depends on nothing that they find out while they run."""
LISTS = ("tools/list", "prompts/list", "resources/templates/list")
HOME = "USERPROFILE" if sys.platform == "win32" else "HOME"
SECRET = "ghp_thisTokenIsNobodysButMustNeverBeSeen"

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "darwin", reason="asks Linux or Windows what a process has loaded"),
]


class Starts:
    """Starts of one command that share a folder for what was answered."""

    def __init__(self, package: str, words: Sequence[str], folder: Path, **variables: str) -> None:
        # What a virtual environment on Windows calls python.exe starts the real one as a process of its own.
        python = getattr(sys, "_base_executable", "") if sys.platform == "win32" else sys.executable
        self.command = [python, "-m", package, *words]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MCP_")}
        cache = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
        self.environment: Mapping[str, str] = {
            **kept,
            cache: str(folder),
            "__PYVENV_LAUNCHER__": sys.executable,
            **variables,
        }
        self.folder = folder / "mcp-batteries/first-answers"
        self.cwd = folder

    @asynccontextmanager
    async def start(self, revision: str = "2025-11-25", **more: Any) -> AsyncGenerator[StdioWire]:
        wire = StdioWire(
            self.command, revision=revision, env=more.pop("env", self.environment), cwd=str(self.cwd), **more
        )
        async with wire:
            yield wire

    async def opening(self, wire: StdioWire) -> list[Any]:
        """What a host asks first."""
        hello = await wire.open()
        return [hello, *[await wire.request(method) for method in LISTS]]

    async def prime(self, revision: str = "2025-11-25") -> list[Any]:
        async with self.start(revision) as wire:
            said = await self.opening(wire)
            assert has_server(wire)
        return said

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.exists() else []

    async def is_kept(self) -> bool:
        async with self.start() as wire:
            await wire.open()
            return not has_server(wire)


def has_server(wire: StdioWire) -> bool:
    """Whether the process has loaded what answers in general."""
    if sys.platform == "win32":
        return any("pydantic_core" in name for name in libraries(wire.process.pid))
    return "pydantic_core" in Path(f"/proc/{wire.process.pid}/maps").read_text()


if sys.platform == "win32":
    import _winapi
    import ctypes
    from ctypes import wintypes

    def libraries(number: int) -> list[str]:
        """The files of the libraries that process `number` has loaded."""
        handle = _winapi.OpenProcess(0x0400 | 0x0010, False, number)  # to ask for what it is, and to read its memory
        process, modules, size = wintypes.HANDLE(handle), (wintypes.HMODULE * 2048)(), wintypes.DWORD()
        kernel, name = ctypes.WinDLL("kernel32", use_last_error=True), ctypes.create_unicode_buffer(32_768)
        found: list[str] = []
        try:
            if not kernel.K32EnumProcessModules(process, modules, ctypes.sizeof(modules), ctypes.byref(size)):
                raise ctypes.WinError(ctypes.get_last_error())
            for module in modules[: size.value // ctypes.sizeof(wintypes.HMODULE)]:
                kernel.K32GetModuleFileNameExW(process, wintypes.HMODULE(module), name, len(name))
                found.append(name.value)
        finally:
            _winapi.CloseHandle(handle)
        return found


@pytest.fixture
def served(tmp_path: Path) -> Path:
    data(tmp_path / "served")
    return tmp_path / "served"


def files(served: Path, tmp_path: Path, *words: str, **variables: str) -> Starts:
    (tmp_path / "cache").mkdir(exist_ok=True)
    return Starts("mcp_fs", [*words, str(served)], tmp_path / "cache", **variables)


@pytest.mark.diagonal
@pytest.mark.share(0, slow=2)
@pytest.mark.parametrize("gates", ["as asked", "all open"])
@pytest.mark.parametrize("server", KEEPING, ids=lambda server: server.command)
async def test_the_front_says_what_the_server_says(server: Member, gates: str, served: Path, tmp_path: Path) -> None:
    words = arguments(server, served)
    if gates == "all open":
        unusable = ("--demo", "--token-file", "token")
        opened = [word for word in server.settings.documented_arguments(str(served)) if word not in unusable]
        words = [*opened, *(word for word in words if word not in opened)]
    starts = Starts(server.package, words, tmp_path, GITHUB_TOKEN=SECRET)
    for revision in REVISIONS if server.command == "mcp-fs" else (REVISIONS[0], REVISIONS[-1]):
        said = await starts.prime(revision)
        async with starts.start(revision) as wire:
            assert await starts.opening(wire) == said
            assert not has_server(wire)
    assert not any(SECRET.encode() in file.read_bytes() for file in starts.files)


@pytest.mark.slow
async def test_the_server_goes_on_where_the_front_ends(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    said = await starts.prime()
    call = {"name": "read_text", "arguments": {"path": "notes.txt"}}
    async with starts.start() as wire:
        assert await starts.opening(wire) == said
        assert "one" in json.dumps(await wire.request("tools/call", call))
        assert [await wire.request(method) for method in LISTS] == said[1:]
    assert not wire.garbage


@pytest.mark.diagonal
@pytest.mark.share(0, slow=2)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("package", CASES)
async def test_a_second_start_serves_all_that_clients_ask(
    package: str, revision: str, end: str, tmp_path: Path
) -> None:
    case = CASES[package](tmp_path)
    starts = Starts(package, case.arguments, tmp_path / "cache")
    watched = next(tmp_path.rglob("notes.txt")) if case.uri.startswith("file:") else None
    start = Start(starts.command, case, starts.folder.parent, watched, starts.environment)
    answer = await start_twice(start, revision, end)
    assert not answer.get("isError"), answer


WINDOWS_INPUT = """
import os, sys
from types import ModuleType

def peek(handle, size):
    raise OSError(50, "Request not supported")

# What only Windows has; a pipe that cannot be asked whether it holds anything, as for sockets there.
windows = ModuleType("_winapi")
windows.PeekNamedPipe = peek
runtime = ModuleType("msvcrt")
runtime.get_osfhandle = lambda descriptor: descriptor
sys.modules["_winapi"], sys.modules["msvcrt"] = windows, runtime
from mcp_batteries.transports.stdio import posix
sys.modules["mcp_batteries.transports.stdio.windows"] = posix
system, sys.platform = sys.platform, "win32"
import mcp_batteries.transports.stdio.cached_handshake.input
sys.platform = system
del sys.modules["_winapi"], sys.modules["msvcrt"]
from mcp_batteries.run import run
run("mcp_fs")
"""


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.skipif(sys.platform == "win32", reason="there it is so")
@pytest.mark.parametrize("revision", ERAS)
async def test_the_front_reads_as_on_windows_and_hands_over(revision: str, served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    starts.command = [sys.executable, "-c", WINDOWS_INPUT, str(served)]
    said = await starts.prime(revision)
    async with starts.start(revision) as wire:
        assert await starts.opening(wire) == said
        assert not has_server(wire)
        assert "one" in json.dumps(await wire.call("read_text", path="notes.txt"))
        assert await wire.request("resources/list")


class Chunks:
    """The input of a front, in chunks; it fails if it is read once a line needs the server."""

    def __init__(self, chunks: Sequence[bytes], answered: Sequence[bytes]) -> None:
        self._chunks, self._answered, self.given = list(chunks), answered, b""

    def read(self) -> bytes:
        *lines, _ = self.given.split(b"\n")
        assert all(line in self._answered for line in lines), "it waits though a line needs the server"
        if not self._chunks:
            raise EOFError
        chunk = self._chunks.pop(0)
        self.given += chunk
        return chunk

    def close(self) -> None:
        """Do nothing."""


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
LISTING = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
CALLING = b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}'


@given(st.lists(st.sampled_from([PING, LISTING, CALLING, b""]), max_size=6), st.lists(st.integers(1, 300), max_size=6))
@example([PING, CALLING], [])
def test_the_front_reads_nothing_once_a_line_needs_the_server(lines: list[bytes], cuts: list[int]) -> None:
    sent = b"".join(line + b"\n" for line in lines)
    places = [0, *sorted({cut for cut in cuts if cut < len(sent)}), len(sent)]
    chunks = [sent[start:end] for start, end in pairwise(places) if end > start]
    result = b',"result":{}}\n'
    plain = [replay.make_template(line + b"\n", b"1", b'{"jsonrpc":"2.0","id":1' + result) for line in (PING, LISTING)]
    source, handover, written = Chunks(chunks, [PING, LISTING]), replay.Handover(""), list[bytes]()

    def write(_: int, data: memoryview) -> int:
        written.append(bytes(data))
        return len(data)

    with patch.object(replay, "os", SimpleNamespace(write=write)), suppress(EOFError):
        replay._Replay(handover, {"sessions": [], "plain": plain})._run(source)  # pyright: ignore
        # It returned, so there is something for the server, and all that was read is answered or handed over.
        assert handover.pending
        answered = [line for line, _ in handover.answered_lines]
        assert sorted([*answered, *handover.pending.splitlines(keepends=True)]) == sorted(
            source.given.splitlines(keepends=True)
        )
    assert len(written) == len(handover.answered_lines)


@pytest.mark.slow
async def test_what_was_said_before_the_first_call_is_kept(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    async with starts.start() as wire:
        said = await starts.opening(wire)
        await wire.call("read_text", path="notes.txt")
        wire.process.kill()
        await wire.wait()
    async with starts.start() as wire:
        assert await starts.opening(wire) == said
        assert not has_server(wire)


@pytest.mark.slow
async def test_lines_that_come_at_once_are_each_answered_once(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    async with starts.start() as wire:
        await wire.open()
        call = {"name": "read_text", "arguments": {"path": "notes.txt"}}
        messages = [
            {"jsonrpc": "2.0", "id": "a-1", "method": "tools/call", "params": call},
            *({"jsonrpc": "2.0", "id": f"b-{method}", "method": method} for method in LISTS),
            {"jsonrpc": "2.0", "id": 777, "method": "resources/list"},
        ]
        await wire.send_raw(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        await wire.close_stdin()
        await wire.wait()
    ids = [message["id"] for message in wire.messages if "id" in message]
    assert sorted(map(str, ids)) == sorted(str(message["id"]) for message in messages)


@pytest.mark.slow
async def test_a_difference_is_announced_and_forgotten(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    [file] = starts.files
    kept = marshal.loads(file.read_bytes()[4:])
    lists = kept["sessions"][0]["lists"]
    for number, (before, after, answer) in enumerate(lists):
        lists[number] = (before, after, answer.replace(b"read_text", b"read_what"))
    write(file, kept)
    async with starts.start() as wire:
        assert "read_what" in json.dumps(await starts.opening(wire))
        await wire.request("resources/list")
        await wire.notification("notifications/tools/list_changed")
        assert "read_text" in json.dumps(await wire.request("tools/list"))
    assert not starts.files


def write(file: Path, kept: object) -> None:
    said = marshal.dumps(kept)
    file.write_bytes(zlib.crc32(said).to_bytes(4, "big") + said)


@pytest.mark.slow
async def test_another_configuration_is_not_answered(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    assert await starts.is_kept()
    for variable in ({"MCP_FS_READ_ONLY": "1"}, {HOME: str(tmp_path)}, {"mcp_fs_read_only": "1"}):
        async with starts.start(env={**starts.environment, **variable}) as wire:
            await wire.open()
            assert has_server(wire), variable
    assert not await files(served, tmp_path, "--read-only").is_kept()
    starts.cwd = tmp_path
    assert not await starts.is_kept()


@pytest.mark.slow
async def test_a_folder_in_the_place_of_another_is_not_taken_for_it(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    served.rename(tmp_path / "gone")
    data(served)
    assert not await starts.is_kept()
    assert await starts.is_kept()
    for path in [*served.iterdir(), served]:
        path.rmdir() if path.is_dir() else path.unlink()
    async with starts.start() as wire:
        assert await wire.wait() == 1
        assert "served" in wire.stderr


@pytest.mark.slow
async def test_a_file_of_settings_that_changed_is_read_again(tmp_path: Path) -> None:
    places = tmp_path / "places.toml"
    places.write_text('home = "48.2,16.4"\n')
    starts = Starts("mcp_weather", ["--places", str(places)], tmp_path)
    await starts.prime()
    assert await starts.is_kept()
    places.write_text('home = "48.2,16.3"\n')
    assert not await starts.is_kept()


HARMS = ["each byte", "cut", "empty", "foreign"]
MODES = ["readable", "writable", "folder", "link"]


@pytest.mark.share(1, slow=3)
@pytest.mark.parametrize("harm", HARMS if sys.platform == "win32" else HARMS + MODES)
async def test_a_damaged_or_foreign_file_is_ignored(harm: str, served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    [file] = starts.files
    whole = file.read_bytes()
    if harm == "each byte":
        for place in range(0, len(whole), max(1, len(whole) // 200)):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
            assert replay._read(str(file)) is None  # pyright: ignore[reportPrivateUsage]
    elif harm == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif harm == "empty":
        file.write_bytes(b"")
    elif harm in ("readable", "writable"):
        file.chmod(0o640 if harm == "readable" else 0o620)
    elif harm == "folder":
        starts.folder.chmod(0o755)
    elif harm == "link":
        file.rename(file.with_suffix(".real"))
        file.symlink_to(file.with_suffix(".real"))
    else:
        write(file, {"another": "form"})
    if harm != "foreign":
        assert replay._read(str(file)) is None  # pyright: ignore[reportPrivateUsage]
    if harm in ("foreign", "cut"):
        async with starts.start() as wire:
            await starts.opening(wire)
            assert has_server(wire)


@pytest.mark.share(1)
@pytest.mark.parametrize("words", [["--no-front"], ["--audit-file", "audit"], ["--client-roots", "narrow"]])
async def test_nothing_is_kept_where_that_would_be_missed(words: list[str], served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path, *words)
    await starts.prime()
    assert not starts.files


async def test_nothing_is_kept_of_tools_that_come_and_go(served: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    starts = Starts("mcp_sqlite", ["--queries", str(tmp_path / "queries"), str(served / "app.db")], tmp_path)
    await starts.prime()
    assert not starts.files


@pytest.mark.share(1)
@pytest.mark.skipif(sys.platform == "win32", reason="there a process is terminated, or asked by keys of a console")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_front(number: signal.Signals, served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    async with starts.start() as wire:
        await starts.opening(wire)
        assert not has_server(wire)
        wire.process.send_signal(number)
        assert await wire.wait() == 128 + number


async def test_a_front_ends_when_nobody_reads_its_answers(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    [file] = starts.files
    before, after, _ = marshal.loads(file.read_bytes()[4:])["sessions"][0]["hello"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        starts.command, stdin=pipe, stdout=pipe, env=starts.environment, cwd=starts.cwd, bufsize=0
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(before + b"1" + after)
        assert b"protocolVersion" in process.stdout.read(1000)
        # Standard input stays open.
        process.stdout.close()
        assert process.wait(20) == 0


@pytest.mark.slow
async def test_a_line_that_never_ends_is_the_servers(served: Path, tmp_path: Path) -> None:
    starts = files(served, tmp_path)
    await starts.prime()
    async with starts.start() as wire:
        await wire.open()
        long = {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {"cursor": "x" * 1_000_000}}
        line = json.dumps(long).encode() + b"\n"
        await wire.send_raw(line[:500_000])
        await wire.send_raw(line[500_000:])
        await wire.close_stdin()
        await wire.wait()
    assert [message["id"] for message in wire.messages if message.get("id") == 5] == [5]


IDS = st.one_of(
    st.integers(-10, 10**20),
    st.text(max_size=70),
    st.sampled_from([True, None, 1.5, [], {}, "", "a-1", "\\u0031", "0", "00"]),
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": IDS, "method": st.sampled_from(["tools/list", "ping", "tools/call"])},
    optional={"params": st.dictionaries(st.sampled_from(["id", "cursor", "_meta"]), IDS, max_size=2), "id2": IDS},
)
FORMS = st.sampled_from([{"separators": (",", ":")}, {}, {"ensure_ascii": False}, {"sort_keys": True}])


@pytest.mark.slow
@given(MESSAGES, MESSAGES, IDS, FORMS, FORMS)
@example({"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 7, "method": "ping"}, 7, {}, {})
def test_only_the_same_question_gets_the_same_answer(
    asked: dict[str, Any], other: dict[str, Any], number: Any, form: dict[str, Any], other_form: dict[str, Any]
) -> None:
    line = json.dumps(asked, **form).encode("utf-8", "surrogatepass") + b"\n"
    said = b'{"jsonrpc":"2.0","id":%s,"result":{}}\n' % json.dumps(asked["id"]).encode()
    made = replay.make_template(line, json.dumps(asked["id"]).encode(), said)
    if made is None:
        return
    for candidate in (other, {**asked, "id": number}, {**asked, "id": other["id"]}, {**other, "id": asked["id"]}):
        given_line = json.dumps(candidate, **other_form).encode("utf-8", "surrogatepass") + b"\n"
        answer = replay._fill(made, given_line)  # pyright: ignore[reportPrivateUsage]
        if answer is not None:
            assert {**candidate, "id": 0} == {**asked, "id": 0}
            assert json.loads(answer) == {"jsonrpc": "2.0", "id": candidate["id"], "result": {}}
            assert type(candidate["id"]) in (int, str)
