"""Several servers in one process: each is all there under its prefix, and none ends another."""

import json
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.server.auth.provider import AccessToken
from mcp.shared.inbound import find_invalid_x_mcp_header

from mcp_batteries.cli.host_entry.text import make_entry
from mcp_batteries.mount.member import LEFT_OUT, Member
from mcp_batteries.mount.server import build
from mcp_batteries.mount.settings import Settings
from mcp_batteries.program import program_of
from mcp_batteries.sdk import tool_table
from mcp_batteries.server.assemble import Assembled
from mcp_batteries.settings import load
from mcp_batteries.transports.http.auth.scopes import Scopes

pytestmark = pytest.mark.anyio


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "notes.txt").write_text("one\n", "utf-8")
    with closing(sqlite3.connect(tmp_path / "my.db")) as database:
        database.execute("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    return ["fs", str(tmp_path / "served"), "--", "sqlite", "--write", str(tmp_path / "my.db"), "--", "weather"]


def served(words: list[str]) -> Assembled:
    return build(load(Settings, words))


def text(result: Any) -> str:
    return "".join(part.text for part in result.content)


@pytest.mark.slow
async def test_each_server_is_all_there_under_its_name(words: list[str]) -> None:
    server = served(words)
    async with Client(server) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        uris = {item.uri for item in (await client.list_resources()).resources}
        forms = {item.uri_template for item in (await client.list_resource_templates()).resource_templates}
        instructions = server.instructions or ""
    expected = {*LEFT_OUT}
    for part in load(Settings, words).mounted:
        alone = program_of(part.package()).build(part)
        name = part.COMMAND.removeprefix("mcp-")
        async with Client(alone) as client:
            own_names = {tool.name for tool in (await client.list_tools()).tools}.difference(LEFT_OUT)
            expected |= {f"{name}_{own_name}" for own_name in own_names}
            assert {f"{name}_{prompt.name}" for prompt in (await client.list_prompts()).prompts} <= prompts
            assert {item.uri for item in (await client.list_resources()).resources} <= uris
            assert {item.uri_template for item in (await client.list_resource_templates()).resource_templates} <= forms
        # What one tool says of another, it says by the name that can be called here.
        assert f"`{name}_" in instructions or name == "fs"
    assert tools == expected


async def test_a_change_names_the_calls_that_lead_back_as_they_are_called_here(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", folder], check=True)
    for name in ("user.name", "user.email"):
        subprocess.run(["git", "-C", folder, "config", name, "ada"], check=True)
    (folder / "a.txt").write_text("`run_switch` is a tool\nundo: `run_reset` with x\n", "utf-8")
    async with Client(served(["git", "--write", str(folder)])) as client:
        await client.call_tool("git_create_commit", {"message": "Use `run_merge`", "paths": ["."]})
        committed = text(await client.call_tool("git_create_commit", {"message": "Again", "amend": True}))
        switched = text(await client.call_tool("git_create_branch", {"name": "side", "switch": True}))
        script = "print(git_run_switch({rev: 'main'}))"
        by_script = text(await client.call_tool("run_script", {"script": script}))
        read = text(await client.call_tool("git_read_file", {"path": "a.txt"}))
    assert ": Use `run_merge`\n" in committed and "\nundo: `git_run_reset` with " in committed, committed
    assert '\nundo: `git_run_switch` with rev="main"' in switched, switched
    assert '\nundo: `git_run_switch` with rev="side"' in by_script, by_script
    assert read.endswith("\n`run_switch` is a tool\nundo: `run_reset` with x\n"), read


async def test_every_kind_of_request_finds_its_server(words: list[str], tmp_path: Path) -> None:
    note = (tmp_path / "served" / "notes.txt").as_uri()
    async with Client(served(words)) as client:
        assert "one" in text(await client.call_tool("fs_read_text", {"path": "notes.txt"}))
        assert "one" in text(await client.call_tool("read_text", {"path": "notes.txt"})), "what a view calls it"
        wrong = await client.call_tool("fs_list_directory", {"path": "notes.txt"})
        assert wrong.is_error and "`fs_read_text`" in text(wrong)
        assert "one" in str(await client.read_resource(note))
        assert (await client.get_prompt("fs_explain_folder", {})).messages
        for asks in (
            client.get_prompt("fs_review_file", {"path": "missing"}),
            client.read_resource((tmp_path / "served" / "missing").as_uri()),
        ):
            with pytest.raises(MCPError, match="`fs_list_directory`"):
                await asks
        with pytest.raises(MCPError, match="weather://"):
            await client.read_resource("nothing://at/all")
        with pytest.raises(MCPError, match="fs_read_text"):
            await client.call_tool("fs_read_tex", {"path": "notes.txt"})


async def test_the_process_says_what_each_server_runs_with(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_WEATHER_LANGUAGE", "de")
    async with Client(served(["--log-level", "error", *words])) as client:
        assert [item.uri for item in (await client.list_resources()).resources].count("config://settings") == 1
        (said,) = (await client.read_resource("config://settings")).contents
        told = json.loads(said.text)
    assert list(told) == ["mcp-batteries", "mcp-fs", "mcp-sqlite", "mcp-weather"]
    assert told["mcp-batteries"]["log_level"] == {"value": "error", "from": "--log-level"}
    assert told["mcp-sqlite"]["write"] == {"value": True, "from": "--write"} and "log_level" not in told["mcp-sqlite"]
    assert told["mcp-weather"]["language"] == {"value": "de", "from": "MCP_WEATHER_LANGUAGE"}


@pytest.mark.slow
async def test_what_a_proxy_may_ask_about_is_repeated_in_headers_when_asked_for(
    words: list[str], tmp_path: Path
) -> None:
    named = {"database": "Database", "repo": "Repo", "place": "Place"}
    words = [*words, "--", "git", str(tmp_path), "--", "github", "--toolsets", "all", "--write"]
    for flags in ["--transport", "http", "--param-headers"], ["--transport", "http"], []:
        tools = served([*flags, *words]).catalog.tools
        marked = {
            (tool.name, name): schema.get("x-mcp-header")
            for tool in tools for name, schema in tool.input_schema["properties"].items() if name in named
        }  # fmt: skip
        assert len({name.partition("_")[0] for name, _ in marked}) == 4
        assert all(find_invalid_x_mcp_header(tool.input_schema) is None for tool in tools)
        for (tool, name), header in marked.items():
            assert header == (named[name] if len(flags) == 3 else None), tool


@pytest.mark.slow
async def test_one_stream_hears_of_all_servers(words: list[str], tmp_path: Path) -> None:
    note, table = (tmp_path / "served" / "notes.txt").as_uri(), "sqlite://my/t"
    async with Client(served(words)) as client, client.listen(resource_subscriptions=[note, table]) as events:
        (tmp_path / "served" / "notes.txt").write_text("two\n", "utf-8")
        await client.call_tool("sqlite_write_rows", {"sql": "INSERT INTO t VALUES (1)"})
        heard: set[str] = set()
        with anyio.fail_after(10):
            async for event in events:
                heard.add(event.uri)
                if heard == {note, table}:
                    break


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_older_clients_hear_of_all_servers(words: list[str], tmp_path: Path) -> None:
    note, heard = (tmp_path / "served" / "notes.txt").as_uri(), anyio.Event()

    async def told(message: Any) -> None:
        if getattr(getattr(message, "params", None), "uri", None) == note:
            heard.set()

    async with Client(served(words), mode="legacy", message_handler=told) as client:
        await client.session.subscribe_resource(note)
        (tmp_path / "served" / "notes.txt").write_text("two\n", "utf-8")
        with anyio.fail_after(10):
            await heard.wait()


async def test_discovery_costs_little_and_opens_everything(words: list[str], tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    server = served(["--discover", "--audit-file", str(audit), *words])
    async with Client(server) as client:
        listed = await client.list_tools()
        # A token is three bytes of JSON at the least.
        assert len((listed.model_dump_json(exclude_none=True) + (server.instructions or "")).encode()) < 1800
        assert [tool.name for tool in listed.tools] == ["find_tools", "describe_tools", "call_tool"]
        names = text(await client.call_tool("find_tools", {})).replace("\n", ", ").split(", ")[:-1]
        async with Client(served(words)) as whole:
            assert set(names) == {tool.name for tool in (await whole.list_tools()).tools}
        assert text(await client.call_tool("find_tools", {"query": "forecast of the weather"})).startswith("weather_")
        described = text(await client.call_tool("describe_tools", {"names": ["fs_read_text"]}))
        assert '"path"' in described and str(tmp_path) in described
        call = {"name": "fs_read_text", "arguments": {"path": "notes.txt"}}
        assert "one" in text(await client.call_tool("call_tool", call))
        refused = await client.call_tool("call_tool", {"name": "fs_read_text", "arguments": {"pth": 1}})
        assert refused.is_error and "`path`" in text(refused)
    assert json.loads(audit.read_text("utf-8").splitlines()[-1])["name"] == "fs_read_text"


@pytest.mark.parametrize("scope", ["fs.read", "fs_search.read", "fs.destroy"])
async def test_a_token_for_the_tools_of_one_server_finds_and_calls_them(
    words: list[str], scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = served(["--discover", *words])
    scopes = Scopes(lambda: tool_table(server), resolve=server.resolve_tool)
    server.middleware.append(scopes)
    token = AccessToken(token="t", client_id="alice", scopes=[scope])
    monkeypatch.setattr("mcp_batteries.transports.http.auth.scopes.get_access_token", lambda: token)
    async with Client(server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "find_tools",
            "describe_tools",
            "call_tool",
        ]
        call = {"name": "fs_find_files", "arguments": {"glob": "*.txt"}}
        assert "notes.txt" in text(await client.call_tool("call_tool", call))
        with pytest.raises(MCPError, match="lacks the scope `read`"):
            await client.call_tool("call_tool", {"name": "weather_get_forecast", "arguments": {}})


@pytest.mark.parametrize("read_only", [True, False])
async def test_what_hosts_are_told_of_call_tool_is_the_worst_it_may_do(words: list[str], read_only: bool) -> None:
    async with Client(served(["--discover", *(["--read-only"] if read_only else []), *words])) as client:
        hints = (await client.list_tools()).tools[-1].annotations
        assert hints and hints.read_only_hint == read_only and hints.destructive_hint != read_only
        answer = await client.call_tool("call_tool", {"name": "fs_delete_file", "arguments": {"path": "notes.txt"}})
        assert answer.is_error == read_only


async def test_a_server_that_cannot_be_built_is_told_of_and_left_out(words: list[str], tmp_path: Path) -> None:
    words[4] = "--queries=" + str(tmp_path / "nowhere")
    words[5] = str(tmp_path / "missing" / "my.db")
    server = served(words)
    assert "sqlite: does not work" in (server.instructions or "")
    async with Client(server) as client:
        assert "one" in text(await client.call_tool("fs_read_text", {"path": "notes.txt"}))


@pytest.mark.parametrize("when", ["at start", "later"])
async def test_the_end_of_one_server_is_not_the_end_of_the_others(
    words: list[str], when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks = anyio.Event()
    if when == "at start":
        breaks.set()

    @asynccontextmanager
    async def lifespan(_: object) -> Any:
        async with anyio.create_task_group() as tasks:

            async def fail() -> None:
                await breaks.wait()
                raise RuntimeError("out of luck")

            tasks.start_soon(fail)
            await anyio.lowlevel.checkpoint()
            yield

    live: Callable[[Member], Awaitable[None]] = Member.live

    async def broken(member: Member) -> None:
        if member.name == "sqlite":
            member.server._lowlevel_server.lifespan = lifespan  # pyright: ignore
        await live(member)

    monkeypatch.setattr(Member, "live", broken)
    async with Client(served(words)) as client:
        breaks.set()
        with anyio.fail_after(5):
            while True:
                try:
                    await client.call_tool("sqlite_list_tables", {})
                except MCPError as error:
                    assert "out of luck" in str(error)
                    break
        assert "one" in text(await client.call_tool("fs_read_text", {"path": "notes.txt"}))
        assert (await client.list_resources()).resources


async def test_tools_that_come_later_come_under_their_name(words: list[str], tmp_path: Path) -> None:
    queries = tmp_path / "queries"
    queries.mkdir()
    words[4:4] = ["--queries", str(queries)]
    async with Client(served(words)) as client, client.listen(tools_list_changed=True) as events:
        (queries / "count_all.sql").write_text("-- Count all.\nSELECT count(*) FROM t;\n", "utf-8")
        with anyio.fail_after(10):
            await anext(aiter(events))
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert [name for name in names if "count_all" in name] == ["sqlite_run_count_all"]
        assert names[:2] == ["call_tools", "run_script"]
        assert not (await client.call_tool("sqlite_run_count_all", {})).is_error


def test_settings_survive_their_own_command_line_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MCP_FS_TEXT_MEGABYTES", raising=False)
    secret = "postgresql://me:sesame@db.example.org/app"
    words = [
        "--read-only",
        "--discover",
        "fs",
        "--tools",
        "read",
        str(tmp_path),
        "--",
        "postgres",
        secret,
        "--",
        "weather",
    ]
    settings = load(Settings, words)
    assert settings.arguments() == [
        *("--read-only", "--discover", "fs", "--tools", "read", str(tmp_path), "--", "postgres", "--", "weather")
    ]
    assert settings.secrets() == {"MCP_POSTGRES_DATABASES": secret}
    assert "sesame" not in make_entry("vscode", settings) and make_entry("vscode", settings).count('batteries": {') == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing"], "There are: example, fs"),
        (["fs", "/tmp", "--", "fs", "/var"], "named twice"),
        (["--discover", "--transport", "http", "--param-headers", "fs", "/tmp"], "leave out --param-headers"),
        (["fs", "--port", "8123", "/tmp"], "--port is for all servers"),
        (["fs", "--audit-file", "x", "/tmp"], "--audit-file is for all servers"),
        (["fs", "--tools", "default,call_tools", "/tmp"], "call_tools runs calls of all servers"),
        (["fs", "--exclude-tools", "run_script", "/tmp"], "give --exclude-tools run_script before the first one"),
        (["--nothing", "fs"], "No such option"),
        (["fs", "\u2014read-only", "/tmp"], "Type it: --read-only"),
        (["fs", "\u2013-read-only", "/tmp"], "Type it: --read-only"),
        (["fs", "/tmp", "sqlite", "my.db"], "'sqlite' is a server: write -- before it"),
        (["weather", "mcp-fs", "/tmp"], "'mcp-fs' is a server: write -- before it"),
    ],
)
def test_mistakes_are_answered_before_anything_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        load(Settings, words)
    assert end.value.code == 2 and said in capsys.readouterr().err


async def test_a_tool_answers_to_its_other_names_unless_two_servers_have_one(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "app")], check=True)
    server = served(["--discover", "git", str(tmp_path / "app"), "--", "weather"])
    assert server.resolve_tool("git_status") == "git_get_status"
    assert server.resolve_tool("git_commit") == "git_create_commit"
    async with Client(server) as client:
        assert "no commit" in text(await client.call_tool("call_tool", {"name": "git_status", "arguments": {}}))
        assert "no commit" in text(await client.call_tool("git_status", {}))
        for name, arguments in (("git_diff_staged", {}), ("call_tool", {"name": "git_diff_staged", "arguments": {}})):
            assert "staged changes" in text(await client.call_tool(name, arguments))
        with pytest.raises(MCPError, match="--write"):
            await client.call_tool("git_commit", {"message": "One"})


@pytest.mark.share(1)
@pytest.mark.parametrize(
    "given",
    [
        {"name": "read_text", "arguments": {"path": "notes.txt"}},
        {"name": "fs_read_text", "arguments": '{"path": "notes.txt"}'},
        {"name": ["fs_read_text"], "arguments": {"path": "notes.txt"}},
        {"name": "fs_read_text", "args": {"path": "notes.txt"}},
        {"name": "fs_read_text", "path": "notes.txt"},
    ],
)
async def test_what_can_mean_one_tool_only_calls_it(words: list[str], given: dict[str, Any]) -> None:
    async with Client(served(["--discover", *words])) as client:
        answer = await client.call_tool("call_tool", given)
        assert not answer.is_error and "one" in text(answer)
        described = text(await client.call_tool("describe_tools", {"names": given["name"]}))
        assert described.startswith("# fs_read_text")


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "fs_read_txt"}, "Near: fs_read_text"), ({"name": "fs_read_text"}, "`path` is required"),
        ({"name": "fs_read_text", "arguments": None}, "`path` is required"), ({"name": "zzz"}, "Ask `find_tools`"),
        ({"name": "fs_read_text", "arguments": "notes.txt"}, "`arguments`"),
        ({"name": "fs_read_text", "arguments": [1]}, "`arguments`"), ({"name": {"a": 1}}, "`name`"),
        ({"name": "fs_read_text", "pth": "notes.txt"}, "no argument `pth`"), ({"name": "call_tool"}, "There is no"),
    ],
)  # fmt: skip
async def test_a_call_that_goes_nowhere_says_where_to(words: list[str], given: dict[str, Any], said: str) -> None:
    async with Client(served(["--discover", *words])) as client:
        answer = await client.call_tool("call_tool", given)
        assert answer.is_error and said in text(answer)


async def test_who_wants_to_read_is_led_to_what_is_there_and_reads(words: list[str]) -> None:
    async with Client(served(["--discover", *words])) as client:
        answer = text(await client.call_tool("call_tool", {"name": "fs_read_tex"}))
        assert "fs_read_text" in answer and "write" not in answer and "replace" not in answer
    async with Client(served(words)) as client:
        for name, near in (
            ("fs_get_tex", "Did you mean `fs_read_text`"), ("fs_call_tools", "Did you mean `call_tools`"),
            ("sqlite_call_tools", "Did you mean `call_tools`"), ("fs_list_changes", "`list_changes`"),
        ):  # fmt: skip
            with pytest.raises(MCPError) as refused:
                await client.call_tool(name, {})
            said = str(refused.value)
            assert near in said and "operator" not in said and "undo" not in said and "create" not in said, said


async def test_a_script_finds_the_tools_that_one_server_has_without_its_prefix(words: list[str]) -> None:
    script = """
        const columns = tools.query_rows({sql: "SELECT 1 AS n"}).lines()[0];
        list_tables();
        print(columns, read_text.all({path: "notes.txt"}));
    """
    async with Client(served(words)) as client:
        found = await client.call_tool("call_tools", {"script": script})
        changing = await client.call_tool("call_tools", {"script": "write_rows({sql: 'DELETE FROM t'})"})
        unclear = await client.call_tool("call_tools", {"script": "search_text({pattern: 'one'})"})
    assert not found.is_error and text(found).endswith('\n["n"] ["one"]\n'), text(found)
    assert "write_rows: it changes things, so call it by itself" in text(changing)
    assert "[did you mean fs_search_text or sqlite_search_text" in text(unclear)


async def test_who_finds_the_tool_for_scripts_learns_what_a_script_is(words: list[str]) -> None:
    script = "print(write_rows({sql: 'INSERT INTO t VALUES (1)'})); print(read_text({path: 'notes.txt'}))"
    async with Client(served(["--discover", *words])) as client:
        described = text(await client.call_tool("describe_tools", {"names": ["run_script"]}))
        found = await client.call_tool("call_tool", {"name": "run_script", "arguments": {"script": script}})
    assert described.startswith("# run_script\n") and "`.lines()`" in described
    assert not found.is_error and "1 row in t" in text(found) and text(found).endswith("\none\n")


@pytest.mark.share(1)
@pytest.mark.parametrize("flags", [["--tools", "sqlite"], ["--tools", "fs_read,call_tools"], ["--read-only"]])
async def test_what_is_chosen_is_found_and_called_whatever_is_chosen(words: list[str], flags: list[str]) -> None:
    async with Client(served([*flags, *words])) as client:
        chosen = {tool.name for tool in (await client.list_tools()).tools}
    async with Client(served(["--discover", *flags, *words])) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [
            "find_tools",
            "describe_tools",
            "call_tool",
        ]
        assert set(text(await client.call_tool("find_tools", {})).replace("\n", ", ").split(", ")[:-1]) == chosen
        for name in chosen & {"fs_read_text", "sqlite_list_tables"}:
            given = {"path": "notes.txt"} if name == "fs_read_text" else {}
            assert not (await client.call_tool("call_tool", {"name": name, "arguments": given})).is_error
            found = text(await client.call_tool("find_tools", {"query": name.partition("_")[0]}))
            assert found.startswith(name.partition("_")[0]) and "None fits" not in found


async def test_several_calls_in_one_are_understood_as_each_alone(words: list[str]) -> None:
    calls = [
        {"name": "read_text", "arguments": {"path": "missing"}},
        {"name": "call_tool", "arguments": {"name": "sqlite_list_tables", "arguments": "{}"}},
        {"name": "fs_read_text", "arguments": {"path": "notes.txt"}},
        {"read_text": {"path": "notes.txt"}, "call_tool": {"name": "read_text", "arguments": {"path": "notes.txt"}}},
    ]
    async with Client(served(["--discover", "--tools", "default,call_tools", *words])) as client:
        answer = await client.call_tool("call_tool", {"name": "call_tools", "arguments": {"calls": calls}})
    said = text(answer)
    assert not answer.is_error and "# 1 fs_read_text, failed" in said and "# 2 sqlite_list_tables" in said
    assert all(f"# {number} fs_read_text\n" in said for number in (3, 4, 5)) and said.count("one") == 3, said
