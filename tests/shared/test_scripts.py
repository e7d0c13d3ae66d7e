"""Scripts that make calls: what they can do, what they can't, and what their answer has to say."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp import Client
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.shared.exceptions import MCPError
from mcp_types import ImageContent, TextContent

from mcp_batteries.errors import Invalid
from mcp_batteries.scripts import runner
from mcp_batteries.scripts.next_page import next_page_arguments
from mcp_batteries.scripts.runner import FunctionFailed, Outcome, ReadList, run_script
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import assemble
from mcp_batteries.server.calling import call_tools, script_calls
from mcp_batteries.server.calling.call_params import MAX_CALLS, count_calls, normalize_call
from mcp_batteries.server.calling.results import group_by_folder
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.server.declaration.fields import Limit
from mcp_batteries.settings import load
from mcp_batteries.transports.http.auth.scopes import Scopes
from mcp_fs.server import build
from mcp_fs.settings import Settings

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


class _LoopWithoutProcesses(asyncio.SelectorEventLoop):
    """As the loop of this name is on Windows."""

    async def subprocess_exec(self, *arguments: Any, **options: Any) -> Any:
        raise NotImplementedError


class Room:
    def __init__(self) -> None:
        self.said: list[str] = []

    @tool("Get price")
    async def get_price(self, fruit: str) -> str:
        """Get what a fruit costs."""
        prices = {"apple": "[of today]\n2", "pear": "[of today]\n3"}
        if fruit not in prices:
            raise Invalid(f"There is no `{fruit}`.", "Ask for an apple.")
        return prices[fruit]

    @tool("List rows")
    async def list_rows(self, max_bytes: int = 100, cursor: str = "") -> str:
        """List as many rows as fit."""
        shown = min(max_bytes, 300) // 10
        if cursor or shown == 30:
            return "[30 rows]\n" + "row\n" * 30
        return f'[{shown} of 30 rows; continue with cursor="x"]\n' + "row\n" * shown

    @tool("Query rows")
    async def query_rows(self) -> str:
        """Query more than is kept."""
        return '[2 rows; not the end of the result: too large; ask for less]\n["n"]\n[1]\n[2]\n'

    @tool("Count rows", effect="read", adapt=rename_arguments(max_rows="limit"))
    async def count_rows(self, limit: Limit = 10, cursor: str = "") -> str:
        """Tell how many rows were wanted."""
        return str(limit)

    @tool("Count remote rows", effect="read", open_world=True)
    async def count_remote_rows(self, limit: Limit = 10, cursor: str = "") -> str:
        """Tell how many rows were wanted of a service."""
        return str(limit)

    @tool("Show dot")
    async def show_dot(self) -> list[TextContent | ImageContent]:
        """Show a picture."""
        return [TextContent(type="text", text="a dot"), ImageContent(type="image", data="AAAA", mime_type="image/png")]

    @tool("Say word", effect="write")
    async def say_word(self, word: str) -> str:
        """Say a word, but not no."""
        if word == "no":
            raise Invalid("`no` is not said.", "Say yes.")
        if word == "wait":
            await anyio.sleep_forever()
        self.said.append(word)
        return f"said {word}"


class Served(AsyncExitStack):
    """A server of one room, and its client."""

    def __init__(
        self,
        *,
        tools: Sequence[str] = ("default",),
        exclude_tools: Sequence[str] = (),
        read_only: bool = False,
        audit: Path | None = None,
        scopes: list[str] | None = None,
    ) -> None:
        super().__init__()
        self.room = Room()
        settings: Any = SimpleNamespace(
            read_only=read_only, confirm=False, audit_file=audit and str(audit), max_streams=9, telemetry=False,
            bus=None, state_key_file=None, tools=tools, exclude_tools=exclude_tools,
        )  # fmt: skip
        self.server = assemble("toy", settings, rooms=[self.room], title="Toy", version="1", instructions="")
        self.user = None
        if scopes is not None:  # as over HTTP, where the rules stand between
            self.server.middleware.append(Scopes(lambda: tool_table(self.server)))
            self.user = AuthenticatedUser(AccessToken(token="t", client_id="ann", scopes=scopes))

    async def __aenter__(self) -> "Served":
        before = auth_context_var.set(self.user)
        self.callback(auth_context_var.reset, before)
        self.client = await self.enter_async_context(Client(self.server))
        return self

    async def run(self, script: str, **more: Any) -> str:
        failed, text = await self.try_to_run(script, **more)
        assert not failed, text
        return text

    async def try_to_run(self, script: str, **more: Any) -> tuple[bool, str]:
        answer = await self.client.call_tool("call_tools", {"script": script, **more})
        block = answer.content[0]
        assert isinstance(block, TextContent)
        return bool(answer.is_error), block.text.rstrip("\n")


async def echo(name: str, arguments: Mapping[str, Any]) -> str:
    if name == "fail":
        raise FunctionFailed("it does")
    return json.dumps(arguments)


async def seconds_to_begin() -> float:
    """Return after which time a script has begun, also on a busy machine."""
    began = time.monotonic()
    await run_alone("return 1")
    return 1 + 4 * (time.monotonic() - began)


async def run_alone(script: str, seconds: float = 60) -> Outcome:
    return await run_script(script, ["echo", "fail"], echo, seconds)


async def test_a_call_uses_the_answer_of_another_and_only_what_is_printed_comes_back() -> None:
    async with Served() as served:
        script = """
            let sum = 0;
            for (const fruit of ["apple", "pear"]) sum += Number(await get_price({fruit}));
            print("sum", sum, remark, {more: [1, null]});
            return tools.show_dot();
        """
        assert await served.run(script) == 'sum 5 [of today] {"more":[1,null]}\na dot'


async def test_each_call_takes_the_way_of_every_other(tmp_path: Path) -> None:
    async with Served(audit=tmp_path / "audit") as served:
        await served.try_to_run("get_price({fruit: 'apple'}); get_price({fruit: 'nut'})")
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text("utf-8").splitlines()]
    assert [(line["name"], line["outcome"]) for line in lines] == [
        ("get_price", "ok"), ("get_price", "error"), ("call_tools", "error"),
    ]  # fmt: skip


async def test_it_changes_nothing_unless_the_operator_names_the_tool() -> None:
    script = "print('before'); say_word({word: 'a'}); print('after')"
    async with Served() as served:
        failed, text = await served.try_to_run(script)
        assert failed and not served.room.said
        reason = "say_word: it changes things, so call it by itself, or in `run_script`"
        assert text == f"[the script failed after 0 calls: line 1: Error: {reason}]\nbefore"
    async with Served(tools=("default", "call_tools")) as served:
        note = "[calls that could change something: 2 say_word]"
        assert await served.run(f"{script}; say_word({{word: 'b'}})") == f"{note}\nbefore\nafter"
        assert served.room.said == ["a", "b"]
        failed, text = await served.try_to_run("say_word({word: 'c'}); get_price({fruit: 'nut'})")
        assert failed and text.endswith(
            "[calls that could change something: 1 say_word]\n"
            "[made already, so leave them out of the next script:\nsaid c]"
        )


async def test_scripts_that_make_changes_have_a_tool_of_their_own(tmp_path: Path) -> None:
    script = "print(say_word({word: get_price({fruit: 'apple'})}))"
    async with Served(audit=tmp_path / "audit") as served:
        answer = await served.client.call_tool("run_script", {"script": script})
        assert not answer.is_error and served.room.said == ["2"]
        # What it printed is not told again, if that is all.
        assert answer.content[0].model_dump()["text"] == "said 2\n"
        answer = await served.client.call_tool("run_script", {"script": f"{script}; say_word({{word: 'b'}})"})
        note = "[calls that could change something: 2 say_word]"
        assert answer.content[0].model_dump()["text"] == f"{note}\nsaid 2\n"
        found = {item.name: item.annotations for item in (await served.client.list_tools()).tools}
    assert list(found)[:2] == ["call_tools", "run_script"]
    assert found["call_tools"] and found["call_tools"].read_only_hint
    hints = found["run_script"]
    # No tool of this room replaces or removes anything.
    assert hints and (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (False, False, False)
    lines = [json.loads(line) for line in (tmp_path / "audit").read_text("utf-8").splitlines()]
    assert [line["name"] for line in lines] == [
        "get_price", "say_word", "run_script", "get_price", "say_word", "say_word", "run_script",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tools": ("default", "call_tools")}, "`call_tools` runs all scripts here"),
        ({"tools": ("say_word", "run_script", "call_tools")}, "`call_tools` runs all scripts here"),
        ({"tools": ("default", "call_tools"), "exclude_tools": ("run_script",)}, "`call_tools` runs all scripts here"),
        ({"read_only": True}, "`--read-only`"),
        ({"exclude_tools": ("say_word",)}, "No tool here changes something"),
        ({"exclude_tools": ("run_script",)}, "`--exclude-tools`"),
        ({"tools": ("get_price", "say_word")}, "`--tools get_price,say_word,run_script`"),
    ],
)
async def test_no_script_makes_changes_where_none_could_or_should(options: dict[str, Any], reason: str) -> None:
    async with Served(**options) as served:
        assert "run_script" not in {item.name for item in (await served.client.list_tools()).tools}
        with pytest.raises(MCPError, match=re.escape(reason)):
            await served.client.call_tool("run_script", {"script": "1"})


@pytest.mark.parametrize("options", [{"exclude_tools": ("call_tools",)}, {"tools": ("say_word", "run_script")}])
async def test_a_tool_for_scripts_without_the_one_that_describes_them_does_so_itself(options: dict[str, Any]) -> None:
    async with Served(**options) as served:
        found = {item.name: item for item in (await served.client.list_tools()).tools}
        answer = await served.client.call_tool("run_script", {"script": "say_word({word: 'a'})"})
    assert not answer.is_error and served.room.said == ["a"]
    assert "call_tools" not in found
    words = f"{found['run_script'].description} {found['run_script'].input_schema}"
    assert "call_tools" not in words and "JavaScript" in words and "`.lines()`" in words


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("\n\nget_price({fruit: 'nut'})", "1 call: line 3: Error: get_price: There is no `nut`. Ask for an apple."),
        ("get_price({frut: 1})", "line 1: Error: get_price: `get_price` was not run: there is no argument `frut`"),
        ("get_price('apple')", "takes its arguments as one object: get_price({NAME: VALUE})"),
        ("get_prize({})", "get_prize is not defined]\n[did you mean get_price?]"),
        (
            "eat({})",
            "eat is not defined]\n[its functions are get_price, list_rows, query_rows, count_rows, "
            "count_remote_rows, show_dot and print]",
        ),
        ("call_tools({})", "call_tools is not defined"),
        ("let = ;", "[a script is JavaScript, the body of an asynchronous function]"),
        ("throw 'tea'", "0 calls: tea]"),
        ("\n\nJSON.parse('{]')", "0 calls: line 3: SyntaxError: Expected property name or '}' in JSON"),
        ("\nconst parse = () => JSON.parse('{]')\n\nparse()", "0 calls: line 2: SyntaxError"),
        ("await new Promise(() => {})", "it waits for a promise that nothing resolves"),
        ("const all = []; for (;;) all.push('x'.repeat(1e6))", "out of memory"),
        ("(function again() { again() })()", "Maximum call stack size exceeded"),
        ("[].forEach(undefined)", "line 1: TypeError: not a function"),
    ],
)
async def test_what_fails_is_told_with_its_line_and_the_next_call_works(script: str, reason: str) -> None:
    async with Served() as served:
        failed, text = await served.try_to_run(f"print('before'); {script}")
        assert failed and reason in text
        assert text.endswith("]\nbefore") or "let =" in script
        assert ("the body of an asynchronous function" in text) == ("let =" in script)
        assert await served.run("return 1") == "1"


async def test_the_call_that_is_one_too_many_ends_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_calls, "MAX_SCRIPT_CALLS", 30)
    monkeypatch.setattr(script_calls, "MAX_SERVICE_CALLS", 20)
    loop = "for (let n = 1; ; n++) try { CALL; print(n) } catch { }"
    async with Served() as served:
        for call, count in [("get_price({fruit: 'apple'})", 30), ("count_remote_rows()", 20)]:
            failed, text = await served.try_to_run(loop.replace("CALL", call))
            reason = f"the script failed after {count} calls: it may make no more calls"
            assert failed and text.startswith(f"[{reason}; search, or name several in one call")
            assert text.splitlines()[1:] == [f"{number}" for number in range(1, count + 1)]


async def test_a_failure_can_be_caught() -> None:
    script = "try { get_price({fruit: 'nut'}) } catch (error) { return error.message }"
    async with Served() as served:
        message = "get_price: There is no `nut`. Ask for an apple."
        assert await served.run(script) == f"[1 of 1 calls failed]\n{message}"


@pytest.mark.reported("bellard/quickjs#395")
@pytest.mark.parametrize("reason", ["get_price: There is no `nut`. Ask for an apple.", "undefined"])
@pytest.mark.parametrize(
    "script",
    [
        "[1].forEach(async () => { FAIL })",
        "[1].forEach(async () => { for (let n = 0; n < 9; n++) await n; [2].forEach(async () => { await 0; FAIL }) })",
        "(async () => { FAIL })();",
        "(async () => {\n  print('a');\n  FAIL\n})()\n  .then(print);\n",
        "async function main() { FAIL } main()",
        "const main = async () => {\n  FAIL\n}\n\nmain();",
        "async function main() { FAIL }\nmain();\nprint('finished')",
        "async function one() {}\nasync function two() { FAIL }\none(); two(); one()",
    ],
)
async def test_a_failure_in_a_promise_that_nobody_waits_for_is_told(script: str, reason: str) -> None:
    failure = "undefined.x" if reason == "undefined" else "get_price({fruit: 'nut'})"
    async with Served() as served:
        failed, text = await served.try_to_run(script.replace("FAIL", failure))
        assert failed and reason in text and "line " in text


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("const f = async () => 3;\nconst sum = 1\n + await f()\nprint(sum)", "4"),
        ("const f = async () => print(1);\nif (false)\n  f()\nelse\n  await f();", "1"),
        ("const f = async () => print(1);\n// f() is not called; f()\nprint(2)", "2"),
        ("const f = async () => 1, all = [\nf()]\nprint((await Promise.all(all)).length)", "1"),
        ("const text = `async\nprint(1)`;\nreturn text", "async\nprint(1)"),
        ("print(1) // async\n;[2].forEach(print)", "1\n2 0 [2]"),
        ("async function f() { return 5 }\nf()", "[the script printed nothing]"),
        ("async function f() { return 5 }\nprint(await Promise.allSettled([1].map(f)).then((all) => all.length))", "1"),
    ],
)
async def test_a_script_that_is_waited_for_to_its_end_means_the_same(script: str, printed: str) -> None:
    async with Served() as served:
        assert await served.run(script) == printed


async def test_pages_are_long_and_what_is_missing_all_the_same_is_told() -> None:
    async with Served() as served:
        assert await served.run("return list_rows({}).trim().split('\\n').length") == "30"
        cut = "[not all is in what list_rows returned, as `remark` or a cursor in it says]\n10"
        assert await served.run("return list_rows({max_bytes: 100}).trim().split('\\n').length") == cut
        script = """
            list_rows({max_bytes: 100});
            const cursor = /cursor="(.*?)"/.exec(remark)[1];
            return list_rows({cursor}).trim().split("\\n").length;
        """
        assert await served.run(script) == "30"


async def test_a_name_like_a_cursor_asks_for_no_page(tmp_path: Path) -> None:
    folder = tmp_path / "cursor=9"
    folder.mkdir()
    for name in ("start_line=1", "b"):
        (folder / name).write_text("text\n")
    script = """
        print(list_directory.all({path: "cursor=9"}).length);
        print(list_directory.all({path: "cursor=9", limit: 1}).length);
        return read_files({paths: ["cursor=9/start_line=1"]}).lines().length;
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    lists = "[read whole: list_directory 4 lines in 2 calls]"
    assert answer.content[0].text == f"{lists}\n2\n2\n2\n"


async def test_pages_that_no_call_asked_for_are_told(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("".join(f"{number}\n" for number in range(200_000)))
    (tmp_path / "quotes").write_text('[cursor="x"]\n[truncated]\n{"cursor":"x"}\n')
    (tmp_path / "ends").write_text("a\n\n\n")
    cases = [
        ("return read_text({path: 'numbers'}).length > 900000", "read_text", "true"),
        ("return read_files({paths: ['ends', 'numbers']}).length > 90000", "read_files", "true"),
        ("return search_text({pattern: '7', path: 'numbers'}).lines().length", "search_text", "5000"),
        # Who asked for less than a page knows that there may be more.
        ("return search_text({pattern: '7', path: 'numbers', max_per_file: 3}).lines().length", "", "3"),
        ("return search_text({pattern: '7', path: 'numbers', max_per_file: 30}).lines().length", "search_text", "30"),
        ("return find_files({pattern: '*', limit: 1, cursor: ''})", "", "ends"),
        ("return read_text({path: 'numbers', max_bytes: 100}).length < 101", "", "true"),
        ("return read_text({path: 'numbers', end_line: 3}).lines().length", "", "3"),
        ("return read_text({path: 'numbers', head: 3}).lines().length", "", "3"),
        ("return read_text({path: 'numbers', end_line: 199999}).length > 900000", "read_text", "true"),
        # A file may look like that.
        ("return read_text({path: 'quotes'}).trim().split('\\n').length", "", "3"),
        ("return read_text({path: 'ends'}).split('\\n').length", "", "4"),
        (
            """
            let lines = 0, start_line = 1;
            while (start_line) {
                lines += read_text({path: "numbers", start_line}).split("\\n").length - 1;
                start_line = Number(/start_line=(\\d+)/.exec(remark)?.[1]);
            }
            return lines;
            """,
            "",
            "200000",
        ),
    ]
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        for script, cut, output in cases:
            answer = await client.call_tool("call_tools", {"script": script})
            assert isinstance(answer.content[0], TextContent)
            text = answer.content[0].text
            assert (f"[not all is in what {cut} returned" in text) == bool(cut), text
            assert output in text.splitlines()


async def test_the_first_line_of_what_a_change_answers_stays_in_its_text(tmp_path: Path) -> None:
    script = """
        for (const path of ["a", "b"]) write_file({path, content: "\u00e9x "});
        print(replace_text({glob: "none", replacements: {x: "y"}}), find_files({glob: "none"}).lines());
        const report = replace_text({glob: "?", encoding: "cp1252"});
        print(report.lines()[0] === report.remark, report.slice(0, 33));
        print(replace_text.all({glob: "?", replacements: {x: "y"}, by: "regex"}));
        return delete_file({paths: ["a", "b"]}) === remark;
    """
    async with Client(build(load(Settings, [str(tmp_path), "--tools=default,call_tools"]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    # What the script printed follows what is told of it.
    lines = answer.content[0].text.splitlines()[2:]
    assert lines == [
        "[replaced 0 places in 0 files; 0 files looked at] []",
        "true [converted 2 of 2 files to cp1252",
        '["a:1:\u00e9[-x-]{+y+} ","b:1:\u00e9[-x-]{+y+} "]',
        "true",
    ]


async def test_an_answer_that_is_printed_as_it_came_has_its_first_line() -> None:
    async with Served() as served:
        script = """
            const apple = get_price({fruit: "apple"});
            const pear = get_price({fruit: "pear"});
            print(apple, pear, [apple], `${apple}!`, apple.remark, "3!".remark === "");
        """
        assert (await served.run(script)).splitlines() == [
            *(".remark: [of today]", "2", ".remark: [of today]", "3"),
            '["2"] 2! [of today] true',
        ]


async def test_the_first_line_of_an_answer_is_printed_once_and_without_its_cursor() -> None:
    async with Served() as served:
        script = 'const apple = get_price({fruit: "apple"}); print(apple.remark, apple); print(apple)'
        assert await served.run(script) == "[of today] 2\n.remark: [of today]\n2"
        script = "const rows = list_rows({max_bytes: 10}); print(rows.remark.includes('cursor')); print(rows)"
        assert await served.run(script) == "true\n.remark: [1 of 30 rows; .all() has more]\nrow"


async def test_a_first_line_of_one_word_tells_nothing_of_an_answer_that_is_printed() -> None:
    async def answer(name: str, arguments: Mapping[str, Any]) -> str:
        return f"[{name}]\na\n"

    outcome = await run_script("print(list_refs(), list_refs().remark)", ["list_refs"], answer, 60)
    assert outcome.output == "a\n[list_refs]\n"


async def test_printed_objects_of_one_form_are_rows_that_name_their_fields_once() -> None:
    cases = [
        (
            "[{a: 1, b: 'x'}, {a: 2, b: null}, {a: [3], b: new Error('no')}]",
            '["a","b"]\n[1,"x"]\n[2,null]\n[[3],"Error: no"]\n',
        ),
        ("[{a: 1, b: 2}, {a: 3, b: 4}]", '[{"a":1,"b":2},{"a":3,"b":4}]\n'),
        ("[{a: 1}, {a: 2}, {a: 3}]", '[{"a":1},{"a":2},{"a":3}]\n'),
        ("[{a: 1, b: 2}, {b: 3, a: 4}, {a: 5, b: 6}]", '["a","b"]\n[1,2]\n[4,3]\n[5,6]\n'),
        ("[{a: 1, b: 2}, {a: 4, c: 3}, {a: 5, b: 6}]", '[{"a":1,"b":2},{"a":4,"c":3},{"a":5,"b":6}]\n'),
        ("[[1, 2], [3, 4], [5, 6]]", "[[1,2],[3,4],[5,6]]\n"),
        ("[{a: 1, b: 2}, null, {a: 5, b: 6}]", '[{"a":1,"b":2},null,{"a":5,"b":6}]\n'),
        # What an object has no member for is no empty cell.
        ("[{a: 1, b: {}.c}, {a: 2, b: null}, {a: 3, b: 4}]", '["a","b"]\n[1,"undefined"]\n[2,null]\n[3,4]\n'),
    ]
    for value, output in cases:
        assert (await run_alone(f"print({value})")).output == output


async def test_printed_lines_are_a_line_each_below_their_folder() -> None:
    many = [f"folder-of-files/{number}.txt" for number in range(4)]
    cases = [
        ("['a', 'b b', '[c]\\t1']", "a\nb b\n[c]\t1\n"),
        ("1, ['a', 'b', 'c'], 2", "1\na\nb\nc\n2\n"),
        (json.dumps(many), "folder-of-files/\n 0.txt\n 1.txt\n 2.txt\n 3.txt\n"),
        (
            json.dumps([f"created {path}" for path in many[:3]]),
            "created folder-of-files/\n 0.txt\n 1.txt\n 2.txt\n",
        ),
        (json.dumps(["a/1", "a/2", "http://x/y"]), "a/1\na/2\nhttp://x/y\n"),
        (
            json.dumps(["folders-of-a/folder/", *(f"folders-of-a/folder/{name}" for name in "abc")]),
            "folders-of-a/folder/\nfolders-of-a/folder/\n a\n b\n c\n",
        ),
        # A line of the script's own, which it may hand on as it stands.
        (json.dumps([f"{path} ../x.html" for path in many]), "".join(f"{path} ../x.html\n" for path in many)),
        ("Array(30).fill('// comment')", "// comment\n" * 30),
        # What lines can't show.
        ("['a', 'b']", '["a","b"]\n'),
        ("['a', 'b', 'c ']", '["a","b","c "]\n'),
        ("['a', 'b', 'c\\t\\t']", "a\nb\nc\t\t\n"),
        ("['a', 'b', '']", '["a","b",""]\n'),
        ("['a', 'b', 'c\\nd']", '["a","b","c\\nd"]\n'),
    ]
    for value, output in cases:
        assert (await run_alone(f"print({value})")).output == output


async def test_a_printed_answer_is_as_a_model_reads_it_and_the_script_has_whole_lines(tmp_path: Path) -> None:
    folder = tmp_path / "a-folder-with-a-name"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number:02}").write_text("word\n")
        os.utime(folder / f"{number:02}", (0, 0))
    script = """
        const list = list_directory({path: "a-folder-with-a-name"});
        print(list);
        print(list.lines()[0]);
        print(search_text({pattern: "word", max_per_file: 1}));
        print(search_text({pattern: "word", path: "a-folder-with-a-name/00"}));
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    lines = answer.content[0].text.splitlines()
    head = ".remark: [a-folder-with-a-name: 20 entries; all changed 1970-01-01T00:00:00Z; each of `.lines()` is whole]"
    assert lines[:2] == [head, "00\t5"]
    assert lines[21:24] == [
        "a-folder-with-a-name/00\t5\t1970-01-01T00:00:00Z\t",
        ".remark: [20 matches in 20 files; each of `.lines()` is whole]",
        "a-folder-with-a-name/",
    ]
    assert lines[-2:] == [".remark: [1 match in 1 file]", "a-folder-with-a-name/00:1:word"]


class _Names:
    def text(self) -> str:
        names = [("", f"a-folder-with-a-long-name/{number}", ()) for number in range(20)]
        return "\n".join(["[20 names]", *group_by_folder(names)])


class NamesRoom:
    @tool("List names", effect="read")
    async def list_names(self) -> _Names:
        """List names."""
        return _Names()


async def test_what_stands_around_tools_adds_to_an_answer_is_printed_too() -> None:
    async def add_note(ctx: Any, call_next: Any) -> Any:
        result = await call_next(ctx)
        if ctx.params and ctx.params.get("name") == "list_names":
            return {**result, "content": [*result["content"], {"type": "text", "text": "some are hidden"}]}
        return result

    settings: Any = SimpleNamespace(
        read_only=False, confirm=False, audit_file=None, max_streams=9, telemetry=False, bus=None, state_key_file=None,
        tools=("default",), exclude_tools=(),
    )  # fmt: skip
    server = assemble("toy", settings, rooms=[NamesRoom()], title="Toy", version="1", instructions="")
    server.middleware.append(add_note)
    async with Client(server) as client:
        answer = await client.call_tool("call_tools", {"script": "print(list_names())"})
    assert answer.content[0].model_dump()["text"].endswith("/19\nsome are hidden\n")


async def test_a_file_that_was_read_whole_is_printed_without_a_line_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "whole").write_text("one\ntwo\n")
    (tmp_path / "one").write_text("one")
    (tmp_path / "long").write_text("x" * 2000)
    script = """
        print(read_text({path: "whole"}));
        print(read_text({path: "whole", head: 1}));
        print(read_text({path: "one"}));
        const cut = read_text({path: "long", max_bytes: 1000});
        if (cut.lines().length === 1) print(cut);
        print(read_text({path: "whole"}), read_text({path: "whole"}), ["x", "y", "z"], "");
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    assert answer.content[0].text.splitlines() == [
        "one",
        "two",
        ".remark: [line 1 of 2]",
        "one",
        ".remark: [line 1 of 1, no line end at the end]",
        "one",
        ".remark: [line 1 of 1; line 1 is cut: its rest is at start_line=1, start_column=1001]",
        "x" * 1000,
        *["one", "two"] * 2,
        *"xyz",
    ]


async def test_a_script_that_failed_says_what_it_changed_and_no_dry_run(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}").write_text("one\n")
    script = """
        edit_file({path: "00", edits: [{old_text: "one", new_text: "no"}], dry_run: true});
        print(write_file({path: "new", content: "x"}));
        for (const path of find_files.all({glob: "[0-9][0-9]"}))
            edit_file({path, edits: [{old_text: "one", new_text: "two"}]});
        throw new Error("unexpected");
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("run_script", {"script": script})
    assert isinstance(answer.content[0], TextContent) and answer.is_error
    first_line, *lines = answer.content[0].text.splitlines()
    assert first_line.startswith("[the script failed after 33 calls: line 6: Error: unexpected; the last call was edit")
    assert lines[:3] == [
        "[calls that could change something: 1 write_file, 30 edit_file]",
        "[made already, so leave them out of the next script, and what the output below tells:",
        "edited 00, line 1 (+1 -1)",
    ]
    assert lines[7:9] == ["(5 between them)", "edited 10, line 1 (+1 -1)"]
    assert lines[-2:] == ["edited 29, line 1 (+1 -1)]", "created new, 1 bytes"]


async def test_a_script_that_failed_by_itself_says_what_it_read_last() -> None:
    async with Served() as served:
        script = "for (const fruit of ['apple', 'pear']) if (get_price({fruit}) === '3') null.x"
        _, text = await served.try_to_run(script)
        assert text.endswith('of null; the last call was get_price({"fruit": "pear"})]')
        _, text = await served.try_to_run("try { get_price({fruit: 'x'.repeat(500)}) } catch {} throw 'tea'")
        assert text.endswith(f"""tea; the last call was get_price({{"fruit": "{"x" * 109}...)]""")
        _, text = await served.try_to_run("list_rows({cursor: 'abc'}); throw 'tea'")
        assert text.endswith("tea; the last call was list_rows({})]")
        _, text = await served.try_to_run("try { get_price({fruit: '\\ud800'}) } catch {} throw 'tea'")
        assert text.endswith('tea; the last call was get_price({"fruit": "\ufffd"})]')
        _, text = await served.try_to_run("throw 'tea'")
        assert text == "[the script failed after 0 calls: tea]"


async def test_a_script_that_failed_before_its_first_change_says_so() -> None:
    async with Served(tools=("default", "call_tools")) as served:
        _, text = await served.try_to_run("get_price({fruit: 'pear'}); throw 'tea'")
    assert text.splitlines()[1:] == ["[nothing was changed]"]


async def test_of_changes_that_are_told_alike_a_script_that_failed_says_the_calls() -> None:
    async with Served(tools=("default", "call_tools")) as served:
        script = "say_word({word: 'a\\nb'}); print(say_word({word: 'a\\nc'})); throw 'tea'"
        _, text = await served.try_to_run(script)
    # Either of the two could be the one that was printed.
    assert text.splitlines()[1:] == [
        "[calls that could change something: 2 say_word]",
        "[made already, so leave them out of the next script:",
        r'say_word({"word": "a\nb"})',
        r'say_word({"word": "a\nc"})]',
        "said a",
        "c",
    ]


async def test_a_failed_change_that_ended_the_script_is_told_once() -> None:
    async with Served(tools=("default", "call_tools")) as served:
        _, text = await served.try_to_run("say_word({word: 'no'})")
        assert text == "[the script failed after 1 call: line 1: Error: say_word: `no` is not said. Say yes.]"
        _, text = await served.try_to_run("try { say_word({word: 'no'}) } catch {} say_word({word: 'no'})")
        assert text.endswith("\n[calls that could change something: 1 say_word failed]")


async def test_answers_of_one_text_are_not_printed_with_the_first_line_of_another(tmp_path: Path) -> None:
    (tmp_path / "long").write_text("one\ntwo\nthree\n")
    (tmp_path / "short").write_text("one\ntwo\n")
    (tmp_path / "other").write_text("three\n")
    (tmp_path / "longest").write_text("one\ntwo\nthree\nfour\n")
    script = """
        const short = read_text({path: "short"});
        const long = read_text({path: "long", head: 2});
        print(short);
        read_text({path: "short"});
        read_text({path: "long", head: 2});
        print(read_text({path: "longest", head: 2}));
        for (const path of ["long", "short"]) print(read_text({path, head: 2}));
        return read_text({path: "other"});
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    assert [line.partition(",")[0] for line in answer.content[0].text.splitlines() if line.startswith(".remark")] == [
        ".remark: [lines 1-2 of 2] or [lines 1-2 of 3]",
        ".remark: [several answers had this text",
        ".remark: [lines 1-2 of 3]",
    ]


async def test_files_that_differ_behind_the_lines_that_were_read_are_told_alike(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"same\n{name}\n")
    script = """
        const texts = ["a", "b"].map((path) => read_text({path, head: 1}));
        print(texts[0]);
        print(texts[1], texts[1].remark);
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    lines = answer.content[0].text.splitlines()
    assert lines[:4] == [".remark: [line 1 of 2]", "same", ".remark: [line 1 of 2]", "same"]
    assert lines[4] == "[line 1 of 2]"


async def test_an_empty_text_is_printed_with_the_first_line_of_the_last_answer_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("word\n")
    script = """
        print(search_text({pattern: "none"}));
        print("");
        print(1, "");
        read_text({path: "a"});
        print("");
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    assert re.fullmatch(r"\.remark: \[0 files match[^\n]*\]\n\n1 \n\n", answer.content[0].text), answer.content[0].text


async def test_an_answer_without_a_text_keeps_its_first_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("word\n")
    script = """
        const found = search_text({pattern: "none"});
        print("fresh", found.remark);
        print(found);
        read_text({path: "a"});
        print("later", found.remark);
        print("again", find_files({glob: "none"}).remark);
        read_text({path: "a"});
        print("of both", found.remark);
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    lines = [re.sub(r";[^\]]*", "", line) for line in answer.content[0].text.splitlines()]
    assert lines == [
        "fresh [0 files match]",
        "",
        "later [0 files match]",
        "again [0 found]",
        "of both [0 files match] or [0 found]",
    ]


async def test_what_a_script_reads_it_can_write_back(tmp_path: Path) -> None:
    contents = {"none": "a\r\nb", "one": "a\n", "two": "a\n\n", "empty": ""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode())
    script = """
        for (const path of find_files.all({glob: "*"}))
            write_file({path: `copies/${path}`, content: read_text({path})});
    """
    async with Client(build(load(Settings, [str(tmp_path), "--tools=default,call_tools"]))) as client:
        await client.call_tool("call_tools", {"script": script})
    assert {name: (tmp_path / "copies" / name).read_bytes().decode() for name in contents} == contents


async def test_a_remark_is_of_the_last_call() -> None:
    async with Served() as served:
        script = "get_price({fruit: 'apple'}); try { get_price({fruit: 'nut'}) } catch {} return `<${remark}>`"
        assert await served.run(script) == "[1 of 2 calls failed]\n<>"


async def test_one_caller_leaves_scripts_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    caller: ContextVar[str] = ContextVar("caller")
    running: list[str] = []
    release = anyio.Event()

    async def run_until_released(*arguments: Any) -> Outcome:
        running.append(caller.get())
        await release.wait()
        return Outcome()

    monkeypatch.setattr(script_calls, "run_script", run_until_released)
    monkeypatch.setattr(call_tools, "outer_request", lambda: None)
    batch = call_tools.CallReadingTools(dict, lambda ctx: caller.get())

    async def run(name: str) -> None:
        caller.set(name)
        await batch.call_or_run((), "1", 1000)

    async with anyio.create_task_group() as group:
        for name in ("ann", "ann", "ann", "ann", "ann", "bob"):
            group.start_soon(run, name)
        with anyio.fail_after(30):
            while "bob" not in running:
                await anyio.lowlevel.checkpoint()
        assert sorted(running) == ["ann", "ann", "bob"]
        release.set()
    assert len(running) == 6 and not batch.running_of_callers


async def test_what_is_printed_is_cut_to_the_page_and_says_so() -> None:
    async with Served() as served:
        text = await served.run("print('x'.repeat(3000))", max_bytes=1000)
        beginning, end = "x" * 667, "x" * 332
        note = "[cut: 1,000 of 3,001 bytes that it printed; print less, or raise max_bytes]"
        assert text == f"{note}\n{beginning}\n[2,001 bytes left out here]\n{end}"
        assert await served.run("const nothing = 1") == "[the script printed nothing]"


async def test_a_little_too_much_is_shown_whole() -> None:
    async with Served() as served:
        assert await served.run("print('x'.repeat(1199))", max_bytes=1000) == "x" * 1199
        assert "cut: 1,000 of 1,201" in await served.run("print('x'.repeat(1200))", max_bytes=1000)


async def test_an_answer_that_is_asked_to_be_too_short_has_as_little_as_one_may_have() -> None:
    async with Served() as served:
        text = await served.run("return 'x'.repeat(2000)", max_bytes=10)
    assert text.startswith("[cut: 1,000 of 2,001 bytes that it printed; print less, or raise max_bytes]\nxxx")
    assert text.count("x") == 1000


async def test_a_long_answer_says_how_a_look_is_shorter() -> None:
    async with Served() as served:
        text = await served.run("print('x'.repeat(4000))", max_bytes=10_000)
        assert text.startswith("[to look at many lines in few bytes, print count_forms(LINES)]\nxxx")
        script = "print(count_forms('x'), 'x'.repeat(4000))"
        assert (await served.run(script, max_bytes=10_000)).startswith("[1 texts")
        assert (await served.run("print('x'.repeat(2000))")).startswith("xxx")


async def test_a_script_that_only_reads_prints_less_and_can_ask_for_more(tmp_path: Path) -> None:
    script = "print('x'.repeat(9000))"
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        for name, most, count in [("call_tools", None, 3000), ("call_tools", 20_000, 9000), ("run_script", None, 9000)]:
            arguments = {"script": script} | ({} if most is None else {"max_bytes": most})
            answer = await client.call_tool(name, arguments)
            assert isinstance(answer.content[0], TextContent)
            assert 0 <= len(answer.content[0].text) - count < 200, name


async def test_of_a_long_output_the_first_and_the_last_lines_are_shown_whole() -> None:
    async with Served() as served:
        text = await served.run("for (let n = 0; n < 1000; n++) print(`${n} é`); print('sum: 7')", max_bytes=1000)
    first, *lines, last = text.splitlines()
    number = lines.index(next(line for line in lines if line.endswith("left out here]")))
    shown_bytes = sum(len(f"{line}\n".encode()) for line in [*lines, last] if "left out" not in line)
    assert first.startswith(f"[cut: {shown_bytes} of ") and shown_bytes <= 1000 and last == "sum: 7"
    assert lines[:number] == [f"{count} é" for count in range(number)]
    following = len(lines) - number - 1
    assert lines[number + 1 :] == [f"{count} é" for count in range(1000 - following, 1000)]


async def test_a_long_line_in_a_long_output_is_shown_as_far_as_there_is_room() -> None:
    async with Served() as served:
        text = await served.run("print('rows: 9'); print('x'.repeat(3000)); print('sum: 7')", max_bytes=1000)
    _, first, beginning, _, end, last = text.splitlines()
    assert (first, last) == ("rows: 9", "sum: 7")
    assert len(first) + len(beginning) + len(end) + len(last) > 990


async def test_of_several_prints_the_long_ones_are_cut_each_in_its_middle() -> None:
    script = "print('a'.repeat(900)); print('b'.repeat(100)); print('c'.repeat(5000)); print('d'.repeat(400))"
    async with Served() as served:
        text = await served.run(script, max_bytes=2002)
        first, *lines = text.splitlines()
        assert first.startswith("[cut: 2,002 of 6,404 bytes that it printed;")
        assert [line[0] for line in lines] == ["a", "[", "a", "b", "c", "[", "c", "d"]
        assert lines[3] == "b" * 100 and lines[-1] == "d" * 400
        assert text.count("a") + text.count("c") - first.count("a") > 1480
        # Many prints that are longer than their shares are cut together.
        looped = await served.run("for (let n = 0; n < 30; n++) print(`${n} `.repeat(200))", max_bytes=2000)
    assert looped.count("left out here") == 1


async def test_the_fence_that_models_put_around_code_is_no_part_of_it() -> None:
    async with Served() as served:
        assert await served.run("\n```js\nreturn 1\n```\n") == "1"


async def test_a_change_that_the_end_of_the_time_cut_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = await seconds_to_begin()
    monkeypatch.setattr(call_tools, "_MAX_CHANGING_SECONDS", seconds)
    async with Served(tools=("default", "call_tools")) as served:
        script = "say_word({word: 'a'}); try { say_word({word: 'no'}) } catch {} say_word({word: 'wait'})"
        failed, text = await served.try_to_run(script)
    assert failed and text == (
        f"[the script failed after 3 calls: it took longer than {seconds:.0f} s; "
        'the last call was say_word({"word": "wait"})]\n'
        "[calls that could change something: 1 say_word, 1 say_word failed]\n"
        "[made already, so leave them out of the next script:\nsaid a]\n"
        "[say_word was not finished; look whether it changed something]"
    )


async def test_a_script_and_a_list_are_not_mixed() -> None:
    async with Served() as served:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"script": "1", "calls": [{"show_dot": {}}]}, "both"),
            ({}, "Neither"),
        ]
        for arguments, reason in cases:
            answer = await served.client.call_tool("call_tools", arguments)
            assert answer.is_error and reason in str(answer.content)


async def test_paths_and_texts_are_whole_as_the_example_of_the_recipes_needs(tmp_path: Path) -> None:
    [script] = re.findall(r"```js\n(.*?)```", (ROOT / "docs" / "recipes.md").read_text("utf-8"), re.DOTALL)
    folder = tmp_path / "a-folder" / "another-folder-below"
    folder.mkdir(parents=True)
    for name, text in (("a.md", "author: A"), ("b.md", "B"), ("c.md", "C"), ("d.txt", "D")):
        (folder / name).write_text(text)
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        # For a model, paths stand below their folder.
        listed = str((await client.call_tool("find_files", {"pattern": "*.md"})).content)
        assert "a-folder/another-folder-below/\\n a.md" in listed
        answer = await client.call_tool("call_tools", {"script": script})
        (folder / "blank").write_text("a\n\n\n")
        whole = 'return [read_text({path: "a-folder/another-folder-below/blank"})]'
        text = str((await client.call_tool("call_tools", {"script": whole})).content)
    assert r'["a\\n\\n\\n"]' in text
    assert isinstance(answer.content[0], TextContent)
    assert answer.content[0].text == (
        "[read whole: find_files 3 lines]\na-folder/another-folder-below/b.md\na-folder/another-folder-below/c.md\n"
    )


async def test_lines_end_with_lf_or_crlf_and_the_text_keeps_both() -> None:
    script = r"""
        const lines = "a\r\n\nb\rc\n".lines();
        for (const key in "x") lines.push(key);
        return [lines, "".lines(), "\n".lines(), "a".lines()];
    """
    outcome = await run_alone(script)
    assert (json.loads(outcome.output), outcome.error) == ([["a", "", "b\rc", "0"], [], [""], ["a"]], "")
    outcome = await run_alone(r'return echo({text: "a\r\n"})')
    assert json.loads(outcome.output) == {"text": "a\r\n"}


async def test_all_pages_are_lines_or_objects(tmp_path: Path) -> None:
    pages = [
        {"columns": ["n", "name"], "rows": [[1, "a"], [2, "b"]], "cursor": "2"},
        {"columns": ["n", "name"], "rows": [[3, "c"]], "note": "one is hidden"},
    ]
    table = [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}, {"n": 3, "name": "c"}]
    asked: list[dict[str, Any]] = []

    async def answer(name: str, arguments: Mapping[str, Any]) -> str:
        asked.append({**arguments})
        match name:
            case "list_rows":
                return json.dumps(pages[bool(arguments.get("cursor"))])
            case "query":
                return '[2 rows]\n["n","name"]\n[1,"a"]\n[2,"b"]\n'
            case "same":
                return '[1 row]\n["n","n"]\n[1,2]\n'
            case "lines" if "start_line" in arguments:
                return "[1] is no row\n"
            case "lines":
                return "[lines 1 to 2 of 3; continue with start_line=3]\n[1]\r\n{\n"
            case _:
                return ""

    async def run(script: str) -> Outcome:
        return await run_script(script, ["list_rows", "query", "same", "lines", "nothing"], answer, 60)

    outcome = await run("return [list_rows.all({repo: 'a'}), remark]")
    assert json.loads(outcome.output) == [table, "one is hidden"]
    assert asked == [{"repo": "a"}, {"repo": "a", "cursor": "2"}]
    assert json.loads((await run("return [query.all(), remark]")).output) == [table[:2], "[2 rows]"]
    assert json.loads((await run("return [lines.all(), nothing.all()]")).output) == [["[1]", "{", "[1] is no row"], []]
    assert "columns of one name can't be told apart, name them with AS: n, n" in (await run("same.all()")).error
    outcome = await run("list_rows.all(); list_rows.all(); lines.all(); nothing.all(); lines()")
    assert outcome.lists == [
        ReadList("list_rows", 2, 6, "rows", ["one is hidden"]),
        ReadList("lines", 1, 3, "lines", []),
        ReadList("nothing", 1, 0, "lines", []),
    ]


async def test_of_a_tool_that_shows_one_thing_all_is_that_thing() -> None:
    async def answer(name: str, arguments: Mapping[str, Any]) -> str:
        if name == "get_run":
            return json.dumps({"note": "one is hidden", "data": {"id": 7, "jobs": [[1, "a"]]}})
        # What a change did is no record, nor is the text of a file.
        return json.dumps({"done": "Changed.", "data": {"id": 7}})

    async def run(script: str) -> Outcome:
        return await run_script(script, ["get_run", "edit_run"], answer, 60)

    outcome = await run("const [run, ...others] = get_run.all(); return [run, others, remark]")
    assert json.loads(outcome.output) == [{"id": 7, "jobs": [[1, "a"]]}, [], "one is hidden"]
    assert outcome.lists == [ReadList("get_run", 1, 1, "rows", ["one is hidden"])]
    assert "a row has no conclusion, only id, jobs" in (await run("get_run.all().map((job) => job.conclusion)")).error
    assert (await run("return edit_run.all()[0].startsWith('{')")).output == "true\n"
    # Who knows that it is under `data` takes the answer for that object.
    outcome = await run("return [get_run().data.id, edit_run().data.id, ['text', '{', '{}'].map((text) => text.data)]")
    assert json.loads(outcome.output) == [7, 7, ["undefined", "undefined", {}]]
    answers = ['{"kind": "file", "data": 1}', '{"kind": "file"}', "[1]"]
    outcome = await run(f"return {json.dumps(answers)}.map((text) => text.data?.kind)")
    assert json.loads(outcome.output) == ["file", "file", "undefined"]


async def test_a_column_that_a_row_has_not_is_no_value_that_is_not_set() -> None:
    async def answer(name: str, arguments: Mapping[str, Any]) -> str:
        return json.dumps({"columns": ["n", "name"], "rows": [[1, None], [2, "b"], [3, "c"]]})

    async def run(script: str) -> Outcome:
        return await run_script(f"const rows = list_rows.all(); {script}", ["list_rows"], answer, 60)

    reason = "list_rows.all: a row has no merged_at, only n, name; where there is `fields`, ask for it there"
    assert reason in (await run("return rows.filter((row) => row.merged_at).length")).error
    whole = await run("print(rows, {...rows[0]}, await Promise.resolve(rows[1]), `${rows[2].name}`, 'x' in rows[0])")
    assert not whole.error
    assert whole.output == '["n","name"]\n[1,null]\n[2,"b"]\n[3,"c"]\n{"n":1,"name":null} {"n":2,"name":"b"} c false\n'


async def test_the_answer_tells_how_much_was_read_of_what_a_script_prints_a_part_of(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("one\ntwo\n")
    script = """
        const paths = ["0.txt", "1.txt", "2.txt"];
        print(paths.flatMap((path) => read_text.all({path})).filter((line) => line === "two").length);
        print(list_directory.all({path: "."}).length);
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
        short = await client.call_tool("call_tools", {"script": "read_text({path: '0.txt'})"})
    assert isinstance(answer.content[0], TextContent) and isinstance(short.content[0], TextContent)
    lists = "[read whole: read_text 6 lines in 3 calls, list_directory 3 lines]"
    assert answer.content[0].text == f"{lists}\n3\n3\n"
    assert "read whole" not in short.content[0].text


async def test_what_a_list_leaves_out_is_told_with_its_length(tmp_path: Path) -> None:
    notes = iter(["the first 1,000 of 5,000 only", "", "one is hidden", "one is hidden"])

    async def answer(name: str, arguments: Mapping[str, Any]) -> str:
        match name:
            case "list_rows":
                return json.dumps({"columns": ["n"], "rows": [[1]], "note": next(notes)})
            case _:
                return "[1 line, as a text]\na\n"

    script = "for (const n of [1, 2, 3, 4]) list_rows.all(); lines.all()"
    outcome = await run_script(script, ["list_rows", "lines"], answer, 60)
    assert [read.notes for read in outcome.lists] == [["the first 1,000 of 5,000 only", "one is hidden"], []]
    async with Served() as served:
        cut = "[not all is in what query_rows returned, as `remark` or a cursor in it says]\n"
        why = "[query_rows: not the end of the result: too large]\n"
        assert await served.run("return query_rows.all().length") == f"{cut}{why}2"
    (tmp_path / ".hidden").write_text("needle\n")
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answered = await client.call_tool("call_tools", {"script": "search_text.all({pattern: 'needle'})"})
        script = "search_text.all({pattern: 'needle'}); search_text({pattern: 'n', path: 'rows.txt', limit: 1})"
        (tmp_path / "rows.txt").write_text("n\nn\n")
        beside = await client.call_tool("call_tools", {"script": script})
    assert "[read whole: search_text 0 lines (left out 1 hidden (.hidden))]" in str(answered.content)
    assert "[search_text: left out 1 hidden (.hidden)]" in str(beside.content)


async def test_a_list_that_was_cut_is_not_told_to_be_whole(tmp_path: Path) -> None:
    (tmp_path / "numbers").write_text("".join(f"{number}\n" for number in range(2000)))
    cases = [
        ("read_files", "{paths: ['numbers'], max_bytes: 1000}", True),
        ("search_text", "{pattern: '7', max_per_file: 3}", False),
        ("search_text", "{pattern: '7', max_per_file: 5000}", True),
        ("search_text", "{pattern: '7'}", True),
        ("read_text", "{path: 'numbers', max_bytes: 1000}", True),
        ("read_text", "{path: 'numbers', max_bytes: 100_000_000}", True),
    ]
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        for name, arguments, is_whole in cases:
            answer = await client.call_tool("call_tools", {"script": f"return {name}.all({arguments}).length"})
            assert isinstance(answer.content[0], TextContent)
            text = answer.content[0].text
            assert (f"read whole: {name} " in text) == is_whole, text


async def test_lines_of_a_file_are_its_lines_whatever_they_look_like_and_however_long(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("[1,2]\n[3,4]\n")
    (tmp_path / "table").write_text('{"columns":["a"],"rows":[[1]]}\n')
    (tmp_path / "long").write_text(f"first\n{'x' * 30_000}\nlast\n")
    script = """
        print(JSON.stringify([...read_text.all({path: "rows"}), ...read_text.all({path: "table"})]));
        print(read_text.all({path: "long", max_bytes: 10000}).map((line) => line.length));
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    _, rows, lengths = answer.content[0].text.splitlines()
    assert json.loads(rows) == ["[1,2]", "[3,4]", '{"columns":["a"],"rows":[[1]]}']
    assert json.loads(lengths) == [5, 30_000, 4]


async def test_files_are_told_in_columns_that_a_script_can_split(tmp_path: Path) -> None:
    folder = tmp_path / "below"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / name).write_text(name * 2000)
        os.utime(folder / name, (0, 0))
    (folder / "link").symlink_to("a")
    (folder / "folder").mkdir()
    (folder / "words.txt").write_text("word\n" * 300)
    (folder / "word.txt").write_text("word\n")
    time = "1970-01-01T00:00:00Z"
    script = """
        const rows = list_directory({path: "below"}).lines().map((line) => line.split("\\t"));
        print(rows[0], new Set(rows.map((row) => row.length)), rows.find((row) => row[3]).with(2, ""));
        print(find_files({glob: "a", sort: "size"}).lines()[0].split("\\t"));
        print(find_files({glob: "[abc]", sort: "modified"}).lines().map((line) => line.split("\\t")[1]));
        print(find_files({glob: "[abcd]", sort: "duplicates"}).lines());
        print(search_text({pattern: "word"}).lines().length, remark);
        print(search_text({pattern: "word", max_per_file: 1}).lines().map((line) => line.split(":").length));
        print(search_text({pattern: "word", count_only: true}).lines().map((line) => line.split(":")));
    """
    async with Client(build(load(Settings, [str(tmp_path)]))) as client:
        answer = await client.call_tool("call_tools", {"script": script})
    assert isinstance(answer.content[0], TextContent)
    assert answer.content[0].text.splitlines() == [
        f'["below/a","2000","{time}",""] [4] ["below/link","","","link to a"]',
        '["below/a","2000"]',
        *[time] * 3,
        "[]",
        "301 [301 matches in 2 files]",
        "[3,3]",
        '[["below/word.txt","1"],["below/words.txt","300"]]',
    ]


async def test_pages_of_a_service_stay_short() -> None:
    """Each longer one would be several requests there."""
    async with Served() as served:
        assert await served.run("return count_rows({})") == "5000"
        assert await served.run("return count_rows({max_rows: 3})") == "3"
        assert await served.run("return count_rows({limit: 4})") == "4"
        assert await served.run("return count_remote_rows({})") == "10"


async def test_it_reaches_nothing_but_its_functions() -> None:
    names = ["std", "os", "bjson", "require", "process", "fetch", "setTimeout", "XMLHttpRequest", "__call", "Worker"]
    outcome = await run_alone(f"return {names}.filter((name) => typeof globalThis[name] !== 'undefined')")
    assert (outcome.output, outcome.error) == ("[]\n", "")
    # A module would be a file.
    outcome = await run_alone("try { await import('os') } catch (error) { return 'refused' }")
    assert (outcome.output, outcome.error) == ("refused\n", "")


async def test_every_text_passes_through() -> None:
    text = 'ä€😀\u2028\\"\n\t'
    outcome = await run_alone(f"print(JSON.parse(echo({{text: {json.dumps(text)}}})).text, '\\ud800')")
    assert (outcome.output, outcome.error) == (f"{text} \ufffd\n", "")
    outcome = await run_alone("for (let n = 0; n < 9; n++) print('x'.repeat(2e5))")
    assert len(outcome.output) == 1_000_000 and outcome.left_out == 9 * 200_001 - 1_000_000


@pytest.mark.parametrize(
    ("script", "output", "error"),
    [
        # What JSON has no form for, or an empty one.
        (
            "return [10n, NaN, new Error('x'), new Set([1]), new Map([[1, 2]])]",
            '["10","NaN","Error: x",[1],[[1,2]]]',
            "",
        ),
        ("print(10n, NaN, new TypeError('x'), new Set([1]), /re/)", "10 NaN TypeError: x [1] /re/", ""),
        ("print((async () => 1)())", "a promise: await it", ""),
        ("print(print)", "a function: call it", ""),
        ("const a = {}; a.a = a; return a", "", "TypeError: circular reference"),
        ("throw {cause: 'x'}", "", '{"cause":"x"}'),
        ("throw Object.create(null)", "", "{}"),
        ("const e = new Error(); e.message = Symbol(); throw e", "", "line 1: an error without a text"),
        ("throw new Error('\\ud800')", "", "line 1: Error: \ufffd"),
        ("const map = new Map(); for (let n = 0; ; n++) map.set(n, {n})", "", "memory"),
        ("return 'a\0b'.length", "3", ""),
        ("return '\ud800'", "\ufffd", ""),
        # What a script replaces is its own loss, at most.
        ("JSON.stringify = () => '{'; JSON.parse = null; return echo({a: 1})", '{"a": 1}', ""),
        ("String.prototype.toWellFormed = () => '\\ud800'; print('x\\ud800')", "x\ufffd", ""),
        ("__outcome = () => '{\"error\": 5}'", "", "5"),
        # Only an object is the arguments of a call.
        ("echo({toJSON() { return [1] }})", "", "line 1: Error: echo: its arguments are no object as JSON"),
        ("echo({toJSON() {}})", "", "line 1: Error: echo: its arguments are no object as JSON"),
        ("echo({a: 'x'.repeat(2e6)})", "", "line 1: Error: echo: its arguments have more than 1,000,000 characters"),
    ],
)
async def test_a_strange_value_is_told_or_refused(script: str, output: str, error: str) -> None:
    outcome = await run_alone(script)
    assert outcome.output.rstrip("\n") == output
    assert outcome.error == error or (error == "memory" and error in outcome.error)


@pytest.mark.parametrize(
    "line", ['{"name": "other", "arguments": "{}"}', '{"printed": 1}', '{"name": "echo"}', "{}", "1"]
)
async def test_a_process_that_says_something_else_is_ended(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    command = [sys.executable, "-c", f"print({line!r}, flush=True); input()"]

    def python_command(module: str) -> list[str]:
        return command

    monkeypatch.setattr(runner, "python_command", python_command)
    outcome = await run_alone("1")
    assert outcome.error.startswith("its process ended")


async def test_one_that_does_not_end_is_ended_with_what_it_printed() -> None:
    seconds = await seconds_to_begin()
    outcome = await run_alone("print('before'); for (;;);", seconds)
    assert (outcome.output, outcome.error) == ("before\n", f"it took longer than {seconds:.0f} s")


async def test_many_lines_come_in_few_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []

    def add(outcome: Outcome, prints: Sequence[str]) -> None:
        messages.append("".join(prints))

    monkeypatch.setattr(Outcome, "add", add)
    outcome = await run_alone("for (let n = 0; n < 20000; n++) print(n); echo({}); print('end')")
    assert not outcome.error
    assert "".join(messages) == "".join(f"{number}\n" for number in range(20_000)) + "end\n"
    assert len(messages) < 2_000


@pytest.mark.parametrize(
    ("script", "cpu_seconds"),
    [("for (;;);", 1), ("for (;;) { try { f({}) } catch {} }", 1_000)],
    ids=["computing", "calling"],
)
def test_one_whose_server_was_killed_ends_by_itself(script: str, cpu_seconds: int) -> None:
    code = f"from mcp_batteries.scripts import child; child._CPU_SECONDS = {cpu_seconds}; child.main()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"script": script, "functions": ["f"]}).encode() + b"\n")
        process.stdin.close()
        try:
            assert process.wait(60) != 0
        finally:
            process.kill()


async def test_its_process_ends_with_the_call_that_was_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    class NotedProcess(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", NotedProcess)
    called = anyio.Event()

    async def call(name: str, arguments: Mapping[str, Any]) -> str:
        called.set()
        await anyio.sleep_forever()
        return ""

    async with anyio.create_task_group() as group:
        group.start_soon(run_script, "echo({})", ["echo"], call, 60)
        with anyio.fail_after(30):
            await called.wait()
        group.cancel_scope.cancel()
    assert processes[0].returncode is not None


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"loop_factory": _LoopWithoutProcesses})])
async def test_it_runs_on_the_loop_that_psycopg_needs_on_windows(anyio_backend: object) -> None:
    assert (await run_alone("return echo({})")).output == "{}\n"


async def test_where_there_is_no_engine_lists_still_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        assert name == "quickjs"

    monkeypatch.setattr(runner, "find_spec", find_nothing)
    async with Served() as served:
        failed, text = await served.try_to_run("1")
        assert failed and "without a JavaScript engine. Use `calls`." in text
        answer = await served.client.call_tool("call_tools", {"calls": [{"show_dot": {}}]})
        assert not answer.is_error


async def test_a_token_needs_the_scopes_of_all_that_a_script_may_call() -> None:
    script = "return get_price({fruit: 'apple'})"
    async with Served(scopes=["read"]) as served:
        assert await served.run(script) == ".remark: [of today]\n2"
    for tools, scopes in ((("default",), ["call_tools.read", "other.read"]), (("default", "call_tools"), ["read"])):
        async with Served(tools=tools, scopes=scopes) as served:
            with pytest.raises(MCPError, match="lacks the scope"):
                await served.try_to_run(script)


def test_a_proxy_that_refuses_calls_by_their_headers_meets_no_scripts(tmp_path: Path) -> None:
    over_http = [str(tmp_path), "--transport=http", "--allow-anonymous", "--param-headers"]
    for tools, offered in (("default", set[str]()), ("default,run_script", {"run_script"})):
        table = tool_table(build(load(Settings, [*over_http, f"--tools={tools}"])))
        assert {"call_tools", "run_script"} & set(table) == offered


async def test_who_may_not_call_every_tool_has_no_script_that_makes_changes() -> None:
    script = "return say_word({word: 'a'})"
    for scopes, is_offered in ((["read"], False), (["run_script.write", "read"], True), (["write"], True)):
        async with Served(scopes=scopes) as served:
            offered = {item.name for item in (await served.client.list_tools()).tools}
            assert ("run_script" in offered) == is_offered
            if scopes == ["write"]:
                assert not (await served.client.call_tool("run_script", {"script": script})).is_error
                continue
            with pytest.raises(MCPError, match="lacks the scope `write`"):
                await served.client.call_tool("run_script", {"script": script})
            assert not served.room.said


def test_limits_count_a_script_as_a_full_list() -> None:
    for arguments in ({"script": "1"}, {"Script": ""}, '{"script": 1}'):
        for name in ("call_tools", ["call_tools"]):
            assert count_calls(normalize_call({"name": name, "arguments": arguments})) == MAX_CALLS
    assert count_calls(normalize_call({"name": "run_script", "arguments": {}})) == MAX_CALLS
    assert count_calls(normalize_call({"name": "say_word", "arguments": {"script": "1"}})) == 1


async def test_a_process_that_can_not_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise OSError(11, os.strerror(11))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    async with Served() as served:
        failed, text = await served.try_to_run("1")
        assert failed and "No process could be started for the script" in text


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('[rows 1-2; continue with cursor="a-b_c="]\nrow\n', {"cursor": "a-b_c="}),
        ("[truncated: the next page: cursor=abc]\n", {"cursor": "abc"}),
        ("[lines 1-2 of 9; for more, start_line=3]", {"start_line": "3"}),
        ("[its rest is at start_line=2, start_column=8, end_line=4]\n", {"start_line": "2", "start_column": "8"}),
        ('[of `continue with cursor=9`; continue with cursor="x"]\n', {"cursor": "x"}),
        ("[2 files in cursor=9]\n", None),
        ("[lines 1-2 of 9; continue with start_line=3\n]\n", None),
        ("continue with start_line=3]\n", None),
        ("[2 rows]\n[continue with start_line=3]\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_the_next_page_is_read_from_a_first_line_in_brackets(text: str, arguments: dict[str, str] | None) -> None:
    assert next_page_arguments(text) == arguments
