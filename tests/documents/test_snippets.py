"""Every example in every Markdown file is right: hosts would take it, and what it starts answers."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from documents.snippets import (
    ROOT,
    SERVERS,
    Block,
    Connect,
    Start,
    Wrong,
    blocks,
    blocks_of,
    links,
    pages,
    server_of,
    understood,
)
from e2e import installing
from e2e.installing import UV, answers, clean_environment
from e2e.serving import listening
from mcp_batteries.hosts.definition import load_host
from mcp_batteries.testing.wire import REVISIONS, HttpWire
from thinning import some
from tools.docs import generated
from tools.members import CHECKOUT, INSTALLED, REPOSITORY, Member
from tools.pages import URL

SCRIPTS = Path(sys.executable).parent
TRANSLATED = [page for page in pages() if page.name.endswith(".zh-CN.md")]
PAGES = [page for page in pages() if page not in TRANSLATED]
BLOCKS = [block for page in PAGES for block in (*blocks(page), *links(page))]


@cache
def meanings() -> dict[Start | Connect, str]:
    """Everything the documents start or connect to, and one place that says so."""
    found: dict[Start | Connect, str] = {}
    for block in BLOCKS:
        try:
            for meaning in understood(block):
                found.setdefault(_plain(meaning), str(block))
        except Wrong:
            continue  # `test_the_examples_of_a_page_are_understood` says which.
    return found


def _plain(meaning: Start | Connect) -> Start | Connect:
    """One spelling for a checkout and for a folder, wherever they are."""
    if isinstance(meaning, Connect):
        return meaning
    words = [re.sub(rf"^(\./|{CHECKOUT}/)(?=servers/)", f"{CHECKOUT}/", word) for word in meaning.words]
    return Start(tuple("/path/to/folder" if word in FOLDERS else word for word in words))


FOLDERS = ("/path/to/folder", "/path/to/another", "/path/to", "/path", "/workspaces/project")
PRINTING = {"--check", "--version", "--help", "--print-config", "--install", "--uninstall", "--purge"}
CHANGING = {"--install", "--uninstall", "--purge"}
STARTS = [meaning for meaning in meanings() if isinstance(meaning, Start)]
FIRST_UVX_START = next(start for start in STARTS if start.words[0] == "uvx" and server_of(start.words) == SERVERS[0])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_are_understood(page: Path) -> None:
    for block in (*blocks(page), *links(page)):
        understood(block)


def test_a_translation_gives_the_examples_of_its_page() -> None:
    """They are tried there, so what differs would be tried nowhere."""
    for page in TRANSLATED:
        own, english = (
            [(block.language, block.text) for block in (*blocks(found), *links(found))]
            for found in (page, page.with_name(page.name.replace(".zh-CN", "")))
        )
        kept = english if page.parent.name == "hosts" else [block for block in english if block in own]
        assert own == kept, page
    assert len(TRANSLATED) > 19


def test_generated_pages_are_current() -> None:
    stale = [name for name, text in generated(ROOT).items() if (ROOT / name).read_text("utf-8") != text]
    assert stale == [], "run `just docs`"


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.command)
def test_the_pages_have_every_way_to_start_a_server(server: Member) -> None:
    ways = [server.checkout(), server.git(), server.installed(), server.docker()[: server.docker().index(server.image)]]
    for way in ways:
        assert any(start.words[: len(way)] == tuple(way) for start in STARTS), way
    assert Connect(URL) in meanings()


# What the commands do


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The working tree as a repository with a history of its own: from a shallow clone git fetches nothing."""
    folder = tmp_path_factory.mktemp("repository")
    for name in ("pyproject.toml", "uv.lock", "shared", "servers", "examples"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
        else:
            shutil.copy(source, folder)
    author = ["-c", "user.name=tests", "-c", "user.email=tests@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "--quiet"], ["add", "--all"], [*author, "commit", "--quiet", "--message", "everything"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder.as_uri()


def really(words: Sequence[str], repository: str, scratch: Path) -> list[str]:
    """`words` for this machine: with data, and this very checkout and environment where a person has theirs."""
    server = server_of(words)
    if words[:2] == ("docker", "run"):
        words = contained(words, server)
    stand_ins = {CHECKOUT: str(ROOT), INSTALLED: str(SCRIPTS), f"git+{REPOSITORY}": f"git+{repository}"} | data(scratch)
    words = [_replaced_behind_name(word, stand_ins) for word in words]
    if words[0] == "uvx":
        return [UV, "tool", "run", "--python", sys.executable, *words[1:]]
    return [*([UV] if words[0] == "uv" else [str(SCRIPTS / Path(words[0]).name)]), *words[1:]]


def _replaced_behind_name(word: str, stand_ins: Mapping[str, str]) -> str:
    """`word`, whose example may have a name before it, as in `shop=/path/to/shop.db`."""
    name, sign, example = word.partition("=")
    if sign and name.isalpha():
        return f"{name}={_replaced(example, stand_ins)}"
    return _replaced(word, stand_ins)


def _replaced(word: str, stand_ins: Mapping[str, str]) -> str:
    for example in sorted(stand_ins, key=len, reverse=True):
        if re.match(rf"{re.escape(example)}([/#@]|$)", word):
            return stand_ins[example] + word.removeprefix(example)
    return word


def contained(words: Sequence[str], server: Member) -> list[str]:
    """What the image's entry point gets from a documented `docker run`, with the mounts undone.

    Raises:
        Wrong: a word that no entry of ours needs, or data that the server could write to its root.
    """
    options, arguments = list(words[2 : words.index(server.image)]), list(words[words.index(server.image) + 1 :])
    mounts: dict[str, str] = {}
    while options:
        match options:
            case ["-v", mount, *options]:
                outside, inside, *_ = mount.split(":")
                mounts[inside] = outside
            case ["-e" | "-p" | "--user" | "--name", _, *options]:
                pass
            case ["-i" | "--rm" | "-d" | "--read-only" | "--cap-drop=ALL" | "--network=none", *options]:
                pass
            case _:
                raise Wrong(f"docker run {options[0]}: nobody here knows it")
    for inside, outside in mounts.items():
        arguments = [re.sub(rf"^{inside}(?=/|$)", lambda _, outside=outside: outside, word) for word in arguments]
    return [f"{INSTALLED}/{server.command}", *arguments]


def data(scratch: Path) -> dict[str, str]:
    """What stands for the examples: a repository with a file, a database with a table."""
    folder = scratch / "served"
    installing.data(folder)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return {example: str(folder) for example in FOLDERS} | {name: str(folder / name) for name in ("app.db", "other.db")}


@pytest.mark.slow
@pytest.mark.share(6)
@pytest.mark.anyio
@pytest.mark.parametrize(
    "start",
    # What uvx starts is installed anew, by one way for all: the first of them is tried with each change.
    some(STARTS, *(start for start in STARTS if start.words[0] != "uvx"), FIRST_UVX_START),
    ids=lambda start: shlex.join(start.words),
)
async def test_what_an_example_starts_answers(
    start: Start, repository: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = really(start.words, repository, tmp_path)
    if PRINTING & set(start.words):
        env = clean_environment() | (homeless(tmp_path) if CHANGING & set(start.words) else {})
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        if "--print-config" in start.words:
            host = start.words[start.words.index("--print-config") + 1]
            text = done.stdout.decode()
            understood(Block(f"docs/hosts/{host}.md", 0, load_host(host).format.language, text))
    elif "http" in start.words:
        for asked in server_of(start.words).variables:
            monkeypatch.setenv(str(asked.variable), asked.example)
        await answers_http(server_of(start.words), tmp_path)
    else:
        await answers(command, server_of(start.words), cwd=ROOT, revisions=REVISIONS[-1:])


def homeless(scratch: Path) -> dict[str, str]:
    """An empty home for what would write into a host's files; uv keeps what it has."""
    kept = subprocess.run([UV, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
    homes = (
        "HOME",
        "USERPROFILE",
        "APPDATA",
        "LOCALAPPDATA",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_STATE_HOME",
    )
    return {name: str(scratch / "home") for name in homes} | {"UV_CACHE_DIR": kept}


async def answers_http(server: Member, scratch: Path) -> None:
    """The server at the URL that the documents give, but for a port that is free."""
    given = [_replaced(word, data(scratch)) for word in server.examples()]
    async with listening(server.package, *given) as (_, url), HttpWire(url) as wire:
        await wire.open()
        assert re.sub(r":\d+/", ":8000/", url) == URL
        assert (await wire.request("tools/list"))["tools"]


@pytest.mark.parametrize(
    "meaning", [item for item in meanings() if isinstance(item, Connect)], ids=lambda item: item.url
)
def test_a_documented_address_is_one_that_we_serve(meaning: Connect) -> None:
    assert re.fullmatch(r"(http://127\.0\.0\.1:80\d\d|https://[\w.]+)/mcp", meaning.url)


# What is wrong is found


WRONG: dict[str, str] = {
    "an unknown key": '```json\n{"servers": {"fs": {"type": "stdio", "command": "uvx", "arguments": []}}}\n```',
    "a key of another host": '```json\n{"servers": {"fs": {"type": "local", "command": "uvx"}}}\n```',
    "no URL": '```json\n{"mcpServers": {"fs": {"type": "http"}}}\n```',
    "no JSON": '```json\n{"servers": {},}\n```',
    "an input nobody asks for": '```json\n{"servers": {"fs": {"type": "stdio", "command": "${input:x}"}}}\n```',
    "no configuration": '```json\n{"columns": []}\n```',
    "no TOML": "```toml\n[mcp_servers.fs]\ncommand = uvx\n```",
    "an unknown key in TOML": '```toml\n[mcp_servers.fs]\ncommand = "uvx"\narguments = []\n```',
    "no YAML": "```yaml\nextensions: [\n```",
    "Goose without a command": "```yaml\nextensions:\n  fs: {name: fs, type: stdio, args: [], enabled: true}\n```",
    "no Python": "```python\ndef f(:\n```",
    "no language": "```\nuvx\n```",
    "an unknown command": "    mcp-nothing --check",
    "a verb that the justfile lacks": "    just nothing",
    "a path in the clone in another folder": "    uvx --from ./servers/git mcp-git --install vscode --workspace /path",
    "a file that is not there": "    uv run pytest tests/nothing",
    "a folder that is not there": "    uv tool install ./servers/nothing",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_example_is_found(text: str) -> None:
    with pytest.raises(Wrong):
        for block in blocks_of(text, "page.md"):
            understood(block)


@pytest.mark.parametrize(
    "link",
    [
        "vscode:mcp/install?%7B%7D",
        "https://vscode.dev/redirect/mcp/installed?name=fs&config=%7B%7D",
        "https://vscode.dev/redirect/mcp/install?name=fs&config=%7B%22command%22%3A%22uvx%22%7D",
        "https://cursor.com/en/install-mcp?name=fs&config=e30",
        "goose://extension?arg=x&id=fs&name=fs",
        "zed://something",
    ],
)
def test_a_wrong_link_is_found(link: str) -> None:
    with pytest.raises(Wrong):
        understood(Block("page.md", 1, "link", link))


def _spoilt(entry: Any) -> Any:
    """`entry` with one key misspelt, as deep as it goes."""
    (key, value), *rest = entry.items()
    if isinstance(value, dict) and value:
        return {key: _spoilt(value), **dict(rest)}
    return {f"{key}_": value, **dict(rest)}


# The entries of a host's page have one form: one of each shows that its schema is asked.
ONE_OF_EACH_HOST = {b.page: b for b in BLOCKS if b.language == "json" and b.page.startswith("docs/hosts")}


@pytest.mark.parametrize("block", ONE_OF_EACH_HOST.values(), ids=str)
def test_each_entry_is_refused_with_one_key_misspelt(block: Block) -> None:
    spoilt = json.dumps(_spoilt(json.loads(block.text)))
    with pytest.raises(Wrong):
        understood(replace(block, text=spoilt))


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("more", [["--no-such-flag"], ["/path/to/nothing"]], ids=shlex.join)
async def test_a_command_that_does_not_start_is_found(more: list[str], repository: str, tmp_path: Path) -> None:
    first = SERVERS[0]
    with pytest.raises(AssertionError, match="ended"):
        await answers(really([*first.installed(), *more], repository, tmp_path), first)
