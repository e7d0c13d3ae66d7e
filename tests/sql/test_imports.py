"""Files come in as they are: a sample of `prove_imports`."""

import csv
import io
import json
import math
import random
import sqlite3
import tracemalloc
from collections import deque
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.policy import parse_encoding
from mcp_batteries.sql.transfer import column_summary
from mcp_batteries.sql.transfer.column_summary import ColumnSummary
from mcp_batteries.sql.transfer.csv_detection import detect_dialect
from mcp_batteries.sql.transfer.csv_records import CsvDialect, read_csv_lines, read_csv_records
from mcp_batteries.sql.transfer.json_records import build_record, read_json_records
from mcp_batteries.sql.transfer.record_fields import refuse_unusable_names
from postgres import serving as postgres
from sql.prove_imports import prove
from sqlite import serving as sqlite


@pytest.mark.anyio
@pytest.mark.parametrize(("server", "cases"), [
    ("sqlite", 30), ("postgres", 10),
    pytest.param("sqlite", 120, marks=pytest.mark.slow), pytest.param("postgres", 40, marks=pytest.mark.slow),
])  # fmt: skip
async def test_a_sample_of_the_proof(server: str, cases: int) -> None:
    tally = await prove(cases, 3, [server])
    assert tally.wrong == []
    assert sum(tally.counts.values()) == cases and len(tally.counts) >= 4, tally.counts


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('a"b,""', '"a""b",""'),
        ('a"b,', '"a""b",'),
        ('a"b,"x\ny"', '"a""b","x\ny"'),
        ('"x ""y""",a"', '"x ""y""","a"""'),
        ('"a,b",c', '"a,b",c'),
    ],
)
def test_a_stray_quote_changes_its_own_field_alone(written: str, text: str) -> None:
    raw = io.BytesIO(f"one,two\n{written}\n".encode())
    (_, _), (row, said) = read_csv_lines(raw, lambda *words: AssertionError(words))
    assert said == text
    assert next(csv.reader(io.StringIO(text))) == row


def test_an_array_behind_objects_is_a_record() -> None:
    raw = io.BytesIO(b'{"a": 1, "b": 2}\n[3, 4]\n[5, 6]\n')
    found = list(read_json_records(raw, lambda *words: AssertionError(words), json.loads))
    assert found == [["a", "b"], [1, 2], [3, 4], [5, 6]]


@pytest.mark.parametrize("text", ['[["a", "b"], [1, 2]]', '[\n["a", "b"],\n[1, 2]]', '["a", "b"]\n[1, 2]\n'])
def test_arrays_are_read_alike_on_one_line_and_on_several(text: str) -> None:
    found = list(read_json_records(io.BytesIO(text.encode()), lambda *words: AssertionError(words), json.loads))
    assert found == [["a", "b"], [1, 2]]


@pytest.mark.parametrize("text", ["[1, 2, 3]", "[[1, 2], [3, 4]]", "[\n1,\n2]"])
def test_values_are_not_taken_for_names_of_fields(text: str) -> None:
    with pytest.raises(AssertionError, match=r"does not name the fields|is not an object"):
        list(read_json_records(io.BytesIO(text.encode()), lambda *words: AssertionError(words), json.loads))


def test_a_quote_that_is_never_closed_is_named() -> None:
    with pytest.raises(AssertionError, match="never closed"):
        list(read_csv_records(io.BytesIO(b'a,b\n1,"x\n2,y\n'), lambda *words: AssertionError(words)))


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "empty"),
        ([None, "", None], "empty"),
        (["2", "10", "9"], "all different, 2 to 10"),
        (["2", "010", "9"], 'all different, "010" to "9"'),
        (["2", "10", "x", ""], 'all different, "2" to "10", 1 empty; numbers but for 1: "x" in record 3'),
        (["a", "b", "a", "a", ""], '"a":3, "b":1, 1 empty'),
        ([1, 1, 2.5, 2.5, -3], "3 different, -3 to 2.5"),
        ([True, True, False, False], "true:2, false:2"),
        ([{"a": 1}, {"a": 1}], '{"a": 1}:2'),
        ([10**400, 1, 1], "2 different, 1 to 10000000000000000000000…"),
        (["x" * 40], f'all different, "{"x" * 23}…" to "{"x" * 23}…"'),
        (["10000000000000000001", "9999999999999999999"], "all different, 9999999999999999999 to 10000000000000000001"),
        ([math.nan, 9.0, 10.0, float("nan"), -math.inf], "4 different, -inf to nan"),
        ([math.nan, 1.5, float("nan")], "2 different, 1.5 to nan"),
        ([[1, 2], [1, 2], [3]], "2 different, [1, 2] to [3]"),
        ([*map(str, range(1200)), "7"], "more than 1,000 different, 0 to 1199"),
    ],
)
def test_what_the_values_of_a_field_are_like(values: list[Any], told: str) -> None:
    seen, records = ColumnSummary(), [["name"], *([value] for value in values)]
    assert list(seen.pass_on(iter(records))) == records
    assert seen.describe() == ([told] if values else [])


@pytest.mark.parametrize(
    ("values", "described"),
    [
        (["9,50", "-1.200,00", "14", "k.A."], '"-1.200,00" to "14"; numbers as 1.234,50 but for 1: "k.A." in record 4'),
        (["9.50", "1,200", "-3"], '"-3" to "1,200"; numbers as 1,234.50'),
        (["1,200", "2,300", "4,000"], '"1,200" to "4,000"'),
        (["31.01.2026", "01.02.2026", "5.3.2025"], '"5.3.2025" to "01.02.2026"; dates as 31.12.2026'),
        (
            ["2026-02-01", "2026-01-31", "yesterday"],
            '"2026-01-31" to "2026-02-01"; dates as 2026-12-31 but for 1: "yesterday" in record 3',
        ),
        (["01067", "99084", "80331"], '"01067" to "99084"'),
        ([f"word {number}" for number in range(60)] + ["5"] * 2, '"5" to "word 9"'),
    ],
)
def test_the_form_of_numbers_and_dates_is_named(values: list[str], described: str) -> None:
    summary = ColumnSummary()
    list(summary.pass_on(iter([["name"], *([value] for value in values)])))
    assert summary.describe()[0].partition(" different, ")[2] == described


def test_long_values_are_counted_and_not_kept() -> None:
    seen = ColumnSummary()
    records = (["name"] if number < 0 else [f"{number // 2:04}" + "x" * 100_000] for number in range(-1, 600))
    tracemalloc.start()
    try:
        for _ in seen.pass_on(records):
            pass
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert seen.describe() == [f'300 different, "0000{"x" * 19}…" to "0299{"x" * 19}…"']


@pytest.mark.parametrize("seed", range(30))
def test_values_are_told_as_sqlite_counts_them(seed: int) -> None:
    draw = random.Random(seed)
    values = [draw.choice(["", str(draw.randint(-50, 50)), f"{draw.random():.6f}"]) for _ in range(400)]
    seen = ColumnSummary()
    assert len(list(seen.pass_on(iter([["n"], *([value] for value in values)])))) == 401
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute("CREATE TABLE t (n)")
        database.executemany("INSERT INTO t VALUES (nullif(?, ''))", [[value] for value in values])
        (row,) = database.execute(
            "SELECT count(DISTINCT n), count(*) - count(n), (SELECT n FROM t WHERE n <> '' ORDER BY CAST(n AS REAL)"
            " LIMIT 1), (SELECT n FROM t WHERE n <> '' ORDER BY CAST(n AS REAL) DESC LIMIT 1) FROM t"
        )
    assert seen.describe() == [f"{row[0]} different, {row[2]} to {row[3]}, {row[1]} empty"]


def classify(value: Any) -> str:
    if not value:
        return ""
    return "number" if str(value).lstrip("-").isdecimal() else "text"


def test_what_keeps_a_field_from_its_type_is_named_and_counted() -> None:
    values = [*map(str, range(20)), "N/A", "N/A", "-", "1,5", "?", ""]
    summary = ColumnSummary(classify, ())
    assert len(list(summary.pass_on(iter([["n"], *([value] for value in values)])))) == 27
    exceptions = '; number but for 5: "N/A" in record 21, "-" in record 23, "1,5" in record 24'
    assert summary.describe() == [f'24 different, "0" to "19", 1 empty{exceptions}']


def test_a_summary_of_some_records_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_summary, "_MAX_DESCRIBED_RECORDS", 10)
    for count, said in ((10, "all different, 0 to 9"), (11, "of the first 10 rows all different, 0 to 9")):
        summary = ColumnSummary()
        assert len(list(summary.pass_on(iter([["n"], *([str(number)] for number in range(count))])))) == count + 1
        assert summary.describe() == [said]


def test_words_for_null_are_empty_fields_in_a_record_and_in_its_text() -> None:
    raw = 'id;price;note\n1;"N/A";-x\n2;1,50;-\n3;"-";""\n'.encode("cp1252")
    dialect = CsvDialect(";", frozenset([1]), "cp1252", frozenset(("N/A", "-")))
    lines = list(read_csv_lines(io.BytesIO(raw), lambda *words: AssertionError(words), dialect))
    assert [row for row, _ in lines[1:]] == [["1", "", "-x"], ["2", "1.50", ""], ["3", "", ""]]
    assert [text for _, text in lines[1:]] == ["1,,-x", "2,1.50,", '3,,""']


@pytest.mark.parametrize(("text", "said"), [
    ("a,b,c\n1,2,3\n4,5\n", "Record 2 has 2 fields, the header 3: `4,5`. Add the fields that are missing"),
    ("a,b\n1,2,3\n", "1 has 3 fields, the header 2: `1,2,3`. Fields are separated by commas; one that holds some"),
    ("Report\n\nid,name\n1,x\n", "the header 1: `id,name`. The first line names the columns: remove what stands above"),
    ('id,name\n1,"M\xfcller"\n', "Name its `encoding`, such as cp1252"),
])  # fmt: skip
def test_a_file_that_is_not_as_it_should_be_is_told_the_way(text: str, said: str) -> None:
    with pytest.raises(AssertionError) as raised:
        list(read_csv_records(io.BytesIO(text.encode("latin-1")), lambda *words: AssertionError(" ".join(words[1:]))))
    assert said in str(raised.value), raised.value


@pytest.mark.parametrize("text", ['[{"a": %s}]', '{"a": 1}\n{"a": %s}\n'])
def test_json_that_is_too_deep_is_told_as_such(text: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(AssertionError, match=r"holds more arrays or objects in one another .* Flatten it"):
        list(
            read_json_records(
                io.BytesIO((text % deep).encode()), lambda *words: AssertionError(" ".join(words[1:])), json.loads
            )
        )


def test_objects_that_bring_a_new_field_each_are_refused_early() -> None:
    text = "".join(f'{{"key {number}": 1}}\n' for number in range(100_000))
    with pytest.raises(AssertionError, match=r"first 2,001 records have 2,001 different fields"):
        deque(read_json_records(io.BytesIO(text.encode()), lambda *words: AssertionError(words), json.loads), maxlen=0)


def test_encodings_are_those_of_texts() -> None:
    assert [parse_encoding(name).name for name in ("cp1252", "UTF-16", "shift_jis")] == [
        "cp1252",
        "UTF-16",
        "shift_jis",
    ]
    for name in ("klingon", "base64", "rot13", "", "a\0"):
        with pytest.raises(Invalid, match="There is no encoding"):
            parse_encoding(name)


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("\n\na,b\n1,2\n", [["a", "b"], ["1", "2"]]),
        (",\n , \na,b\n1,\n,\n", [["a", "b"], ["1", ""], ["", ""]]),
        ("a,b,\n1,2,\n3,,\n", [["a", "b"], ["1", "2"], ["3", ""]]),
        ('a;;b;\n1,5;;"x;y";\n', [["a", "b"], ["1.5", "x;y"]]),
        ("a,\n1,\n", [["a"], ["1"]]),
        ("a,b,\n1,2,\n3,4,5\n", [["a", "b", ""], ["1", "2", ""], ["3", "4", "5"]]),
        (",,\n", []),
    ],
)
def test_what_spreadsheets_leave_around_a_table_is_none_of_it(text: str, records: list[list[str]]) -> None:
    raw = io.BytesIO(text.encode())
    dialect = detect_dialect(raw, _fail, pass_on=lambda rows: rows)
    assert list(read_csv_records(raw, _fail, dialect)) == records
    lines = list(read_csv_lines(raw, _fail, dialect))
    assert [row for row, _ in lines] == records
    assert list(csv.reader(line for _, line in lines)) == records
    assert ("header is" in dialect.describe(records[:1])) == text.startswith(",")
    assert ("left out" in dialect.describe(records[:1])) == (text in ("a,\n1,\n", "a,b,\n1,2,\n3,,\n") or ";" in text)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["", "", "Report"], "does not name the columns: 2 of its 3 fields are empty"),
        ([], "The file has no fields"),
        (["a", "b", ""], "A field behind `b` has values and no name"),
        (["", "b"], "The first field has values and no name"),
        (["a", "b", "A"], "Two fields have one name, `A`"),
        (["a", "b", "c", "d\0"], "The name of a field has a zero byte"),
        (["a", "b", "c", "d", "e"], "has 5 fields, a new table 4 columns at most"),
    ],
)
def test_names_that_can_be_no_columns_are_refused_with_the_reason(names: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        refuse_unusable_names(names, 4, _fail, ignores_case=True)


def _fail(_: str, failure: str, fix: str) -> Exception:
    return ValueError(failure, fix)


def test_a_field_of_whole_numbers_and_others_is_no_exception_to_either() -> None:
    summary = ColumnSummary(
        lambda value: "REAL" if "." in value else "INTEGER",
        (frozenset(("INTEGER", "LONG")), frozenset(("INTEGER", "REAL"))),
    )
    assert list(summary.pass_on(iter([["n"], ["1"], ["2"], ["2.5"]])))
    assert summary.describe() == ["all different, 1 to 2.5"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": 2, "a": 3}\n',
        '[{"a": 1}, {"a": 1, "a": 2}]',
        '{"a": {"b": 1, "b": 2}}',
        '{"a": [1, [{"b": {"c": 1, "c": 2}}]]}',
        '["a"]\n[{"b": 1, "b": 2}]',
    ],
)
def test_a_field_that_stands_twice_is_not_dropped(text: str) -> None:
    def loads(document: str) -> Any:
        return json.loads(document, object_pairs_hook=build_record)

    with pytest.raises(AssertionError, match=r"has a field twice"):
        list(read_json_records(io.BytesIO(text.encode()), lambda *words: AssertionError(words), loads))


@pytest.mark.anyio
async def test_integers_without_a_sign_keep_all_digits(tmp_path: Path) -> None:
    from arro3.core import Array, DataType, Field, RecordBatch, Schema, Table
    from arro3.io import write_parquet

    schema = Schema([Field("id", DataType.uint64(), nullable=True)])
    ids = {"id": Array([1, 2**64 - 1, None], DataType.uint64())}
    batch = RecordBatch.from_pydict(ids, schema=schema)  # pyright: ignore[reportUnknownMemberType]
    write_parquet(Table.from_batches([batch]), tmp_path / "ids.parquet")
    sqlite.run(tmp_path / "a.db", "CREATE TABLE other (a integer)")
    async with sqlite.served("--write", "--ddl", "--files", tmp_path, tmp_path / "a.db") as wire:
        said = sqlite.text_of(await wire.call("copy_from_file", file="ids.parquet", table="ids"))
        assert said.startswith("Inserted 3 rows"), said
        for source in ("ids", '"ids.parquet"'):
            said = sqlite.text_of(await wire.call("query_rows", sql=f"SELECT * FROM {source}"))
            assert said.splitlines()[-3:] == ["[1]", '["18446744073709551615"]', "[null]"], said
    base = postgres.make("CREATE TABLE other (a integer)")
    async with postgres.inside("--write", "--ddl", "--files", tmp_path, base.url("owner")) as wire:
        said = postgres.text_of(await wire.call("copy_from_file", file="ids.parquet", table="ids"))
        assert "Inserted 3 rows" in said and '"id" numeric' in said, said
    assert base.rows("SELECT id FROM ids") == [(1,), (2**64 - 1,), (None,)]


@pytest.mark.parametrize("first", ["sep=;", "\ufeffsep=;\r", '"sep=;"', "SEP=;"])
def test_a_line_that_names_the_separator_is_no_header(first: str) -> None:
    def fails(*words: str) -> Exception:
        return AssertionError(words)

    raw = io.BytesIO(f"{first}\nid;amount\n1;2,5\n".encode())
    dialect = detect_dialect(raw, fails, pass_on=lambda rows: rows)
    assert list(read_csv_records(raw, fails, dialect)) == [["id", "amount"], ["1", "2.5"]]
    assert [text for _, text in read_csv_lines(raw, fails, dialect)] == ["id,amount", "1,2.5"]
    assert list(read_csv_records(io.BytesIO(b"sep=a\n1\n"), fails)) == [["sep=a"], ["1"]]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ("sep=;\nprice, EUR;weight, kg\n1,5;2,5\n", ";"),
        ("sep=\t\na, b\tc\n1, 2\t3\n", "\t"),
        ("sep=|\na;b\n1;2\n", ";"),
        ("sep=^\na;b\n1;2\n", ";"),
    ],
)
def test_the_separator_that_a_file_names_is_taken_if_it_separates_anything(text: str, delimiter: str) -> None:
    raw = io.BytesIO(text.encode())
    assert detect_dialect(raw, _fail, pass_on=lambda rows: rows).delimiter == delimiter
