"""What databases are called: letters of every script stay, an operator can choose, and two of one name can be told."""

import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings import load
from mcp_sqlite.policy import Policy
from mcp_sqlite.settings import Settings
from sqlite.serving import served, text_of

FILES = {
    "订单.db": "订单", "客户.db": "客户", "заказы.db": "заказы", "Größe.db": "größe", "हिन्दी.db": "हिन्दी",
    "ملف.sqlite": "ملف",
    "My Shop (2).db": "my_shop_2", "app-1.db": "app-1", "+.db": "database", "temp.db": "temp_db", "main.db": "main_db",
}  # fmt: skip


def make(path: Path, value: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (name)")
        connection.execute("INSERT INTO t VALUES (?)", [value])
    connection.close()
    return path


def names(*databases: object) -> list[str]:
    return list(Policy(load(Settings, [*map(str, databases)])).databases)


def test_letters_of_every_script_stay(tmp_path: Path) -> None:
    for file_name, name in FILES.items():
        assert names(make(tmp_path / file_name, "x")) == [unicodedata.normalize("NFC", name)], file_name
    composed = names(make(tmp_path / unicodedata.normalize("NFD", "é.db"), "x"))
    assert composed == ["é"]


def test_an_operator_names_a_database_in_front_of_its_path(tmp_path: Path) -> None:
    path = make(tmp_path / "a=b.db", "x")
    assert names(f"客户={path}") == ["客户"]
    assert names(path) == ["a_b"]
    with pytest.raises(Unavailable, match=r"missing.db` does not exist"):
        names(f"shop={tmp_path / 'missing.db'}")


@pytest.mark.anyio
async def test_a_name_of_any_script_works_in_arguments_uris_and_joins(tmp_path: Path) -> None:
    orders = make(tmp_path / "订单.db", "order")
    temporary = make(tmp_path / "temp.db", "temporary")
    async with served(f"Größe={make(tmp_path / 'x.db', 'big')}", orders, temporary) as wire:
        listed = text_of(await wire.call("list_tables"))
        assert "订单: 1 table or view" in listed and f"sqlite://{quote('订单')}/.schema" in listed, listed
        for name in ("größe", "Größe", unicodedata.normalize("NFD", "größe")):
            assert '["big"]' in text_of(await wire.call("query_rows", database=name, sql="SELECT * FROM t"))
        assert '"order"' in await wire.read(f"sqlite://{quote('订单')}/t")
        joined = await wire.call(
            "query_rows",
            database="订单,temp,größe",
            sql='SELECT a.name, b.name, c.name FROM t a, temp_db.t b, "größe".t c',
        )
        assert '["order","temporary","big"]' in text_of(joined)


@pytest.mark.anyio
async def test_two_of_one_name_show_their_folders(tmp_path: Path) -> None:
    files = [make(tmp_path / folder / "shop.db", folder) for folder in ("one/data", "two/data")]
    async with served(*files, make(tmp_path / "alone.db", "x")) as wire:
        listed = text_of(await wire.call("list_tables"))
        assert "shop (in one/data): 1 table" in listed and "shop_2 (in two/data): 1 table" in listed, listed
        assert "\nalone: 1 table" in listed
        assert '["two/data"]' in text_of(await wire.call("query_rows", database="shop_2", sql="SELECT * FROM t"))


@pytest.mark.anyio
async def test_a_statement_that_is_too_long_is_told_what_takes_more(tmp_path: Path) -> None:
    async with served(make(tmp_path / "x.db", "x")) as wire:
        said = text_of(await wire.call("query_rows", sql="SELECT " + "1" * 100_000))
        assert "`parameters`" in said and "`copy_from_file`" in said, said


@pytest.mark.anyio
async def test_a_name_of_several_words_without_quotes_is_recognized(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.executescript('CREATE TABLE "Order Items" (id, "group" text); CREATE TABLE "select" ("from" int)')
    mistakes = (
        ("SELECT * FROM Order Items", '`"Order Items"`'),
        ("SELECT * FROM select", '`"select"`'),
        ('SELECT group FROM "Order Items"', '`"group"`'),
    )
    async with served(tmp_path / "shop.db") as wire:
        for sql, name in mistakes:
            said = text_of(await wire.call("query_rows", sql=sql))
            assert f"stands in quotes: {name}" in said, said
