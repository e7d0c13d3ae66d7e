"""Numbers are added up as people write them, and what is left out or guessed is said."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from filesystem.reading import fill, served
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_fs.engine.search.numbers import DecimalMark, read_number
from mcp_fs.engine.search.query import Query
from mcp_fs.engine.search.text_search import search_text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,892.28", "1892.28"),
        ("1.892,28", "1892.28"),
        ("1,234,567", "1234567"),
        ("1.234.567", "1234567"),
        ("€ 12", "12"),
        ("12,50 €", "12.5"),
        ("-$3.10", "-3.1"),
        ("$ -3.10", "-3.1"),
        ("EUR 1 200,00", "1200"),
        ("1\u202f234,50", "1234.5"),
        ("CHF 1'234.50", "1234.5"),
        ("(12.50)", "-12.5"),
        ("12.50-", "-12.5"),
        ("\u221212", "-12"),
        ('"1,5"', "1.5"),
        ("0,125", "0.125"),
        ("1e3", "1000"),
        (".5", "0.5"),
    ],
)
def test_a_number_is_read_as_people_write_it(text: str, number: str) -> None:
    assert read_number(text).value() == Decimal(number)


@pytest.mark.parametrize(
    "text", ["", "x", "EUR", "12 kg", "2026.11.01", "2026-11-01", "10.0.0.1", "1,23,4", "1 2", "--3", "1,,2", "."]
)
def test_what_is_no_number_is_none(text: str) -> None:
    assert read_number(text).value() is None


def test_three_digits_behind_a_mark_are_read_as_they_are_meant() -> None:
    assert read_number("1,892").value() == 1892
    assert read_number("1,892").value(DecimalMark.COMMA) == Decimal("1.892")
    assert read_number("-1.892").value(DecimalMark.COMMA) == -1892


def _search(path: Path, pattern: str) -> list[str]:
    query = Query(pattern, only_matching=True)
    return search_text([served(path).readable(".")], query, None, CancelToken()).text().splitlines()


def test_the_other_numbers_of_a_file_tell_what_its_marks_mean(tmp_path: Path) -> None:
    fill(tmp_path, {"de": "A;1.892\nA;12,50\n", "en": "A;1,892\nA;12.50\n"})
    assert _search(tmp_path, r"^(?P<key>\w);(?P<sum>.+)$") == [
        "[4 matching lines in 2 files; 1 text, each with its number and sum]",
        "4\tA\t3809.00",
    ]


def test_the_numbers_of_other_files_tell_it_where_those_of_the_file_do_not(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "1.892\n", "b": "12,50\n"})
    assert _search(tmp_path, "(?P<sum>.+)") == [
        "[2 matching lines in 2 files; 1 text, each with its number and sum; 1 number such as `1.892` taken for 1892]",
        "2\t1904.50",
    ]


@pytest.mark.parametrize(
    ("files", "note", "total"),
    [
        ({"a": "1,892\n"}, "1 number such as `1,892` taken for 1892", "1892"),
        ({"a": "1.892\n"}, "1 number such as `1.892` taken for 1.892", "1.892"),
        ({"a": "1.892\n", "b": "1,892\n2.5\n"}, "1 number such as `1.892` taken for 1.892", "1896.392"),
        ({"a": "1.892\n2.5\n0.125\n"}, "", "4.517"),
        ({"a": "1.892\n", "b": "12,50\n12.50\n"}, "1 number such as `1.892` taken for 1.892", "26.892"),
        ({"a": "1.892\n", "b": "12,50\n", "c": "12.50\n"}, "1 number such as `1.892` taken for 1.892", "26.892"),
    ],
)
def test_a_guess_is_told(tmp_path: Path, files: dict[str, str | bytes], note: str, total: str) -> None:
    fill(tmp_path, files)
    head, row = _search(tmp_path, "(?P<sum>.+)")
    assert row.split("\t")[-1] == total
    assert head.endswith(f"{note}]" if note else "its number and sum]")


def test_products_are_added_up_beside_the_sum(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "Lamp\t2\t€ 1,010.50\nLamp XL\t9\t1\nDesk\t1\t3\n", "b": "Lamp\t1\t10\nLamp\t?\t10\n"})
    assert _search(tmp_path, r"^(?P<item>[^\t]+)\t(?P<sum>[^\t]+)\t(?P<times>.+)$") == [
        "[5 matching lines in 2 files; 3 texts, each with its number, sum, and sum of `sum` times `times`; "
        "sums of all 13 and 2043.00; 1 of `sum` or `times` are no numbers and not added, such as `?`]",
        "3\tLamp\t3\t2031.00",
        "1\tLamp XL\t9\t9",
        "1\tDesk\t1\t3",
    ]


def test_a_group_times_without_a_sum_is_any_other(tmp_path: Path) -> None:
    fill(tmp_path, {"a": "x 3\n"})
    assert _search(tmp_path, r"(?P<times>\d)")[1:] == ["1\t3"]


@pytest.mark.parametrize(
    ("numbers", "total"),
    [
        ("0.1\n0.2\n0.30000000000000004\n", "0.6"),
        ("10.50\n2\n", "12.50"),
        ("1e20\n0.25\n", "100000000000000000000.25"),
        ("9" * 40 + "\n1\n", "1" + "0" * 40),
        ("3.141592653589793238\n", "3.14159265358979"),
        ("1e-20\n2e-20\n", "0.00000000000000000003"),
        ("0\n-0\n", "0"),
        ("21000000.12345678\n0.00000001\n", "21000000.12345679"),
    ],
)
def test_a_sum_has_all_its_digits_and_no_noise(tmp_path: Path, numbers: str, total: str) -> None:
    fill(tmp_path, {"a": numbers})
    assert _search(tmp_path, "(?P<sum>.+)")[1].split("\t")[-1] == total


def test_what_is_too_long_for_a_number_is_told_and_not_rounded(tmp_path: Path) -> None:
    fill(tmp_path, {"a": f"x 1\nx {'9' * 1001}\n"})
    head, row = _search(tmp_path, r"(?P<text>\w) (?P<sum>.+)")
    assert "1 of `sum` are no numbers and not added, such as `9999" in head and row == "2\tx\t1", (head, row)
