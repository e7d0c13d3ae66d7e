"""Plain functions as tools, what becomes of their signatures and results; files as live resources."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents

from mcp_batteries.cli import new
from mcp_batteries.cli.check import check
from mcp_batteries.one_file import Server
from mcp_batteries.settings import load
from mcp_batteries.testing.case import Case

SOURCE = '''
"""Try things. And more of them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

from mcp_batteries.errors import Invalid
from mcp_batteries.one_file import Server
from mcp_batteries.progress import report_progress

server = Server("trial")
threads = []


@server.tool
def read_sum(numbers: list[int], note: Annotated[str | None, "Words to put before it."] = None) -> dict[str, object]:
    """Add numbers."""
    threads.append(threading.get_ident())
    if not numbers:
        raise Invalid("There are no `numbers`.", "Pass one.")
    return {"note": note, "sum": sum(numbers)}


@server.tool(title="Break it", effect="destroy")
async def delete_all(really: bool) -> str:
    """Break everything."""
    raise RuntimeError("the secret reason")


@server.tool
def read_half(number: int, how: str = "raise") -> int:
    """Halve an even number."""
    if how == "library":
        return int("the secret reason")
    if how == "subclass":
        raise UnicodeError("the secret reason")
    if number % 2:
        raise ValueError(f"`number` must be even, not {number}.")
    report_progress(1, 2, "halfway")
    return number // 2


@server.prompt
def plan_sum(goal: Annotated[str, "What to reach."]) -> str:
    """Plan which numbers to add."""
    return f"Find numbers whose sum is {goal}."


@server.resource("squares/{number}")
def square(number: str) -> str:
    """The square of a number."""
    if number == "none":
        raise FileNotFoundError
    if not number.isdigit():
        raise ValueError(f"`{number}` is not a number.")
    return str(int(number) ** 2)


@server.resource("names/{name}")
def read_name(name: str) -> str:
    """Any name."""
    return name


@server.live("data/notes.txt")
def notes(path: Path) -> str:
    """The notes."""
    return path.read_text("utf-8").upper()


@server.live("data/gone.txt")
async def gone(path: Path) -> str:
    """What is not there yet."""
    return path.read_text("utf-8")


if __name__ == "__main__":
    server.run()
'''


@pytest.fixture
def trial(tmp_path: Path) -> ModuleType:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/notes.txt").write_text("first", "utf-8")
    (tmp_path / "trial.py").write_text(SOURCE, "utf-8")
    spec: Any = importlib.util.spec_from_file_location("trial", tmp_path / "trial.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def case(trial: ModuleType) -> Case:
    return Case(trial.server.program, [], ("read_sum", {"numbers": [1]}), "trial://notes")


def said(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.anyio
async def test_a_function_is_a_tool_with_its_own_words(case: Case, trial: ModuleType) -> None:
    async with Client(case.build()) as client:
        _, _, adds, breaks, *_ = (await client.list_tools()).tools
        assert (adds.title, adds.description) == ("Read sum", "Add numbers.")
        assert adds.input_schema["required"] == ["numbers"] and not adds.input_schema["additionalProperties"]
        assert adds.input_schema["properties"]["note"]["description"] == "Words to put before it."
        assert adds.annotations and adds.annotations.read_only_hint
        assert breaks.title == "Break it" and breaks.annotations and breaks.annotations.destructive_hint
        assert said(await client.call_tool("read_sum", {"numbers": [1, 2]})) == '{"note":null,"sum":3}\n'
        assert trial.threads[0] != threading.get_ident(), "a plain function must not hold up the loop"
        refused = await client.call_tool("read_sum", {"numbers": []})
        assert refused.is_error and said(refused).strip() == "There are no `numbers`. Pass one."
        broken = await client.call_tool("delete_all", {"really": True})
        assert broken.is_error and "secret" not in said(broken)
    async with Client(case.build("--read-only")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "call_tools", "read_sum", "read_half", "list_changes",
        ]  # fmt: skip


@pytest.mark.anyio
async def test_what_an_author_refuses_reaches_the_model_and_what_a_library_says_does_not(case: Case) -> None:
    async with Client(case.build()) as client:
        refused = await client.call_tool("read_half", {"number": 3})
        assert refused.is_error and said(refused).strip() == "`number` must be even, not 3."
        for how in ("library", "subclass"):
            broken = await client.call_tool("read_half", {"number": 2, "how": how})
            assert broken.is_error and "secret" not in said(broken)
        assert said(await client.call_tool("read_half", {"number": 4})).strip() == "2"


@pytest.mark.anyio
async def test_a_function_is_a_prompt(case: Case) -> None:
    async with Client(case.build()) as client:
        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.title, prompt.description) == (
            "plan_sum", "Plan sum", "Plan which numbers to add.",
        )  # fmt: skip
        assert prompt.arguments and prompt.arguments[0].description == "What to reach."
        result = await client.get_prompt("plan_sum", {"goal": "7"})
        assert isinstance(result.messages[0].content, TextContent)
        assert result.messages[0].content.text.strip() == "Find numbers whose sum is 7."


@pytest.mark.anyio
async def test_a_function_reads_the_resources_of_a_template(case: Case) -> None:
    async with Client(case.build()) as client:
        (template,) = [
            item for item in (await client.list_resource_templates()).resource_templates if item.name == "square"
        ]
        assert (template.uri_template, template.title) == ("trial://squares/{number}", "Square")
        [shown] = (await client.read_resource("trial://squares/12")).contents
        assert isinstance(shown, TextResourceContents)
        assert (shown.uri, shown.text, shown.mime_type) == ("trial://squares/12", "144", "text/plain")
        for number, reason in {"none": "No resource has the URI", "two": "`two` is not a number."}.items():
            with pytest.raises(MCPError, match=reason):
                await client.read_resource(f"trial://squares/{number}")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "name", ["..%2Fsecret", "%2E%2E", "%2Fetc%2Fhosts", "a%2F..%2F..%2Fsecret", "C:secret", "a%00"]
)
async def test_no_variable_of_a_uri_leads_out_of_a_folder(name: str, case: Case) -> None:
    async with Client(case.build()) as client:
        with pytest.raises(MCPError, match="No resource has the URI"):
            await client.read_resource(f"trial://names/{name}")
        [shown] = (await client.read_resource("trial://names/a%20b..c")).contents
        assert isinstance(shown, TextResourceContents) and shown.text == "a b..c"


def test_an_argument_that_no_uri_can_have_is_refused_at_once() -> None:
    def read(other: str) -> str:
        """A note."""
        return other

    with pytest.raises(TypeError, match=r"`notes/\{name\}` has no \{other\}, which `read` wants"):
        Server("words").resource("notes/{name}")(read)


def test_a_variable_that_is_called_as_the_whole_uri_is_refused_at_once() -> None:
    def read(uri: str) -> str:
        """A note."""
        return uri

    with pytest.raises(TypeError, match=r"`notes/\{uri\}` can't have \{uri\}, which is the whole URI"):
        Server("words").resource("notes/{uri}")(read)


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="Windows reads no folder as a file, and calls that a permission")
async def test_an_empty_variable_names_no_resource(tmp_path: Path) -> None:
    words = Server("words")

    @words.resource("notes/{name}")
    def read(name: str) -> str:
        """A note."""
        return (tmp_path / name).read_text()

    (tmp_path / "a").write_text("one")
    async with Client(Case(words.program, [], ("read", {}), "").build()) as client:
        for name in ("", "a%2Fb"):
            with pytest.raises(MCPError, match="No resource has the URI"):
                await client.read_resource(f"words://notes/{name}")
        [shown] = (await client.read_resource("words://notes/a")).contents
        assert isinstance(shown, TextResourceContents) and shown.text == "one"


@pytest.mark.anyio
async def test_a_live_resource_tells_of_each_change_and_of_nothing_beside_it(case: Case, tmp_path: Path) -> None:
    async with (
        Client(case.build()) as client,
        client.listen(resource_subscriptions=["trial://notes"], resources_list_changed=True) as events,
    ):
        (tmp_path / "data/other.txt").write_text("not followed", "utf-8")
        for text in ("second", "the third"):
            (tmp_path / "new").write_text(text, "utf-8")
            os.replace(tmp_path / "new", tmp_path / "data/notes.txt")
            with anyio.fail_after(10):
                event = await anext(aiter(events))
            assert getattr(event, "uri", None) == "trial://notes", event
            [shown] = (await client.read_resource("trial://notes")).contents
            assert isinstance(shown, TextResourceContents) and shown.text == text.upper()


@pytest.mark.anyio
async def test_a_file_that_is_not_there_is_missing_until_it_is(case: Case, tmp_path: Path) -> None:
    async with Client(case.build()) as client:
        with pytest.raises(MCPError, match=r"There is no file `gone\.txt` now"):
            await client.read_resource("trial://gone")
        (tmp_path / "data/gone.txt").write_text("here", "utf-8")
        [shown] = (await client.read_resource("trial://gone")).contents
        assert isinstance(shown, TextResourceContents) and shown.text == "here"


def test_check_tries_the_file_itself(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(case.program, load(case.kind, [])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "mcp-trial" and any("trial://notes changed" in line for line in lines)


def test_the_about_is_the_first_line_of_the_file(case: Case) -> None:
    assert case.kind.__doc__ == "Try things. And more of them."
    assert case.kind.COMMAND == "mcp-trial"


def test_mistakes_of_the_author_are_told_at_once() -> None:
    server = Server("trial")

    def read_nothing() -> str:
        return ""

    with pytest.raises(TypeError, match="`read_nothing` needs a docstring"):
        server.tool(read_nothing)
    read_nothing.__doc__ = "Read nothing."
    server.tool(read_nothing)
    with pytest.raises(ValueError, match="offered twice"):
        server.tool(read_nothing)
    for wrong in (_by_position, _any_number):
        with pytest.raises(TypeError, match="models pass each argument by its name"):
            server.tool(wrong)


def _by_position(first: int, /) -> int:
    """Read by position."""
    return first


def _any_number(*numbers: int) -> int:
    """Read any number."""
    return sum(numbers)


@pytest.mark.anyio
async def test_any_name_is_one_for_an_argument_and_no_number_is_null() -> None:
    server = Server("trial")

    @server.tool
    def read_price(room: int) -> list[float]:
        """Read the price of a room."""
        return [room * 2.0, float("nan"), float("inf")]

    async with Client(Case(server.program, [], ("read_price", {"room": 1}), "").build()) as client:
        assert said(await client.call_tool("read_price", {"room": 3})) == "[6.0,null,null]\n"


def test_a_new_project_is_not_called_as_what_it_is_made_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("batteries", "mcp-batteries"):
        made = CliRunner().invoke(new.main, [name])
        assert made.exit_code == 2 and "choose another name" in made.output
    assert list(tmp_path.iterdir()) == []


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, "-C", str(folder), *words], check=True, capture_output=True)


def test_a_new_project_names_an_address_that_others_can_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = tmp_path / "checkout"
    package = checkout / "shared"
    package.mkdir(parents=True)
    (package / "pyproject.toml").touch()
    direct_url = json.dumps({"url": package.as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr(new, "distribution", lambda _: SimpleNamespace(read_text=lambda _: direct_url))

    def source() -> tuple[dict[str, str], str]:
        text, note = new._source()
        return tomllib.loads(f"source = {text}")["source"], note

    used, note = source()
    assert used == {"path": str(package)} and "Before you give it away" in note
    git(checkout, "init")
    git(checkout, "add", ".")
    git(checkout, "commit", "-m", "first")
    git(tmp_path, "init", "--bare", "remote")
    git(checkout, "remote", "add", "origin", str(tmp_path / "remote"))
    git(checkout, "push", "origin", "main")
    assert source()[0] == {"path": str(package)}, "a folder of this disk is no address"
    git(checkout, "remote", "set-url", "origin", "https://git.example.org/us/checkout")
    used, note = source()
    assert (used["git"], used["subdirectory"], note) == ("https://git.example.org/us/checkout", "shared", "")
    assert len(used["rev"]) == 40
    git(checkout, "commit", "--allow-empty", "-m", "second")
    assert source()[0] == {"path": str(package)}, "others can't get a commit that was not pushed"
