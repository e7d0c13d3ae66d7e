"""What the policy takes and refuses before SQLite sees anything, and how files are opened."""

import os
import sys
from pathlib import Path

import pytest

from mcp_batteries.errors import Invalid, NotFound, Problem, Refused, Unavailable
from mcp_batteries.settings import load
from mcp_batteries.sql.policy import RowOf, RowsOf
from mcp_sqlite.policy import JoiningStatement, Policy, SchemaOf, Table, parse_table_name, table_uri
from mcp_sqlite.settings import Settings
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.language.parameters import parse_parameters
from sqlite.serving import make, served_process, text_of


def policy(*arguments: object) -> Policy:
    return Policy(load(Settings, [str(item) for item in arguments]))


def test_what_cannot_be_served_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database at all", "utf-8")
    for arguments in ([], [tmp_path / "missing.db"], [tmp_path / "text.db"]):
        with pytest.raises(Unavailable):
            policy(*arguments)
    with pytest.raises(Unavailable, match="is not a file"):
        policy(tmp_path)
    assert not (tmp_path / "missing.db").exists()
    assert list(policy("--create", tmp_path / "new.db").databases) == ["new"]
    with pytest.raises(Unavailable):
        policy("--files", tmp_path / "nowhere", "--create", tmp_path / "new.db")


def test_kinds_of_statements_are_opened_by_the_operator(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    with pytest.raises(Refused):
        policy(path).writable_database("").write("DELETE FROM t")
    with pytest.raises(Refused):
        policy("--write", path).alterable_database("").alter("DROP TABLE t")
    with pytest.raises(Refused):
        policy("--write", "--ddl", "--read-only", path).writable_database("").write("DELETE FROM t")
    assert policy("--write", path).writable_database("").write("DELETE FROM t").sql == "DELETE FROM t"


@pytest.mark.parametrize("sql", ["SELECT '\0'", "SELECT '\ud800'", "x" * 100_001])
def test_text_that_sqlite_would_misread_is_refused(sql: str, tmp_path: Path) -> None:
    with pytest.raises(Invalid):
        policy(make(tmp_path / "app.db")).query_target("").read(sql)


@pytest.mark.parametrize("value", [{"base64": "?"}, {"base64": "é"}, {"base64": 1}, {"a": 1}, [1], 2**63, -(2**63) - 1])
def test_values_that_can_not_be_bound_are_refused(value: object) -> None:
    for given in ([0, value], {"a": 0, "b": value}):
        with pytest.raises(Failure, match=r"Parameter (number 2|`b`) can't be bound"):
            parse_parameters(given)


def test_values_are_bound_as_they_are() -> None:
    values = [None, True, 1.5, "a", 2**63 - 1, -(2**63)]
    assert parse_parameters(values) == values and parse_parameters(None) == []
    assert parse_parameters({":a": {"base64": "AAE="}, "@b": 1, "$c": 2}) == {"a": b"\0\1", "b": 1, "c": 2}


@pytest.mark.parametrize(
    "name", ["../x.csv", "a/b.csv", "/etc/x.csv", ".hidden.csv", "x\0.csv", "c:x.csv", "", "x.exe"]
)
def test_files_have_plain_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(Problem):
        policy("--files", tmp_path, make(tmp_path / "app.db")).new_file(name, [".csv"])


def test_files_lie_in_the_folder_for_files(tmp_path: Path) -> None:
    path = make(tmp_path / "app.db")
    served = policy("--files", tmp_path, path)
    for name in ("x.csv", "X.CSV", "a b..csv", "x.json", "x" * 196 + ".csv"):
        file = served.served_file(name, [".csv", ".json"])
        assert (file.folder, file.name) == (os.path.realpath(tmp_path), name)
    with pytest.raises(Refused, match="not a plain file name"):
        served.new_file("x" * 197 + ".csv", [".csv"])
    with pytest.raises(Refused, match="`--files`"):
        policy(path).new_file("x.csv", [".csv"])


def test_uris_have_one_spelling(tmp_path: Path) -> None:
    served = policy(make(tmp_path / "app.db"))
    for spelled in ("sqlite://app/t", "sqlite://APP/%74", "SQLITE://app/t/", "sqlite://app/t?limit=100"):
        readable = served.readable(spelled)
        assert readable is not None and readable.uri == "sqlite://app/t?limit=100"
    assert served.readable("file:///x") is None
    for wrong in (
        "",
        "/",
        "/.schema",
        ".schema?limit=1",
        "/.empty",
        "/1",
        "a/b/c",
        "t/.schema?limit=1",
        "t/.empty?limit=1",
        "t/1?limit=1",
    ):
        with pytest.raises(NotFound):
            served.readable(f"sqlite://app/{wrong}")


@pytest.mark.parametrize(
    ("uri", "kind"),
    [
        ("sqlite://app/.schema", SchemaOf), ("sqlite://app/t/.schema", SchemaOf), ("sqlite://app/t?limit=5", RowsOf),
        ("sqlite://app/t/7", RowOf), ("sqlite://app/a%2Fb/7%2F8", RowOf), ("sqlite://app/t/.empty", RowOf),
    ],
)  # fmt: skip
def test_each_kind_of_resource_has_its_uri(uri: str, kind: type, tmp_path: Path) -> None:
    served = policy(make(tmp_path / "app.db"))
    readable = served.readable(uri)
    assert readable is not None and readable.uri == uri and isinstance(readable.request, kind)
    assert table_uri(served.databases["app"], "a/b") == "sqlite://app/a%2Fb"


def test_of_what_is_served_in_part_nothing_whole_is_given(tmp_path: Path) -> None:
    one, two = make(tmp_path / "one.db"), make(tmp_path / "two.db")
    part = policy("--only", "one=t", one, two)
    assert part.whole_database("two").database.name == "two"
    assert policy(one).whole_database("").database.name == "one"
    with pytest.raises(Refused, match="a copy has everything"):
        part.whole_database("one")
    for named in ("one,two", "two,one"):
        with pytest.raises(Refused, match="read together"):
            part.query_target(named)
        assert isinstance(policy(one, two).query_target(named).read("SELECT 1"), JoiningStatement)


def test_a_database_may_be_named_by_its_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = make(tmp_path / "a" / "app.db"), make(tmp_path / "b" / "app.db")
    served = policy(one)
    for name in ("app.db", os.path.realpath(one)):
        meant = served.database_by_name(name)
        assert meant is not None and meant.name == "app"
    assert served.database_by_name("other.db") is None
    both = policy(one, other)
    meant = both.database_by_name(os.path.realpath(other))
    assert both.database_by_name("app.db") is None and meant is not None and meant.address == os.path.realpath(other)


def test_a_file_is_served_once_and_the_demo_beside_it(tmp_path: Path) -> None:
    path, demo = make(tmp_path / "app.db"), make(tmp_path / "made.db")
    served = Policy(load(Settings, [str(path), str(tmp_path / "x" / ".." / "app.db")]), demo=str(demo))
    assert {name: item.address for name, item in served.databases.items()} == {"demo": str(demo), "app": str(path)}


def test_a_statement_reads_several_databases_that_are_named_with_commas(tmp_path: Path) -> None:
    served = policy(*(make(tmp_path / f"{name}.db") for name in ("a", "b", "c", "d", "e", "f", "a,b")))

    def named(text: str) -> list[str]:
        statement = served.query_target(text).read("SELECT ?", [1])
        assert (statement.sql, statement.parameters) == ("SELECT ?", [1])
        others = statement.others if isinstance(statement, JoiningStatement) else ()
        return [database.name for database in (statement.database, *others)]

    assert named("a, B,c.db") == ["a", "b", "c"] and named("a,b,b") == ["a", "b"] and named("b") == ["b"]
    assert not isinstance(served.query_target("b").read("SELECT 1"), JoiningStatement)
    assert named("a,b,c,d,e") == ["a", "b", "c", "d", "e"]
    assert named("a,b.db") == ["a_b"]  # the name of a file is one, whatever is in it
    for wrong in ("a,a", "b,a,b", "a,b,c,d,e,f"):
        with pytest.raises(Invalid, match="Name up to 5 different ones"):
            served.query_target(wrong)
    for wrong in ("a,", ",a", "a,nowhere"):
        with pytest.raises(Problem):
            served.query_target(wrong)


@pytest.mark.parametrize(("flags", "make_it"), [(["--write"], False), (["--write", "--ddl"], True)])
def test_a_table_is_made_for_a_file_where_rows_and_schema_are_open(
    flags: list[str], make_it: bool, tmp_path: Path
) -> None:
    writable = policy(*flags, make(tmp_path / "app.db")).writable_database("APP")
    table = writable.import_table(parse_table_name("new"))
    assert (table.database.name, table.name, table.make) == ("app", "new", make_it)


def test_a_resource_is_about_the_table_in_its_uri(tmp_path: Path) -> None:
    served = policy(make(tmp_path / "app.db"))
    database = served.databases["app"]
    table = Table(database, "a/b")
    for path, request in {
        ".schema": SchemaOf(database),
        "a%2Fb/.schema": SchemaOf(database, table),
        "a%2Fb/.empty": RowOf(table, ""),
        "a%2Fb/1%2F2": RowOf(table, "1/2"),
    }.items():
        readable = served.readable(f"sqlite://app/{path}")
        assert readable is not None and readable.request == request and served.path(request) == path


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.anyio
async def test_memory_stays_small_when_100_000_rows_are_asked(tmp_path: Path) -> None:
    # One worker: how many there are by then is a matter of speed.
    async with served_process("--workers", 1, make(tmp_path / "app.db")) as wire:

        def resident() -> int:
            pid = wire.process.pid
            children = [
                int(word)
                for task in Path(f"/proc/{pid}/task").iterdir()
                for word in (task / "children").read_text().split()
            ]
            pages = [int(Path(f"/proc/{item}/statm").read_text().split()[1]) for item in (pid, *children)]
            return sum(pages) * os.sysconf("SC_PAGE_SIZE")

        await wire.call("query_rows", sql="SELECT 1")
        before = resident()
        numbers = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT 100000)"
        for _ in range(3):
            sql = f"{numbers} SELECT x, 'some text of a row ' || x, x * 1.5, hex(x) FROM c"
            said = text_of(await wire.call("query_rows", sql=sql, limit=5000, max_bytes=1_000_000))
            assert said.startswith("[truncated: rows 1 to 5000")
        assert resident() - before < 50_000_000
