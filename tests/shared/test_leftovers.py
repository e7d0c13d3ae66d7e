"""What servers leave on a machine is listed, documented and removed, and nothing else is."""

import ast
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from mcp import Client
from mcp_types import TextContent
from platformdirs import macos, unix, windows

from contract.test_contract import ROOT
from mcp_batteries.cli.places import Places
from mcp_batteries.cli.setup import set_up
from mcp_batteries.errors import NotFound
from mcp_batteries.mount.settings import Settings as Mount
from mcp_batteries.remote.disk import DiskStore
from mcp_batteries.remote.entry import Entry
from mcp_batteries.settings import Settings, load
from mcp_batteries.transports.stdio.cached_handshake import replay
from mcp_batteries.user_folders import (
    FIRST_ANSWERS,
    FOLDERS,
    NOTES,
    READER_PASSWORDS,
    UNDO,
    UserFolder,
    cache_folder,
    table,
)
from mcp_fs.server import build
from mcp_fs.settings import Settings as Files
from mcp_github.settings import Settings as Github
from mcp_postgres.settings import Settings as Postgres
from mcp_weather.settings import Settings as Weather

CANARY = "c4n4ry"
SYSTEMS = {
    "linux": (unix.Unix, "linux"),
    "macos": (macos.MacOS, "macos"),
    "windows": (windows.Windows, "windows"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with all folders in it."""
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    if sys.platform == "win32":
        monkeypatch.setattr(windows, "get_win_folder", lambda _: str(tmp_path / "home" / "LOCALAPPDATA"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


# The table


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.linux)
def test_the_table_says_where_a_folder_is(
    folder: UserFolder, system: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, column = SYSTEMS[system]
    monkeypatch.setattr(platformdirs, "PlatformDirs", kind)
    monkeypatch.setattr(windows, "get_win_folder", lambda _: "%LOCALAPPDATA%")
    found = str(folder.find()).replace(str(home), "~").replace("\\", "/")
    assert found == getattr(folder, column).replace("\\", "/")


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_front_finds_its_folder_by_itself(system: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"linux": "linux", "macos": "darwin", "windows": "win32"}
    monkeypatch.setenv("LOCALAPPDATA", "%LOCALAPPDATA%")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", names[system])
        found = os.path.dirname(replay.cache_path("mcp_fs"))
    assert found.replace(str(home), "~").replace("\\", "/") == getattr(FIRST_ANSWERS, system).replace("\\", "/")


ASKS = re.compile(r"^(user_\w+|mkdtemp|mkstemp|gettempdir|TemporaryDirectory|Scratch|expanduser|home)$")
VARIABLES = re.compile(r"^(XDG_\w+_(HOME|DIR)|LOCALAPPDATA|APPDATA|TMPDIR|TEMP|TMP)$")
TEMPORARY, READ_ONLY, ASKED_FOR = "goes with the process", "only read, or handed on", "a path that the person named"
KNOWN = {
    "shared/src/mcp_batteries/user_folders.py": "the table",
    "shared/src/mcp_batteries/transports/stdio/cached_handshake/replay.py": FIRST_ANSWERS.linux,
    "shared/src/mcp_batteries/transports/stdio/cached_handshake/store.py": READ_ONLY,
    "shared/src/mcp_batteries/cli/places.py": "files of hosts, which --install changes",
    "shared/src/mcp_batteries/cli/config_file.py": "takes the place of a host's file at once",
    "shared/src/mcp_batteries/cli/check_http.py": TEMPORARY,
    "shared/src/mcp_batteries/scratch.py": TEMPORARY,
    "shared/src/mcp_batteries/settings/paths.py": ASKED_FOR,
    "shared/src/mcp_batteries/remote/disk.py": ASKED_FOR,
    "servers/postgres/src/mcp_postgres/engine/demo/cluster.py": TEMPORARY,
    "servers/postgres/src/mcp_postgres/engine/connection/pool.py": ASKED_FOR,
    "servers/sqlite/src/mcp_sqlite/server.py": TEMPORARY,
    "servers/git/src/mcp_git/engine/program/git_binary.py": READ_ONLY,
    "servers/git/src/mcp_git/engine/program/confinement.py": READ_ONLY,
    "servers/git/src/mcp_git/engine/program/git.py": TEMPORARY,
    "shared/src/mcp_batteries/processes/python_child.py": READ_ONLY,
    "servers/git/src/mcp_git/engine/program/user_configuration.py": READ_ONLY,
}
"""What each module that asks for a folder of the user, or for a temporary one, keeps there."""


def asks_for_folders(source: str) -> bool:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VARIABLES.match(node.value):
            return True
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if ASKS.match(called):
                return True
    return False


@pytest.mark.slow
def test_every_module_that_asks_for_a_folder_is_known() -> None:
    modules = [
        *ROOT.glob("shared/src/**/*.py"),
        *ROOT.glob("servers/*/src/**/*.py"),
        *ROOT.glob("examples/src/**/*.py"),
    ]
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in modules
        if "testing" not in path.parts and asks_for_folders(path.read_text("utf-8"))
    }
    assert asking == KNOWN.keys()
    assert asks_for_folders("from os import environ\nenviron['XDG_RUNTIME_DIR']") and asks_for_folders("Path.home()")


def test_servers_ask_for_no_other_name() -> None:
    """A new server with a cache needs a line in the table."""
    callers = [path for path in ROOT.glob("servers/*/src/**/*.py") if "open_store(" in path.read_text("utf-8")]
    commands = {f"mcp-{path.relative_to(ROOT).parts[1]}" for path in callers}
    assert commands == {folder.servers[0] for folder in FOLDERS if folder.servers} - {"mcp-fs", "mcp-postgres"}


@pytest.mark.parametrize("page", ["docs/upgrade.md", "docs/privacy.md"])
def test_both_pages_have_the_table(page: str) -> None:
    assert table() in (ROOT / page).read_text("utf-8"), "run `just docs`"


# Removing


def filled(*folders: UserFolder) -> None:
    for folder in folders:
        path = folder.find()
        (path / "deep").mkdir(parents=True, mode=0o700)
        (path / "deep" / "file").write_text(CANARY, "utf-8")


def left(home: Path) -> list[Path]:
    return [path for path in home.rglob("*") if path.is_file() and CANARY in path.read_text("utf-8", "replace")]


@pytest.mark.parametrize("kind", [Files, Github, Weather, Mount])
def test_a_server_removes_what_is_its_own(kind: type[Settings], home: Path) -> None:
    others = [home / ".cache" / "other", home / "Library" / "Caches" / "other"]
    filled(*(folder for folder in FOLDERS if folder is not NOTES))
    for other in others:
        other.mkdir(parents=True)
        (other / "file").touch()
    own = [folder for folder in FOLDERS if folder is not NOTES and folder.is_of(kind.COMMAND)]
    said = set_up(load(kind, ["--purge"]))
    for folder in FOLDERS:
        assert folder is NOTES or folder.find().exists() is (folder not in own)
        assert (f"- {folder.find()}: {folder.contents} (1 file, {len(CANARY)} bytes)" in said) is (folder in own)
    assert all((other / "file").exists() for other in others)
    assert "has left nothing" in set_up(load(kind, ["--purge"]))


@pytest.mark.anyio
async def test_after_the_documented_steps_nothing_private_is_left(home: Path, tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (served / "private.txt").write_text(CANARY, "utf-8")
    where = Places.of_this_user()
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"other": {"env": {"TOKEN": "x"}}}}', "utf-8")
    before = path.read_bytes()
    async with Client(build(load(Files, [str(served)]))) as client:
        result = await client.call_tool("delete_file", {"path": "private.txt"})
        assert not result.is_error
    assert left(home)
    set_up(load(Files, ["--install", "cursor", str(served)]))
    path.write_bytes(path.read_bytes().replace(b'"x"', f'"{CANARY}"'.encode()))
    set_up(load(Files, ["--install", "cursor", "--read-only", str(served)]))
    said = set_up(load(Files, ["--uninstall", "cursor"]))
    assert str(UNDO.find()) in said and said.rstrip().endswith("--purge")
    assert left(home)
    set_up(load(Files, ["--purge"]))
    assert left(home) == [path]
    assert path.read_bytes() == before.replace(b'"x"', f'"{CANARY}"'.encode())


def test_a_role_that_stays_in_the_database_is_told_with_how_to_remove_it(home: Path) -> None:
    settings = load(Postgres, ["--uninstall", "cursor"])
    set_up(load(Postgres, ["--install", "cursor"]))
    assert "mcp_reader" not in set_up(settings)
    for words in (["--uninstall", "cursor"], ["--purge"]):
        shutil.rmtree(READER_PASSWORDS.find(), ignore_errors=True)
        filled(READER_PASSWORDS)
        set_up(load(Postgres, ["--install", "cursor"]))
        assert "DROP OWNED BY mcp_reader in each database that it reads, then DROP ROLE mcp_reader." in set_up(
            load(Postgres, words)
        )
    assert "mcp_reader" not in set_up(load(Postgres, ["--purge"]))


def test_both_at_once_point_to_no_copy_that_is_gone(home: Path) -> None:
    set_up(load(Files, ["--install", "cursor", str(home)]))
    set_up(load(Files, ["--install", "cursor", "--read-only", str(home)]))
    said = set_up(load(Files, ["--uninstall", "cursor", "--purge"]))
    assert "until --purge" not in said and "fs.backup: " in said
    assert not [*NOTES.find().rglob("*.backup")]


def test_both_at_once(home: Path) -> None:
    filled(UNDO)
    set_up(load(Files, ["--install", "cursor", str(home)]))
    said = set_up(load(Files, ["--uninstall", "cursor", "--purge"]))
    assert "Took the entry `fs` out" in said and "Removed:" in said and not left(home)
    filled(UNDO)
    with pytest.raises(NotFound):
        set_up(load(Files, ["--uninstall", "cursor"]))
    said = set_up(load(Files, ["--uninstall", "cursor", "--purge"]))
    assert "add --workspace" in said and "Removed:" in said and not left(home)


def test_backups_go_and_what_other_servers_need_stays(home: Path) -> None:
    path = Places.of_this_user().file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text("{ }", "utf-8")
    set_up(load(Files, ["--install", "cursor", str(home)]))
    set_up(load(Weather, ["--install", "cursor"]))
    said = set_up(load(Files, ["--purge"]))
    assert "fs.backup" in said and f"still in {path}: --uninstall all" in said
    assert {item.name for item in NOTES.find().rglob("*")} >= {"weather.backup", "original"}
    set_up(load(Files, ["--uninstall", "cursor"]))
    set_up(load(Weather, ["--uninstall", "cursor"]))
    assert path.read_text("utf-8") == "{ }"
    set_up(load(Weather, ["--purge"]))
    assert not NOTES.find().exists(), "locks are left, and the message says that nothing is"


@pytest.mark.parametrize("is_other_installed", [False, True])
def test_a_backup_that_was_kept_goes_with_the_rest(is_other_installed: bool, home: Path) -> None:
    if is_other_installed:
        set_up(load(Weather, ["--install", "cursor"]))
    set_up(load(Files, ["--install", "cursor", str(home)]))
    set_up(load(Files, ["--install", "cursor", "--read-only", str(home)]))
    set_up(load(Files, ["--uninstall", "cursor"]))
    (backup,) = NOTES.find().rglob("fs*.backup")
    assert f"{backup}: " in set_up(load(Files, ["--purge"]))
    assert not backup.exists()
    assert any(NOTES.find().rglob("journal.json")) is is_other_installed


def test_notes_of_a_newer_version_stay(home: Path) -> None:
    path = Places.of_this_user().file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text("{}", "utf-8")
    set_up(load(Files, ["--install", "cursor", str(home)]))
    (journal,) = NOTES.find().rglob("journal.json")
    journal.write_text(json.dumps({**json.loads(journal.read_text("utf-8")), "made_in": "2030"}), "utf-8")
    before = left(home)
    set_up(load(Weather, ["--purge"]))
    assert left(home) == before


def test_notes_that_cannot_be_read_go_with_the_file_beside_them(home: Path) -> None:
    path = Places.of_this_user().file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text(f'{{"token": "{CANARY}"}}', "utf-8")
    set_up(load(Files, ["--install", "cursor", str(home)]))
    (journal,) = NOTES.find().rglob("journal.json")
    journal.write_text("{", "utf-8")
    assert len(left(home)) == 3
    set_up(load(Files, ["--purge"]))
    assert left(home) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs rights there")
def test_no_link_is_followed(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(CANARY, "utf-8")
    filled(UNDO)
    (UNDO.find() / "link").symlink_to(outside)
    (UNDO.find() / "deep" / "link").symlink_to(outside / "file")
    cache = cache_folder("mcp-weather")
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.symlink_to(outside)
    set_up(load(Files, ["--purge"]))
    assert "it is a link" in set_up(load(Weather, ["--purge"]))
    assert not UNDO.find().exists() and cache.is_symlink() and (outside / "file").read_text("utf-8") == CANARY


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root has folders of others")
def test_a_folder_of_somebody_else_stays(home: Path) -> None:
    filled(UNDO)
    os.chown(UNDO.find(), 1234, 1234)
    assert "belongs to another user" in set_up(load(Files, ["--purge"]))
    assert left(home)


def test_what_a_killed_purge_has_left_goes_with_the_next(home: Path) -> None:
    filled(UNDO)
    UNDO.find().rename(UNDO.find().with_name("mcp-fs-undo.going-0a1b"))
    filled(UNDO)
    set_up(load(Files, ["--purge"]))
    assert not left(home)


# A server that still runs


@pytest.mark.anyio
async def test_a_running_server_starts_its_undo_anew(home: Path, tmp_path: Path) -> None:
    served = tmp_path / "served"
    served.mkdir()
    for name in ("a", "b"):
        (served / name).write_text(CANARY, "utf-8")
    async with Client(build(load(Files, [str(served)]))) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error
            return "".join(block.text for block in result.content if isinstance(block, TextContent))

        await call("delete_file", {"path": "a"})
        set_up(load(Files, ["--purge"]))
        assert "delete_file" not in await call("undo_changes", {})
        await call("delete_file", {"path": "b"})
        steps = await call("undo_changes", {})
        (step,) = re.findall(r"\b[0-9a-f]{8}\b", steps)
        await call("undo_changes", {"step": step, "dry_run": False})
    assert (served / "b").exists() and not (served / "a").exists()
    if sys.platform != "win32":
        assert UNDO.find().stat().st_mode & 0o077 == 0


def test_a_running_server_starts_its_cache_anew(home: Path) -> None:
    folder = cache_folder("mcp-weather")
    store = DiskStore(str(folder), ["x"])
    store.write("key", Entry(body=b"body", digest="d", changed_at=1.0), body=True)
    shutil.rmtree(folder)
    assert store.read("key").body is None
    release = store.lock("key")
    assert release is not None
    release()
    shutil.rmtree(folder)
    store.write("key", Entry(body=b"body", digest="d", changed_at=1.0), body=True)
    assert store.read("key").body == b"body"
    shutil.rmtree(folder)
    store.update("state", lambda state: {**state, "n": 1})
    assert store.state("state") == {"n": 1}
    # Others can't look into it, or the next start would refuse it.
    assert DiskStore(str(folder), ["x"]).read("key").body is None
