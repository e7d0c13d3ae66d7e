"""An entry is written into a host's own file, works there, and comes out again byte for byte."""

import base64
import codecs
import dataclasses
import errno
import itertools
import json
import os
import random
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import hypothesis
import pytest
import yaml

from mcp_batteries.cli.config_file import ConfigFile
from mcp_batteries.cli.formats import format_of
from mcp_batteries.cli.install import install
from mcp_batteries.cli.journal import backup_of, backups_of, folders
from mcp_batteries.cli.places import Places
from mcp_batteries.cli.uninstall import uninstall, uninstall_all
from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Unavailable
from mcp_batteries.executables import find_executable
from mcp_batteries.hosts import HOST_NAMES
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.mount.settings import Settings as Mounted
from mcp_batteries.settings import Settings as Common
from mcp_batteries.settings import load, to_absolute_path
from mcp_fs.settings import Settings
from mcp_git.settings import Settings as Git
from mcp_github.settings import Settings as Github
from mcp_postgres.settings import Settings as Database
from mcp_sqlite.settings import Settings as Sqlite
from mcp_weather.settings import Settings as Weather
from shared.host_files import STRICT, container

HOSTS = [host for host in HOST_NAMES if host not in ("cherry-studio", "jetbrains")]
SYSTEMS = ["linux", "darwin", "win32"]


def places(tmp_path: Path, platform: str = "linux") -> Places:
    home = tmp_path / "home"
    data = home / "AppData"
    return Places(home, platform, home / ".config", data / "Roaming", data / "Local", tmp_path / "notes")


def parsed(host: str, text: str) -> dict[str, Any]:
    """As the host reads it, comments aside."""
    if host == "codex":
        return tomllib.loads(text)
    if host == "goose":
        return yaml.safe_load(text)
    return json.loads("\n".join(line for line in text.split("\n") if not line.lstrip().startswith("//")))


# What says how an entry is written is refused without it; which host it names makes no difference here.
ACTION = ("--install", "cursor")


# A folder that is there, and a repository: nothing else is installed. It lies in a folder of its own.
SERVED = ""


@pytest.fixture(scope="module", autouse=True)
def _served(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    folder = tmp_path_factory.mktemp("data") / "served"
    (folder / ".git").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[__name__], "SERVED", str(folder))
        yield


def settings(*words: str) -> Settings:
    return load(Settings, [*ACTION, *words, SERVED])


EXISTING = {
    "codex": 'model = "x"  # mine\n\n[mcp_servers.other]\ncommand = "other"\n',
    "goose": "# mine\nextensions:\n  other:\n    name: other\n    enabled: true\nGOOSE_MODEL: x\n",
}


def existing(host: str) -> str:
    """A file with another server and something that is not ours, in a style that is not ours."""
    key = container(host)
    mine = '\t"mine": 1,' if host in STRICT else "\t// mine"
    lines = ["{", mine, '\t"a": [1, "]{"],', f'\t"{key}": {{"other": {{"command": "o"}}}}', "}", ""]
    return EXISTING.get(host, "\r\n".join(lines))


@pytest.mark.share(33)
@pytest.mark.parametrize(("host", "platform"), list(itertools.product(HOSTS, SYSTEMS)))
def test_a_file_that_is_not_there_is_made_and_goes_again(host: str, platform: str, tmp_path: Path) -> None:
    where = places(tmp_path, platform)
    said = install(host, settings(), where)
    path = where.file(host)
    assert str(path) in said
    undo = said.partition("To undo: ")[2].split()
    assert undo[-2:] == ["--uninstall", host]
    # The program need not be where a shell looks: uvx puts it there for one run.
    assert find_executable(undo[0]) or os.path.isabs(undo[0])
    (entry,) = [value for value in parsed(host, path.read_text("utf-8")).values() if isinstance(value, dict)]
    command = entry["fs"].get("command", entry["fs"].get("cmd"))
    assert os.path.isabs(command[0] if isinstance(command, list) else command)
    uninstall(host, settings(), where)
    assert not path.exists()


@pytest.mark.share(20)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("style", ["as it is", "with a mark", "empty members", "no members", "empty"])
def test_what_is_there_stays_and_the_same_bytes_come_back(host: str, style: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    before = existing(host).encode("utf-8-sig" if style == "with a mark" else "utf-8")
    if style not in ("as it is", "with a mark"):
        key = container(host)
        text = {"empty members": f'{{"{key}": {{}}}}', "no members": "{}", "empty": ""}[style]
        text = {"codex": "", "goose": "extensions:\n" if style == "empty members" else ""}.get(host, text)
        before = text.encode()
    path.write_bytes(before)
    path.chmod(0o640)
    said = install(host, settings(), where)
    written = path.read_bytes()
    found = parsed(host, written.decode("utf-8-sig"))
    if host in STRICT:
        before = before.removeprefix(codecs.BOM_UTF8)
    assert written.startswith(codecs.BOM_UTF8) == before.startswith(codecs.BOM_UTF8)
    servers = found[container(host)]
    assert "fs" in servers and (b"mine" not in before or ("other" in servers and b"mine" in written))
    assert (path.stat().st_mode & 0o777) in (0o640, 0o666)
    assert Path(said.partition("The file as it was: ")[2].partition(".\n")[0]).read_bytes().endswith(before)
    uninstall(host, settings(), where)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("kind", "words", "missing"),
    [
        (Settings, "", "folder"),
        (Settings, "--read-only", "folder"),
        (Git, "", "repository"),
        (Sqlite, "--write", "database"),
        (Mounted, "fs -- weather", "folder"),
        (Mounted, "weather -- git", "repository"),
        (Mounted, "weather", None),
        (Sqlite, "--demo", None),
        (Github, "", None),
        (Database, "", None),
        (Settings, "--transport http", None),
    ],
)
def test_an_entry_that_could_not_start_is_not_written(
    kind: type[Common], words: str, missing: str | None, tmp_path: Path
) -> None:
    where = places(tmp_path)
    installed = load(kind, words.split())
    if missing is None:
        assert str(where.file("cursor")) in install("cursor", installed, where)
        return
    with pytest.raises(Invalid, match=f"names no {missing}.*such as"):
        install("cursor", installed, where)
    assert not where.file("cursor").exists()


def test_what_windows_installed_as_a_package_reads_another_file(tmp_path: Path) -> None:
    where = places(tmp_path, "win32")
    plain = where.file("claude-desktop")
    (package := where.local / "Packages" / "Claude_pzs8sxrjxfjjc").mkdir(parents=True)
    install("claude-desktop", settings(), where)
    (file,) = package.rglob("claude_desktop_config.json")
    assert file == where.file("claude-desktop") != plain and not plain.exists()
    package.rename(package.with_name("Other_pzs8sxrjxfjjc"))
    assert where.file("claude-desktop") == plain
    (moved := package.with_name("Other_pzs8sxrjxfjjc")).rename(package)
    assert not moved.exists() and str(file) in uninstall("claude-desktop", settings(), where)
    assert not file.exists()


@pytest.mark.reported("microsoft/apm#2060")
@pytest.mark.reported("GlitterKill/sdl-mcp#17")
@pytest.mark.parametrize(
    ("host", "variable", "file"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ],
)
def test_the_folder_that_a_user_gave_a_host_is_the_one_that_it_reads(
    host: str, variable: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {"XDG_CONFIG_HOME": str(tmp_path / "config")}

    def account(folder: str) -> Places:
        where = Places.of_this_user({**environment, variable: folder})
        return dataclasses.replace(where, home=tmp_path / "home", notes=tmp_path / "notes")

    work = tmp_path / "work" / file
    assert str(work) in install(host, settings(), account(str(tmp_path / "work")))
    assert str(tmp_path / "own" / file) in install(host, settings(), account("own"))
    before = work.read_bytes()
    uninstall(host, settings(), account("own"))
    assert work.read_bytes() == before and not (tmp_path / "own" / file).exists()
    # Where the variable is not set any more, the notes know the file.
    assert not account(" ").file(host).is_relative_to(tmp_path / "work")
    assert str(work) in uninstall(host, settings(), account(" "))


def test_a_folder_that_a_host_would_not_find_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = dataclasses.replace(places(tmp_path), variables={"CLAUDE_CONFIG_DIR": "~/work"})
    with pytest.raises(Invalid, match=r"CLAUDE_CONFIG_DIR is `~/work`.*Set it to an absolute path"):
        install("claude-code", settings(), where)
    assert not (tmp_path / "~").exists()


def test_a_password_in_the_entry_that_is_replaced_is_not_shown(tmp_path: Path) -> None:
    where = places(tmp_path)
    installed = load(Database, ["postgresql://reader@db.example.org/shop"])
    install("cursor", installed, where)
    file = where.file("cursor")
    file.write_text(file.read_text("utf-8").replace("reader@", "reader:c4n4ry@"), "utf-8")
    message = install("cursor", installed, where)
    assert "postgresql://reader:***@db.example.org/shop\nNow: " in message
    assert "c4n4ry" not in message


@pytest.mark.parametrize("host", HOSTS)
def test_a_second_time_replaces_the_first(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    where.file(host).parent.mkdir(parents=True)
    where.file(host).write_bytes(existing(host).encode())
    assert "Before:" not in install(host, settings("--read-only"), where)
    message = install(host, settings(), where)
    _, before, after, *others = message.split("\n")
    assert not any("--name NAME" in line for line in others)
    assert before.startswith("Before: ") and " --read-only " in before
    assert after.startswith("Now: ") and " --read-only " not in after
    assert "Before:" not in install(host, settings(), where)
    text = where.file(host).read_text("utf-8")
    assert "--read-only" not in text and text.count("served") == 1
    uninstall(host, settings(), where)
    assert where.file(host).read_bytes() == existing(host).encode()


@pytest.mark.parametrize("host", HOSTS)
def test_a_replaced_entry_can_be_had_back(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    install(host, settings("--read-only"), where)
    replaced = where.file(host).read_bytes()
    message = install(host, settings(), where)
    backup = Path(message.partition("The file as it was: ")[2].partition(".\n")[0])
    lines = message.split("\n")
    assert f"To undo: copy the entry `fs` from the file as it was into {where.file(host)}." in lines
    removal = lines[-1].partition("To take it out: ")[2]
    assert removal.endswith(f" --uninstall {host}")
    message = uninstall(host, settings(), where)
    assert message.endswith(f"\nThe one that it replaced is in {backup}, until --purge.")
    assert backup.read_bytes() == replaced


def test_what_a_person_wrote_outlives_every_further_installation(tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text(own := json.dumps({"mcpServers": {"fs": {"command": "mcp-fs", "args": ["/mine"]}}}), "utf-8")
    for number in range(1, 14):
        before = path.read_bytes()
        message = install("cursor", settings("--tools", f"read{number}"), where)
        backup = Path(message.partition("The file as it was: ")[2].partition(".\n")[0])
        assert backup.read_bytes() == before
        oldest = message.partition("The oldest copy of it: ")[2].partition(".\n")[0]
        assert bool(oldest) is (number > 1)
        if oldest:
            assert Path(oldest).read_text("utf-8") == own
    (notes,) = folders(where.notes)
    assert len([*notes.glob("*.backup")]) == 10
    install("cursor", settings("--tools", "read13"), where)
    install("cursor", settings("--tools", "read13"), where)
    message = uninstall("cursor", settings(), where)
    oldest = message.partition("The oldest that it replaced is in ")[2].removesuffix(".")
    assert Path(oldest).read_text("utf-8") == own


def test_copies_of_two_entries_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, number in (("fs", 1), ("fs", 10), ("fs", 2), ("fs+2", 1), ("fs.2", 1), ("f", 1)):
        (folder / backup_of(name, number)).touch()
    (folder / "fs+x.backup").touch()
    assert [path.name for path in backups_of(folder, "fs").values()] == ["fs.backup", "fs+2.backup", "fs+10.backup"]
    assert len(backups_of(folder, "fs+2")) == 1


def test_a_backup_with_nothing_but_the_removed_entry_goes(tmp_path: Path) -> None:
    where = places(tmp_path)
    install("cursor", settings(), where)
    message = install("cursor", settings(), where)
    assert "\nTo undo: " in message and "To take it out" not in message
    assert "\n" not in uninstall("cursor", settings(), where)
    assert not folders(where.notes)


@pytest.mark.parametrize("host", HOSTS)
def test_what_somebody_edits_afterwards_stays(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    path.write_bytes(existing(host).encode())
    install(host, settings(), where)
    mark = {"codex": "# new\n", "goose": "# new\n"}.get(host, "\n" if host in STRICT else "\n// new\n")
    path.write_bytes(mark.encode() + path.read_bytes())
    uninstall(host, settings(), where)
    assert path.read_bytes() == mark.encode() + existing(host).encode()


@pytest.mark.parametrize("host", HOSTS)
def test_somebody_elses_server_of_that_name_is_not_touched(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    taken = existing(host).replace("other", "fs")
    path.write_bytes(taken.encode())
    with pytest.raises(Conflict, match=r"another server `fs`|something else under the name `fs`"):
        install(host, settings(), where)
    assert path.read_bytes() == taken.encode()


@pytest.mark.parametrize("host", HOSTS)
def test_a_file_that_makes_no_sense_is_left_alone(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    for broken in (b'{"mcpServers": {"a": ', b"\xff\xfe\x00", b"[1]" if host not in ("goose", "codex") else b"\xff"):
        path.write_bytes(broken)
        if host == "goose" and broken.startswith(b"{"):
            continue  # YAML is not read by us, only added to.
        with pytest.raises(Unavailable):
            install(host, settings(), where)
        assert path.read_bytes() == broken


@pytest.mark.share(1, slow=5)
@pytest.mark.parametrize("host", HOSTS)
def test_a_file_damaged_anywhere_is_left_alone_in_a_sentence(host: str, tmp_path: Path) -> None:
    rng, where = random.Random(host), places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    broken = ["mcp_servers = 1\n", '{"a\\x": 1}', '{"a\tb": 1}', '{"a":' * 5000]
    for _ in range(100):
        whole = existing(host)
        at = rng.randrange(len(whole))
        broken.append(
            whole[:at] + rng.choice(["", '"', "}", ":", "\\", "\r\n", ",", "\0"]) + whole[at + rng.randrange(9) :]
        )
    for text in broken:
        path.write_bytes(text.encode())
        with suppress(Problem):
            install(host, settings(), where)
            uninstall(host, settings(), where)
        editor = format_of(host)
        if not editor.is_readable(text) and editor.is_readable(path.read_text("utf-8")):
            continue  # A comma that the host cannot read was taken out, and stays out.
        assert path.read_bytes() == text.encode()


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r\n  other:\r\n    name: other\r\nGOOSE_MODEL: x\r\n"])
def test_a_yaml_file_has_line_ends_of_windows_or_none(end: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("goose")
    path.parent.mkdir(parents=True)
    path.write_bytes(before := f"a: 1\r\nextensions:{end}".encode())
    install("goose", settings(), where)
    found = parsed("goose", path.read_bytes().decode())
    assert (
        found["extensions"]["fs"]["enabled"]
        and found["a"] == 1
        and ("other" in found["extensions"]) == ("other" in end)
    )
    uninstall("goose", settings(), where)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "before",
    [
        '"extensions":\n  other:\n    name: other\n', "extensions :\n  other:\n    name: other\n",
        "# mine\n---\n# more\nextensions:\n  other: {name: other}\n", "--- # mine\nextensions:\n  other: {}\n",
    ],
)  # fmt: skip
def test_yaml_is_written_in_many_ways(before: str, tmp_path: Path) -> None:
    path = places(tmp_path).file("goose")
    path.parent.mkdir(parents=True)
    path.write_bytes(before.encode())
    install("goose", settings(), places(tmp_path))
    assert parsed("goose", path.read_text("utf-8"))["extensions"].keys() == {"fs", "other"}
    uninstall("goose", settings(), places(tmp_path))
    assert path.read_bytes() == before.encode()


@pytest.mark.parametrize(
    ("host", "before", "why"),
    [
        ("goose", "a: 1\n...\n", "behind the end"), ("goose", "- extensions\n", "does not hold keys"),
        ("goose", "a: 1\n---\nb: 1\n", "single document"), ("goose", "a: 1\nextensions: {}\na: 2\n", "`a` twice"),
        ("vscode", '{"servers": {}, "servers": {}}', "`servers` twice"), ("zed", "{'a': 1}", "this is not JSON"),
        ("claude-desktop", '{\n// mine\n}', "line 2: there is a comment"), ("codex", "a = 1\na = 2\n", "overwrite"),
        ("goose", "extensions:\n- other\n", "something else under `extensions`"),
        ("vscode", '{"servers": []}', "something else under `servers`"),
        ("cursor", '{"mcpServers": null}', "something else under `mcpServers`"),
    ],
)  # fmt: skip
def test_a_file_that_holds_something_else_is_left_alone(host: str, before: str, why: str, tmp_path: Path) -> None:
    path = places(tmp_path).file(host)
    path.parent.mkdir(parents=True)
    path.write_bytes(before.encode())
    with pytest.raises(Unavailable, match=why):
        install(host, settings(), places(tmp_path))
    assert path.read_bytes() == before.encode()


@pytest.mark.parametrize("before", ["---\n", "---", "--- # mine\n", "%YAML 1.1\n---\n"])
def test_a_yaml_document_that_says_nothing_takes_an_entry(before: str, tmp_path: Path) -> None:
    path = places(tmp_path).file("goose")
    path.parent.mkdir(parents=True)
    path.write_text(before, "utf-8")
    install("goose", settings(), places(tmp_path))
    assert "fs" in parsed("goose", path.read_text("utf-8"))["extensions"]
    uninstall("goose", settings(), places(tmp_path))
    assert path.read_text("utf-8").startswith(before)


@pytest.mark.share(15)
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("before", ["\ufeff", "\ufeff// mine\r\n", " \n"])
def test_a_file_with_nothing_to_read_is_an_empty_one(host: str, before: str, tmp_path: Path) -> None:
    if host in STRICT:
        before = before.replace("// mine", "")
    path = places(tmp_path).file(host)
    path.parent.mkdir(parents=True)
    path.write_bytes((before := before.replace("//", "#") if host in ("codex", "goose") else before).encode())
    install(host, settings(), places(tmp_path))
    written = path.read_bytes().decode("utf-8-sig")
    assert "fs" in parsed(host, written)[container(host)]
    # Line ends are all alike, as an editor would make them.
    assert "mine" not in before or written.count("\n") == written.count("\r\n")
    uninstall(host, settings(), places(tmp_path))
    assert path.read_bytes() == before.encode()


def test_a_file_that_was_made_read_only_is_left_alone(tmp_path: Path) -> None:
    path = places(tmp_path).file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text("{}", "utf-8")
    path.chmod(0o444)
    try:
        with pytest.raises(Unavailable, match="cannot be written"):
            install("cursor", settings(), places(tmp_path))
    finally:
        path.chmod(0o644)
    assert path.read_text("utf-8") == "{}"


def test_servers_of_codex_on_one_line_take_another(tmp_path: Path) -> None:
    path = places(tmp_path).file("codex")
    path.parent.mkdir(parents=True)
    path.write_text('mcp_servers = { other = { command = "o" } }\n', "utf-8")
    install("codex", settings(), places(tmp_path))
    assert parsed("codex", path.read_text("utf-8"))["mcp_servers"].keys() == {"fs", "other"}
    uninstall("codex", settings(), places(tmp_path))
    assert path.read_text("utf-8") == 'mcp_servers = { other = { command = "o" } }\n'


def test_nothing_is_taken_out_that_was_not_put_in(tmp_path: Path) -> None:
    where = places(tmp_path)
    with pytest.raises(NotFound, match="add --workspace"):
        uninstall("cursor", settings(), where)
    install("cursor", settings(), where)
    path = where.file("cursor")
    path.write_text(path.read_text("utf-8").replace("mcp-fs", "another"), "utf-8")
    with pytest.raises(Conflict, match=r"another server `fs`, which is `.*another`"):
        uninstall("cursor", settings(), where)
    assert "another" in path.read_text("utf-8")


def test_a_host_that_takes_a_link_gets_one_without_a_password(tmp_path: Path) -> None:
    told, link = install("cherry-studio", load(Github, []), places(tmp_path)).split("\n")
    assert "Set GITHUB_TOKEN in its settings" in told and not list(tmp_path.iterdir())
    parts = urlsplit(link)
    assert (parts.scheme, parts.netloc, parts.path) == ("cherrystudio", "mcp", "/install")
    entry = json.loads(base64.b64decode(parse_qs(parts.query)["servers"][0], validate=True))["mcpServers"]["github"]
    assert entry["type"] == "stdio" and entry["isActive"] and os.path.isabs(entry["command"])


def test_a_host_without_a_file_and_a_host_without_urls(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="--print-config jetbrains"):
        install("jetbrains", settings(), places(tmp_path))
    with pytest.raises(Invalid, match="leave out --transport"):
        install("claude-desktop", settings("--transport", "http"), places(tmp_path))


@pytest.mark.parametrize("host", HOSTS)
def test_no_password_is_written(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    said = install(host, load(Database, ["postgresql://reader:c4n4ry@db.example.org/shop"]), where)
    assert "MCP_POSTGRES_DATABASES" in said
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"c4n4ry" not in path.read_bytes()


@pytest.mark.parametrize("host", HOSTS)
def test_what_the_environment_has_to_hold_is_told_with_its_place(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    said = install(host, load(Github, []), where)
    written = where.file(host).read_text("utf-8")
    hint = "set GITHUB_TOKEN where the host finds it"
    if '"inputs"' in written:
        hint = f"{load_host(host).title} asks you for GITHUB_TOKEN when it starts the server; left empty, the server"
    elif "github_pat_..." in written:
        hint = "set GITHUB_TOKEN in its place in that file"
    assert f"No password or key was written: {hint}" in said
    assert "No password" not in install(host, settings(), where)
    said = install(host, load(Database, []), where)
    assert "left empty" not in said and "MCP_POSTGRES_DATABASES" in said


@pytest.mark.parametrize("create", [False, True])
def test_what_is_not_there_is_not_installed(create: bool, tmp_path: Path) -> None:
    (tmp_path / "here.db").touch()
    flags = ["--create"] * create
    here, gone = tmp_path / "here.db", tmp_path / "gone.db"
    given = load(Sqlite, [*flags, f"shop={here}", f"blog={gone}"])
    if create:
        install("cursor", given, places(tmp_path))
        return
    with pytest.raises(Invalid) as raised:
        install("cursor", given, places(tmp_path))
    assert str(raised.value) == (
        f"Not there, and the server needs it: `{gone}`. Nothing was changed: correct that first. "
        "--print-config cursor prints the entry anyway."
    )
    assert not places(tmp_path).file("cursor").exists()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Settings, "{gone}"), (Settings, "--audit-file {gone}/log {here}"), (Git, "{here}"), (Git, "{gone}"),
        (Sqlite, "--demo --queries {gone}"), (Sqlite, "--demo --files {gone}"),
        (Database, "--password-file {gone} postgresql://reader@localhost/shop"), (Database, "--demo --queries {gone}"),
        (Github, "--token-file {gone}"), (Weather, "--places {gone}"), (Mounted, "weather -- fs {gone}"),
        (Mounted, "fs {here} -- git {here}"),
    ],
)  # fmt: skip
def test_a_working_entry_stays_if_its_successor_would_not_work(kind: type[Common], words: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    (here := tmp_path / "here").mkdir()
    given = load(kind, words.format(here=here, gone=tmp_path / "gone").split())
    works = {Settings: [str(here)], Git: [SERVED], Sqlite: ["--demo"], Database: ["--demo"], Mounted: ["weather"]}
    install("cursor", load(kind, works.get(kind, [])), where)
    before = where.file("cursor").read_bytes()
    for action in ("", "--dry-run"):
        with pytest.raises(Invalid, match="--print-config cursor prints the entry anyway"):
            install("cursor", given.model_copy(update={"dry_run": bool(action)}), where)
    assert where.file("cursor").read_bytes() == before


def test_a_folder_that_is_no_repository_is_named_when_it_is_installed(tmp_path: Path) -> None:
    top, bare, other = (tmp_path / name for name in ("top", "bare.git", "other"))
    for folder in (top / ".git", bare, other):
        folder.mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    with pytest.raises(Invalid) as raised:
        install("cursor", load(Git, [*ACTION, str(top), str(bare), str(other)]), places(tmp_path))
    message = str(raised.value)
    assert f"`{other}` is not a Git repository" in message and message.count("is not a Git repository") == 1


@pytest.mark.parametrize("host", ["vscode", "codex"])
def test_a_url_needs_no_variables(host: str, tmp_path: Path) -> None:
    assert "No password" not in install(host, load(Github, ["--transport", "http"]), places(tmp_path))


def test_a_link_of_a_dotfile_manager_stays_a_link(tmp_path: Path) -> None:
    where = places(tmp_path)
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    where.file("cursor").parent.mkdir(parents=True)
    where.file("cursor").symlink_to(target)
    install("cursor", settings(), where)
    assert where.file("cursor").is_symlink() and "fs" in target.read_text()
    uninstall("cursor", settings(), where)
    assert target.read_text() == "{}"


def _random_json(seed: random.Random, key: str) -> str:
    """JSON as people write it: comments, trailing commas, brackets in strings, any spacing."""
    blanks = ["", " ", "\n", "\t", " // c {[\n", "/* } */"]

    def blank() -> str:
        return seed.choice(blanks)

    def value(depth: int) -> str:
        kind = seed.randrange(5 if depth < 3 else 3)
        if kind == 3:
            inside = f"{blank()},{blank()}".join(value(depth + 1) for _ in range(seed.randrange(3)))
            return f"[{blank()}{inside}{blank()}]"
        if kind == 4:
            return members(depth + 1, [])
        return seed.choice(['"a\\"]}"', "1.5", "null", '"//"', "-3"])

    def members(depth: int, more: list[str]) -> str:
        pairs = [f'"k{n}"{blank()}:{blank()}{value(depth)}' for n in range(seed.randrange(3))] + more
        seed.shuffle(pairs)
        trailing = "," if pairs and seed.random() < 0.3 else ""
        return "{" + blank() + f"{blank()},{blank()}".join(pairs) + trailing + blank() + "}"

    more = [f'"{key}"{blank()}:{blank()}{members(1, [])}'] if seed.random() < 0.7 else []
    return blank() + members(0, more) + blank()


@pytest.mark.slow
def test_any_json_that_hosts_accept_is_taken_and_given_back(tmp_path: Path) -> None:
    path = places(tmp_path).file("vscode")
    path.parent.mkdir(parents=True)
    for number in range(hypothesis.settings.default.max_examples * 3):
        seed = random.Random(number)
        before = _random_json(seed, "servers").encode()
        path.write_bytes(before)
        try:
            install("vscode", settings(), places(tmp_path))
            uninstall("vscode", settings(), places(tmp_path))
        except Problem as problem:
            raise AssertionError(f"seed {number}: {before!r}") from problem
        assert path.read_bytes() == before, number


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such files")
@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "device", "endless link", "unreadable"])
def test_what_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        match kind:
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "socket":
                listener.bind(os.path.relpath(path))
            case "device":
                path.symlink_to("/dev/zero")
            case "endless link":
                path.symlink_to(path)
            case _:
                if os.geteuid() == 0:
                    pytest.skip("root can read all")
                path.touch(mode=0)
        for change in (install, uninstall):
            with pytest.raises(Unavailable, match="cannot be read"):
                change("cursor", settings(), where)
    assert not list(where.notes.rglob("*.json"))


@pytest.mark.share(6)
@pytest.mark.parametrize("host", HOSTS)
def test_a_failed_installation_changes_nothing(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = places(tmp_path)
    where.file(host).parent.mkdir(parents=True)
    where.file(host).write_bytes(existing(host).encode())
    install(host, settings("--read-only"), where)
    before = _files(tmp_path)
    real = os.replace

    def fail(source: str, target: Path) -> None:
        if Path(target) == where.file(host):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    for name, broken in (("os.replace", fail), ("os.fsync", _fail), ("tempfile.mkstemp", _fail)):
        with monkeypatch.context() as patch:
            patch.setattr(name, broken)
            for change in (install, uninstall):
                with pytest.raises(Unavailable, match="No space left on device"):
                    change(host, settings(), where)
        assert _files(tmp_path) == before
    uninstall(host, settings(), where)
    assert where.file(host).read_bytes() == existing(host).encode()


def _fail(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.slow
@pytest.mark.process
def test_two_installations_at_once_both_end_in_the_file(tmp_path: Path) -> None:
    where = places(tmp_path)
    script = (
        "import sys; from pathlib import Path; from mcp_batteries.cli.install import install\n"
        "from mcp_batteries.cli.places import Places; from mcp_batteries.settings import load\n"
        "from importlib import import_module\n"
        "kind = import_module(f'{sys.argv[1]}.settings').Settings\n"
        "sys.stdin.readline()\n"
        "install('cursor', load(kind, sys.argv[3:]), eval(sys.argv[2]))\n"
    )
    spelled = repr(where).replace("PosixPath", "Path").replace("WindowsPath", "Path")
    given = {"mcp_fs": [SERVED], "mcp_git": [SERVED], "mcp_weather": [], "mcp_github": []}
    processes = [
        subprocess.Popen([sys.executable, "-c", script, package, spelled, *words], stdin=subprocess.PIPE)
        for package, words in given.items()
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.close()
    assert [process.wait(60) for process in processes] == [0] * len(processes)
    servers = json.loads(where.file("cursor").read_text("utf-8"))["mcpServers"]
    assert servers.keys() == {"fs", "git", "weather", "github"}


def test_what_the_host_writes_meanwhile_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading and replacing, each time but the last."""
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text("{}", "utf-8")
    real, times = ConfigFile.require_unchanged, iter(range(3))

    def changed(file: ConfigFile) -> None:
        if file.path == path and (time := next(times, None)) is not None:
            path.write_text(json.dumps({"theme": time}), "utf-8")
        real(file)

    monkeypatch.setattr(ConfigFile, "require_unchanged", changed)
    install("cursor", settings(), where)
    found = json.loads(path.read_text("utf-8"))
    assert found["theme"] == 2 and "fs" in found["mcpServers"]
    times = iter(range(100))
    with pytest.raises(Unavailable, match="changed each time"):
        install("cursor", settings("--read-only"), where)
    assert "--read-only" not in path.read_text("utf-8")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root has files of others")
def test_root_leaves_files_to_their_owner(tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text("{}", "utf-8")
    for one in (tmp_path, where.home, path.parent, path):
        os.chown(one, 1234, 1235)
    path.chmod(0o640)
    for host in ("cursor", "codex"):
        install(host, settings(), where)
    made = [one for one in tmp_path.rglob("*") if one.name != ".config"]
    assert len(made) > 8
    assert {(one.stat().st_uid, one.stat().st_gid) for one in made} == {(1234, 1235)}
    assert path.stat().st_mode & 0o777 == 0o640 and where.file("codex").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_person_filled_in_stays_when_it_is_installed_again(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    install(host, load(Github, []), where)
    path = where.file(host)
    text = path.read_text("utf-8")
    text = text.replace("github_pat_...", "ghp_mine").replace('"command":', '"disabled": true,\n"command":', 1)
    path.write_text(text.replace("enabled: true", "enabled: false"), "utf-8")
    install(host, load(Github, ["--write"]), where)
    after = path.read_text("utf-8")
    assert "--write" in after and after.count("ghp_mine") == text.count("ghp_mine")
    assert after.count('"disabled": true') == text.count('"disabled": true')
    for note in where.notes.rglob("*.json"):
        assert b"ghp_mine" not in note.read_bytes()


@pytest.mark.reported("huaweicloud/huaweicloud-devkit#615")
@pytest.mark.parametrize(
    ("host", "written", "mine"),
    [
        ("goose", "enabled: true", "enabled: false"),
        ("goose", "timeout: 300", "timeout: 900"),
        ("opencode", '"enabled": true', '"enabled": false'),
        ("copilot-cli", '"tools": ["*"]', '"tools": ["read_file"]'),
        ("codex", 'env_vars = ["GITHUB_TOKEN"]', 'env_vars = ["GITHUB_TOKEN", "MINE"]'),
        ("goose", 'env_keys: ["GITHUB_TOKEN"]', 'env_keys: ["GITHUB_TOKEN", "MINE"]'),
    ],
)
def test_what_a_person_changed_in_an_entry_stays_when_it_is_installed_again(
    host: str, written: str, mine: str, tmp_path: Path
) -> None:
    where = places(tmp_path)
    install(host, load(Github, []), where)
    path = where.file(host)
    assert written in path.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace(written, mine), "utf-8")
    install(host, load(Github, ["--write"]), where)
    assert mine in path.read_text("utf-8") and "--write" in path.read_text("utf-8")


def test_what_names_a_person_to_a_server_of_codex_goes_to_no_other(tmp_path: Path) -> None:
    where = places(tmp_path)
    words = ["--transport", "http", "--public-url"]
    install("codex", settings(*words, "https://one.example/mcp"), where)
    with where.file("codex").open("a") as file:
        file.write('http_headers = {Authorization = "Bearer mine"}\nstartup_timeout_sec = 30\n')
    install("codex", settings(*words, "https://one.example/mcp", "--read-only"), where)
    assert "Bearer mine" in where.file("codex").read_text("utf-8")
    install("codex", settings(*words, "https://two.example/mcp"), where)
    after = where.file("codex").read_text("utf-8")
    assert "mine" not in after and "two.example" in after and "startup_timeout_sec = 30" in after


def test_the_variable_in_which_a_person_has_the_token_stays_for_its_server(tmp_path: Path) -> None:
    where = places(tmp_path)
    words = ["--transport", "http", "--auth-tokens", "ann sha256:c4n4ry", "--public-url"]
    path = where.file("codex")
    install("codex", settings(*words, "https://one.example/mcp"), where)
    ((variable,),) = [re.findall(r'bearer_token_env_var = "(.*)"', path.read_text("utf-8"))]
    path.write_text(path.read_text("utf-8").replace(variable, "MINE"), "utf-8")
    install("codex", settings(*words, "https://one.example/mcp", "--read-only"), where)
    assert 'bearer_token_env_var = "MINE"' in path.read_text("utf-8")
    install("codex", settings(*words, "https://two.example/mcp"), where)
    assert f'bearer_token_env_var = "{variable}"' in path.read_text("utf-8")


def test_a_password_that_was_filled_in_goes_with_its_address(tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("windsurf")
    for host, kept in (("db", True), ("db2", False)):
        install("zed", load(Database, ["postgresql://reader:x@db/shop"]), where)
        path = where.file("zed")
        path.write_text(path.read_text("utf-8").replace("***", "pass"), "utf-8")
        install("zed", load(Database, [f"postgresql://reader:y@{host}/shop"]), where)
        assert ("pass" in path.read_text("utf-8")) is kept


@pytest.mark.parametrize("host", ["zed", "copilot-cli", "goose"])
def test_a_token_that_was_filled_in_goes_to_its_own_server_only(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    words = ["--transport", "http", "--auth-file", os.sep + "tokens", "--public-url"]
    message = install(host, settings(*words, "https://one.example/mcp"), where)
    assert "write it in place of ***. --new-token makes one." in message
    path.write_text(path.read_text("utf-8").replace("Bearer ***", "Bearer mine"), "utf-8")
    install(host, settings(*words, "https://one.example/mcp"), where)
    assert "Bearer mine" in path.read_text("utf-8")
    install(host, settings(*words, "https://two.example/mcp"), where)
    assert "mine" not in path.read_text("utf-8") and "Bearer ***" in path.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace("Bearer ***", "Bearer mine"), "utf-8")
    install(host, settings("--transport", "http", "--public-url", "https://three.example/mcp"), where)
    assert "mine" not in path.read_text("utf-8") and "three" in path.read_text("utf-8")
    uninstall(host, settings(), where)
    assert not path.exists()


@pytest.mark.parametrize("host", ["claude-desktop", "claude-code", "cline", "gemini-cli"])
def test_a_comma_that_the_host_cannot_read_is_taken_out(host: str, tmp_path: Path) -> None:
    """As an earlier version left it."""
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {\n  "other": {"command": "o"},\n}}', "utf-8")
    install(host, settings(), where)
    assert json.loads(path.read_text("utf-8"))["mcpServers"].keys() == {"fs", "other"}
    uninstall(host, settings(), where)
    assert json.loads(path.read_text("utf-8"))["mcpServers"].keys() == {"other"}


@pytest.mark.reported("neon-solutions/add-mcp#95")
@pytest.mark.reported("DeusData/codebase-memory-mcp#1575")
@pytest.mark.parametrize(("host", "workspace"), [("amp", False), ("opencode", False), ("opencode", True)])
def test_a_file_that_a_person_has_with_comments_gets_no_second_beside_it(
    host: str, workspace: bool, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    where = dataclasses.replace(places(tmp_path), project=tmp_path / "project")
    wanted = load(Settings, [*ACTION, *["--workspace"] * workspace, SERVED])
    path = where.workspace_file(host) if workspace else where.file(host)
    path.parent.mkdir(parents=True, exist_ok=True)
    commented = path.with_suffix(".jsonc")
    before = '{\n  // mine\n  "a": 1,\n}\n'
    commented.write_text(before, "utf-8")
    assert str(commented) in install(host, wanted, where)
    assert "mcp-fs" in commented.read_text("utf-8") and not path.exists()
    uninstall(host, wanted, where)
    assert commented.read_text("utf-8") == before and not path.exists()
    install(host, wanted, where)
    path.write_text("{}", "utf-8")
    assert str(commented) in uninstall(host, wanted, where)
    assert commented.read_text("utf-8") == before
    assert str(path) in install(host, wanted, where)


@pytest.mark.parametrize("host", STRICT)
@pytest.mark.parametrize(
    ("before", "claim"),
    [
        (b'{"mcpServers": {}}', "and change nothing else there"),
        (b'\xef\xbb\xbf{"mcpServers": {}}', "and take out the byte order mark or the trailing commas there"),
        (b'{"mcpServers": {},}', "and take out the byte order mark or the trailing commas there"),
    ],
)
def test_a_dry_run_says_that_what_the_host_cannot_read_is_taken_out(
    host: str, before: bytes, claim: str, tmp_path: Path
) -> None:
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    path.write_bytes(before)
    assert claim in install(host, settings("--dry-run"), where)
    install(host, settings(), where)
    path.write_bytes(before.replace(b"{}", b'{"fs": {"command": "mcp-fs"}}'))
    assert claim in uninstall(host, settings("--dry-run"), where)


@pytest.mark.reported("tradesdontlie/tradingview-mcp#406")
@pytest.mark.parametrize("host", STRICT)
@pytest.mark.parametrize("edited", [False, True])
def test_a_byte_order_mark_that_the_host_cannot_read_is_taken_out(host: str, edited: bool, tmp_path: Path) -> None:
    """Windows PowerShell writes one, and Claude Desktop then starts with no server and saves the file without any."""
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    path.write_text('{"mcpServers": {"other": {"command": "o"}}}', "utf-8-sig")
    install(host, settings(), where)
    assert json.loads(path.read_text("utf-8"))["mcpServers"].keys() == {"fs", "other"}
    if edited:
        path.write_text(path.read_text("utf-8") + "\n", "utf-8-sig")
    uninstall(host, settings(), where)
    assert json.loads(path.read_text("utf-8"))["mcpServers"].keys() == {"other"}


@pytest.mark.parametrize(
    "words",
    [
        ["/a/bin/mcp-fs", "/x"], ["C:\\bin\\mcp-fs.exe", "C:\\x"], ["uvx", "--from", "git+https://x", "mcp-fs", "/x"],
        ["/usr/bin/uv", "run", "--directory", "/y", "mcp-fs"], ["/usr/bin/python3.13", "-m", "mcp_fs", "/x"],
        ["uvx.exe", "mcp-fs"],
    ],
)  # fmt: skip
def test_our_entry_is_found_however_it_was_installed(words: list[str], tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"fs": {"command": words[0], "args": words[1:]}}}), "utf-8")
    uninstall("cursor", settings(), where)
    assert json.loads(path.read_text("utf-8")) == {"mcpServers": {}}
    path.write_text(json.dumps({"mcpServers": {"files": {"command": words[0], "args": words[1:]}}}), "utf-8")
    with pytest.raises(NotFound, match="If `files`, which starts it too"):
        uninstall("cursor", settings(), where)


@pytest.mark.parametrize("words", [["npx", "-y", "fs", "/a/mcp-fs"], ["docker", "run", "mcp-fs"], ["node"]])
def test_somebody_elses_command_is_not_ours(words: list[str], tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"fs": {"command": words[:1], "args": words[1:]}}}), "utf-8")
    for change in (install, uninstall):
        with pytest.raises(Conflict, match="another server"):
            change("cursor", settings(), where)


@pytest.mark.parametrize("value", ["x", ["a"], 5, False, {}, {"command": []}, {"url": 5}])
def test_what_is_no_entry_of_a_server_is_left_alone(value: Any, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"fs": value}}), "utf-8")
    for change in (install, uninstall):
        with pytest.raises(Conflict, match="something else under the name `fs`"):
            change("cursor", settings(), where)


def test_a_password_of_somebody_elses_server_is_not_shown(tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"fs": {"url": "https://ann:c4n4ry@example.org/mcp"}}}), "utf-8")
    with pytest.raises(Conflict, match="another server `fs`") as refusal:
        install("cursor", settings(), where)
    assert "c4n4ry" not in str(refusal.value)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a folder that cannot be written")
def test_notes_that_cannot_be_kept_are_no_condition(tmp_path: Path) -> None:
    where = places(tmp_path)
    where.file("cursor").parent.mkdir(parents=True)
    where.file("cursor").write_text("{}", "utf-8")
    where.notes.mkdir(mode=0o500)
    assert "is not kept" in install("cursor", settings(), where)
    uninstall("cursor", settings(), where)
    assert json.loads(where.file("cursor").read_text("utf-8")) == {"mcpServers": {}}


def test_damaged_notes_are_no_condition(tmp_path: Path) -> None:
    where = places(tmp_path)
    for damage in (b"{", b"[]", b'{"entries": 1}', b'{"entries": {"fs": {}}, "file": 3}', b"\xff"):
        install("cursor", settings(), where)
        (note,) = where.notes.glob("cursor-*/journal.json")
        note.write_bytes(damage)
        uninstall("cursor", settings(), where)
        assert json.loads(where.file("cursor").read_text("utf-8")) == {"mcpServers": {}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{// a\n"fs": 1, // b\n"x": 2}', '{// a\n // b\n"x": 2}'),
        ('{// a\n"fs": 1 // b\n,\n"x": 2}', '{// a\n // b\n\n"x": 2}'),
        ('{"x": 2, // a\n"fs": 1 \n/* b */}', '{"x": 2 // a \n/* b */}'),
        ('{"x": 2, // a\n"fs": 1}', '{"x": 2 // a\n}'),
        ('{"fs": 1, "x": 2}', '{ "x": 2}'), ('{"x": 2, "fs": 1,}', '{"x": 2,}'), ('{ "fs": 1, }', "{}"),
        ('{/* a */ "fs": 1 /* b */}', "{/* a */ /* b */}"),
    ],
)  # fmt: skip
def test_the_comments_around_an_entry_stay(before: str, after: str) -> None:
    editor = format_of("vscode")
    removed = editor.remove(before, ["fs"])
    assert editor.read(removed) == {key: item for key, item in editor.read(before).items() if key != "fs"}
    assert editor.comments(removed) == editor.comments(before)
    assert removed.split() == after.split()


def test_a_list_no_deeper_than_its_key_is_replaced() -> None:
    """As PyYAML and Goose write it."""
    before = "extensions:\n  fs:\n    args:\n    - /a\n    enabled: true\n"
    after = format_of("goose").put(before, ["extensions", "fs", "args"], ["/b"])
    assert after == 'extensions:\n  fs:\n    args: ["/b"]\n    enabled: true\n'


# Several entries and files of one host


WORKSPACES = [host for host in HOSTS if load_host(host).location.workspace]


def project(where: Places, folder: str) -> Places:
    path = where.home.parent / folder
    path.mkdir(exist_ok=True)
    return dataclasses.replace(where, project=path)


@pytest.mark.skipif(sys.platform == "win32", reason="there a current folder can't be removed")
def test_a_current_folder_that_is_gone_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = places(tmp_path)
    where.file("cursor").parent.mkdir(parents=True)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for change in (install, uninstall):
        with pytest.raises(Invalid, match="does not exist any more"):
            change("cursor", settings("--workspace"), where)
    with pytest.raises(Invalid, match="does not exist any more"):
        uninstall_all(settings("--workspace"), where)
    install("cursor", settings(), where)
    uninstall("cursor", settings(), where)
    with pytest.raises(ValueError, match="name a whole path"):
        to_absolute_path("served")


@pytest.mark.parametrize("host", HOSTS)
def test_one_host_has_several_entries_of_a_server(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    path.parent.mkdir(parents=True)
    path.write_bytes(existing(host).encode())
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    first = install(host, load(Settings, [str(one)]), where)
    again = install(host, load(Settings, [str(other)]), where)
    assert (
        "--name NAME" not in first and "To have both in this host, give each a name of its own: --name NAME." in again
    )
    message = install(host, load(Settings, [*ACTION, "--name", "work", str(one)]), where)
    assert "Before: " not in message
    assert message.splitlines()[-1].endswith(f"--name work --uninstall {host}")
    servers = parsed(host, path.read_text("utf-8"))[container(host)]
    assert {"fs", "work", "other"} <= servers.keys()
    assert "--name" not in json.dumps(servers)
    uninstall(host, load(Settings, []), where)
    assert "fs" not in parsed(host, path.read_text("utf-8"))[container(host)]
    uninstall(host, load(Settings, [*ACTION, "--name", "work"]), where)
    assert path.read_bytes() == existing(host).encode()
    (notes,) = folders(where.notes)
    assert [file.name for file in notes.iterdir()] == ["fs+2.backup"], "it has the entry for `one`"


@pytest.mark.reported("anthropics/claude-code#19882")
@pytest.mark.reported("ComposioHQ/composio#2788")
@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 31, "é", "-a", 'a"b'])
def test_a_name_that_a_host_could_not_take_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load(Settings, [*ACTION, f"--name={name}"])
    assert "letters, digits, hyphens" in capsys.readouterr().err


@pytest.mark.parametrize("host", WORKSPACES)
def test_every_file_of_a_host_gets_its_own_bytes_back(host: str, tmp_path: Path) -> None:
    """The user's file and those of two projects, installed and taken out in every order."""
    plain = places(tmp_path)
    plain.home.mkdir(parents=True)
    for order in itertools.permutations(range(3)):
        where = [plain, project(plain, "one"), project(plain, "two")]
        words = [[], [*ACTION, "--workspace"], [*ACTION, "--workspace"]]
        files = [plain.file(host), where[1].workspace_file(host), where[2].workspace_file(host)]
        before = [existing(host).replace("mine", f"mine{number}").encode() for number in range(3)]
        for file, contents in zip(files, before, strict=True):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
        for number in range(3):
            message = install(host, settings(*words[number][2:]), where[number])
            assert str(files[number]) in message
            assert ("names programs and paths of this machine" in message) is (number > 0)
        for number in order:
            uninstall(host, load(Settings, words[number]), where[number])
            assert files[number].read_bytes() == before[number]
        assert not folders(plain.notes)


def test_a_project_is_needed_for_its_file(tmp_path: Path) -> None:
    where = places(tmp_path)
    with pytest.raises(Invalid, match=r"claude-desktop reads no file of a project.*name one of antigravity, "):
        install("claude-desktop", settings("--workspace"), project(where, "one"))
    with pytest.raises(Invalid, match="is your home folder"):
        install("cursor", settings("--workspace"), dataclasses.replace(where, project=where.home))
    with pytest.raises(NotFound, match="change into that project"):
        uninstall("cursor", settings("--workspace"), project(where, "one"))
    assert not where.notes.exists() or not folders(where.notes)


@pytest.mark.parametrize("host", HOSTS)
def test_a_dry_run_changes_nothing(host: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file(host)
    assert f"Would make {path} with this entry:" in install(host, settings("--dry-run"), where)
    path.parent.mkdir(parents=True)
    path.write_bytes(existing(host).encode())
    before = _files(tmp_path)
    message = install(host, settings("--dry-run"), where)
    assert message.startswith(f"Would write this entry into {path}, and change nothing else there:")
    assert "served" in message
    assert _files(tmp_path) == before and not where.notes.exists()
    install(host, settings(), where)
    before = _files(tmp_path)
    assert "Now: " in install(host, settings("--dry-run", "--read-only"), where)
    assert f"out of {path}, and change nothing else" in uninstall(host, settings("--dry-run"), where)
    assert _files(tmp_path) == before
    with pytest.raises(NotFound):
        uninstall(host, settings("--dry-run", "--name", "other1"), where)


def test_another_server_of_this_machine_is_not_taken_for_ours(tmp_path: Path) -> None:
    where = places(tmp_path)
    path = where.file("cursor")
    path.parent.mkdir(parents=True)
    install("cursor", load(Mounted, [*ACTION, "--name", "tools", "--transport", "http", "weather"]), where)
    before = path.read_bytes()
    with pytest.raises(NotFound, match="No file of a host has an entry of mcp-git"):
        uninstall_all(load(Git, ["--uninstall", "all"]), where)
    with pytest.raises(Conflict, match="another server `tools`"):
        install("cursor", load(Git, [*ACTION, "--name", "tools", SERVED]), where)
    with pytest.raises(NotFound, match="change into that and add --workspace"):
        uninstall("cursor", load(Git, ["--uninstall", "cursor"]), where)
    assert path.read_bytes() == before


@pytest.mark.parametrize("word", ["all", "--all"])
def test_all_entries_of_a_server_are_taken_out_at_once(word: str, tmp_path: Path) -> None:
    where = places(tmp_path)
    where.home.mkdir(parents=True)
    one = project(where, "one")
    before: dict[Path, bytes] = {}
    for host in ("cursor", "codex", "goose"):
        where.file(host).parent.mkdir(parents=True)
        where.file(host).write_bytes(existing(host).encode())
        before[where.file(host)] = existing(host).encode()
        install(host, load(Git, [SERVED]), where)
        install(host, settings(), where)
    install("cursor", settings("--name", "work"), where)
    install("cursor", settings("--workspace"), one)
    install("vscode", load(Settings, ["--transport", "http", SERVED]), where)
    unnoted = where.file("zed")
    unnoted.parent.mkdir(parents=True)
    unnoted.write_text('{"context_servers": {"x/y": {"command": "mcp-fs"}, "z": {"command": "node"}}}', "utf-8")
    damaged = where.file("windsurf")
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{", "utf-8")
    taken = load(Settings, ["--uninstall", word])
    assert taken.uninstall == "all"
    with pytest.raises(Unavailable) as raised:
        uninstall_all(taken, where)
    assert str(raised.value).count("Took the entry") == 7
    assert f"{damaged} cannot be understood" in str(raised.value)
    assert json.loads(unnoted.read_text("utf-8"))["context_servers"].keys() == {"z"}
    assert not one.workspace_file("cursor").exists() and not where.file("vscode").exists()
    for host in ("cursor", "codex", "goose"):
        assert "git" in parsed(host, where.file(host).read_text("utf-8"))[container(host)]
    damaged.unlink()
    with pytest.raises(NotFound, match="No file of a host has an entry of mcp-fs"):
        uninstall_all(taken, where)
    assert uninstall_all(load(Git, []), where).count("Took the entry `git`") == 3
    assert {path: path.read_bytes() for path in before} == before
    assert not folders(where.notes)
