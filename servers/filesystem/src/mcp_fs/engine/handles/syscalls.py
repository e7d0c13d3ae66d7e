"""System calls that Python does not offer, with replacements for kernels that lack them."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import groupby
from typing import Any

if sys.platform == "darwin":
    # There fsync(2) leaves the data in the drive's own memory.
    from fcntl import F_FULLFSYNC as _FULL_SYNC
    from fcntl import fcntl

__all__ = [
    "copy_attributes",
    "copy_blocks",
    "file_system_type",
    "fsync_file",
    "open_beneath",
    "open_cached",
    "rename_noreplace",
    "start_flush",
    "write_all",
]

# Windows has no handle for "the process itself" here, and none of these calls: there `windows` does the work.
_libc: Any = None if sys.platform == "win32" else ctypes.CDLL(None, use_errno=True)

# openat2(2): the same number on every Linux architecture but Alpha.
_SYS_OPENAT2 = 437
_RESOLVE_BENEATH = 0x02 | 0x04 | 0x08  # RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH
_MAX_PIECE_CHARACTERS = 1000  # characters of at most 4 bytes
_BLOCK = 1 << 23
_READ = 1 << 20
_PAGE = 1 << 12
_RESOLVE_CACHED = 0x20 | 0x01  # RESOLVE_CACHED, RESOLVE_NO_XDEV
_RENAME_NOREPLACE = 1  # renameat2(2)
_RENAME_EXCL = 4  # renameatx_np(2)
_SYNC_FILE_RANGE_WRITE = 2
_COPYFILE_METADATA = 0b111  # fcopyfile(3): ACL, STAT and XATTR
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


class _OpenHow(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64)]


def open_beneath(path: str, flags: int, dir_fd: int) -> int | None:
    """Open a descriptor for `path` below the folder `dir_fd`, if no link lies on the way; openat2(2).

    None when the call can't tell: a link, a rename under way, an entry that is missing or denied, or no such
    call (old kernels say ENOSYS, old container profiles EPERM). Then walk.
    """
    if len(path) <= _MAX_PIECE_CHARACTERS or not _openat2_works:
        return _openat2(path, flags, dir_fd, _RESOLVE_BENEATH)
    # The kernel takes no path of more than 4,096 bytes: one piece after the other, each beneath the one before.
    parent_fd = -1
    try:
        while len(path) > _MAX_PIECE_CHARACTERS:
            cut = path.rfind("/", 0, _MAX_PIECE_CHARACTERS)
            piece = path[:cut]
            path = path[cut + 1 :]
            fd = _openat2(piece, os.O_PATH | os.O_DIRECTORY, dir_fd if parent_fd < 0 else parent_fd, _RESOLVE_BENEATH)
            if parent_fd >= 0:
                os.close(parent_fd)
            parent_fd = -1 if fd is None else fd
            if fd is None:
                return None
        return _openat2(path, flags, parent_fd, _RESOLVE_BENEATH)
    finally:
        if parent_fd >= 0:
            os.close(parent_fd)


def open_cached(path: str, flags: int, dir_fd: int) -> int | None:
    """As `open_beneath`, on the one mount of `dir_fd` and without waiting for any look-up: None when it would."""
    return _openat2(path, flags, dir_fd, _RESOLVE_BENEATH | _RESOLVE_CACHED)


def file_system_type(fd: int) -> int:
    """Return the type of the file system of `fd`, a number of statfs(2); 0 when it can't be told (Linux only)."""
    data = ctypes.create_string_buffer(256)
    if sys.platform != "linux" or _libc.fstatfs(fd, data) != 0:
        return 0
    return ctypes.c_long.from_buffer(data).value & 0xFFFFFFFF


def _openat2(path: str, flags: int, dir_fd: int, resolve: int) -> int | None:
    if not _openat2_works:
        return None
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    fd = _libc.syscall(_SYS_OPENAT2, dir_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    return fd if fd >= 0 else None


def fsync_file(fd: int) -> None:
    """Make an open file durable."""
    if sys.platform == "darwin":
        with suppress(OSError):  # the file system may know no such thing
            fcntl(fd, _FULL_SYNC)
            return
    os.fsync(fd)


def start_flush(fd: int) -> None:
    """Have the disk begin with what was written to an open file, so that fsync(2) takes less; sync_file_range(2)."""
    if _sync_file_range is not None:
        _sync_file_range(fd, 0, 0, _SYNC_FILE_RANGE_WRITE)  # what fails is told by fsync(2)


def rename_noreplace(source: str, source_fd: int, target: str, target_fd: int) -> None:
    """Rename, unless something stands at the target already; atomic where the kernel and file system can.

    Raises:
        FileExistsError: something does.
        OSError: as rename(2).
    """
    if _rename_exclusive is not None:
        result = _rename_exclusive(source_fd, os.fsencode(source), target_fd, os.fsencode(target), _EXCLUSIVE_FLAG)
        if result == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED or (number == errno.EINVAL and _exists(target, target_fd)):
            raise OSError(errno.EEXIST if number == errno.EINVAL else number, os.strerror(number), target)
    try:
        os.link(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd, follow_symlinks=False)
    except PermissionError:  # a folder can't be linked, but may replace the empty one we alone can make
        os.mkdir(target, dir_fd=target_fd)
        try:
            os.rename(source, target, src_dir_fd=source_fd, dst_dir_fd=target_fd)
        except OSError:
            os.rmdir(target, dir_fd=target_fd)
            raise
    else:
        os.unlink(source, dir_fd=source_fd)


def copy_blocks(
    source_fd: int,
    target_fd: int,
    check: Callable[[], None],
    reading: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Copy an open file to one that is empty: holes as holes, blocks shared until written to where that can be.

    Args:
        check: called between blocks; what it raises ends the copy.
        reading: entered for each read, to tell what fails there from what fails in the target.
    """
    status = os.fstat(source_fd)
    # Where data lies is read, not asked for: some file systems call what was just written a hole (SEEK_DATA).
    has_holes = sys.platform != "win32" and status.st_blocks * 512 < status.st_size
    if sys.platform == "linux" and not has_holes:
        with suppress(OSError):  # two file systems, or one that can't
            while os.copy_file_range(source_fd, target_fd, _BLOCK):
                check()
    # The rest, none of it as a rule; file systems made of other things than files say that they copied nothing.
    while True:
        with reading():
            block = os.read(source_fd, _READ)
        if not block:
            break
        check()
        if has_holes:
            _write_with_holes(target_fd, block)
        else:
            write_all(target_fd, block)
    if has_holes:
        os.ftruncate(target_fd, os.lseek(target_fd, 0, os.SEEK_CUR))


def _write_with_holes(fd: int, data: bytes) -> None:
    zeros = bytes(_PAGE)
    for is_hole, places in groupby(range(0, len(data), _PAGE), lambda at: zeros.startswith(data[at : at + _PAGE])):
        positions = list(places)
        block = data[positions[0] : positions[-1] + _PAGE]
        if is_hole:
            os.lseek(fd, len(block), os.SEEK_CUR)
        else:
            write_all(fd, block)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, in as many writes as the kernel makes of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def copy_attributes(source: int, target: int) -> bool:
    """Give one open file the extended attributes of another; False when one is lost."""
    if sys.platform == "darwin":
        return _copy_metadata(source, target)
    if sys.platform != "linux":
        return True
    is_complete = True
    try:
        names = os.listxattr(source)
    except OSError:
        return True  # this file system knows none
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError:
            # A label the system gives by itself is not a loss.
            is_complete = is_complete and name.startswith(("security.", "trusted."))
    return is_complete


def _copy_metadata(source_fd: int, target_fd: int) -> bool:
    """Give an open file the ACL, mode, times and extended attributes of another; False where it can't (macOS only)."""
    return _fcopyfile is not None and _fcopyfile(source_fd, target_fd, None, _COPYFILE_METADATA) == 0


def _exists(name: str, dir_fd: int) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _probe_openat2() -> bool:
    if sys.platform != "linux":
        return False
    fd = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = _OpenHow(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_BENEATH)
        probe_fd = _libc.syscall(_SYS_OPENAT2, fd, b".", ctypes.byref(how), ctypes.sizeof(how))
        if probe_fd >= 0:
            os.close(probe_fd)
        return probe_fd >= 0
    finally:
        os.close(fd)


_openat2_works = _probe_openat2()
if sys.platform == "darwin":
    _rename_exclusive = getattr(_libc, "renameatx_np", None)
    _EXCLUSIVE_FLAG = _RENAME_EXCL
    _fcopyfile = getattr(_libc, "fcopyfile", None)
else:
    _rename_exclusive = getattr(_libc, "renameat2", None)
    _EXCLUSIVE_FLAG = _RENAME_NOREPLACE
    _fcopyfile = None
_sync_file_range = getattr(_libc, "sync_file_range", None)
if _sync_file_range is not None:
    _sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
