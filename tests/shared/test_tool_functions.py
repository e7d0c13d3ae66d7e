"""Functions as tools: what a caller's text becomes, what is injected, where it runs, and plans that need consent."""

import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import Context
from mcp_types import ElicitResult, TextContent
from pydantic import BaseModel, Field

from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.errors import Refused, quote
from mcp_batteries.progress import report_progress
from mcp_batteries.server import assemble as assembling
from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.calling import bound_function
from mcp_batteries.server.calling.bound_function import TimeLimits, bind_tool
from mcp_batteries.server.calling.read_history import ReadHistory
from mcp_batteries.server.calling.results import DataResult
from mcp_batteries.server.declaration.call_origin import CallOrigin
from mcp_batteries.server.declaration.decorators import DeclaredTool, tool, toolsets_of
from mcp_batteries.server.declaration.trusted import FreeText, consented, default, trusted
from mcp_batteries.settings import Settings, load
from mcp_fs.server import build as build_files
from mcp_fs.settings import Settings as FileSettings

DECLARED = DeclaredTool("A tool", "read", True, False, 60.0)


@dataclass(frozen=True)
class Folder:
    path: str


@dataclass(frozen=True)
class Name:
    text: str


class Pair(NamedTuple):
    one: str
    other: str


class Box(BaseModel):
    folder: Folder


class Policy:
    def __init__(self, root: str) -> None:
        self.root = root

    def folder(self, name: str) -> Folder:
        if ".." in name:
            raise Refused(f"{quote(name)} leads out.", "Stay inside.")
        return Folder(f"{self.root}/{name}")

    async def find_folder(self, name: str) -> Folder:
        await anyio.lowlevel.checkpoint()
        return self.folder(name)


class Store:
    def __init__(self) -> None:
        self.written: list[str] = []
        self.heard = threading.Event()


def parse_name(text: str) -> Name:
    return Name(text.upper())


def parse_names(texts: list[str]) -> list[Name]:
    return [parse_name(text) for text in texts]


ServedFolder = Annotated[Folder, trusted(Policy.folder), Field(description="Where.")]
SomeName = Annotated[Name, trusted(parse_name)]


@tool("Get folder")
async def get_folder(
    store: Store,
    *,
    folder: ServedFolder = default("top"),
    name: SomeName | None = None,
    label: Annotated[Name | None, trusted(parse_name), Field(max_length=9)] = None,
    names: Annotated[list[Name], trusted(parse_names)] = default([]),
    mark: Annotated[Name | None, trusted(parse_name), Field(description="Any.")] = None,
    other: Annotated[SomeName | None, Field(description="Any.")] = None,
    text: Annotated[FreeText | None, Field(description="Any.")] = None,
    kind: Literal["a", "b"] = "a",
) -> str:
    """Get a folder."""
    assert mark == other
    return f"{folder} {name} {label} {names} {kind} {threading.current_thread().name} {len(store.written)}"


@tool("Read thing", work="The look")
def read_thing(cancel: CancelToken, policy: Policy, *, thing: FreeText) -> str:
    """Read a thing."""
    while thing == "endless":
        cancel.check()
        time.sleep(0.001)
    return f"{thing} of {policy.root} on {threading.current_thread().name}"


@tool("Find folder")
def find_folder(store: Store, *, folder: Annotated[Folder, trusted(Policy.find_folder)]) -> str:
    """Find a folder."""
    return f"{folder.path} on {threading.current_thread().name}"


@tool("Get client")
async def get_client(context: Context, store: Store, *, greeting: FreeText) -> str:
    """Get the client's name."""
    params = context.session.client_params
    return f"{greeting} {params.client_info.name if params else None} {len(store.written)}"


class Count(DataResult):
    number: int


@tool("Get origin")
def get_origin(origin: CallOrigin, *, greeting: FreeText) -> str:
    """Tell who calls."""
    return f"{greeting}, {origin.caller or 'nobody'} of {origin.tool}"


@tool("Get count")
def get_count(store: Store) -> Count:
    """Count what was written."""
    return Count(number=len(store.written))


@dataclass(frozen=True)
class Erasure:
    folder: Folder
    question: str | None


def plan_copy(store: Store, *, folder: ServedFolder) -> Erasure:
    report_progress(1, 2, "half of it")
    assert store.heard.wait(10)
    return Erasure(folder, None)


@tool("Copy folder", effect="write")
def copy_folder(plan: Annotated[Erasure, consented(plan_copy, fix="")]) -> str:
    """Copy a folder."""
    return plan.folder.path


def plan_erasure(store: Store, *, folder: ServedFolder, quietly: bool = False) -> Erasure:
    return Erasure(folder, None if quietly else f"Erase {folder.path} beside {len(store.written)}?")


@tool("Delete folder", effect="destroy")
def delete_folder(
    store: Store, plan: Annotated[Erasure, consented(plan_erasure, fix="Do it by hand.")], *, note: FreeText = ""
) -> str:
    """Delete a folder."""
    store.written.append(plan.folder.path)
    return f"gone: {plan.folder.path}{note}"


def build(
    root: str, store: Store | None = None, limits: TimeLimits | None = None, turned_off: Mapping[str, str] | None = None
) -> Assembled:
    rooms = [sys.modules[__name__]]
    dependencies = [Policy(root), store or Store()]
    return assemble(
        "mcp-toy", Settings(), rooms=rooms, dependencies=dependencies, time_limits=limits, turned_off=turned_off,
        title="Toy", version="1", instructions="",
    )  # fmt: skip


@asynccontextmanager
async def connected(
    root: str, store: Store | None = None, limits: TimeLimits | None = None, **client: Any
) -> AsyncGenerator[Client]:
    async with Client(build(root, store, limits), **client) as connection:
        yield connection


async def answer(client: Client, tool_name: str, /, **arguments: Any) -> str:
    result = await client.call_tool(tool_name, arguments)
    return "".join(block.text for block in result.content if isinstance(block, TextContent)).strip()


@pytest.mark.anyio
async def test_the_schema_has_what_callers_send() -> None:
    async with connected("/r") as client:
        schemas = {entry.name: entry.input_schema for entry in (await client.list_tools()).tools}
    assert schemas["get_folder"]["properties"] == {
        "folder": {"default": "top", "description": "Where.", "type": "string"},
        "name": {"type": "string"},
        "label": {"type": "string"},
        "names": {"items": {"type": "string"}, "type": "array"},
        "mark": {"type": "string", "description": "Any."},
        "other": {"type": "string", "description": "Any."},
        "text": {"type": "string", "description": "Any."},
        "kind": {"default": "a", "enum": ["a", "b"], "type": "string"},
    }
    assert "required" not in schemas["get_folder"]
    # What is parsed is published byte for byte like what is not.
    assert list(schemas["get_folder"]["properties"]["mark"]) == list(schemas["get_folder"]["properties"]["text"])
    assert list(schemas["delete_folder"]["properties"]) == ["folder", "quietly", "note"]
    assert schemas["delete_folder"]["required"] == ["folder"]


@pytest.mark.anyio
async def test_texts_become_trusted_types_by_the_policy_of_this_server() -> None:
    async with connected("/one") as one, connected("/two") as two:
        for client, root in ((one, "/one"), (two, "/two")):
            text = await answer(client, "get_folder", name="n", label="", names=["x"], kind="B")
            folder = Folder(f"{root}/top")
            assert text == f"{folder} {Name('N')} None {[Name('X')]} b MainThread 0"
        # An empty text stands for an optional argument that is left out.
        assert f"None {Name('L')} []" in await answer(one, "get_folder", name="", label="l", mark="m", other="m")
        assert str([Name("X")]) in await answer(one, "get_folder", names="x")
        assert "None None []" in await answer(one, "get_folder", name=None)
        assert await answer(one, "get_folder", folder="../x") == "`../x` leads out. Stay inside."
        assert "`label` must be a string" in await answer(one, "get_folder", label="0123456789")


@pytest.mark.anyio
async def test_a_tool_of_a_module_may_be_turned_off() -> None:
    server = build("/r", turned_off={"find_folder": "Ask the operator."})
    async with Client(server) as client:
        assert "find_folder" not in {entry.name for entry in (await client.list_tools()).tools}
    assert server.withheld["find_folder"] == "Ask the operator."


@pytest.mark.anyio
async def test_a_parser_may_wait() -> None:
    async with connected("/r") as client:
        assert await answer(client, "find_folder", folder="a") == "/r/a on work"
        assert await answer(client, "find_folder", folder="..") == "`..` leads out. Stay inside."


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("who", "caller"),
    [({}, "nobody"), ({"address": "::1"}, "address ::1"), ({"address": "::1", "identity": "ada"}, "identity ada")],
)
async def test_a_function_on_a_thread_learns_who_calls(
    who: dict[str, str], caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bound_function, "describe_caller", lambda context: who)
    async with connected("/r") as client:
        assert await answer(client, "get_origin", greeting="Hello") == f"Hello, {caller} of get_origin"


@pytest.mark.anyio
async def test_a_function_gets_the_context_of_its_call() -> None:
    async with connected("/r") as client:
        assert (await answer(client, "get_client", greeting="Hello")).startswith("Hello mcp")
        schemas = {entry.name: entry.input_schema for entry in (await client.list_tools()).tools}
        assert list(schemas["get_client"]["properties"]) == ["greeting"]


@pytest.mark.anyio
async def test_a_plain_function_runs_on_a_thread_with_a_deadline() -> None:
    async with connected("/r", limits=TimeLimits(0.05, 60)) as client:
        assert await answer(client, "read_thing", thing="it") == "it of /r on work"
        text = await answer(client, "read_thing", thing="endless")
        assert text.startswith("The look was stopped after 0.05 s, its time limit.")


@pytest.mark.anyio
async def test_a_cancelled_call_ends_its_function() -> None:
    ended = threading.Event()

    def read_forever(cancel: CancelToken) -> str:
        while not cancel.is_set():
            time.sleep(0.001)
        ended.set()
        return ""

    bound = bind_tool(read_forever, DECLARED, [])
    with anyio.move_on_after(0.05):
        await bound.method()
    assert await anyio.to_thread.run_sync(ended.wait, 10)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_tool_gets_the_plan_to_which_the_person_agreed(mode: Any) -> None:
    store = Store()
    questions: list[str] = []
    action: Literal["accept", "decline"] = "decline"

    async def decide(context: Any, params: Any) -> ElicitResult:
        questions.append(params.message)
        return ElicitResult(action=action, content={"confirm": True} if action == "accept" else None)

    async with connected("/r", store, mode=mode, elicitation_callback=decide) as client:
        assert "did not consent" in await answer(client, "delete_folder", folder="a")
        assert store.written == []
        action = "accept"
        assert await answer(client, "delete_folder", folder="a", note="!") == "gone: /r/a!"
        assert [question.partition("?")[0] for question in questions] == ["Erase /r/a beside 0"] * 2
        assert await answer(client, "delete_folder", folder="b", quietly=True) == "gone: /r/b"
        assert len(questions) == 2
        assert await answer(client, "delete_folder", folder="..") == "`..` leads out. Stay inside."
    assert store.written == ["/r/a", "/r/b"]


@pytest.mark.anyio
async def test_nothing_runs_where_nobody_can_be_asked() -> None:
    store = Store()
    async with connected("/r", store) as client:
        text = await answer(client, "delete_folder", folder="a")
    assert "Erase /r/a beside 0?" in text
    assert text.endswith("Do it by hand.")
    assert store.written == []


@pytest.mark.anyio
async def test_a_plan_that_takes_long_reports_its_progress() -> None:
    store = Store()

    async def hear(done: float, total: float | None, message: str | None) -> None:
        assert (done, total, message) == (1, 2, "half of it")
        store.heard.set()

    async with connected("/r", store) as client:
        result = await client.call_tool("copy_folder", {"folder": "a"}, progress_callback=hear)
    assert not result.is_error, result.content


@pytest.mark.anyio
async def test_slow_functions_keep_no_thread_from_quick_work() -> None:
    released = threading.Event()

    def wait(cancel: CancelToken) -> str:
        released.wait(10)
        return ""

    def count() -> str:
        return "1"

    bound = bind_tool(wait, DECLARED, [])
    quick = bind_tool(count, replace(DECLARED, long=False), [])
    async with anyio.create_task_group() as calls:
        for _ in range(40):
            calls.start_soon(bound.method)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(5):
            assert await run_in_thread(lambda cancel: 1) == 1
            assert await quick.method() == "1"
        released.set()


@pytest.mark.parametrize(
    ("function", "open_world", "limits", "seconds"),
    [
        (read_thing, False, TimeLimits(1, 7), 101.0),
        (read_thing, True, TimeLimits(1, 7), 107.0),
        (read_thing, True, None, 60.0),
        (get_folder, True, TimeLimits(1, 7), 60.0),
    ],
)
def test_a_call_has_time_beyond_the_deadline_of_its_work(
    function: Callable[..., Any], open_world: bool, limits: TimeLimits | None, seconds: float
) -> None:
    declared = replace(DECLARED, open_world=open_world)
    assert bind_tool(function, declared, [Policy("/r"), Store()], limits).seconds == seconds


@pytest.mark.anyio
async def test_a_function_that_promises_data_publishes_its_shape() -> None:
    async with connected("/r") as client:
        (entry,) = [entry for entry in (await client.list_tools()).tools if entry.name == "get_count"]
        assert entry.output_schema is not None and list(entry.output_schema["properties"]) == ["number"]
        assert (await client.call_tool("get_count", {})).structured_content == {"number": 0}


def test_a_function_keeps_its_name_its_words_and_its_toolset() -> None:
    (entry,) = [entry for entry in build("/r").catalog.tools if entry.name == "get_folder"]
    assert entry.description == "Get a folder."
    bound = bind_tool(get_folder, DECLARED, [Policy("/r"), Store()])
    assert toolsets_of(DECLARED, bound.method) == ("test_tool_functions",)


class Label(BaseModel):
    text: Annotated[str, Field(max_length=9)]


def takes_trusted_without_parser(*, folder: Folder) -> str: ...
def takes_list_without_parser(*, folders: list[Folder]) -> str: ...
def takes_pair(*, pair: Pair | None = None) -> str: ...
def takes_box(*, box: Box) -> str: ...
def takes_other_type(*, folder: Annotated[Name, trusted(Policy.folder)]) -> str: ...
def has_trusted_default(*, name: SomeName = Name("X")) -> str: ...
def needs_another(settings: Settings, *, name: FreeText) -> str: ...
def sends_before_the_star(name: str) -> str: ...
def sends_list_before_the_star(names: list[str]) -> str: ...
def needs_one_of_two(name: Name) -> str: ...
async def cancels_itself(cancel: CancelToken) -> str: ...
def takes_text(*, text: str) -> str: ...
def takes_texts(*, texts: dict[Literal["a"], list[str]] | None = None) -> str: ...
def takes_model_of_texts(*, label: Label) -> str: ...
def parses_each(*, names: list[SomeName]) -> str: ...
def has_context_on_a_thread(context: Context) -> str: ...
async def has_context_twice(context: Context, origin: CallOrigin) -> str: ...
async def plan_with_context(context: Context, *, folder: ServedFolder) -> Erasure: ...
def agrees(plan: Annotated[Erasure, consented(plan_with_context, fix="")]) -> str: ...
def disagrees(plan: Annotated[Erasure, consented(plan_erasure, fix="")], *, folder: SomeName) -> str: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (takes_trusted_without_parser, "`folder` holds Folder, which needs a parser"),
        (takes_list_without_parser, "`folders` holds Folder, which needs a parser"),
        (takes_pair, "`pair` holds Pair, which needs a parser"),
        (takes_box, "`box` holds Folder, which needs a parser"),
        (takes_other_type, "Policy.folder does not return what `folder` is"),
        (has_trusted_default, "`name` is if left out has to be parsed"),
        (needs_another, "0 dependencies that `settings` can be"),
        (sends_before_the_star, "0 dependencies that `name` can be"),
        (sends_list_before_the_star, "0 dependencies that `names` can be"),
        (needs_one_of_two, "2 dependencies that `name` can be"),
        (cancels_itself, "needs no token"),
        (disagrees, "take different `folder`"),
        (takes_text, "`text` is a text without a parser"),
        (takes_texts, "`texts` is a text without a parser"),
        (takes_model_of_texts, "`label` is a text without a parser"),
        (parses_each, "one parser makes the whole value"),
        (has_context_on_a_thread, "has to be `async def`"),
        (has_context_twice, "and once"),
        (agrees, "makes a plan, which has no context"),
    ],
)
def test_a_wrong_signature_is_seen_when_the_server_is_built(function: Callable[..., str], message: str) -> None:
    with pytest.raises(TypeError, match=message.replace("(", r"\(")):
        bind_tool(function, DECLARED, [Policy("/r"), Store(), Name("A"), Name("B")])


class Filter(BaseModel):
    names: list[FreeText] = []
    text: Annotated[FreeText, Field(max_length=9)] = ""


class Color(Enum):
    RED = "red"


def takes_plain_values(
    *, filters: list[Filter], color: Color, day: date | None = None, values: dict[FreeText, Any] | None = None
) -> str: ...


def test_plain_values_need_no_parser() -> None:
    bind_tool(takes_plain_values, DECLARED, [])


def test_a_parser_of_another_policy_is_refused() -> None:
    with pytest.raises(TypeError, match=r"no dependency with the method Policy\.folder"):
        bind_tool(get_folder, DECLARED, [Store()])


@pytest.mark.parametrize(("options", "remembers"), [([], False), (["--confirm"], True)])
def test_what_is_read_is_remembered_only_where_somebody_may_be_asked(
    options: list[str], remembers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read would cost a tenth more; mcp-fs plans deletions, and asks about them only with `--confirm`."""
    made: list[ReadHistory] = []

    def make(*arguments: Any) -> ReadHistory:
        made.append(ReadHistory(*arguments))
        return made[0]

    monkeypatch.setattr(assembling, "ReadHistory", make)
    build_files(load(FileSettings, [str(tmp_path), *options]))
    assert bool(made) is remembers
