"""What is listed, read and completed; keys, columns and names that need escapes."""

import json
from pathlib import Path

import pytest

from mcp_batteries.errors import TooLarge, Unavailable
from mcp_batteries.testing.wire import StdioWire, WireError
from mcp_sqlite.engine.insights import Insights
from sqlite.serving import make, run, served, text_of


async def complete(wire: StdioWire, template: str, name: str, typed: str, **others: str) -> list[str]:
    asked = {
        "ref": {"type": "ref/resource", "uri": template},
        "argument": {"name": name, "value": typed},
        "context": {"arguments": others},
    }
    return (await wire.request("completion/complete", asked))["completion"]["values"]


@pytest.mark.anyio
async def test_schemas_rows_and_keys(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    run(
        path,
        """
        CREATE TABLE pair (a TEXT, b INTEGER, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
        INSERT INTO pair VALUES ('x/y', 2, 'found'), ('z', 3, -9e999),
            ('p,q', 4, 'comma');
        CREATE TABLE "odd / name" ("é ü"); INSERT INTO "odd / name" VALUES ('here');
        CREATE TABLE "a&b,c" (v); INSERT INTO "a&b,c" VALUES ('odd');
        CREATE TABLE ".schema" (a); INSERT INTO ".schema" VALUES ('a table');
        """,
    )
    async with served(path) as wire:
        assert "CREATE TABLE t" in await wire.read("sqlite://app/.schema")
        t = await wire.read("sqlite://app/t/.schema")
        assert "CREATE INDEX t_name" in t and "CREATE TABLE u" not in t
        rows = json.loads(await wire.read("sqlite://app/t"))
        assert rows == {"columns": ["id", "name"], "rows": [[1, "a"], [2, "b"], [3, "c"]]}
        two = json.loads(await wire.read("sqlite://app/t?limit=2"))
        assert two["rows"] == [[1, "a"], [2, "b"]] and two["truncated"] is True
        for uri, row in (
            ("sqlite://app/t/2", [2, "b"]),
            ("sqlite://app/t?column=NAME&value=c", [3, "c"]),
            ("sqlite://app/pair/x%2Fy%2C2", ["x/y", 2, "found"]),
            ("sqlite://app/pair/x%2Fy,2", ["x/y", 2, "found"]),
            ("sqlite://app/pair/p%252Cq,4", ["p,q", 4, "comma"]),
            ("sqlite://app/a&b,c/1", ["odd"]),
            ("sqlite://app/pair?column=c&value=-Infinity", ["z", 3, "-Infinity"]),
            ("sqlite://app/odd%20%2F%20name/1", ["here"]),
            ("sqlite://app/%2Eschema", ["a table"]),
            ("sqlite://APP/t/1", [1, "a"]),
        ):
            assert json.loads(await wire.read(uri))["rows"] == [row], uri
        for uri in (
            "sqlite://other/t", "sqlite://app/nothing", "sqlite://app/t/99", "sqlite://app/t/1%2C2", "sqlite://app/v/1",
            "sqlite://app/t?limit=0", "sqlite://app/t?column=name", "sqlite://app/t?column=nothing&value=1",
            "sqlite://app/t?other=1", "sqlite://.queries/none", "sqlite://app/t/%27%20OR%201=1--",
        ):  # fmt: skip
            with pytest.raises(WireError):
                await wire.read(uri)
        listed = {item["uri"] for item in (await wire.request("resources/list"))["resources"]}
        assert {"memo://insights", "sqlite://app/.schema", "sqlite://app/odd%20%2F%20name"} <= listed
        assert not any("f_data" in uri for uri in listed)


@pytest.mark.anyio
async def test_names_are_completed(tmp_path: Path) -> None:
    odd = make(tmp_path / "another.db")
    run(odd, 'CREATE TABLE "odd / name" ("é ü")')
    async with served(make(tmp_path / "app.db"), odd) as wire:
        rows = "sqlite://{database}/{table}{?column,value,limit,order}"
        for typed in ("od", "odd%20", "odd%20%2F%20name"):
            assert await complete(wire, rows, "table", typed, database="another") == ["odd%20%2F%20name"]
        offered = {"database": "another", "table": "odd%20%2F%20name"}
        assert await complete(wire, rows, "column", "%C3%A9", **offered) == ["%C3%A9%20%C3%BC"]
        assert await complete(wire, rows, "database", "a") == ["app", "another"]
        assert await complete(wire, rows, "table", "", database="app") == ["f", "fv", "t", "u", "v"]
        assert await complete(wire, rows, "column", "n", database="app", table="t") == ["name"]
        assert await complete(wire, rows, "table", "", database="none") == []


@pytest.mark.anyio
async def test_several_databases_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    one, two = make(tmp_path / "My App.db"), make(tmp_path / "more" / "my_app.sqlite")
    run(two, "UPDATE t SET name = 'second'")
    async with served(one, two, one) as wire:
        said = text_of(await wire.call("list_tables"))
        assert "my_app: " in said and "my_app_2: " in said and "my_app_3" not in said
        result = await wire.call("query_rows", sql="SELECT 1")
        assert result["isError"] and "`my_app_2`" in text_of(result)
        assert "second" in text_of(await wire.call("query_rows", sql="SELECT * FROM t", database="my_app_2"))
        hits = text_of(await wire.call("search_schema", query="note"))
        assert "my_app: column u.note" in hits and "my_app_2: column u.note" in hits


@pytest.mark.anyio
async def test_the_demo_shows_everything(tmp_path: Path) -> None:
    async with served("--demo") as wire:
        assert "books_text (full-text)" in text_of(await wire.call("list_tables"))
        described = text_of(await wire.call("get_table", table="books", sample=3))
        for words in ("REFERENCES authors", "loans.book_id -> id", "-- year", "books_by_author", "Frankenstein"):
            assert words in described
        assert "[Voyage]" in text_of(await wire.call("search_text", query="voyage"))
        plan = text_of(await wire.call("explain_query", sql="SELECT * FROM loans WHERE member_id = 1"))
        assert "Reads whole: loans" in plan and 'ON "loans" ("member_id")' in plan
        assert "is whole" in text_of(await wire.call("run_check"))
        for name, arguments in (
            ("explore_database", {}), ("write_query", {"question": "How many?"}),
            ("explain_slow_query", {"sql": "SELECT 1"}), ("summarise_changes", {}),
        ):  # fmt: skip
            assert (await wire.request("prompts/get", {"name": name, "arguments": arguments}))["messages"]


@pytest.mark.anyio
async def test_many_tables_come_page_by_page(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    run(path, "".join(f"CREATE TABLE many_{number:03} (a);" for number in range(0, 500, 2)))
    async with served(path) as wire:
        seen: list[str] = []
        arguments: dict[str, str] = {}
        while True:
            said = text_of(await wire.call("list_tables", limit=100, **arguments))
            seen += [line[2:].split(" ")[0].rstrip(":") for line in said.splitlines() if line.startswith("- ")]
            if "cursor=" not in said:
                break
            arguments = {"cursor": said.partition("cursor=")[2].partition("]")[0]}
        assert len(seen) == len(set(seen)) == 255


@pytest.mark.slow
@pytest.mark.anyio
async def test_insights_are_kept_for_the_databases_they_are_about(tmp_path: Path) -> None:
    path, memo = make(tmp_path / "app.db"), tmp_path / "memo.db"
    words = "a finding's\nword'); DROP TABLE notes; --"
    async with served("--insights", memo, path) as wire:
        assert "number 1 " in text_of(await wire.call("create_insight", text=words))
    async with served("--insights", memo, path) as wire:
        found = await wire.request("resources/read", {"uri": "memo://insights"})
        assert "- a finding's word'); DROP TABLE notes; --\n" in found["contents"][0]["text"]
    kept, others = Insights(str(memo), [str(path)]), Insights(str(memo), [str(path), "/other.db"])
    assert [await kept.add(str(number)) for number in range(2, 201)] == [*range(2, 201)]
    with pytest.raises(TooLarge):
        await kept.add("one too many")
    assert (await kept.text()).count("\n- ") == 200 and "None yet." in await others.text()
    memo.write_bytes(b"this is not a database, though it is long enough" * 100)
    with pytest.raises(Unavailable, match="`--insights`"):
        await kept.add("x")
