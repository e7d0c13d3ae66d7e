"""Flags and variables: one declaration, and nothing misspelt goes unnoticed."""

import importlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, ClassVar

import pytest
from mcp import Client
from pydantic import Field

from contract.test_contract import FOLDERS
from mcp_batteries.mount.settings import Settings as Mounted
from mcp_batteries.server.assemble import assemble
from mcp_batteries.server.settings_resource import SettingsResource
from mcp_batteries.settings import (
    SETTINGS_URI,
    Positional,
    Settings,
    explain_missing_path,
    load,
    placeholder,
    to_absolute_path,
)
from mcp_fs.settings import Settings as Files
from mcp_git.settings import Settings as Git
from mcp_github.settings import Settings as Github
from mcp_postgres.settings import Settings as Database
from mcp_sqlite.settings import Settings as Sqlite
from mcp_weather.settings import Settings as Weather
from tools.docs import package_of

KINDS: list[type[Settings]] = [
    importlib.import_module(f"{found}.settings").Settings for folder in FOLDERS if (found := package_of(folder))
]
NO_PATHS = {"allow_secrets", "exclude_tools", "role_claim", "auth_tokens"}
"""Settings whose descriptions name files, and which hold no path."""


HERE = Path(__file__).parent


class Toy(Settings):
    """Serve toys."""

    COMMAND: ClassVar[str] = "mcp-toy"
    EXAMPLES: ClassVar[tuple[str, ...]] = ("red",)
    boxes: Annotated[tuple[str, ...], Positional()] = Field((), description="Boxes.")
    colour: tuple[str, ...] = Field((), description="Colours.")
    depth: int = Field(3, ge=1, description="Depth.")
    title: str = Field("toy", pattern="^[a-z]+$", description="Title.")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MCP_TOY")]:
        monkeypatch.delenv(name)


def test_flags_and_plain_arguments() -> None:
    toys = load(Toy, ["--read-only", "a,b", "--colour", "red", "--colour", "blue, dark", "--depth", "2", "c d"])
    assert (toys.boxes, toys.colour, toys.read_only, toys.depth) == (("a,b", "c d"), ("red", "blue, dark"), True, 2)


def test_variables_set_what_flags_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOY_BOXES", os.pathsep.join(["a b", "c"]))
    monkeypatch.setenv("MCP_TOY_COLOUR", os.pathsep.join(["red", "blue"]))
    monkeypatch.setenv("MCP_TOY_READ_ONLY", "1")
    monkeypatch.setenv("MCP_TOY_DEPTH", "7")
    toys = load(Toy, ["--depth", "2"])
    assert (toys.boxes, toys.colour, toys.read_only, toys.depth) == (("a b", "c"), ("red", "blue"), True, 2)


@pytest.mark.anyio
async def test_a_server_says_what_it_runs_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOY_DEPTH", "7")
    monkeypatch.setenv("MCP_TOY_AUTH_TOKENS", "alice sha256:secret")
    toys = load(Toy, ["--read-only", "--bus", "redis://me:secret@example.org", "red"])
    said = await SettingsResource(toys.parts()).read_settings()
    assert "secret" not in said.text
    told = json.loads(said.text)["mcp-toy"]
    assert told["depth"] == {"value": 7, "from": "MCP_TOY_DEPTH"}
    assert told["boxes"] == {"value": ["red"], "from": "command line"}
    assert told["bus"] == {"value": "redis://me:***@example.org", "from": "--bus"}
    assert told["title"] == {"value": "toy", "from": "default"} and "version" not in told


@pytest.mark.anyio
async def test_what_anybody_may_read_does_not_say_it() -> None:
    for words, listed in (
        ([], [SETTINGS_URI]),
        (["--transport", "http"], [SETTINGS_URI]),
        (
            ["--transport", "http", "--allow-anonymous"],
            [],
        ),
    ):
        server = assemble("toy", load(Toy, words), rooms=[], title="Toy", version="1", instructions="")
        async with Client(server) as client:
            assert [item.uri for item in (await client.list_resources()).resources] == listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reed-only"], "Did you mean one of: '--read-only'"),
        (["--read"], "No such option '--read'"),
        (["--port", "70000"], "'--port': 70000 is not in the range"),
        (["--depth", "0"], "'--depth': 0 is not in the range"),
        (["--title", "Toy!"], "Invalid value for '--title': String should match pattern"),
        (["--install", "cursr"], "there is no 'cursr'. Did you mean 'cursor'?"),
        (
            ["--print-config", "Claude"],
            "there is no 'Claude'. Did you mean 'claude-code' or 'claude-desktop'?",
        ),
        (["--uninstall", "vs-code"], "Did you mean 'vscode'"),
        (["--print-config", "emacs"], "'emacs' is not one of 'amp'"),
        (["--socket", "a"], "Windows" if sys.platform == "win32" else "'--socket': it needs --transport http"),
        (["--server-card", "--transport", "http"], "'--server-card': it needs --transport http and"),
        (["--transport", "carrier-pigeon"], "'carrier-pigeon' is not one of 'stdio', 'http', 'sse'"),
    ],
)
def test_a_mistake_stops_the_start(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load(Toy, arguments)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("MCP_TOY_READONLY", "1", "No such variable: MCP_TOY_READONLY. Did you mean MCP_TOY_READ_ONLY?"),
        ("MCP_TOY_PORT", "eight", "'eight' is not a valid integer"),
        ("MCP_TOY_READ_ONLY", "perhaps", "'perhaps' is not a valid boolean"),
    ],
)
def test_a_mistaken_variable_stops_the_start(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit) as caught:
        load(Toy, [])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "one"),
    [("boxes", "BOX"), ("repositories", "REPOSITORY"), ("databases", "DATABASE"), ("folders", "FOLDER")],
)
def test_a_word_of_several_is_called_one_of_them(name: str, one: str) -> None:
    assert placeholder(name) == one


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_shows_what_most_people_set_and_where_the_rest_is(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in (Toy, Files, Git, Github, Database, Sqlite, Weather):
        with pytest.raises(SystemExit) as caught:
            load(kind, [flag])
        assert caught.value.code == 0
        printed = capsys.readouterr().out
        assert "\x1b" not in printed and "Examples:" in printed
        assert printed.rstrip().endswith(f"Every other option: {kind.COMMAND} --help-all")
        shown = "".join(printed.split())
        assert "-h,--help" in shown and "--read-only" in shown and "--drain-seconds" not in shown
        assert printed.count("One of: ") == 1 and printed.count("  --") <= 14
        assert set(kind.FREQUENT) <= set(kind.model_fields)


@pytest.mark.parametrize(("name", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_help_is_coloured_if_the_user_wants_that(
    name: str, coloured: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, "1")
    for flag in ("--help", "--help-all"):
        with pytest.raises(SystemExit):
            load(Toy, [flag])
        assert ("\x1b[36m--read-only" in capsys.readouterr().out) is coloured


@pytest.mark.parametrize(
    ("kind", "word", "hint"),
    [
        (Github, "octo/hello", "'octo/hello' is none. To allow only one repository: mcp-github --repos octo/hello"),
        (Weather, "Berlin", "'Berlin' is none. Name a place in your question"),
    ],
)
def test_a_word_that_a_server_does_not_take_is_answered_with_its_place(
    kind: type[Settings], word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        load(kind, [word])
    assert caught.value.code == 2 and hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "words", "said"),
    [
        (Files, "install vscode", "'install' has no dashes. Did you mean --install? A path of that name is ./install."),
        (Files, "/folder Check", "'Check' has no dashes. Did you mean --check? A path of that name is ./Check."),
        (Files, "help", "Did you mean --help?"),
        (Git, "print_config vscode", "Did you mean --print-config?"),
        (Sqlite, "tools", "Did you mean --tools?"),
        (Database, "check", "'check' has no dashes. Did you mean --check?\n"),
        (Mounted, "install vscode", "'install' has no dashes. Did you mean --install?\n"),
        (Github, "install vscode", "'install' is none. Did you mean --install?\n"),
        (Weather, "check", "'check' is none. Did you mean --check?\n"),
    ],
)
def test_an_option_without_its_dashes_is_no_path(
    kind: type[Settings],
    words: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        load(kind, words.split())
    assert caught.value.code == 2 and said in capsys.readouterr().err


def test_a_folder_may_have_the_name_of_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    for words in (["tools"], ["./install"], ["folders"]):
        assert load(Files, words).folders == (str(tmp_path / words[0].removeprefix("./")),)


def test_help_all_shows_every_setting_and_the_variables(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        load(Toy, ["--help-all"])
    assert caught.value.code == 0
    printed = capsys.readouterr().out
    # A line may break behind the hyphen of a flag.
    shown = "".join(printed.split())
    assert "Servetoys." in shown and "MCP_TOY_READ_ONLY" in shown and "mcp-toyred" in shown
    for name, field in Toy.model_fields.items():
        flag = "[BOX]..." if name == "boxes" else f"--{name.replace('_', '-')}"
        assert flag in shown and "".join(str(field.description).split()) in shown


def test_help_lists_own_options_first_then_each_common_one_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    grouped = [name for names in Settings.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(Settings.model_fields)
    with pytest.raises(SystemExit):
        load(Toy, ["--help-all"])
    printed = capsys.readouterr().out
    places = [
        printed.index(heading)
        for heading in ("Options of mcp-toy:", "--colour", *(f"\n{name}:" for name in Settings.GROUPS), "Examples:")
    ]
    assert places == sorted(places)


def test_arguments_give_the_same_settings_again() -> None:
    given = ["--transport", "http", "--port", "0", "--read-only", "--audit-file", os.path.abspath("x.log")]
    given += ["--colour", "red", "a", "b"]
    toys = load(Toy, ["--colour", "red", "--audit-file", "x.log", *given[:5], "a", "b"])
    assert toys.arguments() == given
    assert load(Toy, toys.arguments()) == toys


def test_a_path_is_what_a_shell_would_have_made_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    assert to_absolute_path(os.path.join("~", "a")) == str(tmp_path / "a")
    monkeypatch.setattr(sys, "platform", "win32")
    assert to_absolute_path(os.path.join("%USERPROFILE%", 'My Documents"')) == str(tmp_path / "My Documents")
    assert to_absolute_path("%NO_SUCH_NAME%") == os.path.abspath("%NO_SUCH_NAME%")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.COMMAND)
def test_every_setting_that_names_a_file_or_folder_holds_an_absolute_path(
    kind: type[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    found: set[str] = set()
    for name, field in kind.model_fields.items():
        is_list = isinstance(field.default, tuple)
        names_one = re.search(
            r"\b([Ff]iles?|[Ff]olders?|PEM|Unix socket)\b(?!\.\w)", f"{name.replace('_', ' ')} {field.description}"
        )
        if (
            not names_one
            or name in NO_PATHS
            or (name == "socket" and sys.platform == "win32")
            or not (is_list or field.annotation == str | None)
        ):
            continue
        for written, path in ("~/a b", tmp_path / "a b"), ("a", Path.cwd() / "a"):
            transport = "http" if name == "socket" else "stdio"
            value = getattr(
                kind.model_validate({"transport": transport, name: (written,) if is_list else written}), name
            )
            assert value == ((str(path),) if is_list else str(path)), f"{kind.COMMAND} {name}"
        for empty in ("", " "):
            with pytest.raises(ValueError, match=r"a path is empty"):
                kind.model_validate({name: (empty,) if is_list else empty})
        address = "https://someone:secret@127.0.0.1/a"
        if kind.COMMAND != "mcp-sqlite" or name != "databases":  # which says whose address it is
            with pytest.raises(ValueError, match=r"a path begins like a URL"):
                kind.model_validate({name: (address,) if is_list else address})
        found.add(name)
    assert {"audit_file", "wire_log", "auth_file", "state_key_file", "tls_certificate", "tls_key"} <= found


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("${workspaceFolder}", "`${workspaceFolder}` came as it is written"),
        ("${workspaceFolder}/app.db", "`${workspaceFolder}` came as it is written"),
        ("${env:HOME}/x", "`${env:HOME}` came"),
        ("$HOME", "`$HOME` came"),
        ("$env:USERPROFILE/x", "`$env:USERPROFILE` came"),
        ("%NO_SUCH_NAME%/x", "`%NO_SUCH_NAME%` came"),
        ('"/srv/my folder"', "The quotes"),
        ("'/srv/my folder'", "The quotes"),
        ("file:///srv/x", "without `file:`"),
        ("file:/srv/x?mode=ro", "without `file:`"),
        ("/srv/x ", "A blank"),
        (" /srv/x", "A blank"),
        (r"C:\Users\me", r"`C:\Users\me` is a path of Windows"),
        ("c:/Users/me", "`c:/Users/me` is a path of Windows"),
        ("/path/to/folder", "It is the path of an example"),
        ("C:/path/to/app.db" if sys.platform == "win32" else "~/path/to/app.db", "It is the path of an example"),
        ("~no-such-user/x", "" if sys.platform == "win32" else "`~no-such-user` means the home of another user"),
        (r"~\plain", "" if sys.platform == "win32" else r"`~\plain` means the home of another user"),
        (f"{HERE},{HERE}", "`,` is a part of the name"),
        (f"{HERE}; x", "`;` is a part of the name"),
        ("tests,docs", "`,` is a part of the name"),
        ("tests:docs", "" if sys.platform == "win32" else "`:` is a part of the name"),
        ("no,where", ""),
        ("/srv/x", ""),
        ("/srv/a b/50%/it's/$5/x", ""),
        ("x", ""),
    ],
)
def test_what_a_path_was_meant_to_be(written: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host hands a path over as it stands in its file."""
    monkeypatch.chdir(Path(__file__).parents[2])
    if sys.platform == "win32" and ("Windows" in said or written.endswith(" ")):
        return  # Paths of Windows are right there, and it drops blanks at the end of a name.
    told = explain_missing_path(to_absolute_path(written))
    assert told.startswith(said) if "without" not in said else said in told
    assert bool(told) == bool(said)


@pytest.mark.skipif(sys.platform != "win32", reason="paths of Windows")
def test_a_drive_written_as_a_folder_and_the_long_form_are_understood(tmp_path: Path) -> None:
    drive, rest = os.path.splitdrive(tmp_path)
    for before in ("/", "/mnt/", "/cygdrive/"):
        missing = to_absolute_path(f"{before}{drive[0].lower()}{rest}".replace("\\", "/"))
        assert explain_missing_path(missing) == f"A drive is no folder here: write `{drive.upper()}{rest}`."
    assert to_absolute_path(rf"\\?\{tmp_path}") == str(tmp_path)
    assert to_absolute_path(r"\\?\UNC\server\share\x") == r"\\server\share\x"
    long = rf"\\?\{tmp_path}\{'x' * 240}"
    assert to_absolute_path(long) == long
