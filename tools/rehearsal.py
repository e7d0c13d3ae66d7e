"""Rehearse a release here: an index of our wheels, what people do with it, and the bundles of the same wheels.

    uv run python -m tools.rehearsal

It takes the commit that is checked out, and the same commit as the next version. The index is pypiserver, which comes
from the public index, on a port of this machine; nothing is published anywhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from mcp_batteries.executables import NO_WINDOW
from tools.bundles import bundle
from tools.members import members

__all__ = ["Rehearsal", "rehearse"]

_ROOT = Path(__file__).parents[1]
_INDEX_STARTS_WITHIN_SECONDS = 60
_COMMAND_ENDS_WITHIN_SECONDS = 600
_NO_RELEASE = ("mcp_example-",)


class Rehearsal(Exception):
    """What went wrong, with the output of the command."""


@dataclass(frozen=True)
class _Stage:
    """Where a rehearsal takes place.

    Attributes:
        folder: is thrown away.
        index: the folder with the files that the index offers.
        url: of the index, as `--index` takes it.
    """

    folder: Path
    index: Path
    url: str

    @property
    def environment(self) -> dict[str, str]:
        """Return an environment with an empty home, so that no setting of this user has a part in it."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        # Of uv only where it fetches what is public: a machine behind a mirror has that in its variables or its file.
        kept = ("PATH", "LANG", "TMPDIR", "SSL_CERT_FILE", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {
            name: value for name, value in os.environ.items() if name.startswith(("UV_DEFAULT", "UV_INDEX", "PIP_"))
        }
        cache = _run(["uv", "cache", "dir"], dict(os.environ)).strip()
        return environment | {
            "HOME": str(home),
            "UV_CACHE_DIR": cache,
            "UV_TOOL_DIR": str(home / "tools"),
            "UV_TOOL_BIN_DIR": str(home / "bin"),
            "UV_NO_CONFIG": "1",
        }


def rehearse() -> None:
    """Build, offer, install, upgrade and take back; print a line for each step."""
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as scratch:
        folder = Path(scratch)
        current, following = _versions()
        with _step(f"wheels of {current} and {following}"):
            builds = {version: _build(folder / version, version) for version in (current, following)}
        index = folder / "index"
        index.mkdir()
        with _served(folder, index) as stage:
            _offer(builds[current], index)
            served = folder / "served"
            served.mkdir()
            (served / "hello.txt").write_text("hello\n", "utf-8")
            uvx = ["uvx", "--index", stage.url]
            with _step(f"uvx --index {stage.url} mcp-fs {served}"):
                anyio.run(_read_by_client, [*uvx, "mcp-fs", str(served)], stage.environment)
            with _step("every server says its version"):
                for server in members(_ROOT):
                    _expect(_run([*uvx, server.command, "--version"], stage.environment), f"{server.command} {current}")
            with _step(f"uv tool install mcp-fs: {current}"):
                _run(["uv", "tool", "install", "--index", stage.url, "mcp-fs"], stage.environment)
                _expect(_run(_installed(stage), stage.environment), f"mcp-fs {current}")
            _offer(builds[following], index)
            with _step(f"uv tool upgrade: {following}"):
                _run(
                    [
                        "uv",
                        "tool",
                        "upgrade",
                        "--reinstall-package",
                        "mcp-fs",
                        "--reinstall-package",
                        "mcp-batteries",
                        "mcp-fs",
                    ],
                    stage.environment,
                )
                _expect(_run(_installed(stage), stage.environment), f"mcp-fs {following}")
            with _step(f"uvx mcp-fs@latest: {following}"):
                _expect(
                    _run([*uvx, "--refresh", "mcp-fs@latest", "--version"], stage.environment), f"mcp-fs {following}"
                )
            with _step(f"back to {current}"):
                _run(["uv", "tool", "install", "--index", stage.url, f"mcp-fs=={current}"], stage.environment)
                _expect(_run(_installed(stage), stage.environment), f"mcp-fs {current}")
                _expect(_run([*uvx, f"mcp-fs@{current}", "--version"], stage.environment), f"mcp-fs {current}")
            with _step("pip install from the index, in an environment of its own"):
                _install_by_pip(stage, current)
        with _step("bundles have the wheels of the index"):
            _compare_bundles(folder / "bundles", builds[current], current)
        _say_whether_images_can_be_built()


def _versions() -> tuple[str, str]:
    """Return the version that all members have, and the next."""
    versions = {server.project["version"] for server in members(_ROOT)}
    if len(versions) != 1:
        raise Rehearsal(f"The members differ in their versions: {', '.join(sorted(versions))}.")
    (current,) = versions
    start, _, last = current.rpartition(".")
    return current, f"{start}.{int(last) + 1}"


def _build(target: Path, version: str) -> Path:
    """Build the wheels of the commit that is checked out, as `version`.

    Returns:
        the folder with the wheels.
    """
    source = target / "source"
    source.mkdir(parents=True)
    archive = target / "source.tar"
    _run(["git", "-C", str(_ROOT), "archive", "--output", str(archive), "HEAD"], dict(os.environ))
    shutil.unpack_archive(archive, source, filter="data")
    for project in [*source.glob("servers/*/pyproject.toml"), source / "shared/pyproject.toml"]:
        text = project.read_text("utf-8")
        project.write_text(
            re.sub(r'^version = ".*"', f'version = "{version}"', text, count=1, flags=re.MULTILINE), "utf-8"
        )
    wheels = target / "wheels"
    _run(
        ["uv", "build", "--quiet", "--all-packages", "--wheel", "--out-dir", str(wheels), str(source)], dict(os.environ)
    )
    for wheel in wheels.iterdir():
        if wheel.suffix != ".whl" or wheel.name.startswith(_NO_RELEASE):
            wheel.unlink()
    return wheels


def _offer(wheels: Path, index: Path) -> None:
    for wheel in wheels.iterdir():
        shutil.copy(wheel, index)


@contextmanager
def _served(folder: Path, index: Path) -> Generator[_Stage]:
    """Serve the files of `index` as a package index, which knows no other names."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        "uvx",
        "--from",
        "pypiserver>=2.4,<3",
        "pypi-server",
        "run",
        "--interface",
        "127.0.0.1",
        "--port",
        str(port),
        "--disable-fallback",
    ]
    server = subprocess.Popen(
        [*command, str(index)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, creationflags=NO_WINDOW
    )
    url = f"http://127.0.0.1:{port}/simple/"
    try:
        _wait_for(url, server)
        yield _Stage(folder, index, url)
    finally:
        server.terminate()
        server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _INDEX_STARTS_WITHIN_SECONDS
    while True:
        try:
            urlopen(url, timeout=5).close()
        except (URLError, ConnectionError, TimeoutError):
            if server.poll() is not None or time.monotonic() > deadline:
                raise Rehearsal("The index did not start.") from None
            time.sleep(0.1)
        else:
            return


async def _read_by_client(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Start a server as a host does and read a file by it."""
    first, *words = command
    parameters = StdioServerParameters(command=first, args=words, env=dict(environment))
    async with Client(stdio_client(parameters)) as client:
        result = await client.call_tool("read_text", {"path": "hello.txt"})
        if result.is_error or "hello" not in str(result.content):
            raise Rehearsal(f"The server did not read the file: {result.content}")


def _installed(stage: _Stage) -> list[str]:
    return [str(stage.folder / "home" / "bin" / "mcp-fs"), "--version"]


def _install_by_pip(stage: _Stage, version: str) -> None:
    """Install by pip, which takes the newest of all its indexes: the version is named."""
    environment = stage.folder / "environment"
    _run(["uv", "venv", "--seed", "--quiet", str(environment)], stage.environment)
    folder = environment / ("Scripts" if sys.platform == "win32" else "bin")
    pip = [str(folder / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--extra-index-url", stage.url, f"mcp-fs=={version}", f"mcp-batteries=={version}"], stage.environment)
    _expect(_run([str(folder / "mcp-fs"), "--version"], stage.environment), f"mcp-fs {version}")


def _compare_bundles(target: Path, wheels: Path, version: str) -> None:
    """Make the bundle of each server, and hold the wheels in it against those of the index."""
    for server in members(_ROOT):
        made = target / server.command
        bundle(server, wheels, made, root=_ROOT)
        manifest = json.loads((made / "manifest.json").read_text("utf-8"))
        if manifest["version"] != version:
            raise Rehearsal(f"The bundle of {server.command} is of {manifest['version']}.")
        inside = [path for path in made.rglob("*.whl") if (wheels / path.name).exists()]
        if not inside:
            raise Rehearsal(f"The bundle of {server.command} has no wheel of ours.")
        for path in inside:
            if _contents(path) != _contents(wheels / path.name):
                raise Rehearsal(f"{path.name} in the bundle of {server.command} is not the wheel of the index.")


def _contents(wheel: Path) -> dict[str, int]:
    """Return the checksum of each file in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


def _say_whether_images_can_be_built() -> None:
    """Images are tried by `just images`, where something can build them."""
    program = shutil.which("docker") or shutil.which("podman")
    works = program and subprocess.run([program, "info"], capture_output=True, check=False).returncode == 0
    print(
        f"{'✓' if works else '–'} images: {'run `just images`' if works else 'not tried: nothing here builds images'}"
    )


def _run(command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_ENDS_WITHIN_SECONDS,
        creationflags=NO_WINDOW,
    )
    if done.returncode:
        raise Rehearsal(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _expect(output: str, expected: str) -> None:
    if output.strip() != expected:
        raise Rehearsal(f"{output.strip()!r} is not {expected!r}")


@contextmanager
def _step(name: str) -> Generator[None]:
    started = time.monotonic()
    yield
    print(f"✓ {time.monotonic() - started:6.1f} s  {name}", flush=True)


if __name__ == "__main__":
    rehearse()
