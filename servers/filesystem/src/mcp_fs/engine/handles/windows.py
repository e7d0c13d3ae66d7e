"""Folders by handle on Windows, which has no way to open a name below a handle from Python.

A folder is opened so that nobody can rename or delete it while it is open (no FILE_SHARE_DELETE), and with it all
folders above it; then the kernel is asked for its real path. If that lies beneath a served folder, names directly
in it are used by that path, which can't come to mean anything else meanwhile. A file that was opened is asked for
its path as well, and closed again when a link has led elsewhere.
"""

from __future__ import annotations

import sys

if sys.platform != "win32":
    raise ImportError("for Windows only")

import ctypes
import errno
import msvcrt
import os
import stat
import time
from collections.abc import Callable, Iterator
from ctypes import wintypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from mcp_batteries.errors import Conflict, Invalid, Refused, quote
from mcp_fs.engine.name_folding import fold_name, may_have_another_spelling
from mcp_fs.paths import to_system_path
from mcp_fs.policy import ReadablePath

__all__ = ["Folder", "ResolvedPath", "open_folder_directly", "resolve"]

P = TypeVar("P", bound=ReadablePath)
P_co = TypeVar("P_co", bound=ReadablePath, covariant=True)

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateFileW.restype = wintypes.HANDLE
_kernel.CreateFileW.argtypes = [
    wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, wintypes.LPVOID, wintypes.DWORD, wintypes.DWORD, wintypes.HANDLE,
]  # fmt: skip
_kernel.GetFinalPathNameByHandleW.argtypes = [wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD]
_kernel.CloseHandle.argtypes = [wintypes.HANDLE]
_kernel.SetFileAttributesW.argtypes = [wintypes.LPCWSTR, wintypes.DWORD]
_security = ctypes.WinDLL("advapi32", use_last_error=True)
_security.GetFileSecurityW.argtypes = [
    wintypes.LPCWSTR, wintypes.DWORD, wintypes.LPVOID, wintypes.DWORD, ctypes.POINTER(wintypes.DWORD),
]  # fmt: skip
_security.SetFileSecurityW.argtypes = [wintypes.LPCWSTR, wintypes.DWORD, wintypes.LPVOID]

_INVALID = wintypes.HANDLE(-1).value
_LIST = 0x0001  # FILE_LIST_DIRECTORY: access to data, without which sharing is not checked
_ATTRIBUTES = 0x0080  # FILE_READ_ATTRIBUTES
_READ = 0x80000000  # GENERIC_READ
_WRITE = 0x40000000  # GENERIC_WRITE
_DELETE = 0x00010000
_KEPT = stat.FILE_ATTRIBUTE_HIDDEN | stat.FILE_ATTRIBUTE_SYSTEM | stat.FILE_ATTRIBUTE_NOT_CONTENT_INDEXED
_WHO_MAY = 4  # DACL_SECURITY_INFORMATION
_SHARE_READ_WRITE = 0x0001 | 0x0002
_SHARE_ALL = _SHARE_READ_WRITE | 0x0004
_OPEN_EXISTING = 3
_BACKUP = 0x02000000  # FILE_FLAG_BACKUP_SEMANTICS: folders too
_THE_LINK_ITSELF = 0x00200000  # FILE_FLAG_OPEN_REPARSE_POINT
_STANDS_FOR_ANOTHER = 0x20000000  # IsReparseTagNameSurrogate: links and junctions
_HELD = (32, 33)  # ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION
_BUSY = (5, *_HELD)  # ERROR_ACCESS_DENIED, of a file to be replaced
_BUSY_SECONDS = 0.5
_PAUSE_SECONDS = 0.01
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"com{number}" for number in "0123456789¹²³"]
    + [f"lpt{number}" for number in "0123456789¹²³"]
)


class Folder(Generic[P_co]):
    """An open folder that stays where it is, and the trusted path it was reached by; see `posix.Folder`."""

    __slots__ = ("fd", "path", "system_path")

    def __init__(self, handle: int, system_path: str, path: P_co) -> None:
        self.fd = handle
        self.system_path = system_path
        self.path = path

    def __enter__(self) -> Folder[P_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            handle = self.fd
            self.fd = -1
            _kernel.CloseHandle(handle)

    @property
    def identity(self) -> tuple[int, int]:
        status = self.stat(".")
        return status.st_dev, status.st_ino

    def open_folder(self, name: str) -> Folder[P_co]:
        path = self.path if name == "." else self.path / name
        system_path = self._path(name)
        at = self._at(name)
        handle = _open(system_path, _LIST, _SHARE_READ_WRITE, _BACKUP | _THE_LINK_ITSELF)
        if not _is_same_path(_final_path(handle), system_path) or os.path.islink(at) or _is_junction(at):
            _kernel.CloseHandle(handle)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not os.path.isdir(at):  # a file can be opened in this way, too
            _kernel.CloseHandle(handle)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return Folder(handle, system_path, path)

    def open(self, name: str, flags: int, mode: int = 0o600) -> int:
        try:
            fd = os.open(self._at(name), flags | os.O_BINARY | os.O_NOINHERIT, mode)
        except PermissionError:
            if _is_folder(self._at(name)):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from None
            # The C library forgets what Windows said.
            _refuse_held(self._path(name), _READ | _WRITE if flags & (os.O_WRONLY | os.O_RDWR) else _READ)
            raise
        if not _is_same_path(_final_path(msvcrt.get_osfhandle(fd)), self._path(name)):
            os.close(fd)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return fd

    def scan(self) -> Iterator[os.DirEntry[str]]:
        with os.scandir(to_system_path(self.system_path)) as entries:
            yield from entries

    def list_entries(self) -> list[os.DirEntry[str]]:
        """`scan`, all at once."""
        with os.scandir(to_system_path(self.system_path)) as entries:
            return list(entries)

    def list_names(self) -> list[str]:
        return os.listdir(to_system_path(self.system_path))

    def stat(self, name: str) -> os.stat_result:
        return os.lstat(self._at(name))

    def read_link(self, name: str) -> str:
        return os.readlink(self._at(name))

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        os.mkdir(self._at(name), mode)

    def set_mode(self, mode: int) -> None:
        """Nothing: folders have no permission bits here."""

    def set_times(self, name: str, status: os.stat_result) -> None:
        """Give `name` the times in `status`, unless it is a link, of which Python can't set any here."""
        if not stat.S_ISLNK(status.st_mode):
            os.utime(self._at(name), ns=(status.st_atime_ns, status.st_mtime_ns))

    def inherit(self, name: str, old: str) -> bool:
        """Give the file `name` who may do what with `old`, and whether people see it; False if that can't be kept."""
        new_path = self._at(name)
        old_path = self._at(old)
        try:
            attributes = os.lstat(old_path).st_file_attributes & _KEPT
        except FileNotFoundError:
            return True  # removed meanwhile, which who replaces it finds out
        has_attributes = True
        if attributes:
            all_attributes = attributes | os.lstat(new_path).st_file_attributes
            has_attributes = bool(_kernel.SetFileAttributesW(new_path, all_attributes))
        rights = _who_may(old_path)
        if rights is None or rights == _who_may(new_path):  # None: the disk keeps none
            return has_attributes
        return bool(_security.SetFileSecurityW(new_path, _WHO_MAY, rights)) and has_attributes

    def make_link(self, text: str, name: str) -> None:
        os.symlink(text, self._at(name))

    def remove(self, name: str) -> None:
        _remove(self._at(name), os.unlink)

    def remove_folder(self, name: str) -> None:
        _remove(self._at(name), os.rmdir)

    def add_name(self, name: str, folder: Folder[Any], new: str) -> None:
        os.link(self._at(name), folder._at(new))

    def rename(self, name: str, folder: Folder[Any], new: str) -> None:
        source = self._at(name)
        target = folder._at(new)
        if _is_folder(source) and os.path.lexists(target) and not _is_folder(target):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        try:
            _patiently(lambda: os.replace(source, target), lambda: not _is_folder(target))
        except PermissionError:
            # What Windows says of every folder that is in the way; rename(2) replaces an empty one with another.
            if not _is_folder(target):
                # Of a target in use Windows says no more than that it may not be replaced.
                _refuse_held(folder._path(new), _DELETE)
                raise
            if not _is_folder(source):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from None
            os.rmdir(target)
            os.rename(source, target)

    def rename_noreplace(self, name: str, folder: Folder[Any], new: str) -> None:
        _patiently(lambda: os.rename(self._at(name), folder._at(new)))

    def sync(self) -> None:
        """Nothing: NTFS journals its folders and offers no more."""

    def _at(self, name: str) -> str:
        return to_system_path(self._path(name))

    def _path(self, name: str) -> str:
        return self.system_path if name == "." else os.path.join(self.system_path, name)


@dataclass(frozen=True)
class ResolvedPath(Generic[P_co]):
    """Where a path really leads; see `posix.ResolvedPath`."""

    folder: Folder[P_co]
    name: str

    @cached_property
    def path(self) -> P_co:
        return self.folder.path if self.name == "." else self.folder.path / self.name

    def __enter__(self) -> ResolvedPath[P_co]:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.close()


def open_folder_directly(_: P) -> Folder[P] | None:
    """None: no call does all of it."""
    return None


def resolve(path: P, *, follow: bool = True, for_listing: bool = False) -> ResolvedPath[P]:
    """Resolve a path; see `posix.resolve`. A link that leads to nothing is not written through."""
    for part in path.parts:
        _refuse_unsafe(part)
    if not path.parts:
        return ResolvedPath(_folder_at(path.root.real_path, path), ".")
    folder = _above(path)
    try:
        name = _find_spelling(folder, path.parts[-1])
        system_path = os.path.join(folder.system_path, name)
        if not os.path.lexists(to_system_path(system_path)):
            return _checked(ResolvedPath(folder, name))
        flags = _BACKUP if follow else _BACKUP | _THE_LINK_ITSELF
        handle = _open(system_path, _ATTRIBUTES, _SHARE_ALL, flags)
        try:
            # The kernel's spelling: long instead of 8.3, in the letter case it is stored in.
            parent, name = os.path.split(_final_path(handle))
        finally:
            _kernel.CloseHandle(handle)
        if _is_same_path(parent, folder.system_path):
            return _checked(ResolvedPath(folder, name))
    except BaseException:
        folder.close()
        raise
    folder.close()
    if not name:
        raise Refused(f"{quote(path.display)} leads outside the served folders through a link.")
    elsewhere = _folder_at(parent, path)
    try:
        return _checked(ResolvedPath(elsewhere, name))
    except BaseException:
        elsewhere.close()
        raise


def _checked(resolved: ResolvedPath[P]) -> ResolvedPath[P]:
    resolved.folder.path.at(resolved.folder.path.root, (*resolved.folder.path.parts, resolved.name))
    return resolved


def _above(path: P) -> Folder[P]:
    """Open the folder that the last name of a path is in."""
    above = path.parts[:-1]
    try:
        return _folder_at(os.path.join(path.root.real_path, *above), path)
    except FileNotFoundError:
        if not any(map(may_have_another_spelling, above)):
            raise
    system_path = path.root.real_path
    for name in above:
        with _folder_at(system_path, path) as folder:
            system_path = os.path.join(folder.system_path, _find_spelling(folder, name))
    return _folder_at(system_path, path)


def _folder_at(system_path: str, path: P) -> Folder[P]:
    """Open the folder at a path, held where it is, once it is known to lie beneath a served one."""
    handle = _open(system_path, _LIST, _SHARE_READ_WRITE, _BACKUP)
    try:
        real = _final_path(handle)
        located = path.policy.locate(real)
        if located is None:
            raise Refused(f"{quote(path.display)} leads outside the served folders through a link.")
        if not os.path.isdir(to_system_path(real)):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return Folder(handle, real, path.at(*located))
    except BaseException:
        _kernel.CloseHandle(handle)
        raise


def _refuse_unsafe(name: str) -> None:
    if any(char < " " or char in '<>:"|?*\\/' for char in name) or name[-1] in " .":
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if name.partition(".")[0].rstrip().casefold() in _DEVICES:
        raise Invalid(f"{quote(name)} is the name of a device.")


def _find_spelling(folder: Folder[P], name: str) -> str:
    """Return a name as the folder spells it, which nobody can see in some names.

    Raises:
        Conflict: several names read like it.
    """
    if not may_have_another_spelling(name) or os.path.lexists(to_system_path(os.path.join(folder.system_path, name))):
        return name
    spellings = [other for other in folder.list_names() if fold_name(other) == fold_name(name)]
    if len(spellings) > 1:
        raise Conflict(f"{len(spellings)} names read like {quote(name)} and none is exactly that.", "Use the URI.")
    if not spellings:
        return name
    return spellings[0]


def _open(path: str, access: int, share: int, flags: int) -> int:
    handle = _kernel.CreateFileW(to_system_path(path), access, share, None, _OPEN_EXISTING, flags, None)
    if handle == _INVALID:
        raise ctypes.WinError(ctypes.get_last_error())
    return handle


def _final_path(handle: int) -> str:
    size = 32_768
    buffer = ctypes.create_unicode_buffer(size)
    length = _kernel.GetFinalPathNameByHandleW(handle, buffer, size, 0)
    if not 0 < length < size:
        raise ctypes.WinError(ctypes.get_last_error())
    path = buffer.value
    if path.startswith("\\\\?\\UNC\\"):
        return "\\" + path[7:]
    return path.removeprefix("\\\\?\\")


def _refuse_held(path: str, access: int) -> None:
    """Check that nobody has `path` open in a way that forbids `access`: for calls that don't say so."""
    try:
        _kernel.CloseHandle(_open(path, access, _SHARE_ALL, _BACKUP))
    except OSError as error:
        if error.winerror in _HELD:
            raise error from None


def _who_may(path: str) -> bytes | None:
    """Return the access list of a file, as a security descriptor."""
    needed = wintypes.DWORD()
    _security.GetFileSecurityW(path, _WHO_MAY, None, 0, ctypes.byref(needed))
    buffer = ctypes.create_string_buffer(needed.value)
    if not needed.value:
        return None
    if not _security.GetFileSecurityW(path, _WHO_MAY, buffer, needed, ctypes.byref(needed)):
        return None
    return buffer.raw


def _is_same_path(one: str, other: str) -> bool:
    return os.path.normcase(one) == os.path.normcase(other)


def _patiently(change: Callable[[], None], may_help: Callable[[], bool] = lambda: True) -> None:
    """Do `change`, again for a while if somebody has open what it is about: a reader of ours, or a virus scanner."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return change()
        except PermissionError as error:
            if error.winerror not in _BUSY or time.monotonic() > until or not may_help():
                raise
        time.sleep(_PAUSE_SECONDS)


def _remove(path: str, remove: Callable[[str], None]) -> None:
    """Remove `path` also where it is marked read-only, as git marks what it keeps: on other systems, too, that is about
    what is in it."""
    attributes = os.lstat(path).st_file_attributes
    marked = attributes & stat.FILE_ATTRIBUTE_READONLY
    if marked:
        _kernel.SetFileAttributesW(path, attributes & ~marked or stat.FILE_ATTRIBUTE_NORMAL)
    try:
        _patiently(lambda: remove(path))
    except OSError:
        if marked:
            _kernel.SetFileAttributesW(path, attributes)
        raise


def _is_junction(path: str) -> bool:
    """Whether a name stands for another; what OneDrive and others mark with a tag as theirs does not."""
    return bool(getattr(os.lstat(path), "st_reparse_tag", 0) & _STANDS_FOR_ANOTHER)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and not _is_junction(path)
