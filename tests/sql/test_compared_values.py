"""Which values a statement's conditions ask for."""

import pytest

from mcp_batteries.sql.language.compared_values import find_comparisons, find_schemas_of, is_empty_result


@pytest.mark.parametrize(
    ("sql", "comparisons"),
    [
        ("SELECT 1 FROM t WHERE state = 'done' AND n == 3", [("", "state", ["'done'"]), ("", "n", ["3"])]),
        ("SELECT 1 FROM t WHERE t.\"Odd name\" IN ('a', 'it''s')", [("t", "Odd name", ["'a'", "'it''s'"])]),
        ("SELECT 1 FROM s.t WHERE s.t.a = 1 AND 1 + t.b = 2", [("t", "a", ["1"])]),
        ("SELECT 1 FROM t WHERE a = 1 AND a = 1", [("", "a", ["1"])]),
        ("UPDATE t SET state = 'new' WHERE id IN (1, -2.5)", [("", "id", ["1", "-2.5"])]),
        ("SELECT 1 FROM t WHERE a = 'X' COLLATE NOCASE AND b = 'y'::citext AND c = 5 & 3 AND d ->> e = 'v'", []),
        ("SELECT 1 FROM (SELECT upper(a) AS a, b FROM t) q WHERE a = 'X' AND b = 1", [("", "b", ["1"])]),
        (f"SELECT 1 FROM t WHERE id IN ({', '.join('1' * 9)})", []),
        (f"SELECT 1 FROM t WHERE id = 1 {' ' * 10_000}", []),
        ("SELECT sum(state = 'x') FROM t", []),
        ("SELECT 1 FROM t WHERE lower(state) = 'x' AND state <> 'y' AND state NOT IN ('z')", []),
        ("SELECT 1 FROM t WHERE a + b = 3 AND c = 'x' || d AND e = 2 * 3 AND f = 10f", []),
        ("SELECT 1 FROM t WHERE note = 'where state = ''x''' -- AND b = 1", [("", "note", ["'where state = ''x'''"])]),
        ("SELECT 1 FROM t WHERE /* a = 1 */ b = $1 AND c = 'x", []),
    ],
)
def test_comparisons_with_literals_are_found_behind_the_first_where(
    sql: str, comparisons: list[tuple[str, str, list[str]]]
) -> None:
    assert [(*comparison.column, comparison.literals) for comparison in find_comparisons(sql)] == comparisons


def test_a_result_is_empty_that_has_no_rows_or_counts_nothing() -> None:
    for lines in ("", "[0]\n", "[0,null]\n", '["0"]\n'):
        assert is_empty_result(lines), lines
    for lines in ("[1]\n", "[0]\n[0]\n", '[0,"a"]\n', "[10]\n", '[""]\n'):
        assert not is_empty_result(lines), lines


def test_a_qualifier_is_a_table_or_its_alias() -> None:
    sql = 'SELECT 1 FROM jobs AS j JOIN "Odd name" o ON o.id = j.id WHERE j.state = 1'
    [(column, _)] = find_comparisons(sql)
    assert column.may_be_of("jobs", sql) and not column.may_be_of("Odd name", sql)
    assert column._replace(qualifier="o").may_be_of("Odd name", sql)
    assert column._replace(qualifier="JOBS").may_be_of("jobs", sql)


@pytest.mark.parametrize(
    ("sql", "schemas"),
    [
        ('SELECT 1 FROM jobs, App . JOBS, "Old".jobs', {"", "app", "old"}),
        ("SELECT 1 FROM myjobs JOIN jobs2", set()),
        ("WITH jobs AS (SELECT 1) SELECT 1 FROM jobs", set()),
        ("WITH x AS (SELECT 1), jobs (a, b) AS NOT MATERIALIZED (SELECT 1, 2) SELECT 1 FROM app.jobs", set()),
    ],
)
def test_a_table_is_known_by_its_schema_unless_with_defines_it(sql: str, schemas: set[str]) -> None:
    assert find_schemas_of("jobs", sql) == schemas
