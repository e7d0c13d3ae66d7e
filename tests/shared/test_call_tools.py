"""Several calls in one: each takes the way of every other call, and no answer hides what was not done or not shown."""

import itertools
import json
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    ImageContent,
    Request,
    TextContent,
)

from mcp_batteries.errors import Invalid
from mcp_batteries.progress import report_progress
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import assemble
from mcp_batteries.server.calling.call_params import MAX_CALLS, count_calls, normalize_call
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.transports.http.auth.scopes import Scopes

pytestmark = pytest.mark.anyio


class Room:
    def __init__(self) -> None:
        self.said: list[str] = []
        self.tools: Mapping[str, Tool] = {}

    @tool("Read it")
    async def read_it(self, size: int = 3, max_bytes: int = 100_000) -> str:
        """Read."""
        return ("x" * 9 + "\n") * (min(size, max_bytes) // 10)

    @tool("Page it")
    async def page_it(self, size: int, max_bytes: int = 100_000) -> str:
        """Page: a line that tells where the next page begins comes on top."""
        shown = min(size, max_bytes) // 10
        return f"[next: {shown}]\n" * (shown < size // 10) + "z" * 9 + ("\n" + "z" * 9) * (shown - 1)

    @tool("List it")
    async def list_it(self, size: int) -> str:
        """List, whatever comes of it."""
        return ("y" * 9 + "\n") * (size // 10)

    @tool("Count it")
    async def count_it(self, to: int) -> str:
        """Count, and tell."""
        for done in range(to):
            report_progress(done + 1, to)
            await anyio.sleep(0.12)  # longer than between two looks of who reports
        return "counted"

    @tool("Show it")
    async def show_it(self) -> list[TextContent | ImageContent]:
        """Show a picture."""
        return [TextContent(type="text", text="a dot"), ImageContent(type="image", data="AAAA", mime_type="image/png")]

    @tool("Say it", effect="write")
    async def say_it(self, word: str) -> str:
        """Say a word, but not no."""
        if word == "no":
            raise Invalid("`no` is not said.", "Say yes.")
        self.said.append(word)
        return f"said {word}"

    @tool("Forget it", effect="destroy")
    async def forget_it(self) -> str:
        """Forget all."""
        self.said.clear()
        return "forgotten"


@asynccontextmanager
async def served(
    *tools: str,
    mode: Any = "auto",
    audit: Path | None = None,
    confirm: bool = False,
    read_only: bool = False,
    scopes: list[str] | None = None,
) -> AsyncGenerator[tuple[Client, Room]]:
    room = Room()
    settings: Any = SimpleNamespace(
        read_only=read_only, confirm=confirm, audit_file=audit and str(audit), max_streams=9, telemetry=False, bus=None,
        state_key_file=None, tools=tools or ("default", "call_tools"), exclude_tools=(),
    )  # fmt: skip

    async def answer(context: Any, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"confirm": True})

    server = assemble("toy", settings, rooms=[room], title="Toy", version="1", instructions="")
    room.tools = tool_table(server)
    user = None
    if scopes is not None:  # as over HTTP, where the rules stand between
        server.middleware.append(Scopes(lambda: tool_table(server)))
        user = AuthenticatedUser(AccessToken(token="t", client_id="ann", scopes=scopes))
    before = auth_context_var.set(user)
    try:
        async with Client(server, mode=mode, elicitation_callback=answer if confirm else None) as client:
            yield client, room
    finally:
        auth_context_var.reset(before)


async def asked(client: Client, *calls: tuple[str, dict[str, Any]], **more: Any) -> tuple[bool, str]:
    listed = [{name: arguments} for name, arguments in calls]
    answer = await client.call_tool("call_tools", {"calls": listed, **more})
    return bool(answer.is_error), "\n".join(part.text for part in answer.content if isinstance(part, TextContent))


async def test_it_calls_what_reads_and_by_its_name_what_changes_too() -> None:
    toolset = "test_call_tools"
    for tools, reads_only in (
        (("all",), True), (("default",), True), ((toolset,), True), (("default", "call_tools"), False),
        ((toolset, "call_tools"), False),
    ):  # fmt: skip
        async with served(*tools) as (client, _):
            found = {item.name: item for item in (await client.list_tools()).tools}
            hints = found["call_tools"].annotations
            assert hints is not None
            assert (hints.read_only_hint, hints.destructive_hint) == (reads_only, not reads_only)
    async with served(read_only=True) as (client, _):
        found = {item.name: item for item in (await client.list_tools()).tools}
        hints = found["call_tools"].annotations
        assert hints is not None and hints.read_only_hint and "say_it" not in found
    async with served("read_it") as (client, _):
        assert "call_tools" not in {item.name for item in (await client.list_tools()).tools}


async def test_a_change_is_not_called_with_others_and_nothing_after_it_is() -> None:
    async with served("default") as (client, room):
        failed, said = await asked(client, ("list_it", {"size": 10}), ("say_it", {"word": "a"}), ("list_it", {}))
        assert failed and not room.said
        reason = "2 say_it changes things, so call it by itself, or in `run_script`"
        assert said == f"[1 of 3 calls were made: {reason}; the others were not run]\n# 1 list_it\nyyyyyyyyy\n"
        _, said = await asked(client, ("run_script", {"script": "1"}))
        assert "1 run_script changes things, so call it by itself; the others" in said
        _, said = await asked(client, ("nothing", {}), ("list_it", {"size": 10}))
        assert "# 1 nothing, failed\n" in said and "# 2 list_it\nyyyyyyyyy\n" in said


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_failed_read_stops_nothing_and_a_failed_change_all_that_follows(mode: Any) -> None:
    async with served(mode=mode) as (client, room):
        failed, said = await asked(
            client, ("read_it", {"sise": 9}), ("say_it", {"word": "a"}), ("list_it", {"size": 10})
        )
        assert not failed and room.said == ["a"]
        assert said.startswith("# 1 read_it, failed\n") and "# 2 say_it\nsaid a\n# 3 list_it\nyyyyyyyyy\n" in said
        wrongs: list[tuple[str, dict[str, Any]]] = [
            ("say_it", {"word": "no"}), ("say_it", {"wort": "b"}), ("nothing", {}),
        ]  # fmt: skip
        for wrong in wrongs:
            failed, said = await asked(client, ("say_it", {"word": "c"}), wrong, ("say_it", {"word": "d"}))
            assert failed and said.startswith(f"[2 of 3 calls were made: 2 {wrong[0]} failed; the others were not run]")
            assert "# 1 say_it\nsaid c\n" in said and f"# 2 {wrong[0]}, failed\n" in said and "# 3" not in said
        assert room.said == ["a", "c", "c", "c"]
        failed, said = await asked(client, ("call_tools", {"calls": []}))
        assert failed and "not itself" in said


async def test_each_call_is_judged_alone(tmp_path: Path) -> None:
    async with served(audit=tmp_path / "audit") as (client, _):
        await asked(client, ("read_it", {}), ("say_it", {"word": "no"}))
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text("utf-8").splitlines()]
    assert [(line["name"], line["outcome"]) for line in lines] == [
        ("read_it", "ok"), ("say_it", "error"), ("call_tools", "error"),
    ]  # fmt: skip
    assert lines[1]["arguments"] == ["word"]
    async with served(scopes=["read"]) as (client, room):
        with pytest.raises(MCPError, match="lacks the scope `write`"):
            await asked(client, ("read_it", {"size": 10}), ("say_it", {"word": "a"}), ("read_it", {}))
        assert not room.said
        assert not (await asked(client, ("read_it", {}), ("list_it", {"size": 10})))[0]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_who_must_be_asked_first_is(mode: Any) -> None:
    """An older client is asked while the call runs; a newer one would have to make all calls again."""
    async with served(mode=mode, confirm=True) as (client, room):
        failed, said = await asked(client, ("say_it", {"word": "a"}), ("forget_it", {}), ("say_it", {"word": "b"}))
        if mode == "legacy":
            assert not failed and room.said == ["b"]
        else:
            assert failed and room.said == ["a"] and "2 forget_it asks the user" in said and "Call it alone" in said


async def test_whatever_their_lengths_all_answers_have_their_share() -> None:
    rng = random.Random(7)
    async with served() as (client, _):
        for _ in range(60):
            sizes = [rng.choice([10, 500, 2000, 30_000]) for _ in range(rng.randint(1, 20))]
            calls = [(rng.choice(["read_it", "list_it"]), {"size": size}) for size in sizes]
            most = rng.choice([1000, 10_000, 50_000])
            failed, said = await asked(client, *calls, max_bytes=most)
            assert not failed
            parts = ("\n" + said).split("\n# ")[1:]
            assert len(parts) == len(calls)
            for part, (name, _), size in zip(parts, calls, sizes, strict=True):
                head, _, text = part.partition("\n")
                shown = len(text.rstrip("\n")) + 1
                assert shown == size // 10 * 10 or name == "read_it" or f", cut: {shown - 1:,} of {size - 1:,}" in head
                assert shown >= min(size, 900), "nobody is cut to nothing for somebody else"
            allowed = max(most, 1000 * len(calls))
            assert len(said) <= allowed + 100 * len(calls)


async def test_short_answers_leave_their_room_to_long_ones() -> None:
    async with served() as (client, _):
        for calls in (
            [("page_it", {"size": 8000}), *[("list_it", {"size": 100})] * 3],
            [*[("list_it", {"size": 1500})] * 4, ("page_it", {"size": 3500})],
            [("page_it", {"size": 4000}), ("say_it", {"word": "a"}), ("page_it", {"size": 5000})],
        ):
            failed, said = await asked(client, *calls, max_bytes=10_000)
            assert not failed and "cut" not in said and "next" not in said, said[:300]


async def test_where_the_next_page_begins_is_behind_what_was_shown() -> None:
    rng = random.Random(11)
    async with served() as (client, _):
        for _ in range(60):
            sizes = [rng.choice([10, 900, 4000, 9000, 30_000]) for _ in range(rng.randint(1, 9))]
            calls: list[tuple[str, dict[str, Any]]] = [
                (rng.choice(["page_it", "list_it"]), {"size": size}) for size in sizes
            ]
            for name, arguments in calls:
                size_name = rng.choice(["max_bytes", "maxBytes"])
                arguments |= {size_name: 20_000} if name == "page_it" and rng.random() < 0.2 else {}
            _, said = await asked(client, *calls, max_bytes=(most := rng.choice([1000, 10_000, 20_000])))
            assert len(said) <= max(most, 1000 * len(calls)) + 100 * len(calls)
            for part, (name, _) in zip(("\n" + said).split("\n# ")[1:], calls, strict=True):
                if name == "page_it":
                    assert ", cut: " not in part and ", failed" not in part, part[:100]
                    assert "[next: " not in part or f"[next: {part.count('z' * 9)}]" in part, part[:100]


async def test_a_cut_answer_says_that_its_cursor_leads_past_what_was_cut() -> None:
    """A list without `max_bytes` names the cursor behind all that it had."""
    async with served() as (client, _):
        _, said = await asked(client, ("list_it", {"size": 3000}), max_bytes=1000)
    assert said.startswith("# 1 list_it, cut: 999 of 2,999 bytes; for more call it alone: a cursor in it skips")


async def test_pictures_stay_where_they_were() -> None:
    async with served() as (client, _):
        listed = [{"name": "show_it"}, {"name": "read_it", "arguments": {"size": 10}}]
        content = (await client.call_tool("call_tools", {"calls": listed})).content
    assert [part.type for part in content] == ["text", "image", "text"]


async def test_what_is_told_of_all_calls_never_goes_back() -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with served() as (client, _):
        listed = [{"name": "count_it", "arguments": {"to": to}} for to in (4, 2)]
        answer = await client.call_tool("call_tools", {"calls": listed}, progress_callback=hear)
    assert not answer.is_error and len(told) >= 2 and told == sorted(set(told))


def _count(params: dict[str, Any]) -> int:
    return count_calls(normalize_call(params))


def test_limits_count_each_call_in_whatever_form_it_is_sent() -> None:
    cases: list[tuple[Any, int]] = [
        ({"calls": [{}] * 3}, 3), ({"calls": [{}] * 90}, 20), ({"calls": []}, 1), ({"calls": 4}, 1), (None, 1), ([], 1),
        ({"calls": [{"a": {}, "b": {}}, {"name": "c"}]}, 3), ({"calls": {"a": {}, "b": None}}, 2),
        ({"calls": {str(number): {} for number in range(90)}}, 20), ({"Calls": {"a": {}, "b": {}}}, 2),
        ({"calls": '[{"a": {}}, {"b": {}, "c": {}}]'}, 3), ({"calls": ['{"a": {}, "b": {}}']}, 2), ({"calls": "x"}, 1),
    ]  # fmt: skip
    for (arguments, count), name in itertools.product(cases, ("call_tools", ["call_tools"])):
        for sent in (arguments, json.dumps(arguments)):
            call = {"name": name, "arguments": sent}
            for form in (
                call,
                {"name": "call_tool", "arguments": call},
                {"name": ["call_tool"], "arguments": json.dumps(call)},
                {"name": "call_tool", "arguments": {"name": name, "args": sent}},
                {"name": "call_tool", "arguments": {"name": name, **(arguments or {})}},
            ):
                assert _count(form) == count, form
    assert _count({"name": "read_it", "arguments": {"calls": [1, 2]}}) == 1 == _count({})


def test_a_call_has_one_form_whoever_reads_it() -> None:
    plain = {"name": "read_it", "arguments": {"size": 1}}
    inner: list[dict[str, Any]] = [
        plain,
        {"name": "read_it", "arguments": '{"size": 1}'},
        {"name": ["read_it"], "args": {"size": 1}},
        {"name": "read_it", "parameters": '{"size": 1}'},
        {"name": "read_it", "size": 1},
    ]
    for call in inner:
        for sent in (call, json.dumps(call)):
            assert normalize_call({"name": "call_tool", "arguments": sent}) == {"name": "call_tool", "arguments": plain}
            several = {"name": "call_tools", "arguments": {"calls": [sent]}}
            assert normalize_call(several) == {"name": "call_tools", "arguments": {"calls": [plain]}}
    # What can't be understood stays, for the check that refuses it.
    for odd in ("x", 4, [1], '{"a": 1, "a": 2}'):
        assert normalize_call({"name": "read_it", "arguments": odd}) == {"name": "read_it", "arguments": odd}
    deep: Any = {"calls": []}
    for _ in range(900):
        deep = {"name": "call_tool", "arguments": deep}
    assert _count({"name": "call_tool", "arguments": deep}) == 1


def _write_arguments(arguments: dict[str, Any]) -> list[Any]:
    """Return `arguments` in each form in which clients write them."""
    return [arguments, json.dumps(arguments)]


def _write_inner_calls(name: str, arguments: dict[str, Any]) -> list[Any]:
    """Return a call inside another in each form in which models write it."""
    calls: list[Any] = [{"name": name, **arguments}]
    for form in _write_arguments(arguments):
        calls.append({"name": [name], "arguments": form})
        calls += [{"name": name, key: form} for key in ("arguments", "args", "parameters", "params", "input")]
    return [*calls, *map(json.dumps, calls)]


def _write_calls(name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of every `tools/call` that calls this tool once, by itself or inside others."""
    inner = _write_inner_calls(name, arguments)
    short = [{name: form} for form in _write_arguments(arguments)]
    lists: list[Any] = []
    for call in [*inner, *short, *map(json.dumps, short)]:
        lists += [call, [call], json.dumps([call])]
    several = [{key: calls} for key in ("calls", "Calls", "CALLS") for calls in lists]
    written: list[dict[str, Any]] = []
    for form in _write_arguments(arguments):
        written += [{"name": name, "arguments": form}, {"name": [name], "arguments": form}]
    for call in inner:
        written.append({"name": "call_tool", "arguments": call})
    for calls in several:
        for form in _write_arguments(calls):
            written.append({"name": "call_tools", "arguments": form})
            written.append({"name": "call_tool", "arguments": {"name": "call_tools", "arguments": form}})
    return written


WRITTEN = _write_calls("say_it", {"word": "a"})


async def test_no_form_of_a_call_passes_a_gate_that_another_meets(tmp_path: Path) -> None:
    """Every way to write a call, at every gate: the count, the scope, the tool that runs and the line of the audit."""
    assert len(WRITTEN) > 300
    audit = tmp_path / "audit"
    async with served(audit=audit) as (client, room):
        scopes = Scopes(lambda: room.tools, resolve={"speak_it": "say_it"}.get)
        for params in WRITTEN:
            assert _count(params) == 1, params
            assert scopes.missing(["read"], "tools/call", params) == "write", params
            assert scopes.missing(["write"], "tools/call", params) is None, params
        for params in _write_calls("speak_it", {"word": "a"}):
            assert scopes.missing(["read"], "tools/call", params) == "write", params
        # `call_tool` is only there where tools are found by searching; the tests of `mount` call it.
        served_calls = [params for params in WRITTEN if params["name"] in ("say_it", ["say_it"], "call_tools")]
        for params in served_calls:
            request = Request[dict[str, Any], str](method="tools/call", params=params)
            answer = await client.session.send_request(request, CallToolResult)
            assert not answer.is_error and room.said == ["a"], (params, answer.content)
            room.said.clear()
    lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    said = [line for line in lines if line["name"] == "say_it"]
    assert len(said) == len(served_calls) and all(line["arguments"] == ["word"] for line in said)


async def test_no_form_of_a_script_passes_a_gate_that_another_meets() -> None:
    """A script that makes changes counts as a full list, and needs all scopes; a list of calls runs none."""
    async with served("default") as (client, room):
        scopes = Scopes(lambda: room.tools)
        for params in _write_calls("run_script", {"script": "say_it({word: 'a'})"}):
            is_in_list = "calls" in json.dumps(params).lower()
            assert scopes.missing(["read"], "tools/call", params) == "destroy", params
            assert scopes.missing(["destroy"], "tools/call", params) is None, params
            if not is_in_list:
                assert _count(params) == MAX_CALLS, params
                assert scopes.missing(["run_script.destroy", "read"], "tools/call", params) == "destroy", params
            if params["name"] == "call_tools":
                request = Request[dict[str, Any], str](method="tools/call", params=params)
                answer = await client.session.send_request(request, CallToolResult)
                assert answer.is_error and not room.said, (params, answer.content)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_script_makes_no_change_that_the_user_is_to_be_asked_about_first(mode: Any) -> None:
    script = "say_it({word: 'a'}); try { forget_it() } catch (error) { print(error) } say_it({word: 'b'})"
    async with served("default", mode=mode, confirm=True) as (client, room):
        answer = await client.call_tool("run_script", {"script": script})
        assert not answer.is_error
        said = answer.content[0].model_dump()["text"]
        if mode == "legacy":
            assert room.said == ["b"], said
        else:
            assert room.said == ["a", "b"], said
            assert "forget_it: It asks the user something first. Nothing was done. Call it alone." in said


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([{"name": "say_it", "arguments": {"word": "a"}}, {"say_it": {"word": "b"}}], ["a", "b"]),
        ([{"say_it": {"word": "a"}, "forget_it": None, "read_it": {}}], []),
        ({"say_it": {"word": "a"}, "read_it": {}}, ["a"]),
        ({"name": "say_it", "arguments": {"word": "a"}}, ["a"]),
        ([{"name": "forget_it"}], []),
        ('[{"say_it": {"word": "a"}}, {"say_it": {"word": "b"}}]', ["a", "b"]),
        (['{"say_it": {"word": "a"}, "read_it": {}}'], ["a"]),
        ([{"say_it": '{"word": "a"}'}, {"name": "say_it", "arguments": '{"word": "b"}'}], ["a", "b"]),
    ],
)
async def test_calls_are_understood_as_models_write_them(calls: Any, said: list[str]) -> None:
    async with served() as (client, room):
        answer = await client.call_tool("call_tools", {"calls": calls})
    assert not answer.is_error and room.said == said, answer.content


_FORM = '. Write `calls` as `[{"TOOL": {ARGUMENTS}}, ...]`.'
_NO_CALLS: list[tuple[Any, str]] = [
    ([{}], f"names no tool{_FORM}"),
    ([{"tool": "say_it", "args": {"word": "a"}}], f'`calls[0].tool` must be an object, not `"say_it"`{_FORM}'),
    ([{"tool_name": "say_it", "arguments": {}}], f'`calls[0].tool_name` must be an object, not `"say_it"`{_FORM}'),
    (["say_it"], f'`calls[0]` must be an object, not `"say_it"`{_FORM}'),
    ([["say_it", {"word": "a"}]], f"`calls[0]` must be an object, not an array{_FORM}"),
    ([], "Neither `calls` nor `script` says anything"),
    ([{"say_it": {"word": "a"}}, {"call_tools": {"calls": []}}], "not itself"),
    ([{"say_it": {"word": "a"}}, {"say_it": "b"}], "`calls[1].say_it` must be an object"),
    (
        [{"say_it": {"word": "a"}}, {"name": "say_it", "arguments": {"word": "b"}, "x": 1}],
        "`calls[1].name` must be an object",
    ),
    ([{"say_it": {"word": str(number)}} for number in range(11)] * 2, "1 to 20 items"),
    ({f"say_{number}": {} for number in range(21)}, "1 to 20 items"),
    (json.dumps({f"say_{number}": {} for number in range(21)}), "1 to 20 items"),
    ([json.dumps({f"say_{number}": {} for number in range(21)})], "1 to 20 items"),
    ('{"say_it": {"word": "a"}, "say_it": {"word": "b"}}', "has `say_it` twice. Give each an object of its own."),
    ('[{"say_it": {"word": "a"}}, {"say_it": {"word": "b", "word": "c"}}]', "has `word` twice"),
    (['{"say_it": {"word": "a"}, "say_it": {"word": "b"}}'], "has `say_it` twice"),
    ([{"say_it": {"word": "a"}}, {"say_it": '{"word": "b", "word": "c"}'}], "`calls[1].say_it` must be an object"),
]


@pytest.mark.parametrize(("calls", "why"), _NO_CALLS)
async def test_what_is_no_list_of_calls_does_nothing(calls: Any, why: str) -> None:
    async with served() as (client, room):
        answer = await client.call_tool("call_tools", {"calls": calls})
    (block,) = answer.content
    assert answer.is_error and room.said == [] and isinstance(block, TextContent) and why in block.text, answer.content


async def test_the_list_under_another_spelling_is_no_way_around_its_length() -> None:
    async with served() as (client, room):
        answer = await client.call_tool("call_tools", {"Calls": {f"say_{number}": {} for number in range(21)}})
        both = await client.call_tool("call_tools", {"Calls": [{"say_it": {"word": "a"}}], "calls": [{"read_it": {}}]})
    assert answer.is_error and "1 to 20 items" in str(answer.content)
    assert both.is_error and room.said == []
