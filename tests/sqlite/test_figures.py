"""Every figure of a schema says what it is of: all, a sample, or what there was time for."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_sqlite.models import Catalog, TableInfo
from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.schema import catalog, description
from sqlite.serving import run

SHOP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, paid INTEGER);
INSERT INTO orders WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT 60)
    SELECT x, CASE x % 3 WHEN 0 THEN 'gone' ELSE 'active' END, x % 2 FROM c;
CREATE TABLE states (name TEXT);
CREATE TRIGGER orders_check BEFORE INSERT ON orders BEGIN
    SELECT RAISE(ABORT, 'no such state') WHERE NEW.state = 'none';
END;
"""


def ask(path: Path, **request: Any) -> dict[str, Any]:
    with closing(Connections(Interrupt())) as connections:
        connections.interrupt.start(60)
        return operations.run(connections, {"path": str(path), **request}, lambda frame: None)


def list_tables(path: Path) -> str:
    listed = ask(path, do="catalog", name=None, limit=100, budget=5, max_bytes=10_000)
    return Catalog([("shop", {**listed, "folder": None})]).text()


def get_table(path: Path) -> str:
    return TableInfo("sqlite://shop/orders", ask(path, do="describe", table="orders", sample=0, max_cell=100)).text()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    run(path, SHOP)
    return path


def test_values_that_there_was_no_time_for_are_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'state ("active":40|"gone":20)' in list_tables(shop) and "no time" not in list_tables(shop)
    assert '- state: "active" (40), "gone" (20)' in get_table(shop) and "no time" not in get_table(shop)
    monkeypatch.setattr(catalog, "_VALUES_SECONDS", 0)
    monkeypatch.setattr(description, "_VALUES_SECONDS", 0)
    assert "there was no time to read all values of orders, states: `get_table`)" in list_tables(shop)
    assert "\n(there was no time to read the values of all columns)" in get_table(shop)


def test_names_are_found_before_lines_of_triggers(shop: Path) -> None:
    found = ask(shop, do="find", text="state", limit=4)
    line = "line 2 of trigger orders_check: SELECT RAISE(ABORT, 'no such state') WHERE NEW.state = 'none';"
    assert found == {"hits": ["column orders.state TEXT", "table states", line], "more": False}


def test_a_long_trigger_does_not_hide_the_rest(shop: Path) -> None:
    run(shop, f"CREATE TRIGGER long BEFORE DELETE ON orders BEGIN SELECT '{'x' * 1000}'; END")
    text = get_table(shop)
    assert "- long: [truncated: 600 of " in text and "the whole trigger: sqlite://shop/orders/.schema" in text
    assert "- orders_check: CREATE TRIGGER orders_check" in text and len(text) < 1500


def test_rows_of_a_sample_stand_at_no_equal_distances(shop: Path) -> None:
    numbers = "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c LIMIT 200000) SELECT x, x % 4 FROM c"
    run(shop, f"CREATE TABLE turns (id INTEGER PRIMARY KEY, turn INTEGER); INSERT INTO turns {numbers};")
    line = next(line for line in list_tables(shop).splitlines() if line.startswith("- turns"))
    assert sorted(line.partition("(~")[2].rstrip(")").split("|")) == ["0", "1", "2", "3"], line


def test_ranges_are_of_what_can_be_read(shop: Path) -> None:
    run(shop, f"CREATE TABLE kept (of BLOB, note TEXT DEFAULT '{'x' * 60}'); INSERT INTO kept VALUES (x'00', 'a');")
    listed = list_tables(shop)
    assert f'- kept 1 row: of blob, note text default \'{"x" * 39}… (only "a")\n' in listed + "\n", listed


def test_one_value_of_all_rows_is_shown_once(tmp_path: Path) -> None:
    path = tmp_path / "same.db"
    moment, word = "2026-12-01 05:09:58.207739", "a" * 25
    run(path, "CREATE TABLE seen (at text, word text COLLATE NOCASE)")
    run(path, f"INSERT INTO seen VALUES ('{moment}', '{word}'), ('{moment}', '{word.upper()}')")
    listed = list_tables(path)
    assert f'at text (only "{moment}"), word text ("{word}" to "{word}")' in listed, listed


def test_rows_without_the_value_that_all_others_have_are_counted_in_a_list_without_profiles(tmp_path: Path) -> None:
    path = tmp_path / "many.db"
    others = "".join(f"CREATE TABLE other{number} (column{number});" for number in range(9))
    run(path, f"{others}CREATE TABLE seen (id integer primary key, at text)")
    run(path, "INSERT INTO seen (at) VALUES ('2026-12-01 05:09:58'), (NULL), (NULL)")
    listed = list_tables(path)
    assert 'at text (only "2026-12-01 05:09:58", null:2)' in listed, listed
