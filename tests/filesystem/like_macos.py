"""A plugin of pytest that has mcp-fs meet a system like macOS: `pytest -p filesystem.like_macos tests/filesystem`.

What macOS lacks is gone before our modules are imported (openat2, O_PATH, renameat2, preadv, /proc, inotify's place),
and `sys.platform` is what they find there: so the walk, the other ways to write, and the comparison of names without
letter case are what runs. Linux stays beneath: its file systems still tell cases and compositions apart.
"""

import errno
import fcntl
import importlib
import os
import shutil
import sys

# Other people's modules first, and as what they are; they may ask for the platform when they are first used, too.
_OTHERS = (
    *("anyio._backends._asyncio", "asyncio", "click", "ctypes.util", "httpx2", "hypothesis", "mcp", "mcp.client.stdio"),
    *("mcp.server.mcpserver", "multiprocessing", "prometheus_client", "psutil", "pydantic", "pypdfium2", "re2"),
    *("send2trash", "subprocess", "tempfile", "threading", "uvicorn", "watchfiles", "zoneinfo"),
)
for _name in _OTHERS:
    try:
        importlib.import_module(_name)
    except ImportError:
        continue

for _name in ("O_PATH", "RWF_NOWAIT", "preadv", "pwritev", "copy_file_range", "getxattr", "listxattr", "setxattr"):
    if hasattr(os, _name):
        delattr(os, _name)
if not hasattr(fcntl, "F_FULLFSYNC"):
    fcntl.F_FULLFSYNC = 51  # pyright: ignore[reportAttributeAccessIssue]
    _real = fcntl.fcntl

    def _fcntl(fd: int, command: int, argument: int | bytes = 0) -> int | bytes:
        if command == 51:  # As a file system answers that knows no such thing.
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
        return _real(fd, command, argument)

    fcntl.fcntl = _fcntl  # pyright: ignore[reportAttributeAccessIssue]
shutil._copyxattr = lambda *_, **__: None  # pyright: ignore[reportAttributeAccessIssue]


def _without_proc(event: str, arguments: tuple[object, ...]) -> None:
    """Nothing of ours opens what is under /proc; tests and their tools look at processes there."""
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith("/proc/"):
        frame = sys._getframe(1)
        while frame and (asks := frame.f_globals.get("__name__", "").partition(".")[0]) in sys.stdlib_module_names:
            frame = frame.f_back
        if frame and asks in ("mcp_fs", "mcp_batteries"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[0])


_isdir = os.path.isdir
os.path.isdir = lambda path: not str(path).startswith("/proc/") and _isdir(path)
sys.addaudithook(_without_proc)
sys.platform = "darwin"

from mcp_fs.engine.handles import syscalls  # noqa: E402

# fcopyfile(3) says that it has kept everything; what it does can only be seen on macOS.
syscalls._fcopyfile = lambda *_: 0
