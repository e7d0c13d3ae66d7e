"""Saved queries: what a file may say, and what becomes of one that says it wrongly."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mcp_batteries.errors import Invalid
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery, parse


@pytest.mark.parametrize("name", ["class", "model_year", "_hidden", "Author", "größe"])
def test_a_parameter_that_can_be_no_argument_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(Invalid, match=f":{name} text") as refused:
        parse("q", f"-- Books.\n-- :{name} text\nSELECT 1")
    assert "small letters" in str(refused.value)


@pytest.mark.parametrize("kind", ["integer[] = 1", "text(9) = 'x'", "real, = 1"])
def test_no_default_is_lost_behind_a_type_that_there_is_not(kind: str) -> None:
    with pytest.raises(Invalid, match="is not understood"):
        parse("q", f"-- Books.\n-- :most {kind}\nSELECT 1")


def test_a_query_is_kept_letter_by_letter() -> None:
    sql = "SELECT 'a\u2028b\x0cc\x85'\nFROM t"
    assert parse("q", f"-- Books.\n\n{sql}\n").sql == sql


async def _fine(query: SavedQuery) -> None:
    if "broken" in query.sql:
        raise Invalid("There is no column `broken`.", "Look at the table.")


@pytest.mark.anyio
async def test_a_name_that_is_taken_is_not_served_and_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("check.sql", "Best Books.sql", "best-books.sql"):
        (tmp_path / name).write_text("-- Books.\nSELECT 1")
    queries = SavedQueries(str(tmp_path), _fine, reserved_names=("check",))
    with caplog.at_level(logging.WARNING):
        assert await queries.refresh() == {"best_books"}
        await queries.refresh()
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "check.sql" in said[1]
    assert "best-books.sql" in said[0]


@pytest.mark.anyio
async def test_queries_that_are_too_many_are_not_left_out_silently(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(103):
        (tmp_path / f"q{number:03}.sql").write_text("-- Books.\nSELECT 1")
    queries = SavedQueries(str(tmp_path), _fine)
    with caplog.at_level(logging.WARNING):
        assert len(await queries.refresh()) == 100
        await queries.refresh()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "`q100.sql`" in said and "Only the first 100 files" in said


@pytest.mark.anyio
async def test_a_query_that_breaks_keeps_its_last_good_version_with_the_complaint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "books.sql"
    file.write_text("-- Books.\nSELECT 1")
    queries = SavedQueries(str(tmp_path), _fine)
    await queries.refresh()
    file.write_text("-- Books.\nSELECT broken")
    with caplog.at_level(logging.WARNING):
        assert await queries.refresh() == {"books"}
    assert queries.queries["books"].sql == "SELECT 1"
    assert "no column" in (queries.queries["books"].complaint or "")
    assert "no column" in caplog.text
    file.write_text("-- Books.\nSELECT 2")
    assert await queries.refresh() == {"books"}
    assert queries.queries["books"].complaint is None
