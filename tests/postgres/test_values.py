"""Every way to a value shows what PostgreSQL itself writes: of every type, in columns of odd names."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from psycopg.types.string import TextLoader

from mcp_batteries.sql.language.identifiers import quote_identifier
from postgres.serving import inside, make, text_of

pytestmark = pytest.mark.anyio

MADE = """
CREATE TYPE mood AS ENUM ('sad', 'it''s "odd"'); CREATE TYPE pair AS (a integer, b text);
CREATE DOMAIN small AS integer CHECK (VALUE > 0); CREATE DOMAIN words AS text; CREATE DOMAIN things AS jsonb;
CREATE TYPE marked AS ENUM ('plain');
CREATE FUNCTION loud(marked) RETURNS text LANGUAGE sql IMMUTABLE AS $$SELECT 'LOUD'$$;
CREATE CAST (marked AS text) WITH FUNCTION loud(marked) AS ASSIGNMENT;
"""
TYPES = {
    "integer": "0 | -2147483648", "bigint": "9007199254740992 | 9007199254740993", "smallint": "-32768",
    "oid": "4294967295", "numeric": "'NaN' | '-Infinity' | 1.50 | 1e-90 | 1e100", "numeric(10,2)": "1.5",
    "real": "'NaN' | '-Infinity' | 0.1 | 1e-45", "double precision": "'NaN' | 0.1 | 5e-324 | 1e300 | 1e16",
    "text": r"""'' | ' ' | E'a\nb\r\t\x7f\x01' | U&'\FEFFx\2028' | '"' | '''' | 'NULL' | '\N' | '[1]' | '{"a":1}'""",
    "varchar(5)": "'abc' | ''", "character(4)": "'ab' | ''", '"char"': "'x' | ''", "name": "'n'",
    "bytea": r"'\x' | '\x00ff'", "boolean": "true | false", "date": "'-infinity' | '0044-03-15 BC' | '20000-01-01'",
    "time": "'24:00'", "timetz": "'12:34+05:30'", "timestamp": "'infinity' | '2026-01-01 12:34:56.7'",
    "timestamptz": "'2026-01-01 12:34:56+05:30' | '0001-01-01 00:00:00+00 BC'",
    "interval": "'1 year 2 days' | '-1 mons +2 days -00:00:00.5'", "integer[]": "'{}' | '{1,NULL,3}' | '{{1,2},{3,4}}'",
    "text[]": r"""ARRAY['a b', '"', '\', '', 'NULL', NULL, '{', ',', '}'] | '{}'""",
    "jsonb": r"""'"x"' | '{"a": [1.10, {"b": null}]}' | '12345678901234567890' | '"\u2028"' | '1e90'""",
    "json": r"""E'{"a" : 1,\n "b": 2}' | '1E400' | ' [0.12345678901234567890 ] ' | E'\t{\r\n}' | '"\ud800"'""",
    "uuid": "'a1b2c3d4-0000-0000-0000-000000000000'", "inet": "'10.0.0.1' | '10.0.0.1/8' | '::1'",
    "cidr": "'10.0.0.0/8'", "macaddr": "'08:00:2b:01:02:03'", "int4range": "'[1,5)' | 'empty' | '(,5]'",
    "int4multirange": "'{[1,2),[4,5)}'", "tstzrange": "'[2026-01-01,)'", "bit(3)": "B'101'", "varbit": "B''",
    "money": "'-1234567.89'", "point": "'(1,2)'", "polygon": "'((0,0),(1,1),(2,0))'", "tsvector": "'a:1 b:2A'",
    "tsquery": "'a & b'", "regclass": "'pg_class'", "xid8": "'18446744073709551615'", "pg_lsn": "'16/B374D848'",
    "tid": "'(1,2)'", "jsonpath": "'$.a[*]'", "mood": """'sad' | 'it''s "odd"'""", "mood[]": "ARRAY['sad']::mood[]",
    "small": "5", "words": "''", "things": """'{"a": 1}'""", "marked": "'plain'",
    "pair": """ROW(1, 'a b') | ROW(NULL, NULL) | ROW(NULL, '') | ROW(1, '\\"')""",
    "pair[]": "ARRAY[ROW(1, 'x')]::pair[]",
}  # fmt: skip
NAMES = ("a b", 'q"q', "it's", "select", "a.b", "a/b", "%41", "?x", "\\", "a\nb", " ", ":x", "$1", "{0}", "a,b", "é")
WHOLE = {"integer", "smallint", "oid", "small"}


def _shown(kind: str, text: str | None) -> Any:
    """How a value that PostgreSQL writes as `text` stands in an answer."""
    if text is None:
        return None
    if kind in WHOLE:
        return int(text)
    if kind in ("bigint", "xid8"):
        return int(text) if abs(int(text)) <= 2**53 else text
    if kind in ("real", "double precision"):
        return float(text) if text[-1].isdigit() else text
    if kind == "bytea":
        return {"base64": base64.b64encode(bytes.fromhex(text[2:])).decode()}
    if kind == "boolean":
        return text == "t"
    return json.loads(text) if kind in ("json", "jsonb", "things") else text


async def test_every_way_shows_what_postgresql_writes(tmp_path: Path) -> None:
    kinds = dict(
        zip([f"{NAMES[n % len(NAMES)]}{n // len(NAMES) or ''}" for n in range(len(TYPES))], TYPES, strict=True)
    )
    values = {name: TYPES[kind].split(" | ") for name, kind in kinds.items()}
    columns = ", ".join(f"{quote_identifier(name)} {kind}" for name, kind in kinds.items())
    base = make(MADE + f'CREATE TABLE "odd %s" (k integer PRIMARY KEY, {columns})')
    with base.connect("owner") as connection:
        for number in range(max(map(len, values.values())) + 1):
            cells = [f"({(each[number : number + 1] or ['NULL'])[0]})::{kinds[name]}" for name, each in values.items()]
            connection.execute(f'INSERT INTO "odd %s" VALUES ({number}, {", ".join(cells)})'.encode())
        connection.execute(b'CREATE TABLE copied (LIKE "odd %s")')

    def written(table: str) -> list[tuple[str | None, ...]]:
        with base.connect() as connection:
            for oid in {column.type_code for column in connection.execute(f"TABLE {table}".encode()).description or ()}:
                connection.adapters.register_loader(oid, TextLoader)
            return connection.execute(f"SELECT * FROM {table} ORDER BY k".encode()).fetchall()

    table, uri = '"odd %s"', "postgres://app/public/odd%20%25s"
    texts = written(table)
    kind_of = {"k": "integer", **kinds}
    wanted = [[_shown(kind, text) for kind, text in zip(kind_of.values(), row, strict=True)] for row in texts]
    async with inside("--write", "--files", tmp_path, f"app={base.url('owner')}") as wire:
        rows = await wire.call("query_rows", sql=f"SELECT * FROM {table} ORDER BY k")
        sample = text_of(await wire.call("get_table", table=f"public.{table}", sample=20)).partition("sample rows:\n")
        for said in (text_of(rows).partition("\n")[2], sample[2]):
            found = [json.loads(line) for line in said.split("\n") if line.startswith("[")]
            assert found[0] == [*kind_of]
            assert list(map(repr, found[1:])) == list(map(repr, wanted))
        document = json.loads(await wire.read(uri))
        assert repr(document["rows"]) == repr(wanted)
        assert [repr(json.loads(await wire.read(f"{uri}/{row[0]}"))["rows"]) for row in wanted] == [
            repr([row]) for row in wanted
        ]
        for number, (name, kind) in enumerate(kind_of.items()):
            text = {"t": "true"}.get(text := texts[0][number] or "", text)
            if kind not in ("json", "jsonb"):
                found = json.loads(await wire.read(f"{uri}?column={quote(name, safe='')}&value={quote(text, safe='')}"))
                assert repr(wanted[0]) in map(repr, found["rows"]), (name, kind, text)
        said = await wire.call("copy_to_file", sql=f"SELECT * FROM {table} ORDER BY k", file="odd.jsonl")
        assert not said.get("isError") and len((tmp_path / "odd.jsonl").read_bytes().splitlines()) == len(wanted), said
        said = text_of(await wire.call("copy_from_file", file="odd.jsonl", table="copied"))
        assert said.startswith(f"Inserted {len(wanted)} rows"), said
        again = [
            [_shown(kind, text) for kind, text in zip(kind_of.values(), row, strict=True)] for row in written("copied")
        ]
        assert list(map(repr, again)) == list(map(repr, wanted))
