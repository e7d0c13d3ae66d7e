"""Host entries: the right keys per host, and a command that exists."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from mcp_batteries.cli.host_entry.launch_command import find_launch_command
from mcp_batteries.cli.host_entry.text import describe_location, make_entry
from mcp_batteries.errors import Invalid
from mcp_batteries.executables import find_executable
from mcp_batteries.run import run
from mcp_batteries.settings import Host, load
from mcp_fs.settings import Settings
from mcp_postgres.settings import Settings as Database

HOSTS = get_args(Host)
PLAIN = load(Settings, [os.sep])
VARIABLES = (
    "vscode",
    "visual-studio",
    "claude-code",
    "copilot-cli",
    "cursor",
    "windsurf",
    "gemini-cli",
    "amp",
    "kiro",
    "devin",
    "antigravity",
    "cline",
    "continue",
)
"""The hosts that replace `${NAME}` in an entry (their documentation)."""


def parsed(host: str, text: str) -> dict[str, Any]:
    if host == "codex":
        return tomllib.loads(text)
    return yaml.safe_load(text) if host == "goose" else json.loads(text)


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_has_an_entry_that_parses_and_a_place(host: str) -> None:
    settings = load(Settings, ["--read-only", "--print-config", host, os.sep + 'a "quoted" folder'])
    data = parsed(host, make_entry(host, settings))
    (container,) = data.values()
    assert list(container) == ["fs"]
    words = json.dumps(container["fs"])
    assert "--read-only" in words and "quoted" in words and "print-config" not in words
    assert describe_location(host)


@pytest.mark.share(12)
@pytest.mark.parametrize("host", HOSTS)
@hypothesis.given(st.text(min_size=1, max_size=20))
@hypothesis.example("😀 \ufeff\u2028\x85\x7f\x9b\ufffe\n\t\\")
@hypothesis.example("%PATH%")
def test_any_name_reaches_the_server_as_it_is_or_is_refused(host: str, name: str) -> None:
    settings = PLAIN.model_copy(update={"folders": (f"/srv/{name}",)})
    try:
        text = make_entry(host, settings)
    except Invalid as problem:
        assert "$" in name or "{" in name, problem
        return
    assert f"/srv/{name}" in strings(parsed(host, text))


def strings(data: Any) -> list[str]:
    if isinstance(data, dict | list):
        return [found for item in (data.values() if isinstance(data, dict) else data) for found in strings(item)]
    return [str(data)]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        *((host, "${HOME}") for host in HOSTS if host in VARIABLES),
        ("gemini-cli", "$HOME"),
        ("opencode", "{env:HOME}"),
        ("opencode", "{file:x}"),
        *((host, "\udcff") for host in HOSTS),
    ],
)
def test_a_name_that_a_host_would_read_otherwise_is_refused(host: str, name: str) -> None:
    settings = PLAIN.model_copy(update={"folders": (f"/srv/{name}",)})
    with pytest.raises(Invalid, match="by a link"):
        make_entry(host, settings)


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "claude-desktop"])
def test_an_http_server_is_entered_by_its_url(host: str) -> None:
    settings = load(Settings, ["--transport", "http", "--port", "8123", os.sep])
    text = make_entry(host, settings)
    parsed(host, text)
    assert "http://127.0.0.1:8123/mcp" in text and "command" not in text


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_the_public_url_is_entered_if_there_is_one(transport: str) -> None:
    settings = load(Settings, ["--transport", transport, "--public-url", "https://team.example/files/mcp", os.sep])
    text = make_entry("cursor", settings)
    assert parsed("cursor", text)["mcpServers"]["fs"] == {"url": "https://team.example/files/mcp"}


@pytest.mark.parametrize(
    ("words", "is_said"),
    [
        ("--transport http --auth-file tokens", True),
        ("--transport http --auth-tokens x", True),
        ("--transport http --auth-issuer https://login.example.org", False),
        ("--transport http", False),
    ],
)
def test_who_prints_an_entry_learns_that_it_needs_a_token(
    words: str, is_said: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    with pytest.raises(SystemExit) as caught:
        run("mcp_fs", [*words.split(), "--print-config", "cursor", os.sep])
    assert caught.value.code == 0
    printed = capsys.readouterr()
    assert ("set MCP_TOKEN_FS where the host finds it" in printed.err) is is_said
    assert ("Bearer ${env:MCP_TOKEN_FS}" in printed.out) is is_said


@pytest.mark.parametrize(
    ("host", "hint"),
    [
        ("vscode", "VS Code asks you for MCP_POSTGRES_DATABASES when it starts the server."),
        ("cursor", "set MCP_POSTGRES_DATABASES where the host finds it."),
        ("claude-desktop", "set MCP_POSTGRES_DATABASES in its place there."),
    ],
)
def test_who_prints_an_entry_learns_where_its_password_goes(
    host: str, hint: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    with pytest.raises(SystemExit):
        run("mcp_postgres", ["--print-config", host, "postgresql://reader:c4n4ry@localhost/shop"])
    printed = capsys.readouterr()
    assert f"The entry holds no password or key: {hint}\n" in printed.err
    assert "c4n4ry" not in printed.out + printed.err


@pytest.mark.parametrize("action", ["--print-config", "--install"])
@pytest.mark.parametrize("option", ["--tools", "--exclude-tools"])
def test_a_tool_that_would_end_each_start_is_refused(
    action: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    audit = tmp_path / "audit"
    words = ["--audit-file", str(audit), action, "cursor", str(tmp_path)]

    def exit_status(tools: str) -> object:
        with pytest.raises(SystemExit) as caught:
            run("mcp_fs", [option, tools, "--dry-run", *words] if action == "--install" else [option, tools, *words])
        return caught.value.code

    assert exit_status("defualt,call_tools") == 1
    printed = capsys.readouterr()
    assert not printed.out and f"`{option}` names `defualt`" in printed.err
    assert exit_status("read,call_tools") == 0
    assert f'"{option}"' in capsys.readouterr().out
    assert not audit.exists()


@pytest.mark.parametrize(
    ("package", "words", "why"),
    [
        ("mcp_fs", "{file}", "Name a folder that exists."),
        ("mcp_sqlite", "{file}", "is not a SQLite database"),
        ("mcp_sqlite", "--demo --files {file}", "is not a folder"),
        ("mcp_postgres", "nonsense", "A database's address is neither a URL"),
        ("mcp_batteries.mount", "weather -- fs {file}", "Name a folder that exists."),
    ],
)
def test_what_would_end_each_start_is_not_installed(
    package: str,
    words: str,
    why: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A printed entry may be for another machine."""
    monkeypatch.setattr("gc.disable", lambda: None)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    file = tmp_path / "notes.txt"
    file.write_text("no database, and no folder\n")
    for actions, status in ((("--install",), 1), (("--dry-run", "--install"), 1), (("--print-config",), 0)):
        with pytest.raises(SystemExit) as caught:
            run(package, [*actions, "cursor", *words.format(file=file).split()])
        assert caught.value.code == status
        assert (why in capsys.readouterr().err) is ("--install" in actions)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("package", ["mcp_sqlite", "mcp_batteries.mount"])
@pytest.mark.parametrize("actions", [("--install",), ("--dry-run", "--install")])
def test_a_try_whether_a_server_starts_makes_no_file(
    package: str,
    actions: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gc.disable", lambda: None)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    # Where the notes of an installation go.
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    new = tmp_path / "new.db"
    server = ["sqlite"] if package == "mcp_batteries.mount" else []
    for database, status in ((new, 0), (tmp_path / "missing" / "new.db", 1)):
        with pytest.raises(SystemExit) as caught:
            run(package, [*actions, "cursor", *server, "--create", str(database)])
        assert caught.value.code == status, capsys.readouterr()
    assert "can't be made" in capsys.readouterr().err
    assert not new.exists()


BEARER = {
    "amp": "${MCP_TOKEN_WORK}",
    "claude-code": "${MCP_TOKEN_WORK}",
    "cursor": "${env:MCP_TOKEN_WORK}",
    "gemini-cli": "$MCP_TOKEN_WORK",
    "kiro": "${MCP_TOKEN_WORK}",
    "opencode": "{env:MCP_TOKEN_WORK}",
    "visual-studio": "${input:MCP_TOKEN_WORK}",
    "vscode": "${input:MCP_TOKEN_WORK}",
    "windsurf": "${env:MCP_TOKEN_WORK}",
}


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "claude-desktop"])
def test_an_entry_sends_a_token_in_the_way_of_its_host(host: str) -> None:
    words = ["--transport", "http", "--public-url", "https://team.example/mcp", "--print-config", host]
    words += ["--name", "work", os.sep]
    document = parsed(host, make_entry(host, load(Settings, ["--auth-tokens", "alice sha256:c4n4ry", *words])))
    inputs = document.pop("inputs", [])
    ((servers),) = document.values()
    server = servers["work"]
    assert "c4n4ry" not in json.dumps([server, inputs])
    if host == "codex":
        assert server["bearer_token_env_var"] == "MCP_TOKEN_WORK"
    elif host == "jetbrains":
        assert server == {"url": "https://team.example/mcp"}
    else:
        assert server["headers"] == {"Authorization": f"Bearer {BEARER.get(host, '***')}"}
    is_asked = host in ("vscode", "visual-studio")
    assert [(item["id"], item["password"]) for item in inputs] == [("MCP_TOKEN_WORK", True)] * is_asked
    plain = parsed(host, make_entry(host, load(Settings, words)))
    assert "inputs" not in plain and "MCP_TOKEN" not in json.dumps(plain) and "***" not in json.dumps(plain)
    issuer = ["--auth-issuer", "https://login.example.org", "--auth-tokens", "a"]
    assert parsed(host, make_entry(host, load(Settings, [*issuer, *words]))) == plain


def test_claude_desktop_takes_no_url() -> None:
    with pytest.raises(Invalid, match="Connectors"):
        make_entry("claude-desktop", load(Settings, ["--transport", "http", os.sep]))


def test_goose_takes_no_server_of_the_old_sse_transport() -> None:
    """Its configuration still has the type, so that old files load; nothing starts it (ExtensionConfig)."""
    with pytest.raises(Invalid, match="--transport http"):
        make_entry("goose", load(Settings, ["--transport", "sse", os.sep]))


def test_the_command_is_this_installation_not_a_name_from_an_index() -> None:
    (command,) = find_launch_command("mcp-fs")
    assert os.path.isabs(command) and os.access(command, os.X_OK)


def test_on_windows_the_command_is_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mcp-fs.exe").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python.exe"))
    assert find_launch_command("mcp-fs") == [str(tmp_path / "mcp-fs.exe")]


def test_without_a_script_the_package_is_what_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with an installation for `python -m` alone, whose __main__.py is no program on Windows."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python.exe"))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    assert find_launch_command("mcp-fs") == [str(tmp_path / "python.exe"), "-P", "-m", "mcp_fs"]


@pytest.mark.process
def test_a_module_of_the_folder_in_which_a_host_starts_a_server_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('the module of the project')")
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(tmp_path / "python"))
        _, *arguments = find_launch_command("mcp-fs")
    command = [sys.executable, *arguments, "--version"]
    assert subprocess.check_output(command, cwd=tmp_path, text=True, timeout=60).startswith("mcp-fs ")


@pytest.mark.parametrize("cache", ["uv", "moved by UV_CACHE_DIR"])
@pytest.mark.parametrize("name", ["uv", "uv.exe"])
def test_uvx_is_named_by_its_absolute_path_and_its_cache_never(
    name: str, cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uvx = tmp_path / name.replace("uv", "uvx")
    uvx.touch()
    monkeypatch.setenv("UV", str(tmp_path / name))
    monkeypatch.setattr(sys, "prefix", os.path.join(tmp_path, cache, "archive-v0"))
    assert find_launch_command("mcp-fs")[:2] == [str(uvx), "--from"]


@pytest.fixture
def from_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make this process what `uvx --index` starts; return uvx."""
    site = tmp_path / "archive-v0" / "x" / "site-packages"
    folder = site / "mcp_fs-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Name: mcp-fs\nVersion: 0.1.0\n", "utf-8")
    for name in ("uvx", "archive-v0/x/mcp-fs"):
        (tmp_path / name).touch()
    monkeypatch.setenv("UV", str(tmp_path / "uv"))
    monkeypatch.setattr(sys, "prefix", str(site.parent))
    monkeypatch.setattr(sys, "executable", str(site.parent / "python"))
    monkeypatch.syspath_prepend(site)
    for name in ("UV_INDEX", "UV_DEFAULT_INDEX"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "uvx"


def test_the_extras_that_it_was_installed_with_are_named_too(
    from_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = from_index.parent / "archive-v0" / "x" / "site-packages"
    packages = {
        "mcp_words": ["common>=1", "reader-lib; extra == 'documents'", "common[pictures]; extra == 'images'",
                      "absent-lib; extra == 'charts'", "common; extra == 'nothing'"],
        "common": ["picture-lib; extra == 'pictures'"], "reader_lib": [], "picture_lib": [],
    }  # fmt: skip
    for name, needs in packages.items():
        folder = site / f"{name}-1.dist-info"
        folder.mkdir(parents=True)
        extras = [f"Provides-Extra: {extra}" for extra in ("documents", "images", "charts", "nothing")]
        lines = [f"Name: {name}", "Version: 1", *extras, *(f"Requires-Dist: {need}" for need in needs)]
        (folder / "METADATA").write_text("\n".join(lines), "utf-8")
    (site / "mcp_words-1.dist-info" / "direct_url.json").write_text(json.dumps({"url": tmp_path.as_uri()}), "utf-8")
    assert find_launch_command("mcp-words") == [str(from_index), "--from", f"{tmp_path}[documents,images]", "mcp-words"]


def test_what_an_index_gave_is_named_with_that_index(
    from_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_INDEX", "https://pypi.example.org/simple https://other.example.org/simple")
    index = ["--index", "https://pypi.example.org/simple", "--index", "https://other.example.org/simple"]
    assert find_launch_command("mcp-fs") == [str(from_index), *index, "mcp-fs"]
    assert find_launch_command("mcp-fs", extra="pdf") == [str(from_index), *index, "--from", "mcp-fs[pdf]", "mcp-fs"]
    monkeypatch.delenv("UV_INDEX")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://pypi.example.org/simple")
    assert find_launch_command("mcp-fs") == [
        str(from_index),
        "--default-index",
        "https://pypi.example.org/simple",
        "mcp-fs",
    ]


def test_an_index_in_a_folder_is_named_by_its_whole_path(
    from_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_INDEX", "./wheels ours=more")
    index = ["--index", str(tmp_path / "wheels"), "--index", f"ours={tmp_path / 'more'}"]
    assert find_launch_command("mcp-fs") == [str(from_index), *index, "mcp-fs"]


def test_no_entry_leads_into_a_cache_that_uv_cleans(from_index: Path, tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="uv tool install --index ADDRESS mcp-fs"):
        make_entry("vscode", load(Settings, [str(tmp_path)]))


@pytest.mark.diagonal
@pytest.mark.parametrize("variable", ["UV_INDEX", "UV_DEFAULT_INDEX"])
@pytest.mark.parametrize(
    "index",
    [
        "https://ada:secret@pypi.example.org/simple",
        "ours=https://ada:secret@pypi.example.org/simple",
        "https://secret@pypi.example.org/simple",
        "https://pypi.example.org/simple?token=secret",
        "https://[secret/simple",
    ],
)
def test_no_entry_holds_the_secret_of_an_index(
    index: str, variable: str, from_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, index)
    with pytest.raises(Invalid, match=f"^{variable} has .* the same variable: `uv tool install mcp-fs`") as refusal:
        make_entry("vscode", load(Settings, [str(tmp_path)]))
    assert "secret@" not in str(refusal.value)


def test_an_environment_that_goes_with_its_process_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `uv run --with` makes it: what was asked for is named, what that needs is not."""
    site = tmp_path / "builds-v0" / ".tmpx" / "site-packages"
    packages = {
        "Own_Tools": ["plain>=1", "web[tls]; python_version > '3'", "maybe; extra == 'more'"],
        "plain": [], "web": ["locks<9; extra == 'tls'"], "locks": [], "maybe": [],
    }  # fmt: skip
    for name, needs in packages.items():
        folder = site / f"{name}-2.dist-info"
        folder.mkdir(parents=True)
        lines = [f"Name: {name}", "Version: 2", *(f"Requires-Dist: {need}" for need in needs)]
        (folder / "METADATA").write_text("\n".join(lines), "utf-8")
    origin = json.dumps({"url": tmp_path.as_uri(), "dir_info": {}})
    (site / "Own_Tools-2.dist-info" / "direct_url.json").write_text(origin, "utf-8")
    (tmp_path / "uv").touch()
    monkeypatch.setenv("UV", str(tmp_path / "uv"))
    monkeypatch.setattr(sys, "prefix", str(site.parent))
    monkeypatch.syspath_prepend(site)
    run = [str(tmp_path / "uv"), "run", "--project", os.getcwd()]
    assert find_launch_command("words", "words.py") == [*run, "--with", str(tmp_path), "--with", "maybe==2", "words.py"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_place_on_windows_is_spelled_as_there(host: str) -> None:
    said = describe_location(host, windows=True)
    assert "~" not in said and not ("%" in said and "/" in said)


@pytest.mark.parametrize("host", HOSTS)
def test_what_was_said_is_not_asked_for_again(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    harmless = "postgresql://reader@db.example.org/shop"
    said = make_entry(host, load(Database, [harmless]))
    assert harmless in said and "MCP_POSTGRES_DATABASES" not in said
    url = "postgresql://reader:secret@db.example.org/shop"
    said = make_entry(host, load(Database, [url]))
    assert "secret" not in said and "MCP_POSTGRES_DATABASES" in said
    monkeypatch.setenv("MCP_POSTGRES_DATABASES", url)
    held = make_entry(host, load(Database, []))
    assert "MCP_POSTGRES_DATABASES" in held and "secret" not in held


def test_no_program_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        shutil.copy(sys.executable, folder / ("tool.exe" if sys.platform == "win32" else "tool"))
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", str(tmp_path / "gone")]))
    assert find_executable("tool") is None
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(there)]))
    found = find_executable("tool")
    assert found is not None and Path(found).parent == there
