"""Build every server's image and try it: `uv run python -m docker.images [mcp-fs ...]`.

With Docker it builds from the registry's base images. Without an engine it takes Debian's podman, buildah and runc
(`apt-get install --no-install-recommends podman buildah runc debootstrap`, as root), makes the base images itself
and gives the build a folder of the locked wheels. Where neither can be had it says what is missing and ends with 1.

Each image must answer `initialize` as the documents start it (read-only root, no capabilities, no network, the data
read-only) and over HTTP, where its health check must say so. Sizes and times are printed, none is larger than
200 MB, and all layers but the last must be the same in all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_batteries.testing.wire import HttpWire, StdioWire, WireClosed
from tools.members import Member, members
from tools.offline import LINUX, download, locked

ROOT = Path(__file__).parents[1]
DEBIAN = "trixie"
PYTHON = "3.13"
MEGABYTES = 200
"""What no image may be larger than."""
BASE = f"docker.io/library/python:{PYTHON}-slim"


def run(*words: str | Path, env: dict[str, str] | None = None, **more: str) -> str:
    """What a command prints; it ends the script with what it said if it fails."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=ROOT, env={**(env or os.environ), **more}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


@dataclass
class Engine:
    """A program with docker's command line, the words every build needs, and how a published port is reached."""

    program: str
    environment: dict[str, str]
    build: list[str] = field(default_factory=list[str])
    has_bridge: bool = True

    def __call__(self, *words: str) -> str:
        return run(self.program, *words, env=self.environment)

    def publish(self, port: int) -> list[str]:
        return ["-p", f"127.0.0.1:{port}:8000"] if self.has_bridge else ["--network=host"]


def engine(scratch: Path) -> Engine:
    docker = shutil.which("docker")
    if docker and subprocess.run([docker, "info"], capture_output=True).returncode == 0:
        return Engine(docker, dict(os.environ))
    missing = [name for name in ("podman", "buildah", "runc", "debootstrap") if not shutil.which(name)]
    if missing or os.geteuid():
        sys.exit(f"No Docker daemon answers, and without one this needs root and Debian's {', '.join(missing)}.")
    return podman(scratch)


def podman(scratch: Path) -> Engine:
    """Podman with settings that work inside a container without systemd; `docker` on the path is a name for it."""
    configuration = scratch / "containers.conf"
    configuration.write_text(
        '[containers]\ndefault_ulimits = ["nofile=1024:4096", "nproc=1024:4096"]\n'
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n',
        "utf-8",
    )
    shim = scratch / "bin" / "docker"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} "$@"\n', "utf-8")
    shim.chmod(0o755)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    found = Engine(str(shim), {**os.environ, "CONTAINERS_CONF": str(configuration), "PATH": path}, has_bridge=False)
    local_bases(found, scratch)
    wheels = locked_wheels(scratch)
    found.build += ["--pull=never", f"--volume={wheels}:/wheels:ro"]
    found.build += ["--build-arg", "INSTALL=--no-index --find-links=/wheels"]
    return found


def local_bases(docker: Engine, scratch: Path) -> None:
    """What the registry would give: Python on Debian, and an image that holds uv alone."""
    program = os.environ["UV"]  # `uv run` names itself.
    version = run(program, "--version").split()[1]
    known = docker("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    if BASE not in known:
        tree = scratch / DEBIAN
        run("debootstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", DEBIAN, tree)
        for waste in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
            shutil.rmtree(tree / waste, ignore_errors=True)
        for name in ("python", "python3"):
            (tree / "usr/local/bin" / name).symlink_to("/usr/bin/python3")
        run("tar", "-C", tree, "-cf", scratch / "base.tar", ".")
        docker("import", str(scratch / "base.tar"), BASE)
    if f"ghcr.io/astral-sh/uv:{version}" not in known:
        context = scratch / "uv"
        context.mkdir()
        shutil.copy(program, context / "uv")
        (context / "Dockerfile").write_text("FROM scratch\nCOPY uv /uv\n", "utf-8")
        docker("build", "--tag", f"ghcr.io/astral-sh/uv:{version}", str(context))
    docker.build += ["--build-arg", f"UV={version}"]


def locked_wheels(scratch: Path) -> Path:
    """All wheels of the lock that a server on `PYTHON` needs."""
    folder = scratch / "wheels"
    asked = locked(ROOT, "--package", "mcp-batteries", "--all-extras", "--no-extra", "testing")
    for server in members(ROOT):
        asked += locked(ROOT, "--package", server.command, "--all-extras")
    download(list(dict.fromkeys(asked)), folder, LINUX, PYTHON)
    return folder


@dataclass
class Result:
    server: str
    seconds: float
    megabytes: float
    stdio: float
    http: float
    shared: tuple[str, ...]


def data(server: Member, scratch: Path) -> dict[str, str]:
    """Something harmless for each thing the server asks for, by the example that the documents show."""
    made: dict[str, str] = {}
    for asked in server.plain:
        folder = scratch / "data"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        if asked.kind == "directory":
            (folder / "notes.txt").write_text("one\n", "utf-8")
            made[asked.example] = str(folder)
        elif asked.kind == "file":
            with closing(sqlite3.connect(folder / Path(asked.example).name)) as database:
                database.execute("CREATE TABLE IF NOT EXISTS notes (text)")
            made[asked.example.rpartition("/")[0]] = str(folder)
    return made


async def answers_stdio(docker: Engine, command: Sequence[str]) -> float:
    started = time.perf_counter()
    async with StdioWire(command, env=docker.environment) as wire:
        try:
            await wire.open()
        except WireClosed:
            sys.exit(f"{shlex.join(command)} ended: {wire.stderr}")
        seconds = time.perf_counter() - started
        assert (await wire.request("tools/list"))["tools"]
    return seconds


async def answers_http(docker: Engine, server: Member, command: Sequence[str]) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    inside = 8000 if docker.has_bridge else port
    at = command.index(server.image)
    options = [word for word in command[2:at] if word not in ("-i", "--network=none")]
    serving = ["--transport", "http", "--host", "0.0.0.0", "--allow-anonymous", "--port", str(inside)]
    started = time.perf_counter()
    container = docker("run", "-d", *docker.publish(port), *options, server.image, *serving, *command[at + 1 :])
    try:
        async with HttpWire(f"http://127.0.0.1:{port}/mcp") as wire:
            with anyio.fail_after(30):
                while True:
                    try:
                        await wire.open()
                        break
                    except Exception:
                        await anyio.sleep(0.05)
            seconds = time.perf_counter() - started
            assert (await wire.request("tools/list"))["tools"]
        docker("exec", container, "/opt/venv/bin/python", "-m", "mcp_batteries.transports.http.health")
    finally:
        docker("stop", "--time", "10", container)
    return seconds


def tried(docker: Engine, server: Member) -> Result:
    started = time.perf_counter()
    revision = run("git", "rev-parse", "HEAD")
    arguments = ("--build-arg", f"SERVER={server.command}", "--build-arg", f"REVISION={revision}")
    version = ("--build-arg", f"VERSION={server.project['version']}")
    docker("build", *docker.build, "-f", "docker/Dockerfile", *arguments, *version, "--tag", server.image, ".")
    seconds = time.perf_counter() - started
    (told,) = json.loads(docker("inspect", "--type", "image", server.image))
    configuration = told["Config"]
    assert configuration["Labels"]["io.modelcontextprotocol.server.name"].endswith("/" + server.command)
    assert configuration["User"] not in ("", "0", "root"), "the image runs as root"
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        scratch.chmod(0o755)
        command = server.docker()
        for example, real in data(server, scratch).items():
            command = [word.replace(f"{example}:", f"{real}:") for word in command]
        closed = command if "--network=none" in command else [*command[:2], "--network=none", *command[2:]]
        stdio = anyio.run(answers_stdio, docker, closed)
        http = anyio.run(answers_http, docker, server, command)
    *shared, _ = told["RootFS"]["Layers"]
    return Result(server.command, seconds, told["Size"] / 1e6, stdio, http, tuple(shared))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("servers", nargs="*", help="commands such as mcp-fs; without any, all")
    wanted = parser.parse_args().servers
    with tempfile.TemporaryDirectory() as temporary:
        docker = engine(Path(temporary))
        print(docker("--version"))
        beginnings: set[tuple[str, ...]] = set()
        large: list[str] = []
        for server in members(ROOT):
            docker.environment.update({asked.variable: asked.example for asked in server.variables if asked.variable})
            if wanted and server.command not in wanted:
                continue
            found = tried(docker, server)
            beginnings.add(found.shared)
            large += [found.server] if found.megabytes > MEGABYTES else []
            print(
                f"{found.server}: built in {found.seconds:.1f} s, {found.megabytes:.0f} MB, "
                f"first answer over stdio {found.stdio:.2f} s, over HTTP {found.http:.2f} s",
                flush=True,
            )
        if large:
            sys.exit(f"Larger than {MEGABYTES} MB: {', '.join(large)}.")
        if len(beginnings) > 1:
            sys.exit("The images do not share all layers but the last.")


if __name__ == "__main__":
    main()
