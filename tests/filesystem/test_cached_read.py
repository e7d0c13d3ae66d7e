"""Which files are read without leaving the event loop, and that nobody can tell by the answer."""

import errno
import os
import sys
from pathlib import Path

import pytest
from mcp import Client

from filesystem.places import Ground, ground
from mcp_fs.engine.handles.syscalls import file_system_type, open_cached
from mcp_fs.engine.reading import page_cache as module
from mcp_fs.engine.reading.page_cache import is_in_page_cache
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="openat2(2)")


@pytest.fixture
def here(tmp_path: Path) -> Ground:
    return ground(tmp_path)


@pytest.fixture
def able(here: Ground) -> Ground:
    """A folder on a file system and kernel of which the question can be asked."""
    (here.root / "probe").write_text("just written, so in memory")
    root = here.policy.roots[0].fd
    if file_system_type(root) not in module._LOCAL_FILE_SYSTEMS or open_cached("probe", os.O_RDONLY, root) is None:
        pytest.skip("this kernel or file system can't tell")
    return here


def test_a_small_text_that_was_just_written_is_warm(able: Ground) -> None:
    assert is_in_page_cache(able.readable("probe"))
    (able.root / "empty").touch()
    assert is_in_page_cache(able.readable("empty"))


def test_what_may_wait_is_not(able: Ground) -> None:
    root = able.root
    (root / "large").write_text("x" * 70_000)
    (root / "latin").write_bytes("é".encode("latin-1"))
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("probe")
    (root / "way").symlink_to(able.outside)
    for name in ("large", "latin", "folder", "pipe", "link", "way/secret.txt", "missing", "."):
        assert not is_in_page_cache(able.readable(name)), name


def test_a_file_that_is_not_in_memory_goes_to_a_thread(able: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    def cold(*_: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "")

    monkeypatch.setattr(os, "preadv", cold)
    assert not is_in_page_cache(able.readable("probe"))


def test_a_file_system_that_may_ask_elsewhere_is_never_warm(able: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "file_system_type", lambda fd: 0x6969)  # NFS
    module._file_system_types.clear()
    assert not is_in_page_cache(able.readable("probe"))
    module._file_system_types.clear()


@pytest.mark.anyio
async def test_the_answer_is_the_same_either_way(able: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [("read_text", {"path": "probe"}), ("get_info", {"path": "probe"}), ("read_text", {"path": "none"})]
    async with Client(build(Settings(folders=(str(able.root),)))) as client:
        quick = [await client.call_tool(name, arguments) for name, arguments in calls]
        contents = await client.read_resource((able.root / "probe").as_uri())
        monkeypatch.setattr("mcp_fs.engine.reading.page_cache.is_in_page_cache", lambda place: False)
        assert [await client.call_tool(name, arguments) for name, arguments in calls] == quick
        assert (await client.read_resource((able.root / "probe").as_uri())).contents == contents.contents
