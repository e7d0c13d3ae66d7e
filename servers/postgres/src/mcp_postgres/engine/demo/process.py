"""Our own PostgreSQL in a private folder, run by a small separate process.

The process makes the cluster, starts it, and stops it and removes the folder when its standard input ends, also in the
middle of the start. Its input ends with the process that started it, however that ends; should it be killed itself, a
shell that waits for its end does the same. PostgreSQL refuses to run as root, so a root's cluster belongs to `nobody`.
It needs the standard library only: run it as a script.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

__all__ = ["free_port", "run_cluster"]

_MAX_SECONDS = 120
_FAST_OPTIONS = [
    "-c",
    "fsync=off",
    "-c",
    "full_page_writes=off",
    "-c",
    "synchronous_commit=off",
    "-c",
    "max_wal_size=256MB",
]

# Who is killed and waited for by nobody stays a number: five seconds, then the folder goes all the same.
_GUARD = """
read -r _
kill -QUIT "$0"
tries=50
while [ $tries -gt 0 ] && kill -0 "$0"; do sleep 0.1; tries=$((tries - 1)); done
rm -rf "$1"
"""

# Standard input has ended: nobody wants the cluster any more.
_stop_requested = threading.Event()
_children: set[subprocess.Popen[str]] = set()


class _Stopped(Exception):
    """The start was given up."""


def run_cluster(folder: str, programs: str, password: str, script: str, options: list[str], major: int) -> int:
    """Keep a cluster in `folder` until standard input ends; tell its port as a line of JSON once it is ready.

    Args:
        programs: where `initdb`, `postgres` and `psql` are.
        password: of the superuser `postgres`.
        script: SQL run before anybody is told the port.
        options: more of `postgres`.
        major: the version that it has to be; 0 for any.
    """
    data = os.path.join(folder, "data")
    server = guard = None
    threading.Thread(target=_wait_for_stop, daemon=True).start()
    try:
        user, programs = _choose_user(folder, programs)
        if major:
            _check_major(programs, major, user)
        secret = os.path.join(folder, "password")
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(password)
        if user:
            shutil.chown(secret, user["user"])
        make = ["initdb", "-D", data, "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
        _run(programs, [*make, "--locale=C", f"--pwfile={secret}"], user)
        port = free_port()
        command = [os.path.join(programs, "postgres"), "-D", data, "-p", str(port), "-h", "127.0.0.1"]
        private = ["-c", "unix_socket_directories=", "-c", "logging_collector=off"]
        with open(os.path.join(folder, "log"), "wb") as log:
            server = subprocess.Popen(
                [*command, *private, *_FAST_OPTIONS, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=folder, **user,
            )  # fmt: skip
        guard = _start_guard(server, folder)
        _wait_until_ready(server, data)
        environment = {**os.environ, "PGPASSWORD": password}
        ask = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres"]
        _run(programs, [*ask, "-d", "postgres"], user, input_text=script, environment=environment)
        _write_message({"port": port, "pid": server.pid})
        _stop_requested.wait()
    except _Stopped:
        pass
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        _write_message({"error": str(error)[:2000]})
        return 1
    finally:
        if guard is not None:
            guard.kill()
            guard.wait()
        if server is not None:
            _stop(server)
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _check_major(programs: str, major: int, user: dict[str, Any]) -> None:
    """Raise `RuntimeError` if the programs are of another PostgreSQL."""
    version = _run(programs, ["postgres", "--version"], user).strip()
    if f" {major}." not in version:
        raise RuntimeError(f"the wheel brings {version or 'no version'}, PostgreSQL {major} was expected")


def _wait_for_stop() -> None:
    # Not through `sys.stdin`, whose lock a thread that still waits would hold at the interpreter's end.
    while os.read(0, 4096):
        pass
    _stop_requested.set()
    for child in list(_children):
        # With what it has started in turn, as `initdb` does.
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()


def _start_guard(server: subprocess.Popen[Any], folder: str) -> subprocess.Popen[bytes] | None:
    """Return what stops the server and removes the folder once this process has been killed: then its input ends."""
    if os.name != "posix":
        return None
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, str(server.pid), folder], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
    )  # fmt: skip


def _choose_user(folder: str, programs: str) -> tuple[dict[str, Any], str]:
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return {}, programs
    user: dict[str, Any] = {"user": "nobody", "extra_groups": []}
    shutil.chown(folder, "nobody")
    os.chmod(folder, 0o700)
    try:
        _run(programs, ["postgres", "--version"], user)
    except (OSError, RuntimeError):
        # Installed where only root can look: nobody gets a copy.
        programs = _copy_programs(programs, os.path.join(folder, "programs"))
        _run(programs, ["initdb", "--version"], user)
    return user, programs


def _copy_programs(programs: str, target: str) -> str:
    """Return where `programs` are in a copy, below `to`, that `nobody` owns.

    A wheel's programs look for their libraries three folders up, in one named after the package: the copy keeps
    these places.
    """
    installation = os.path.dirname(programs)
    package = os.path.dirname(installation)
    shutil.copytree(installation, os.path.join(target, os.path.basename(package), os.path.basename(installation)))
    if os.path.isdir(f"{package}.libs"):
        shutil.copytree(f"{package}.libs", os.path.join(target, f"{os.path.basename(package)}.libs"))
    for place, _, files in os.walk(target):
        for path in [place, *(os.path.join(place, name) for name in files)]:
            with contextlib.suppress(OSError):
                shutil.chown(path, "nobody")
    return os.path.join(target, os.path.basename(package), os.path.basename(installation), os.path.basename(programs))


def _run(
    programs: str,
    command: list[str],
    user: dict[str, Any],
    *,
    input_text: str = "",
    environment: dict[str, str] | None = None,
) -> str:
    """Run one of the programs; returns what it prints."""
    child = subprocess.Popen(
        [os.path.join(programs, command[0]), *command[1:]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
        env=environment, cwd="/" if user else None, start_new_session=True,
        **user,
    )  # fmt: skip
    _children.add(child)
    try:
        if _stop_requested.is_set():
            raise _Stopped
        output, complaints = child.communicate(input_text, timeout=_MAX_SECONDS)
    finally:
        child.kill()
        child.wait()
        _children.discard(child)
    if _stop_requested.is_set():
        raise _Stopped
    if child.returncode:
        raise RuntimeError(f"{command[0]}: {complaints.strip() or child.returncode}")
    return output


def free_port() -> int:
    """Return a port of the loopback nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_ready(server: subprocess.Popen[Any], data: str) -> None:
    """Wait for the word `ready` in the file where the server tells its state."""
    for _ in range(_MAX_SECONDS * 20):
        with contextlib.suppress(OSError), open(os.path.join(data, "postmaster.pid"), encoding="utf-8") as file:
            if [line.strip() for line in file][7:8] == ["ready"]:
                return
        if _stop_requested.is_set():
            raise _Stopped
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.05)
            raise RuntimeError("postgres ended at once")
    raise RuntimeError("postgres did not become ready")


def _stop(server: subprocess.Popen[Any]) -> None:
    # At once, as nothing of it is kept; Windows knows only the hard way.
    server.send_signal(signal.SIGQUIT if os.name == "posix" else signal.SIGTERM)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _write_message(message: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        print(json.dumps(message), flush=True)  # noqa: T201


if __name__ == "__main__":
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            # Whoever started us is sent these too, and then ends our input.
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    sys.exit(run_cluster(**json.loads(sys.stdin.buffer.readline())))
