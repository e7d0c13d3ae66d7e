"""Addresses of other systems, as people copy them: the refusal names the system and what serves it."""

from __future__ import annotations

import pytest

from mcp_batteries.errors import Unavailable
from mcp_batteries.sql.language.database_systems import refuse_other_systems


@pytest.mark.parametrize(
    "address",
    [
        "",
        "postgresql://u:p@h:5432/n",
        "postgres://h/n",
        "POSTGRES://h",
        "host=h dbname=n",
        "service=shop",
        "postgresql:///n?host=/run",
    ],
)
def test_addresses_of_postgresql_pass(address: str) -> None:
    refuse_other_systems(address, "PostgreSQL")


@pytest.mark.parametrize("path", ["/data/app.db", r"C:\data\app.db", "C:/data/app.db", "app.db", "/odd/a:b.db"])
def test_names_of_files_pass(path: str) -> None:
    refuse_other_systems(path, "SQLite")


@pytest.mark.parametrize(
    ("address", "own", "said"),
    [
        ("mysql://root:secret@h/n", "PostgreSQL", "that is MySQL. Write postgresql://"),
        ("mysql+pymysql://root:secret@h/n", "SQLite", "that is MySQL. Write /path/to/file.db"),
        ("jdbc:sqlserver://h;password=secret", "PostgreSQL", "that is SQL Server"),
        ("mongodb+srv://root:secret@h/n", "PostgreSQL", "that is MongoDB"),
        ("sqlite:///app.db", "PostgreSQL", "`mcp-sqlite` serves SQLite"),
        ("postgresql://u:secret@h/n", "SQLite", "`mcp-postgres` serves PostgreSQL"),
        ("jdbc:postgresql://h/n?password=secret", "PostgreSQL", "as other programs write it. Write postgresql://"),
        ("postgresql+psycopg://u:secret@h/n", "PostgreSQL", "`postgresql+psycopg://`, as other programs write it"),
        ("sqlite:///app.db", "SQLite", "Write /path/to/file.db"),
        ("app.db", "PostgreSQL", "`mcp-sqlite` serves SQLite files"),
        ("shop", "PostgreSQL", "neither a URL nor `key=value` text"),
        ("localhost:5432/secret", "PostgreSQL", "neither a URL nor `key=value` text"),
        ("nobody://u:secret@h/n", "SQLite", "`nobody://`, which nobody here knows"),
    ],
)
def test_another_systems_address_is_refused_with_the_one_to_write(address: str, own: str, said: str) -> None:
    with pytest.raises(Unavailable) as refused:
        refuse_other_systems(address, own)  # pyright: ignore[reportArgumentType]
    assert said in str(refused.value) and "secret" not in str(refused.value)
