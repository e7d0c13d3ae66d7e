"""From a place to a handle: links followed beneath the served folders and nowhere else, whatever the kernel offers."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import socket
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from filesystem.places import Ground, Told, ground
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, Unavailable
from mcp_fs.engine.handles import path_opening, syscalls
from mcp_fs.policy import Policy, roots


@pytest.fixture(params=["handles"] if sys.platform == "win32" else ["openat2", "walk"])
def here(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """The same folder by the kernel's own resolver, where there is one, and by ours."""
    if request.param == "walk":
        monkeypatch.setattr(syscalls, "_openat2_works", False)
    place = ground(tmp_path)
    (place.root / "a" / "b").mkdir(parents=True)
    (place.root / "a" / "b" / "f.txt").write_text("inside")
    return place


def read(here: Ground, path: str) -> bytes:
    with path_opening.open_file(here.readable(path)) as file:
        return file.read()


def test_a_file(here: Ground) -> None:
    assert read(here, "a/b/f.txt") == b"inside"


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("l", "a/b/f.txt", "l"),
        ("l", "a", "l/b/f.txt"),
        ("a/l", "../a/b", "a/l/f.txt"),
        ("a/b/l", "../../a/./b//f.txt", "a/b/l"),
        ("l", "{root}/a/b/f.txt", "l"),
        ("l", "{root}/a/../a", "l/b/f.txt"),
        ("a/l", "../../root/a", "a/l/b/f.txt"),
        ("l", ".", "l/a/b/f.txt"),
        ("a/b/l", "..", "a/b/l/b/f.txt"),
    ],
)
def test_links_that_stay_inside(here: Ground, link: str, target: str, path: str) -> None:
    (here.root / link).symlink_to(target.format(root=here.root))
    assert read(here, path) == b"inside"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("../outside/secret.txt", "l"),
        ("../outside", "l/secret.txt"),
        ("{outside}", "l/secret.txt"),
        ("{outside}/secret.txt", "l"),
        ("a/../../outside", "l/secret.txt"),
        ("a/b/../../../outside/secret.txt", "l"),
        ("/", "l/etc/passwd"),
        ("..", "l/outside/secret.txt"),
        ("/proc/self/root", "l/etc/passwd"),
        ("/proc/self/cwd", "l/x"),
        ("/dev/fd/0", "l"),
        ("../outside/gone", "l"),
    ],
)
def test_links_that_leave(here: Ground, target: str, path: str) -> None:
    (here.root / "l").symlink_to(target.format(outside=here.outside))
    with pytest.raises(Refused, match="leads outside") as refusal:
        read(here, path)
    assert str(here.outside) not in str(refusal.value)
    with pytest.raises(Refused, match="leads outside"), path_opening.resolve(here.writable(path)):
        pass


def test_a_link_into_another_served_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "two" / "f").write_text("two")
    (tmp_path / "one" / "relative").symlink_to("../two/f")
    (tmp_path / "one" / "absolute").symlink_to(tmp_path / "two")
    policy = Policy(Told((str(tmp_path / "one"), str(tmp_path / "two"))))
    for path in ("one/relative", "one/absolute/f"):
        with path_opening.resolve(policy.readable(path)) as spot, path_opening.open_file(policy.readable(path)) as file:
            assert (spot.path.display, file.read()) == ("two/f", b"two")


@pytest.mark.parametrize("target", [".env", "a/.env", ".ssh/config"])
def test_a_secret_is_one_behind_a_link_too(here: Ground, target: str) -> None:
    (here.root / target).parent.mkdir(exist_ok=True)
    (here.root / target).write_text("KEY")
    (here.root / "innocent").symlink_to(target)
    (here.root / "folder").symlink_to((here.root / target).parent)
    for path in ("innocent", f"folder/{target.rpartition('/')[2]}"):
        with pytest.raises(Refused, match="protected"):
            read(here, path)


def test_link_loops_end(here: Ground) -> None:
    (here.root / "x").symlink_to("y")
    (here.root / "y").symlink_to("x")
    (here.root / "deep").symlink_to("deep/deep")
    for path in ("x", "x/y", "deep"):
        with pytest.raises(Invalid, match="too many links"):
            read(here, path)


@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
def test_only_regular_files_are_opened_and_none_is_waited_for(
    here: Ground, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "win32" and kind != "folder":
        pytest.skip("has no such things in folders")
    path = here.root / "special"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            monkeypatch.chdir(here.root)  # the address of a socket may not be long
            with socket.socket(socket.AF_UNIX) as server:
                server.bind("special")
        case "device":
            here = Ground(Path("/dev"), here.outside, Policy(Told(("/dev",))))
            path = Path("null")
        case _:
            path.mkdir()
    with pytest.raises(Refused):
        read(here, path.name)


def test_what_is_missing_is_said_with_what_is_near(here: Ground) -> None:
    with pytest.raises(NotFound, match=r"`a/b/f.text` does not exist. Near it are: `a/b/f.txt`"):
        read(here, "a/b/f.text")
    (here.root / "dangling").symlink_to("nothing")
    with pytest.raises(NotFound, match="a link whose target does not exist"):
        read(here, "dangling")
    with pytest.raises(NotFound, match="not a folder"):
        read(here, "a/b/f.txt/x")


def test_secrets_are_not_suggested(here: Ground) -> None:
    (here.root / "id_rsa").write_text("")
    with pytest.raises(NotFound) as missing:
        read(here, "id_rs")
    assert "id_rsa" not in str(missing.value)


def test_names_that_are_too_long(here: Ground) -> None:
    for path in ("n" * 300, "/".join(["n" * 200] * 30)):
        with pytest.raises((Invalid, NotFound)):
            read(here, path)


NAMES = [" leading", "quo'te", "$(x)`y`;&", "-rf", "[a]{b}", "..x"]
POSIX_NAMES = ["trailing ", 'quo"te', "new\nline", "|", "...", "\t", "*?", "a\\b"]


@pytest.mark.parametrize("name", NAMES if sys.platform == "win32" else [*NAMES, *POSIX_NAMES])
def test_names_are_taken_as_they_are(here: Ground, name: str) -> None:
    (here.root / name).write_text("odd")
    assert read(here, name) == b"odd"
    assert read(here, (here.root / name).as_uri()) == b"odd"
    with pytest.raises(NotFound):
        read(here, f"{name}x")


@pytest.mark.skipif(sys.platform == "win32", reason="names are Unicode")
def test_bytes_that_are_not_utf8(here: Ground) -> None:
    name = b"caf\xe9"
    try:
        with open(os.fsencode(here.root) + b"/" + name, "wb") as file:
            file.write(b"latin")
    except OSError as error:
        assert error.errno == errno.EILSEQ  # macOS has no such names
        pytest.skip("the file system takes UTF-8 only")
    assert read(here, f"{here.root.as_uri()}/caf%E9") == b"latin"
    with path_opening.open_folder(here.readable(".")) as folder:
        assert os.fsdecode(name) in [entry.name for entry in folder.scan()]


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        (unicodedata.normalize("NFD", "é.txt"), unicodedata.normalize("NFC", "é.txt")),
        (unicodedata.normalize("NFC", "é.txt"), unicodedata.normalize("NFD", "é.txt")),
        ("shot 9.41\u202fAM.png", "shot 9.41 AM.png"),
        ("a\u00a0b", "a b"),
    ],
)
def test_another_spelling_of_a_name_finds_it(here: Ground, stored: str, asked: str) -> None:
    (here.root / stored).mkdir()
    (here.root / stored / stored).write_text("found")
    assert read(here, f"{asked}/{asked}") == b"found"


def test_the_exact_spelling_goes_first_and_a_tie_is_refused(here: Ground) -> None:
    for name in ("a\u00a0b", "a\u202fb"):
        (here.root / name).write_text(name)
    with pytest.raises(Conflict, match="2 names read like `a b`"):
        read(here, "a b")
    assert read(here, "a\u202fb").decode() == "a\u202fb"


def test_a_secret_in_another_spelling_stays_one(here: Ground) -> None:
    (here.root / "key\u00a01.pem").write_text("")
    with pytest.raises(Refused, match="protected"):
        read(here, "key 1.pem")


def test_a_served_folder_that_was_replaced_is_no_longer_served(here: Ground) -> None:
    here.root.rename(here.root.parent / "moved")
    for replace in (lambda: None, lambda: here.root.symlink_to(here.outside)):
        replace()
        for path in ("a/b/f.txt", "secret.txt"):
            with pytest.raises(Unavailable, match="restart the server"):
                read(here, path)


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use can't be deleted there")
def test_a_served_folder_that_was_deleted_and_made_anew_is_served_again(here: Ground) -> None:
    descriptors = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    before = len(os.listdir(descriptors))
    for number in range(3):
        shutil.rmtree(here.root)
        with pytest.raises(Unavailable, match="restart the server"):
            read(here, "new.txt")
        here.root.mkdir()
        (here.root / "new.txt").write_text(str(number))
        for _ in range(2):
            assert read(here, "new.txt") == str(number).encode()
        here.root.rename(here.root.parent / "moved")  # and what was made anew is as well guarded
        with pytest.raises(Unavailable, match="restart the server"):
            read(here, "new.txt")
        here.root.mkdir()
        with pytest.raises(Unavailable, match="restart the server"):
            read(here, "new.txt")
        here.root.rmdir()
        (here.root.parent / "moved").rename(here.root)
    assert len(os.listdir(descriptors)) <= before


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use can't be deleted there")
@pytest.mark.parametrize(
    "how", ["link", "link above", "moved there", "file", "owner", "former owner", "where all may write"]
)
def test_what_others_may_have_put_there_is_not_served(here: Ground, how: str) -> None:
    if os.geteuid() and "owner" in how:
        pytest.skip("only root gives files away")
    (here.outside / "new.txt").write_text("")
    if how == "former owner":
        os.chown(here.root, 12345, -1)
    shutil.rmtree(here.root)
    match how:
        case "link":
            here.root.symlink_to(here.outside)
        case "link above":
            above = here.root.parent
            moved = above.rename(above.with_name(f"{above.name}-moved"))
            above.symlink_to(moved)
            here.root.mkdir()
        case "moved there":
            here.outside.chmod(0o755)
            here.root.parent.chmod(0o777)
            here.outside.rename(here.root)
        case "file":
            here.root.touch()
        case _:
            here.root.mkdir()
            if how == "owner":
                os.chown(here.root, 12345, -1)
            elif how == "where all may write":
                here.root.parent.chmod(0o777)
    if here.root.is_dir():
        (here.root / "new.txt").write_text("")
    with pytest.raises(Unavailable, match="restart the server"):
        read(here, "new.txt")


_MOUNTS = """
import os, subprocess, sys
from filesystem.places import Told
from mcp_batteries.errors import Problem
from mcp_fs.engine.handles.path_opening import open_file
from mcp_fs.policy import Policy

root, outer = sys.argv[1:]

def mount(where, text, owner=0):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", where], check=True)
    os.makedirs(root, exist_ok=True)
    with open(root + "/f", "w") as file:
        file.write(text)
    os.chown(root, owner, -1)

def said():
    try:
        with open_file(policy.readable("f")) as file:
            return file.read().decode()
    except Problem as problem:
        return type(problem).__name__

for where in (root, outer):
    policy = Policy(Told((root,)))
    mount(where, "mounted at " + where)
    print(said())
    subprocess.run(["umount", "-l", where], check=True)
    print(said())
    mount(where, "mounted again")
    print(said())
    subprocess.run(["umount", "-l", where], check=True)
policy = Policy(Told((root,)))
mount(root, "another owner's", 1)
print(said())
subprocess.run(["umount", "-l", root], check=True)
os.chmod(os.path.dirname(root), 0o777)
mount(root, "where all may write")
print(said())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="root mounts, on Linux")
def test_a_served_folder_that_was_mounted_anew_is_served_again(tmp_path: Path) -> None:
    root = tmp_path / "outer" / "served"
    root.mkdir(parents=True)
    (root / "f").write_text("beneath")
    tests = str(Path(__file__).parent.parent)
    done = subprocess.run(
        ["unshare", "-m", sys.executable, "-c", _MOUNTS, str(root), str(root.parent)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])},
    )
    if "Operation not permitted" in done.stderr or "unshare" in done.stderr:
        pytest.skip("may not mount anything")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"mounted at {root}",
        "Unavailable",
        "mounted again",
        f"mounted at {root.parent}",
        "Unavailable",
        "mounted again",
        "Unavailable",
        "Unavailable",
    ]


@pytest.mark.parametrize(("who", "is_ours"), [("", True), (",user_id={me}", True), (",user_id=4711", False)])
def test_whoever_may_mount_is_told_by_the_kernel(monkeypatch: pytest.MonkeyPatch, who: str, is_ours: bool) -> None:
    if sys.platform == "win32":
        pytest.skip("has no such table")
    table = (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "40 22 0:50 / /srv/a\\040b rw - ext4 /dev/sdb1 rw\n"
        f"41 22 0:51 / /srv/a\\040b rw shared:7 - fuse.sshfs host: rw{who.format(me=os.geteuid())}\n"
        "42 22 0:52 / /srv/a rw - tmpfs none rw\n"
    )
    monkeypatch.setattr(Path, "read_bytes", lambda _: table.encode())
    mount = roots._find_mount("/srv/a b/c")
    assert mount is not None and (mount.depth, mount.is_ours) == (2, is_ours)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is another file system, of root's")
@pytest.mark.parametrize("is_ours", [True, False])
def test_what_another_user_mounted_is_not_served(here: Ground, is_ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "_find_mount", lambda path: roots._Mount(99, is_ours))
    assert here.readable(".").root._is_valid_replacement(os.stat("/proc")) == is_ours


def test_where_nobody_tells_what_is_mounted_a_folder_is_served(here: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "_find_mount", lambda path: None)
    assert Policy(Told((str(here.root),))).readable("a").root.mount_depth == -1


def test_status_and_links_unfollowed(here: Ground) -> None:
    (here.root / "l").symlink_to("a/b/f.txt")
    (here.root / "out").symlink_to(here.outside / "secret.txt")
    assert path_opening.read_status(here.readable("l")).st_size == 6
    assert path_opening.read_link(here.readable("l")) == "a/b/f.txt"
    assert path_opening.read_status(here.readable("out"), follow=False).st_size == len(str(here.outside / "secret.txt"))
    with pytest.raises(Refused):
        path_opening.read_status(here.readable("out"))


@pytest.mark.skipif(sys.platform == "win32", reason="getrlimit(2)")
def test_a_file_is_opened_when_others_are_closed(here: Ground) -> None:
    import resource

    bounds = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, bounds[1]))
    try:
        with pytest.raises(Unavailable, match=r"Too many files are open just now\. Try again in a moment"):
            read(here, "a/b/f.txt")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, bounds)
    assert read(here, "a/b/f.txt") == b"inside"


def test_no_descriptor_is_left_open(here: Ground) -> None:
    (here.root / "l").symlink_to("a")
    (here.root / "out").symlink_to(here.outside)
    (here.root / "loop").symlink_to("loop")
    descriptors = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    # What an earlier test left to the collector would otherwise be closed in between.
    gc.collect()
    before = len(os.listdir(descriptors))
    for path in ("a/b/f.txt", "l/b/f.txt", "l", "out/x", "loop", "a/gone/x", "é", "l/../a"):
        try:
            read(here, path)
        except Problem:
            continue
    assert len(os.listdir(descriptors)) <= before


@pytest.mark.skipif(sys.platform == "win32", reason="calls of POSIX systems")
class TestRenameNew:
    """Renaming onto nothing, by the kernel's call and by what stands in for it."""

    @pytest.fixture(params=["kernel", "links"], autouse=True)
    def means(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        if request.param == "links":
            monkeypatch.setattr(syscalls, "_rename_exclusive", None)

    @pytest.mark.parametrize("kind", ["file", "folder", "link"])
    def test_a_free_name_is_taken(self, tmp_path: Path, kind: str) -> None:
        self.make(tmp_path / "a", kind)
        self.rename(tmp_path)
        assert not os.path.lexists(tmp_path / "a")
        assert os.path.lexists(tmp_path / "b")
        assert (tmp_path / "b").is_symlink() == (kind == "link")

    @pytest.mark.parametrize("kind", ["file", "folder", "link"])
    @pytest.mark.parametrize("taken", ["file", "folder", "link"])
    def test_a_taken_name_is_not(self, tmp_path: Path, kind: str, taken: str) -> None:
        self.make(tmp_path / "a", kind)
        self.make(tmp_path / "b", taken)
        before = os.lstat(tmp_path / "b")
        with pytest.raises(FileExistsError):
            self.rename(tmp_path)
        assert os.path.samestat(before, os.lstat(tmp_path / "b"))
        assert os.path.lexists(tmp_path / "a")

    def make(self, path: Path, kind: str) -> None:
        if kind == "file":
            path.write_text(path.name)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("nowhere")

    def rename(self, folder: Path) -> None:
        fd = os.open(folder, os.O_RDONLY)
        try:
            syscalls.rename_noreplace("a", fd, "b", fd)
        finally:
            os.close(fd)
