"""What a confined process may do, by the kernel of this machine; and what other systems are told."""

import gc
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcp_batteries.processes import sandbox as sandboxes
from mcp_batteries.processes.confinement import Confinement, everything_but, real_paths
from mcp_batteries.processes.landlock import Landlock, landlock_abi
from mcp_batteries.processes.program_files import DEVICES, is_elf, program_files
from mcp_batteries.processes.python_child import child_environment, python_command
from mcp_batteries.processes.sandbox import NoSandbox, find_sandbox
from mcp_batteries.processes.seatbelt import SANDBOX_EXEC, Seatbelt, seatbelt_profile

NETWORK_ABI = 4
SCOPE_ABI = 6

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such sandbox")


def _tool(name: str) -> str:
    return os.path.realpath(shutil.which(name) or name)


@pytest.fixture
def landlock() -> Landlock:
    try:
        find_sandbox()
    except NoSandbox as problem:
        pytest.skip(f"nothing confines a process here: {problem}")
    if sys.platform != "linux":
        pytest.skip("only Linux has Landlock")
    gc.enable()  # a command that ended before it served, in this process, leaves it off
    return Landlock(landlock_abi())


def _run(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={})


def _confinement(
    programs: Sequence[str], readable: Sequence[Path] = (), writable: Sequence[Path] = (), network: bool = False
) -> Confinement:
    files = program_files(programs)
    return Confinement(
        files.executable,
        files.readable | real_paths(map(str, readable)) | real_paths(DEVICES),
        real_paths(map(str, writable)),
        network,
    )


def test_a_process_reads_what_it_may_and_follows_no_link_out(landlock: Landlock, tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "file").write_text("inside", "utf-8")
    (tmp_path / "secret").write_text("outside", "utf-8")
    (allowed / "link").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "secret", allowed / "hard")
    cat = _tool("cat")
    confinement = _confinement([cat], [allowed])
    assert landlock.start(confinement, [cat, str(allowed / "file")], _run).stdout == "inside"
    for path in (tmp_path / "secret", allowed / "link", Path("/etc/shadow"), allowed / "../secret"):
        done = landlock.start(confinement, [cat, str(path)], _run)
        assert (done.returncode != 0, done.stdout) == (True, ""), path
    # A second name of the file itself is a file of the folder.
    assert landlock.start(confinement, [cat, str(allowed / "hard")], _run).stdout == "outside"
    assert (tmp_path / "secret").read_text("utf-8") == "outside"  # this process may what it could


def test_a_process_writes_only_where_it_may(landlock: Landlock, tmp_path: Path) -> None:
    for name in ("readable", "writable"):
        (tmp_path / name).mkdir()
    (tmp_path / "readable/file").write_text("as it was", "utf-8")
    shell = _tool("sh")
    confinement = _confinement([shell], [tmp_path / "readable"], [tmp_path / "writable"])

    def said(script: str) -> int:
        return landlock.start(confinement, [shell, "-c", f"cd {tmp_path}; {script}"], _run).returncode

    assert said("echo new > writable/file && echo more >> writable/file") == 0
    assert (tmp_path / "writable/file").read_text("utf-8") == "new\nmore\n"
    for script in ("echo x > readable/file", "echo x >> readable/file", "echo x > readable/new", "echo x > new"):
        assert said(script) != 0, script
    assert (tmp_path / "readable/file").read_text("utf-8") == "as it was"
    assert sorted(os.listdir(tmp_path)) == ["readable", "writable"]


def test_a_process_and_its_children_execute_only_what_they_may(landlock: Landlock, tmp_path: Path) -> None:
    shell, cat, touch = _tool("sh"), _tool("cat"), _tool("touch")
    script = tmp_path / "script"
    script.write_text(f"#!{shell}\necho ran\n", "utf-8")
    script.chmod(0o755)
    own = tmp_path / "own"
    shutil.copy2(touch, own)
    confinement = _confinement([shell, cat], [tmp_path], [tmp_path])
    done = landlock.start(confinement, [shell, "-c", f"{cat} {script}"], _run)
    assert "echo ran" in done.stdout
    for command in (str(script), f"{own} {tmp_path}/new", f"{touch} {tmp_path}/new", f"{shell} -c '{own} x'"):
        done = landlock.start(confinement, [shell, "-c", command], _run)
        assert done.returncode == 126 and done.stdout == "", command
    assert not (tmp_path / "new").exists()
    with pytest.raises(PermissionError):
        landlock.start(confinement, [touch, str(tmp_path / "new")], _run)


@pytest.mark.parametrize("network", [False, True])
def test_connections_are_made_only_where_that_is_allowed(landlock: Landlock, network: bool) -> None:
    if landlock_abi() < NETWORK_ABI:
        pytest.skip("this kernel does not confine connections")
    everything = frozenset([os.sep])
    confinement = Confinement(everything, everything, frozenset(), network)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
        done = landlock.start(confinement, [sys.executable, "-I", "-c", script], _run)
    assert (done.returncode == 0) is network, done.stderr
    assert network or "PermissionError" in done.stderr


def test_a_process_signals_none_but_its_own(landlock: Landlock) -> None:
    if landlock_abi() < SCOPE_ABI:
        pytest.skip("this kernel does not confine signals")
    shell = _tool("sh")
    confinement = _confinement([shell])
    script = f"kill -0 {os.getpid()}"
    assert _run([shell, "-c", script]).returncode == 0
    assert landlock.start(confinement, [shell, "-c", script], _run).returncode != 0
    assert landlock.start(confinement, [shell, "-c", "kill -0 $$"], _run).returncode == 0


def test_a_path_that_became_a_link_gives_no_access(landlock: Landlock, tmp_path: Path) -> None:
    cat = _tool("cat")
    for name in ("one", "two"):
        (tmp_path / name / "below").mkdir(parents=True)
        (tmp_path / name / "below/file").write_text(name, "utf-8")
    path = tmp_path / "one/below"
    confinement = _confinement([cat], [path])

    def said() -> str:
        return landlock.start(confinement, [cat, str(path / "file")], _run).stdout

    assert said() == "one"
    (tmp_path / "one").rename(tmp_path / "old")
    (tmp_path / "one").symlink_to(tmp_path / "two")
    assert said() == "", "a folder above it is a link now"
    (tmp_path / "one").unlink()
    (tmp_path / "two").rename(tmp_path / "one")
    assert said() == "two", "another folder is there now, and it is a real one"


def test_what_spawning_raises_is_raised_and_nothing_stays(landlock: Landlock, tmp_path: Path) -> None:
    confinement = _confinement([])

    def fail(words: Sequence[str]) -> int:
        assert not gc.isenabled()
        raise ValueError(words[0])

    with pytest.raises(ValueError, match="some"):
        landlock.start(confinement, ["some"], fail)
    assert gc.isenabled()
    (tmp_path / "file").write_text("this process may still write", "utf-8")


def test_many_processes_are_confined_at_once(landlock: Landlock, tmp_path: Path) -> None:
    cat = _tool("cat")
    folders = [tmp_path / str(number) for number in range(40)]  # more than are kept
    for folder in folders:
        folder.mkdir()
        (folder / "file").write_text(folder.name, "utf-8")

    def said(number: int) -> tuple[str, str]:
        confinement = _confinement([cat], [folders[number]])
        own, other = folders[number] / "file", folders[number - 1] / "file"
        return tuple(landlock.start(confinement, [cat, str(path)], _run).stdout for path in (own, other))  # type: ignore[return-value]

    descriptors = len(os.listdir("/proc/self/fd"))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(said, range(40))) == [(str(number), "") for number in range(40)]
    assert gc.isenabled() and threading.active_count() < 40
    assert len(os.listdir("/proc/self/fd")) - descriptors < 40


# What every system is told


def test_everything_but_a_folder_is_its_siblings_and_those_above(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/b/d", "a/e", "f"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a/file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    top = str(tmp_path)

    def below(*folders: str) -> set[str]:
        return {os.path.relpath(path, top) for path in everything_but([f"{top}/{name}" for name in folders], top)}

    assert below("a/b/c") == {"a/b/d", "a/e", "a/file", "f"}
    assert below("a/b", "a/b/c", "f") == {"a/e", "a/file"}
    assert everything_but([], top) == {top} == everything_but(["/elsewhere"], top)
    assert everything_but([top, f"{top}/a"], top) == frozenset()


def test_a_confinement_in_the_language_of_seatbelt() -> None:
    confinement = Confinement(
        executable=frozenset(["/usr/bin/git"]),
        readable=frozenset(["/", '/srv/a "b" \\c']),
        writable=frozenset(["/srv/w/"]),
    )
    profile = seatbelt_profile(confinement)
    lines = profile.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert lines[-3:] == [
        '(allow file-read* (subpath "/") (subpath "/dev/null") (subpath "/srv/a \\"b\\" \\\\c") (subpath "/srv/w") '
        '(subpath "/usr/bin/git"))',
        '(allow process-exec (subpath "/usr/bin/git"))',
        '(allow file-write* (subpath "/dev/null") (subpath "/srv/w"))',
    ]
    assert "(deny network*)" in lines and profile.count("(") == profile.count(")")
    nothing = Confinement(frozenset(), frozenset(), frozenset(), network=True)
    profile = seatbelt_profile(nothing)
    assert "process-exec" not in profile and profile.count("subpath") == 2
    assert profile.index("(deny network*)") < profile.index("(allow network*)"), "the last rule that fits decides"
    assert Seatbelt().start(confinement, ["git", "log"], list)[:2] == [SANDBOX_EXEC, "-p"]
    assert Seatbelt().start(confinement, ["git", "log"], list)[3:] == ["git", "log"]


@pytest.mark.parametrize(
    ("platform", "abi", "says"),
    [("linux", 0, "no Landlock"), ("linux", 1, "too old"), ("win32", 0, "no sandbox"), ("darwin", 0, "is missing")],
)
def test_a_system_without_a_sandbox_says_why(
    platform: str, abi: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(sandboxes, "landlock_abi", lambda: abi)
    monkeypatch.setattr(sandboxes, "SANDBOX_EXEC", "/nowhere/sandbox-exec")
    find: Callable[[], object] = find_sandbox.__wrapped__
    with pytest.raises(NoSandbox, match=says):
        find()


def test_a_system_with_one_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sandboxes, "landlock_abi", lambda: 3)
    find: Callable[[], sandboxes.Sandbox] = find_sandbox.__wrapped__
    assert find().name == "Landlock 3, files only"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(sandboxes, "SANDBOX_EXEC", sys.executable)
    assert find().name == "Seatbelt"


def _programs() -> Iterator[tuple[str, bytes]]:
    """Heads of programs that name their loader, of each word size and byte order."""
    loader = b"/lib/ld-test.so.1\0"
    for order, mark in (("<", 1), (">", 2)):
        head = b"\x7fELF" + bytes([2, mark, 1]) + bytes(9)
        head += struct.pack(f"{order}HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
        yield f"64{order}", head + struct.pack(f"{order}IIQQQQQQ", 3, 4, 120, 0, 0, len(loader), 0, 1) + loader
        head = b"\x7fELF" + bytes([1, mark, 1]) + bytes(9)
        head += struct.pack(f"{order}HHIIIIIHHHHHH", 3, 3, 1, 0, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        yield f"32{order}", head + struct.pack(f"{order}IIIIIIII", 3, 84, 0, 0, len(loader), 0, 4, 1) + loader


@pytest.mark.parametrize(
    ("kind", "program"), list(_programs()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_loader_of_a_program_is_found(kind: str, program: bytes, tmp_path: Path) -> None:
    path = tmp_path / kind
    path.write_bytes(program)
    assert program_files([str(path)]).executable == {os.path.realpath(path), os.path.realpath("/lib/ld-test.so.1")}
    assert is_elf(str(path))
    for size in (3, 20, 60, 80):
        path.write_bytes(program[:size])
        assert str(path) in program_files([str(path)]).executable
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n", "utf-8")
    assert program_files([str(script), str(tmp_path / "none")]).executable == {os.path.realpath(script)}
    assert not is_elf(str(script)) and not is_elf(str(tmp_path / "none"))


# Prints the name of each thing that it could reach.
_ATTEMPTS = """
import os, socket, subprocess, sys

def main():
    outside, given, listener = sys.argv[1:]
    attempts = {
        "users": lambda: open("/etc/passwd").read(),
        "home": lambda: os.listdir(os.path.expanduser("~")),
        "file outside": lambda: open(outside).read(),
        "given file": lambda: open(given).read(),
        "change": lambda: open(given, "a"),
        "new file": lambda: open(outside + ".new", "w"),
        "program": lambda: subprocess.run(["/bin/true"]),
        "TCP": lambda: socket.socket(),
        "UDP": lambda: socket.socket(type=socket.SOCK_DGRAM),
        "socket in a folder": lambda: socket.socket(socket.AF_UNIX).connect(listener),
        "late import": lambda: __import__("sqlite3"),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            continue
        print(name)
"""


def test_a_reader_reaches_only_what_it_was_given(
    landlock: Landlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "told_to_look_around.py").write_text(_ATTEMPTS)
    monkeypatch.setattr(sys, "path", [str(modules), *sys.path])
    outside = tmp_path / "outside"
    given = tmp_path / "given"
    for path in (outside, given):
        path.write_text("secret")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        arguments = [str(outside), str(given), str(tmp_path / "socket")]
        command = python_command("told_to_look_around", arguments, readable=[str(given)])
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
        assert done.stdout.splitlines() == ["given file", "late import"], done.stderr
        command = python_command("told_to_look_around", arguments, writable=[str(given)])
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=child_environment())
        assert done.stdout.splitlines() == ["given file", "change", "late import"], done.stderr
