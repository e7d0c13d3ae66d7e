"""A tool call from the client's side: results in every shape, failures that tell nothing they should not, consent."""

import itertools
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult, ErrorData, ImageContent, TextContent, TextResourceContents
from pydantic import Field

from mcp_batteries.errors import Invalid, NotFound, TooLarge, Unavailable
from mcp_batteries.server.assemble import assemble
from mcp_batteries.server.calling import confirmation
from mcp_batteries.server.calling.confirmation_text import describe_call
from mcp_batteries.server.calling.results import DataResult
from mcp_batteries.server.calling.tool import strict_tool
from mcp_batteries.server.declaration.decorators import declarations, resource, tool
from mcp_batteries.server.tool_filter import ToolFilter


class Sum(DataResult):
    columns: list[str] = Field(description="Names.")
    rows: list[list[int | str]] = Field(description="Values.")


class Room:
    def __init__(self) -> None:
        self.deleted: list[str] = []

    @tool("Get text")
    async def get_text(self) -> str:
        """Get text."""
        return "caf\udce9"

    @tool("Get rows")
    async def get_rows(self) -> Sum:
        """Get rows."""
        return Sum(columns=["n"], rows=[[1], ["\ud83d"]])

    @tool("Get picture")
    async def get_picture(self) -> list[ImageContent]:
        """Get a picture."""
        return [ImageContent(type="image", data="AAAA", mime_type="image/png")]

    @tool("Get nothing")
    async def get_nothing(self) -> str:
        """Fail as announced."""
        raise NotFound("There is no `x`.", "Look elsewhere.")

    @tool("Get defect")
    async def get_defect(self) -> str:
        """Fail by a defect."""
        raise RuntimeError("password=hunter2")

    @tool("Run exit")
    async def run_exit(self) -> str:
        """Try to end the process."""
        raise SystemExit(3)

    @tool("Run forever", seconds=0.05)
    async def run_forever(self) -> str:
        """Never return."""
        await anyio.sleep_forever()
        return ""

    @tool("Delete thing", effect="destroy")
    async def delete_thing(self, name: str, dry_run: bool = False) -> str:
        """Delete a thing."""
        if not dry_run:
            self.deleted.append(name)
        return "done"


@asynccontextmanager
async def connected(room: Room, *, ask: bool = False, **client: Any) -> AsyncGenerator[Client]:
    tools = [strict_tool(method, declared, confirm=ask) for declared, method in declarations(room)]  # type: ignore[arg-type]
    async with Client(MCPServer("toy", tools=tools), **client) as connection:
        yield connection


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.anyio
async def test_text_is_sent_once_well_formed_and_ends_a_line() -> None:
    async with connected(Room()) as client:
        result = await client.call_tool("get_text", {})
        assert (text_of(result), result.structured_content) == ("caf�\n", None)


@pytest.mark.anyio
async def test_data_is_complete_in_both_forms() -> None:
    async with connected(Room()) as client:
        result = await client.call_tool("get_rows", {})
        assert result.structured_content == {"columns": ["n"], "rows": [[1], ["�"]]}
        assert text_of(result) == '{"columns":["n"],"rows":[[1],["�"]]}\n'
        (entry,) = [item for item in (await client.list_tools()).tools if item.name == "get_rows"]
        assert entry.output_schema is not None and "title" not in entry.output_schema


@pytest.mark.anyio
async def test_content_blocks_pass_through() -> None:
    async with connected(Room()) as client:
        assert [block.type for block in (await client.call_tool("get_picture", {})).content] == ["image"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("get_nothing", "There is no `x`. Look elsewhere."),
        ("get_defect", "`get_defect` failed inside the server, which logged the reason. Other calls still work."),
        ("run_exit", "`run_exit` failed inside the server, which logged the reason. Other calls still work."),
        (
            "run_forever",
            "`run_forever` was stopped after 0.05 s, its time limit. Ask for less at once. "
            "If that takes as long, what it waits for does not answer: leave it.",
        ),
    ],
)
async def test_a_failure_says_what_it_may_and_the_next_call_works(
    name: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        async with connected(Room()) as client:
            result = await client.call_tool(name, {})
            assert result.is_error and text_of(result) == said
            assert not (await client.call_tool("get_text", {})).is_error


def answering(action: str, **content: Any):
    async def callback(context: Any, params: Any) -> ElicitResult:
        assert "delete_thing" in params.message and "`it`" in params.message
        return ElicitResult(action=action, content=content or None)  # type: ignore[arg-type]

    return callback


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(
    ("callback", "deleted"),
    [
        (answering("accept", confirm=True), ["it"]),
        (answering("accept", confirm=False), []),
        (answering("accept"), []),
        (answering("accept", other=True), []),
        (answering("decline"), []),
        (answering("cancel"), []),
        (None, []),
    ],
    ids=["yes", "unticked", "empty", "another answer", "no", "cancelled", "cannot be asked"],
)
async def test_only_a_yes_is_a_yes(mode: str, callback: Any, deleted: list[str]) -> None:
    room = Room()
    async with connected(room, ask=True, mode=mode, elicitation_callback=callback) as client:
        result = await client.call_tool("delete_thing", {"name": "it"})
        assert (room.deleted, result.is_error) == (deleted, not deleted)
        assert deleted or "consent" in text_of(result)


async def failing(context: Any, params: Any) -> ErrorData:
    return ErrorData(code=-32601, message="Method not found")


@pytest.mark.anyio
@pytest.mark.parametrize(
    "callback", [answering("accept"), answering("accept", confirm="perhaps"), failing], ids=["empty", "wrong", "error"]
)
async def test_an_answer_that_is_none_is_a_no(callback: Any) -> None:
    room = Room()
    async with connected(room, ask=True, mode="legacy", elicitation_callback=callback) as client:
        result = await client.call_tool("delete_thing", {"name": "it"})
        assert result.is_error and room.deleted == []
        assert "consent" in text_of(result) and "esolver" not in text_of(result)


@pytest.mark.anyio
async def test_a_dry_run_and_a_reader_are_not_asked_about() -> None:
    room = Room()
    async with connected(room, ask=True) as client:
        assert not (await client.call_tool("delete_thing", {"name": "it", "dry_run": True})).is_error
        assert not (await client.call_tool("get_text", {})).is_error


@pytest.mark.anyio
async def test_no_answer_in_time_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(context: Any, params: Any) -> ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(confirmation, "_ANSWER_SECONDS", 0.05)
    room = Room()
    async with connected(room, ask=True, mode="legacy", elicitation_callback=silent) as client:
        result = await client.call_tool("delete_thing", {"name": "it"})
        assert result.is_error and room.deleted == [] and "consent" in text_of(result)


HARMLESS = "Thanks for the report! " * 40


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HARMLESS + "ghp_" + "a1B2" * 9, ["a GitHub token", "ghp_a1B2"]),
        (HARMLESS * 20 + "AKIAABCDEFGHIJKLMNOP\nbye", ["an AWS key", "characters are not shown", "bye", "18,4"]),
        (HARMLESS * 10 + "-----BEGIN RSA PRIVATE KEY-----" + HARMLESS * 10, ["a private key", "not shown"]),
        (f"{HARMLESS} https://evil.example/?q=1", ["links to `evil.example`"]),
        ("see postgres://me:hunter2@db/x", ["a password in an address"]),
        ("a\u200bb\u202ec", ["2 invisible characters", "a\\u{200b}b\\u{202e}c"]),
        ("one\nAllow nothing?\nThe call is get_me ().", ["\n| Allow nothing?\n| The call is get_me"]),
    ],
    ids=["token", "long", "middle", "link", "address", "invisible", "spoof"],
)
def test_what_is_consented_to_is_shown_wherever_it_stands(text: str, words: list[str]) -> None:
    said = describe_call("create_comment", {"repo": "octo/app", "number": 3, "body": text})
    assert said.startswith("The call is create_comment (repo=`octo/app`, number=`3`")
    assert all(word in said for word in words), said
    assert len(said) < 5000


def test_a_text_of_some_kilobytes_is_shown_whole_and_many_share_the_room() -> None:
    text = "".join(f"line {number}\n" for number in range(300))
    said = describe_call("create_issue", {"body": text})
    assert all(f"| line {number}\n" in f"{said}\n" for number in range(300)) and "Note" not in said
    assert len(describe_call("create_issue", {f"body{number}": text for number in range(9)})) < 20_000


def test_files_are_paths_and_sizes_and_what_is_in_them_is_looked_at() -> None:
    files = [
        {"path": "a.py", "content": "x = 1\n" * 500, "sha": "6dcb"},
        {"path": "b\u202e.py", "edits": [{"old": "a", "new": "ghp_" + "a" * 36}]},
        {"path": "c.py", "delete": True},
    ]
    said = describe_call("write_files", {"branch": "main", "files": files})
    assert "files: 3 files\n| `a.py`: 501 lines, 3,000 characters\n| `b\\u{202e}.py`: 1 edits\n" in said
    assert "| `c.py`: deleted" in said and "a GitHub token" in said and "1 invisible character." in said
    many = [{"path": f"{number}.py", "content": ""} for number in range(100)]
    assert "and 60 more" in describe_call("write_files", {"files": many})
    said = describe_call("write_gist", {"texts": {"a.txt": "hello\nyou", "b.txt": None}})
    assert "| `a.txt`: 2 lines, 9 characters\n| `b.txt`: deleted" in said
    assert "`a.txt` (9 characters):\n| hello\n| you" in said


def test_the_form_has_no_preset_answer() -> None:
    schema = confirmation.Confirmation.model_json_schema()
    assert schema["required"] == ["confirm"] and "default" not in schema["properties"]["confirm"]


@pytest.mark.anyio
async def test_a_problem_has_fields_for_programs() -> None:
    class Rooms:
        @tool("Get one")
        async def get_one(self, which: str) -> str:
            """Get one."""
            raise {
                "late": Unavailable("Not now.", retry_after=7.0, status=503), "gone": NotFound("Gone."),
                "big": TooLarge("Big."),
            }[which]  # fmt: skip

        @resource("toy://late", name="late", title="Late")
        async def read_late(self) -> TextResourceContents:
            raise Unavailable("Not now.", retry_after=7.0)

    given: Any = SimpleNamespace(
        read_only=False,
        tools=(),
        exclude_tools=(),
        confirm=False,
        audit_file=None,
        max_streams=9,
        telemetry=False,
        bus=None,
        state_key_file=None,
    )
    server = assemble("toy", given, rooms=[Rooms()], title="T", version="1", instructions="I")
    async with Client(server) as client:
        for which, fields in [
            ("late", {"kind": "unavailable", "status": 503, "retry_after_s": 7.0}),
            ("gone", {"kind": "not_found"}),
            ("big", {"kind": "too_large"}),
        ]:
            result = await client.call_tool("get_one", {"which": which})
            assert result.is_error and result.meta is not None
            assert {name: value for name, value in result.meta.items() if "/" not in name} == fields
        result = await client.call_tool("get_one", {})
        assert result.is_error and (result.meta or {})["kind"] == "invalid"
        with pytest.raises(MCPError) as refusal:
            await client.read_resource("toy://late")
        assert refusal.value.error.data == {"uri": "toy://late", "kind": "unavailable", "retry_after_s": 7.0}


def test_choices_name_tools_or_toolsets() -> None:
    """Every choice of two names among three tools and what they belong to, against what the words mean."""
    tools = {"get_one": ("a",), "get_two": ("a", "rare"), "get_three": ("rare",)}
    words = ["default", "all", "a", "rare", *tools]
    for chosen, excluded in itertools.product(
        [(), *itertools.permutations(words, 2)], [(), *((word,) for word in words)]
    ):
        choice = ToolFilter(chosen, excluded, {"rare"})
        choice.check(tools)

        def meant(word: str) -> set[str]:
            groups = {"default": {"get_one", "get_two"}, "all": set(tools), "a": {"get_one", "get_two"}}
            return groups.get(word, {"get_two", "get_three"} if word == "rare" else {word})

        wanted = set[str]().union(*map(meant, chosen or ["default"])) - set[str]().union(*map(meant, excluded))
        assert {name for name, sets in tools.items() if choice.find_closed_gate(name, sets) is None} == wanted, (
            chosen,
            excluded,
        )


def test_a_toolset_whose_tools_come_later_can_be_chosen() -> None:
    choice = ToolFilter(["saved"], ["get_one"])
    choice.check({"get_one": ("a",)}, ["saved"])
    assert choice.find_closed_gate("run_report", ["saved"]) is None
    with pytest.raises(
        Invalid, match=r"no such tool or toolset\. There are the toolsets default, all, a, and the tools"
    ):
        choice.check({"get_one": ("a",)})


def test_tools_that_cannot_work_well_are_refused_at_the_start() -> None:
    class Blocking:
        @tool("Get it")
        def get_it(self) -> str:
            """Get it."""
            return ""

    class Listing:
        @tool("List it")
        async def list_it(self) -> list:  # type: ignore[type-arg]
            """List it."""
            return []

    for room, why in ((Blocking(), "async def"), (Listing(), "DataResult")):
        ((declared, method),) = declarations(room)
        with pytest.raises(TypeError, match=why):
            strict_tool(method, declared)  # type: ignore[arg-type]
