"""Tests of mcp-fs where names are compared as macOS does: neither letter case nor composition tells them apart.

    uv run --with 'mfusepy>=3.1,<4' python -m filesystem.folding test_write.py test_undo.py

Needs Linux with FUSE (`apt-get install fuse3`) and root. Names stay as they were written, as on APFS; a name that is
not UTF-8 is refused. What Linux' own caches take for two, a folder by two names, is watched under one of them.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
_SECONDS = 20
_REMOVED = ".fuse_hidden"
"""How libfuse names what is removed while somebody has it open."""
_NOT_HERE = (
    # Needs two names that are one here.
    "test_write.py::test_a_new_file_never_doubles_another_spelling_of_its_name",
    # libfuse knows nothing more of a folder that is open and removed, and hides a file that is open and replaced, even
    # by itself.
    "test_handles.py::test_a_served_folder_that_was_deleted_and_made_anew_is_served_again",
    "test_tree.py::TestMove::test_to_another_spelling_of_its_name",
)
_FILES = (
    *("test_macos.py", "test_write.py", "test_handles.py", "test_policy.py", "test_tree.py", "test_edit.py"),
    *("test_replace.py", "test_model.py", "test_undo.py"),
)
_TIMES = ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")
_KEPT = ("st_mode", "st_ino", "st_dev", "st_nlink", "st_uid", "st_gid", "st_size", "st_rdev", "st_blocks", "st_blksize")


def fold(name: str) -> str:
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


class Folding:
    """The operations, on a folder of an ordinary file system; `mfusepy` calls them by these names."""

    use_ns = True

    def __init__(self, backing: str) -> None:
        self._backing = backing

    def _at(self, path: str | None) -> str:
        assert path is not None
        if any("\udc80" <= character <= "\udcff" for character in path):
            raise OSError(errno.EILSEQ, path)
        exact = self._backing + path
        if os.path.lexists(exact):
            return exact
        found = self._backing
        for name in path.strip("/").split("/"):
            inside = os.path.join(found, name)
            if not os.path.lexists(inside) and os.path.isdir(found):
                same = (other for other in os.listdir(found) if fold(other) == fold(name))
                inside = os.path.join(found, next(same, name))
            found = inside
        return found

    def init_with_config(self, connection: Any, configuration: Any) -> None:
        for name in ("use_ino", "auto_cache"):
            setattr(configuration, name, 1)
        for name in ("attr_timeout", "entry_timeout", "negative_timeout"):
            setattr(configuration, name, 0)

    def getattr(self, path: str | None, fh: int | None = None) -> dict[str, Any]:
        found = os.fstat(fh) if fh is not None else os.lstat(self._at(path))
        times = {name.removesuffix("_ns"): getattr(found, name) for name in _TIMES}
        return times | {name: getattr(found, name) for name in _KEPT}

    def access(self, path: str, mode: int) -> int:
        if not os.access(self._at(path), mode):
            raise OSError(errno.EACCES, path)
        return 0

    def opendir(self, path: str) -> int:
        return os.open(self._at(path), os.O_RDONLY | os.O_DIRECTORY)

    def readdir(self, path: str | None, fh: int) -> Iterator[tuple[str, Any, int]]:
        for name in (".", "..", *os.listdir(fh)):
            if not name.startswith(_REMOVED):
                yield name, None, 0

    def releasedir(self, path: str | None, fh: int) -> None:
        os.close(fh)

    def fsyncdir(self, path: str | None, data: int, fh: int) -> None:
        os.fsync(fh)

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self._at(path), mode)

    def mknod(self, path: str, mode: int, device: int) -> None:
        os.mknod(self._at(path), mode, device)

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        return os.open(self._at(path), os.O_RDWR | os.O_CREAT, mode)

    def open(self, path: str, flags: int) -> int:
        # The kernel adds what is written at the end itself, and has looked at what must not be followed.
        return os.open(self._at(path), flags & ~(os.O_APPEND | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL))

    def read(self, path: str | None, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str | None, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    def truncate(self, path: str | None, length: int, fh: int | None = None) -> None:
        os.truncate(fh if fh is not None else self._at(path), length)

    def fsync(self, path: str | None, data: int, fh: int) -> None:
        os.fsync(fh)

    def release(self, path: str | None, fh: int) -> None:
        os.close(fh)

    def unlink(self, path: str) -> None:
        os.unlink(self._at(path))

    def rmdir(self, path: str) -> None:
        folder = self._at(path)
        names = os.listdir(folder)
        if all(name.startswith(_REMOVED) for name in names):
            for name in names:
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)

    def rename(self, old: str, new: str) -> None:
        source, target = self._at(old), self._at(new)
        os.rename(source, target)
        # What had another spelling of the name is gone, and the name is the new one.
        os.rename(target, os.path.join(os.path.dirname(target), os.path.basename(new)))

    def link(self, target: str, source: str) -> None:
        os.link(self._at(source), self._at(target), follow_symlinks=False)

    def symlink(self, target: str, source: str) -> None:
        os.symlink(source, self._at(target))

    def readlink(self, path: str) -> str:
        return os.readlink(self._at(path))

    def chmod(self, path: str, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def chown(self, path: str, user: int, group: int) -> None:
        os.chown(self._at(path), user, group, follow_symlinks=False)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        os.utime(self._at(path), ns=times or (time.time_ns(),) * 2, follow_symlinks=False)

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._at(path))
        return {name: getattr(found, name) for name in dir(found) if name.startswith("f_") and name != "f_fsid"}


def _mount(backing: str, at: str) -> None:
    import mfusepy  # pyright: ignore[reportMissingImports]

    class Operations(Folding, mfusepy.Operations):  # pyright: ignore
        pass

    mfusepy.FUSE(  # pyright: ignore
        Operations(backing), at, foreground=True, nothreads=True, default_permissions=True, allow_other=True
    )


def main(paths: list[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        backing, at = f"{scratch}/backing", f"{scratch}/at"
        os.mkdir(backing)
        os.mkdir(at)
        with subprocess.Popen(
            [sys.executable, "-m", "filesystem.folding", "--mount", backing, at], cwd=TESTS
        ) as served:
            try:
                until = time.monotonic() + _SECONDS
                while not os.path.ismount(at):
                    if served.poll() is not None or time.monotonic() > until:
                        raise SystemExit("FUSE did not mount a folder here.")
                    time.sleep(0.02)
                Path(at, "Köln").touch()
                assert Path(at, unicodedata.normalize("NFD", "KÖLN")).exists()
                files = [f"tests/filesystem/{path}" for path in paths or _FILES]
                words = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "filesystem.like_macos", "-m", "not weekly"]
                words += [f"--deselect=tests/filesystem/{test}" for test in _NOT_HERE]
                return subprocess.run(
                    [*words, f"--basetemp={at}/base", *files], cwd=TESTS.parent, check=False
                ).returncode
            finally:
                subprocess.run(["fusermount3", "-u", "-z", at], check=False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--mount"]:
        _mount(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
