"""Files that statements name as tables: read as they are, within bounds, and gone when the call ends."""

import csv
import hashlib
import io
import json
import os
import random
import sqlite3
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import VisibleNames
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from mcp_sqlite.worker.record_files import file_tables, record_file
from sqlite.serving import make, run, served, text_of

PAGE = {"limit": 100, "max_bytes": 20_000, "max_cell": 200, "spool": "", "spool_bytes": 0}
Ask = Callable[..., dict[str, Any]]


class Worker:
    """A worker with a database `a.db` and a folder `files` in `root`."""

    def __init__(self, root: Path, visible_names: VisibleNames | None = None) -> None:
        self.folder, self.path = root / "files", root / "a.db"
        self.folder.mkdir(exist_ok=True)
        make(self.path)
        configured = {} if visible_names is None else {str(self.path): visible_names}
        self.connections = Connections(Interrupt(), configured, os.path.realpath(self.folder))

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def ask(self, sql: str, do: str = "query", *, seconds: float = 30, **more: Any) -> dict[str, Any]:
        self.connections.interrupt.start(seconds)
        request = {"path": str(self.path), "do": do, "sql": sql, **PAGE, **more}
        return operations.run(self.connections, request, lambda frame: None)

    def rows(self, sql: str) -> list[list[Any]]:
        return [json.loads(line) for line in self.ask(sql)["lines"].splitlines()]

    def change(self, sql: str, mode: str = "write", *, dry_run: bool = False) -> dict[str, Any]:
        return self.ask(sql, "change", mode=mode, dry_run=dry_run)

    def refused(self, sql: str, do: str = "query", **more: Any) -> str:
        with pytest.raises(Failure) as caught:
            self.ask(sql, do, **more)
        return f"{caught.value.message} {caught.value.fix}"


@pytest.fixture
def worker(tmp_path: Path) -> Generator[Worker]:
    made = Worker(tmp_path)
    yield made
    made.connections.close()


def test_a_file_is_a_table_until_the_call_ends(worker: Worker) -> None:
    worker.write("sub/dir/new.csv", "id,name,since\n4,d,2026-01-01\n5,,\n")
    before = hashlib.sha256(worker.path.read_bytes()).digest()
    named = '"sub/dir/new.csv"'
    assert worker.rows(f"SELECT * FROM {named}") == [[4, "d", "2026-01-01"], [5, None, None]]
    assert worker.rows("SELECT n.id FROM 'sub/dir/new.csv' n LEFT JOIN t ON t.id = n.id WHERE t.id IS NULL") == [
        [4],
        [5],
    ]
    results = worker.ask(f"SELECT count(*) FROM {named}; SELECT count(*) FROM sqlite_temp_master")["results"]
    assert [page["lines"] for page in results] == ["[2]\n", "[1]\n"]
    assert worker.rows("SELECT count(*) FROM sqlite_temp_master") == [[0]]
    assert "SCAN" in worker.ask(f"SELECT * FROM {named}", "explain")["tree"]
    assert (
        worker.ask(f"SELECT * FROM {named}", "export", folder=str(worker.folder), name="o.csv", most=999)["rows"] == 2
    )
    worker.write("sub/dir/new.csv", "id\n9\n")
    assert worker.rows(f"SELECT * FROM {named}") == [[9]]
    assert hashlib.sha256(worker.path.read_bytes()).digest() == before


def test_rows_of_files_are_written_and_counted_alone(worker: Worker) -> None:
    worker.write("in.csv", "id,name\n4,d\n5,e\n")
    insert = 'INSERT INTO t SELECT * FROM "in.csv"'
    for dry_run in (True, False):
        (step,) = worker.change(insert, dry_run=dry_run)["steps"]
        assert (step["rows"], step["all"], step["tables"]) == (2, 2, ["t"])
    assert worker.rows("SELECT count(*) FROM t") == [[5]]
    late = 'CREATE TABLE copy (id, name); INSERT INTO copy SELECT * FROM "in.csv"; SELECT count(*) FROM copy'
    assert worker.change(late, "migrate")["steps"][1]["all"] == 2
    assert worker.rows("SELECT count(*), (SELECT count(*) FROM sqlite_temp_master) FROM copy") == [[2, 0]]


@pytest.mark.parametrize(
    ("rows", "summed"),
    [("1,234 12,500", "text"), ("1,234 0,500", 1.734), ("1,234 12,50", 13.734), ("1,234 1.234,500", 1235.734)],
)
def test_commas_that_may_part_thousands_are_no_decimal_ones(rows: str, summed: float | str, worker: Worker) -> None:
    worker.write("in.csv", "city;pop\n" + "".join(f"A;{value}\n" for value in rows.split()))
    asked = worker.ask('SELECT round(sum(pop), 3), typeof(pop) FROM "in.csv"')
    if summed == "text":
        assert asked["lines"].endswith('"text"]\n') and '`pop` is text because of "1,234"' in asked["files"][0]
    else:
        assert json.loads(asked["lines"]) == [summed, "real"]


@pytest.mark.parametrize(
    ("mode", "sql"),
    [
        ("write", 'INSERT INTO "in.csv" VALUES (1, 2)'),
        ("write", 'DELETE FROM "in.csv"'),
        ("write", 'UPDATE "in.csv" SET id = 1'),
        ("migrate", 'DROP TABLE "in.csv"'),
        ("migrate", 'CREATE INDEX i ON "in.csv" (id)'),
        ("migrate", 'ALTER TABLE "in.csv" ADD COLUMN x'),
        ("migrate", 'CREATE TEMP TABLE x AS SELECT * FROM "in.csv"'),
        ("migrate", 'CREATE TEMP VIEW x AS SELECT * FROM "in.csv"; SELECT * FROM "in.csv"'),
        ("migrate", 'CREATE TRIGGER temp.x AFTER INSERT ON "in.csv" BEGIN SELECT 1; END'),
    ],
)
def test_statements_only_read_files(mode: str, sql: str, worker: Worker) -> None:
    worker.write("in.csv", "id,name\n4,d\n")
    assert "Nothing was changed." in worker.refused(
        f'SELECT * FROM "in.csv"; {sql}', "change", mode=mode, dry_run=False
    )
    assert (worker.folder / "in.csv").read_text() == "id,name\n4,d\n"
    assert worker.rows("SELECT count(*) FROM sqlite_temp_master") == [[0]]


def test_a_table_of_that_name_is_meant_first(worker: Worker) -> None:
    worker.write("t.csv", "x\nfile\n")
    run(worker.path, 'CREATE TABLE "t.csv" (x); INSERT INTO "t.csv" VALUES (\'table\')')
    assert worker.rows('SELECT x FROM "t.csv"') == [["table"]]


def test_two_files_whose_names_are_one_in_sql_are_told_apart(worker: Worker) -> None:
    worker.write("sub/a.csv", "x\n1\n")
    both = 'SELECT * FROM "sub/a.csv" UNION ALL SELECT * FROM "SUB/A.csv"'
    if os.path.exists(worker.folder / "SUB/A.csv"):  # one file, on systems that fold names
        assert worker.rows(both) == [[1], [1]]
        return
    worker.write("SUB/A.csv", "x\n2\n")
    assert "two files. Read them in two calls." in worker.refused(both)
    assert [worker.rows(f'SELECT * FROM "{name}"') for name in ("sub/a.csv", "SUB/A.csv")] == [[[1]], [[2]]]


def test_a_view_sees_no_file(worker: Worker) -> None:
    worker.write("in.csv", "id\n4\n")
    run(worker.path, 'CREATE VIEW over AS SELECT * FROM "in.csv"')
    assert "no such table" in worker.refused("SELECT * FROM over")
    assert "no such table" in worker.refused('SELECT * FROM over, "in.csv"')


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ('SELECT * FROM "inn.csv"', "Did you mean `in.csv`"),
        ('SELECT * FROM "deep.csv"', "Did you mean `sub/deep.csv`?"),
        ("SELECT * FROM zzzzzzzz.csv", "There are: `in.csv`"),
        ('SELECT * FROM "../a.csv"', "not a name of a file"),
        ('SELECT * FROM "/etc/a.csv"', "not a name of a file"),
        ('SELECT * FROM ".hidden.csv"', "not a name of a file"),
        ('SELECT nam FROM "in.csv"', "Did you mean `name`?"),
        ("SELECT * FROM plain.csv", 'stands in quotes: FROM "plain.csv"'),
        ("SELECT * FROM read_csv('in.csv')", "stands in quotes"),
        (
            'SELECT * FROM "ragged.csv"',
            "`ragged.csv`: Record 1 has 1 fields, the header 2: `1`. Add the fields that are missing",
        ),
        ('SELECT * FROM "twice.csv"', "Two fields have one name, `A`."),
    ],
)
def test_what_is_wrong_is_told_with_the_way_on(sql: str, said: str, worker: Worker) -> None:
    for name in ("in.csv", "sub/deep.csv", "plain.csv", ".hidden.csv"):
        worker.write(name, "id,name\n4,d\n")
    worker.write("ragged.csv", "a,b\n1\n")
    worker.write("twice.csv", "a,A\n1,2\n")
    assert said in worker.refused(sql)
    assert worker.rows("SELECT count(*) FROM sqlite_temp_master") == [[0]]


def test_without_a_folder_the_operator_is_named(tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    worker.connections.folder = None
    worker.write("in.csv", "id\n1\n")
    assert "`--files`" in worker.refused('SELECT * FROM "in.csv"')
    worker.connections.close()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_lead_nowhere(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.csv").write_text("x\nsecret\n")
    (worker.folder / "link.csv").symlink_to(tmp_path / "out" / "secret.csv")
    (worker.folder / "link").symlink_to(tmp_path / "out")
    os.mkfifo(worker.folder / "pipe.csv")
    for name in ("link.csv", "link/secret.csv", "pipe.csv"):
        said = worker.refused(f'SELECT * FROM "{name}"')
        assert "secret.csv`?" not in said and f"`{name}`" in said, said


def test_bounds_are_told(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.write("one.csv", "x\n" + "1\n" * 4000)
    worker.write("two.csv", "x\n" + "1\n" * 4000)
    monkeypatch.setattr(file_tables, "_MAX_FILE_BYTES", 10_000)
    assert worker.rows('SELECT count(*) FROM "one.csv"') == [[4000]]
    said = worker.refused('SELECT count(*) FROM "one.csv", "two.csv"')
    assert "`two.csv` has 8,002 bytes" in said and "`copy_from_file`" in said
    worker.write("bad.csv", "a,b\n" + "1\n" * 3000)
    for _ in range(3):
        assert "Record 1" in worker.refused('SELECT * FROM "bad.csv"')
    monkeypatch.setattr(file_tables, "_MAX_FILE_BYTES", 64_000_000)
    monkeypatch.setattr(file_tables, "_MAX_TABLE_PAGES", 10)
    worker.write("one.csv", "x\n" + "a text\n" * 10_000)
    assert "`one.csv` holds more" in worker.refused('SELECT count(*) FROM "one.csv"')
    with open(worker.folder / "big.csv", "wb") as file:
        file.truncate(100_000_000)
    assert "100,000,000 bytes" in worker.refused('SELECT * FROM "big.csv"')


def test_time_and_cancels_end_the_reading(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.write("in.csv", "x;y\n" + "1;2\n" * 2000)
    for at in (1, 300, 2500, 4500):
        seen = 0
        real = record_file.RecordFile.until_interrupted

        def polled(self: Any, records: Any, at: int = at, real: Any = real) -> Any:
            nonlocal seen
            for record in real(self, records):
                seen += 1
                if seen == at:
                    self.interrupt.cancel()
                yield record

        with monkeypatch.context() as patched:
            patched.setattr(record_file.RecordFile, "until_interrupted", polled)
            assert "Reading `in.csv` was stopped" in worker.refused('SELECT * FROM "in.csv"')
        assert worker.rows("SELECT count(*) FROM sqlite_temp_master") == [[0]]
    assert "stopped" in worker.refused('SELECT * FROM "in.csv"', seconds=0)
    assert worker.rows('SELECT count(*) FROM "in.csv"') == [[2000]]


def test_a_file_that_changes_is_read_again_or_refused(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.write("in.csv", "x\n1\n")
    real, changes = os.fstat, [2]

    def fstat(descriptor: int) -> os.stat_result:
        found = real(descriptor)
        if changes[0]:
            changes[0] -= 1
            with open(worker.folder / "in.csv", "ab") as file:
                file.write(b"2\n")
        return found

    monkeypatch.setattr(os, "fstat", fstat)
    changes[0] = 3
    assert worker.rows('SELECT count(*) FROM "in.csv"')[0][0] in (3, 4)
    changes[0] = 99
    assert "being written" in worker.refused('SELECT count(*) FROM "in.csv"')


def test_nothing_is_locked_while_a_file_is_read(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.write("in.csv", "id,name\n10,x\n")
    real, wrote = record_file.RecordFile.read_snapshot, 0

    def copied(self: Any, most: int) -> Any:
        nonlocal wrote
        with closing(sqlite3.connect(worker.path, timeout=0)) as other:
            other.execute("UPDATE t SET name = 'z' WHERE id = 1")
            other.commit()
        wrote += 1
        return real(self, most)

    monkeypatch.setattr(record_file.RecordFile, "read_snapshot", copied)
    worker.change('INSERT INTO t SELECT * FROM "in.csv"')
    worker.ask('SELECT * FROM t; SELECT * FROM "in.csv"')
    assert wrote == 2


@pytest.mark.parametrize("seed", range(60))
def test_files_are_what_pythons_reader_makes_of_them(seed: int, worker: Worker) -> None:
    chance = random.Random(seed)
    words = ["", "a", "ü", 'say "x"', "two\nlines", "a;b", "a,b", "a|b", " x ", "007", "12", "1.5", "-3"]
    between, end = chance.choice(",;\t|"), chance.choice(["\n", "\r\n"])
    width = chance.randint(2, 5)
    rows = [[chance.choice(words) for _ in range(width)] for _ in range(chance.randint(1, 40))]
    out = io.StringIO()
    csv.writer(out, delimiter=between, lineterminator=end, quoting=chance.choice([0, 1])).writerows(
        [[f"c{number}" for number in range(width)], *rows]
    )
    worker.write("in.csv", chance.choice(["", "\ufeff"]) + out.getvalue())
    found = worker.rows('SELECT * FROM "in.csv"')

    def same(text: str, value: Any) -> bool:
        return value in (text, text or None) or (not isinstance(value, str) and float(text) == value)

    assert len(found) == len(rows)
    assert all(
        same(text, value)
        for row, other in zip(rows, found, strict=True)
        for text, value in zip(row, other, strict=True)
    )


def test_decimal_commas_are_numbers_where_the_whole_column_has_them(worker: Worker) -> None:
    worker.write("in.csv", 'a;b;c;d;e\n1.234,50;1,5;1,5;0123,5;1.234\n-2;x;;1,0;5.678\n"3,25";2,5;7;2,0;9.012\n')
    asked = worker.ask('SELECT *, typeof(a) FROM "in.csv"')
    assert asked["lines"].splitlines() == [
        '[1234.5,"1,5",1.5,"0123,5",1234,"real"]', '[-2.0,"x",null,"1,0",5678,"real"]',
        '[3.25,"2,5",7.0,"2,0",9012,"real"]',
    ]  # fmt: skip
    assert asked["files"] == [
        "`in.csv`: fields are separated by semicolons, "
        "numbers have a decimal comma, dots between thousands, in `a`, `c`, `e`, "
        '`b` is text because of "x", and compared as text, `d` is text because of "0123,5", and compared as text'
    ]
    run(worker.path, "CREATE TABLE n (a REAL, b TEXT, c TEXT, d, e)")
    worker.ask("", "import", folder=str(worker.folder), name="in.csv", table="n", make=False, dry_run=False)
    assert worker.rows("SELECT a, c, e FROM n LIMIT 1") == [[1234.5, "1,5", "1.234"]]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["100", "9", "N/A"], '"N/A"'),
        (["5"] * 1500 + ["?"], '"?"'),
        (["1", " 10", " 9"], '" 10"'),
        (['"1,234.50"', "10.00"], '"1,234.50"'),
        (["$5", "$10"], '"$5"'),
        (["1", "2", "12%"], '"12%"'),
    ],
)
def test_numbers_that_stay_texts_are_told(worker: Worker, values: list[str], why: str) -> None:
    worker.write("in.csv", "id,n\n" + "".join(f"{number},{value}\n" for number, value in enumerate(values)))
    found = worker.ask('SELECT count(*) FROM "in.csv" WHERE n > 50')
    assert found["files"] == [f"`in.csv`: `n` is text because of {why}, and compared as text"]


@pytest.mark.parametrize(
    "values",
    [["1", "2", ""], ["00123", "10115", "20095"], ["2026-01-02", "12.02.2026"], ["12:30", "9:05"], ["a", "b", "1"], []],
)
def test_numbers_codes_dates_and_words_are_told_nothing_of(worker: Worker, values: list[str]) -> None:
    worker.write("in.csv", "id,n\n" + "".join(f"{number},{value}\n" for number, value in enumerate(values)))
    assert worker.ask('SELECT n FROM "in.csv"')["files"] == []


def test_masked_columns_and_tables_that_are_not_served_stay_so(tmp_path: Path) -> None:
    worker = Worker(tmp_path, VisibleNames(["t", "u"], [["t", "name"]]))
    worker.write("in.csv", "id,name\n1,a\n2,x\n")
    assert worker.rows('SELECT t.name FROM t JOIN "in.csv" i ON i.name = t.name') == []
    assert worker.rows('SELECT i.name, t.name FROM "in.csv" i JOIN t USING (id) ORDER BY 1') == [
        ["a", "•••"],
        ["x", "•••"],
    ]
    assert worker.rows('SELECT count(*) FROM "in.csv" NATURAL JOIN t') == [[0]]
    assert "no such table: f" in worker.refused('SELECT * FROM f, "in.csv"')
    assert "no statement may say" in worker.refused('SELECT * FROM main.t, "in.csv"')
    assert "no statement may say" in worker.refused('SELECT * FROM sqlite_temp_master, "in.csv"')
    worker.connections.close()


@pytest.mark.anyio
async def test_a_change_tells_how_it_read_files(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("id;x\n7001;1,5\n7002;2,25\n")
    (folder / "b.csv").write_text("id,x\n7003,1\n")
    async with served("--write", "--files", folder, make(tmp_path / "app.db")) as wire:
        sql = 'INSERT INTO t (id) SELECT id FROM "{}.csv"'
        said = text_of(await wire.call("write_rows", sql=sql.format("a"), dry_run=True))
        told = (
            "`a.csv`: fields are separated by semicolons, numbers have a decimal comma, dots between thousands, in `x`"
        )
        assert f"\nFiles:\n{told}\n" in said
        assert "Files:" not in text_of(await wire.call("write_rows", sql=sql.format("b"), dry_run=True))


def test_a_column_that_a_file_lacks_is_not_that_of_a_table_of_its_name(worker: Worker) -> None:
    run(worker.path, "CREATE TABLE bank (amount)")
    worker.write("bank.csv", "Day,Betrag\n1,2\n")
    said = worker.refused('SELECT amonut FROM "bank.csv"')
    assert 'Tables of this database: `"bank.csv"` (Day, Betrag), `bank` (amount)' in said
    assert "It is a column of `bank`." in worker.refused('SELECT amount FROM "bank.csv"')
    assert "Did you mean `amount`?" in worker.refused("SELECT amonut FROM bank")


def test_a_file_is_not_described_as_a_table_is(worker: Worker) -> None:
    worker.write("in.csv", "a,b\n1,2\n")
    refusal = worker.refused("", "describe", table="in.csv", sample=0)
    assert refusal.endswith('`list_tables` describes files, and `FROM "in.csv"` reads one.')


@pytest.mark.anyio
async def test_an_answer_says_once_how_it_read_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1;2\n")
    async with served("--files", tmp_path, make(tmp_path / "app.db")) as wire:
        sql = "; ".join(['SELECT * FROM "a.csv"'] * 3)
        assert text_of(await wire.call("query_rows", sql=sql)).count("separated by semicolons") == 1


@pytest.mark.anyio
async def test_calls_at_once_read_each_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.csv").write_text("x\n" + "1\n" * 3000)
    (folder / "b.csv").write_text("x\n2\n")
    said: list[str] = []
    async with served("--read-only", "--files", folder, make(tmp_path / "app.db")) as wire:

        async def ask(sql: str) -> None:
            said.append(text_of(await wire.call("query_rows", sql=sql)))

        async with anyio.create_task_group() as tasks:
            for name in ("a", "b", "a", "b"):
                tasks.start_soon(ask, f'SELECT sum(x) AS {name} FROM "{name}.csv"')
        assert sorted(text.split()[-1] for text in said) == ["[2]", "[2]", "[3000]", "[3000]"]
        assert "[0]" in text_of(await wire.call("query_rows", sql="SELECT count(*) FROM sqlite_temp_master"))


@pytest.mark.anyio
async def test_a_quotient_in_json_is_compared_as_the_number_that_it_is(tmp_path: Path) -> None:
    run(tmp_path / "a.db", "CREATE TABLE untyped (mean)")
    means = ["2.5", "10.3333333333333333", "3", "1e-9999999999999999999"]
    (tmp_path / "a.jsonl").write_text("".join(f'{{"mean": {mean}}}\n' for mean in means), "utf-8")
    async with served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        for table in ("untyped", "made"):
            await wire.call("copy_from_file", file="a.jsonl", table=table)
        for source in ("untyped", "made", "'a.jsonl'"):
            sql = f"SELECT mean FROM {source} WHERE mean < 11 AND mean > 2.7 ORDER BY mean DESC LIMIT 1"
            said = text_of(await wire.call("query_rows", sql=sql))
            assert said.endswith("[10.333333333333334]\n"), said
