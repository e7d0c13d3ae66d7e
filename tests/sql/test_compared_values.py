"""Which values a statement's conditions ask for."""

import pytest

from mcp_batteries.sql.language.compared_values import find_comparisons, is_empty_result


@pytest.mark.parametrize(
    ("sql", "comparisons"),
    [
        ("SELECT 1 FROM t WHERE state = 'done' AND n == 3", [("state", ["'done'"]), ("n", ["3"])]),
        ("SELECT 1 FROM t WHERE t.\"Odd name\" IN ('a', 'it''s')", [("Odd name", ["'a'", "'it''s'"])]),
        ("UPDATE t SET state = 'new' WHERE id IN (1, -2.5)", [("id", ["1", "-2.5"])]),
        ("SELECT sum(state = 'x') FROM t", []),
        ("SELECT 1 FROM t WHERE lower(state) = 'x' AND state <> 'y' AND state NOT IN ('z')", []),
        ("SELECT 1 FROM t WHERE a + b = 3 AND c = 'x' || d AND e = 2 * 3 AND f = 10f", []),
        ("SELECT 1 FROM t WHERE note = 'where state = ''x''' -- AND b = 1", [("note", ["'where state = ''x'''"])]),
        ("SELECT 1 FROM t WHERE /* a = 1 */ b = $1 AND c = 'x", []),
    ],
)
def test_comparisons_with_literals_are_found_behind_the_first_where(
    sql: str, comparisons: list[tuple[str, list[str]]]
) -> None:
    assert [tuple(comparison) for comparison in find_comparisons(sql)] == comparisons


def test_a_result_is_empty_that_has_no_rows_or_counts_nothing() -> None:
    for lines in ("", "[0]\n", "[0,null]\n", '["0"]\n'):
        assert is_empty_result(lines), lines
    for lines in ("[1]\n", "[0]\n[0]\n", '[0,"a"]\n', "[10]\n", '[""]\n'):
        assert not is_empty_result(lines), lines
