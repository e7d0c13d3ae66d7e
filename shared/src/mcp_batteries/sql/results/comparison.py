"""Finds the rows in which two tables or views differ: rows of one side only, and rows with one key but other values.

Everything is SQL that a server runs like callers' queries: within the same limits, and only on what is served. All
facts about rows come from one call and so from one moment. Both databases share the statements; each defines how values
are compared.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mcp_batteries.clipping import clip
from mcp_batteries.errors import Invalid
from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.sql.results.rows import Results, RowPage, format_count, to_one_line

__all__ = ["MAX_CELL_CHARACTERS", "MAX_ROWS", "Comparison", "ComparisonDialect", "TableRef", "compare_tables"]

# So many rows of one key are read, to find which values became which.
MAX_ROWS = 100
# So many characters of a value are read, to find where two values differ.
MAX_CELL_CHARACTERS = 2_000
# So many characters of a value are shown.
_MAX_SHOWN_CHARACTERS = 100
# So many of these characters stand before the first that differs.
_CONTEXT_CHARACTERS = 30
# So many rows of one side only, pairs of values of a column, and keys of a pair are shown, or fewer if the caller says.
_MAX_SHOWN = 20
_MAX_CHARACTERS = 10_000
# One statement reads the values of so many columns: a result has up to 1,664 in PostgreSQL and 2,000 in SQLite.
_MAX_COLUMNS = 500


@dataclass(frozen=True)
class TableRef:
    """A table or view.

    Attributes:
        name: for answers.
        sql_name: its name as SQL spells it.
        columns: names and types.
        key: columns of its primary key, or of another unique key.
        masked: names of columns that are not compared.
    """

    name: str
    sql_name: str
    columns: dict[str, str]
    key: Sequence[str] = ()
    masked: Collection[str] = ()


@dataclass(frozen=True)
class ComparisonDialect:
    """How one database compares.

    Attributes:
        value: for a column as SQL names it and its types on both sides, an expression that tells two values apart.
        differs: the operator that treats NULL as a value.
    """

    value: Callable[[str, str, str], str]
    differs: str


class OnlyRows(NamedTuple):
    """The rows that only one side has.

    Attributes:
        row_count: how many there are.
        rows: those that are shown.
    """

    row_count: int
    rows: list[list[Any]]


@dataclass
class Comparison:
    """What `compare_tables` has found.

    Attributes:
        matching: how rows were matched, in words.
        matches: columns that both have, by each side's names.
        rows: how many rows each side has.
        columns: the columns of the rows in `only`.
        only: for each side, the rows that only it has.
        changed: how many rows with one key differ.
        read_rows: how many of these rows were read.
        by_column: how many rows differ in each column.
        pairs: for each column, values of both sides as JSON with their keys, as far as they were read.
        notes: remarks of the server on these rows, such as what is masked in a view.
        max_shown: how many rows of one side, pairs of values and keys of a pair are shown; 0 for numbers alone.
    """

    sides: tuple[TableRef, TableRef]
    matching: str
    matches: dict[str, str]
    rows: tuple[int, int] = (0, 0)
    columns: Sequence[str] = ()
    only: list[OnlyRows] = field(default_factory=list[OnlyRows])
    changed: int = 0
    read_rows: int = 0
    by_column: dict[str, int] = field(default_factory=dict[str, int])
    pairs: dict[str, dict[tuple[str, str], list[str]]] = field(
        default_factory=dict[str, dict[tuple[str, str], list[str]]]
    )
    notes: list[str] = field(default_factory=list[str])
    max_shown: int = _MAX_SHOWN

    def text(self) -> str:
        lines = self._heading()
        if not self.changed and not any(only.row_count for only in self.only):
            return _join([*lines, "No row differs."])
        lines.extend(self._only_lines())
        lines.extend(self._changed_lines())
        return clip(_join(lines), _MAX_CHARACTERS, "ask for a part with `query_rows`")

    def _heading(self) -> list[str]:
        """Return the lines on the sizes, the columns that are not compared, and the notes."""
        one, other = self.sides
        sizes = [f"{side.name} {format_count(rows, 'row')}" for side, rows in zip(self.sides, self.rows, strict=True)]
        lines = [f"{', '.join(sizes)}; {self.matching}"]
        for side, matched in ((one, self.matches.keys()), (other, self.matches.values())):
            unmatched = [name for name in side.columns if name not in matched]
            if unmatched:
                lines.append(f"columns only in {side.name}: {', '.join(unmatched)}")
            if side.masked:
                lines.append(f"masked in {side.name}, not compared: {', '.join(side.masked)}")
        lines.extend(f"[{note}]" for note in self.notes)
        return lines

    def _only_lines(self) -> Iterator[str]:
        """Yield the lines on the rows of one side only; the columns stand once."""
        has_columns = False
        for side, only in zip(self.sides, self.only, strict=True):
            yield f"only in {side.name}: {format_count(only.row_count, 'row')}"
            rows = only.rows[: self.max_shown]
            if not rows:
                continue
            if not has_columns:
                yield to_compact_json(self.columns)
                has_columns = True
            for row in rows:
                yield to_compact_json([_shorten(cell) for cell in row])
            if only.row_count > len(rows):
                yield f"… {only.row_count - len(rows):,} more"

    def _changed_lines(self) -> Iterator[str]:
        """Yield the lines on rows with one key and other values."""
        one, other = self.sides
        if self.by_column:
            heading = f"changed: {format_count(self.changed, 'row')}, letter case and NULL count"
            if self.max_shown:
                heading += f" ({one.name} | {other.name}: key)"
            yield heading
            if self.max_shown and self.changed > self.read_rows:
                yield f"[values of the first {self.read_rows} of them, in the order of the key]"
        for column, number in self.by_column.items():
            yield f"{column}, {format_count(number, 'row')}"
            if self.max_shown:
                yield from self._pair_lines(column)

    def _pair_lines(self, column: str) -> Iterator[str]:
        """Yield a line for each pair of values of a column, with the keys of their rows."""
        pairs = list(self.pairs.get(column, {}).items())
        for (old, new), keys in pairs[: self.max_shown]:
            key_list = ", ".join(keys[: self.max_shown])
            if len(keys) > self.max_shown:
                key_list += f", … {len(keys) - self.max_shown} more"
            yield f"- {_show_difference(old, new)}: {key_list}"
        if len(pairs) > self.max_shown:
            yield f"- … {len(pairs) - self.max_shown} more"


def _shorten(cell: Any) -> Any:
    text = cell if isinstance(cell, str) else to_compact_json(cell)
    if len(text) <= _MAX_SHOWN_CHARACTERS:
        return cell
    return f"{text[:_MAX_SHOWN_CHARACTERS]}…[cut]"


def _show_difference(old: str, new: str) -> str:
    """Return two values beside each other; long ones from where they begin to differ."""
    if max(len(old), len(new)) <= _MAX_SHOWN_CHARACTERS + len('""'):
        if old == new:
            return f"{old} | looks the same, but its type or spelling differs"
        return f"{old} | {new}"
    if old == new:
        return f"{old[:_MAX_SHOWN_CHARACTERS]}…[cut] | begins alike, differs behind the part that was read"
    common = _common_length(old, new)
    start = 0
    if common > _MAX_SHOWN_CHARACTERS // 2:
        start = common - _CONTEXT_CHARACTERS
    return f"{_excerpt(old, start)} | {_excerpt(new, start)}"


def _common_length(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    for position, (letter, other_letter) in enumerate(zip(one, other, strict=False)):
        if letter != other_letter:
            return position
    return min(len(one), len(other))


def _excerpt(text: str, start: int) -> str:
    end = start + _MAX_SHOWN_CHARACTERS
    excerpt = text[start:end]
    if start:
        excerpt = f"[cut]…{excerpt}"
    if len(text) > end:
        excerpt = f"{excerpt}…[cut]"
    return excerpt


def _join(lines: Sequence[str]) -> str:
    """Return `lines` as a text; no name can look like one of its lines."""
    return "\n".join(map(to_one_line, lines))


# Runs statements that only read, with `MAX_ROWS` of each and cells up to `MAX_CELL_CHARACTERS`.
#
# The statements of one call see one moment, or a note says that they do not; those of two calls see two moments.
Run = Callable[[Sequence[str]], Awaitable[RowPage | Results]]


async def compare_tables(
    one: TableRef, other: TableRef, words: ComparisonDialect, run: Run, max_shown: int | None = None
) -> Comparison:
    """Find the rows in which two tables differ, with notes.

    Args:
        max_shown: how many of them are shown; `_MAX_SHOWN` for None, and 0 for their numbers alone.

    Raises:
        Problem: they have no column in common, or a query fails.
    """
    notes: dict[str, None] = {}

    async def run_with_notes(statements: Sequence[str]) -> RowPage | Results:
        results = await run(statements)
        for page in _pages(results):
            if isinstance(page, RowPage):
                notes.update(dict.fromkeys(page.notes))
        return results

    comparison = await _compare(one, other, words, run_with_notes)
    comparison.notes = list(notes)
    if max_shown is not None:
        comparison.max_shown = max_shown
    return comparison


async def _compare(one: TableRef, other: TableRef, words: ComparisonDialect, run: Run) -> Comparison:
    """Find the rows in which two tables differ.

    Rows are matched by the key of either side. Without a common key, or if it does not identify rows, whole rows are
    compared. All rows and numbers come from one call of `run`; only the key is checked before.

    Raises:
        Problem: they have no column in common, or a query fails.
    """
    matches = _match_columns(one, other)
    common = {name: match for name, match in matches.items() if name not in one.masked and match not in other.masked}
    if not common:
        raise Invalid(f"`{one.name}` and `{other.name}` have no column in common.", "`get_table` shows their columns.")
    key = _find_key(one, other, common)
    statements = _Statements(one=one, other=other, matches=matches, common=common, key=key, words=words)
    obstacle = "they share no key"
    if key:
        obstacle = await _find_key_obstacle(statements, run)
        if not obstacle:
            comparison = await _compare_by_key(statements, run)
            if comparison is not None:
                return comparison
            obstacle = f"a value of {', '.join(key)} stands for several rows of the other"
    one_size, other_size, *only = await _fetch(run, statements.whole_rows())
    return Comparison(
        (one, other),
        f"whole rows are compared: {obstacle}",
        matches,
        rows=(_first_number(one_size), _first_number(other_size)),
        columns=[*common, "times"],
        only=[_only_rows(rows) for rows in only],
    )


async def _find_key_obstacle(statements: _Statements, run: Run) -> str:
    """Return why the key does not identify rows; empty if it does."""
    key = ", ".join(statements.key)
    is_null: list[bool] = []
    for side, rows in zip((statements.one, statements.other), await _fetch(run, statements.counts()), strict=True):
        _, duplicate_count, null_count = rows[0]
        if int(duplicate_count):
            return f"{key} is not unique in {side.name}"
        is_null.append(int(null_count) > 0)
    if all(is_null):
        return f"{key} is NULL in rows of both"
    return ""


def _match_columns(one: TableRef, other: TableRef) -> dict[str, str]:
    """Return the columns that both have: with the same name, otherwise with one that differs only in case."""
    other_by_fold = {_fold(name): name for name in reversed(other.columns) if name not in one.columns}
    matches: dict[str, str] = {}
    for name in one.columns:
        if name in other.columns:
            matches[name] = name
            continue
        match = other_by_fold.pop(_fold(name), None)
        if match is not None:
            matches[name] = match
    return matches


def _fold(name: str) -> str:
    """Fold `name` as SQL does, the letters of ASCII only: SQLite may have `É` beside `é`."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _find_key(one: TableRef, other: TableRef, common: dict[str, str]) -> list[str]:
    """Return the columns of a key of either side, if both have them, by the names of `one`."""
    if one.key and all(name in common for name in one.key):
        return list(one.key)
    name_by_match = {match: name for name, match in common.items()}
    if other.key and all(name in name_by_match for name in other.key):
        return [name_by_match[name] for name in other.key]
    return []


async def _compare_by_key(statements: _Statements, run: Run) -> Comparison | None:
    """Compare rows with the same key; None if a row has several such rows on the other side.

    That happens because the texts `1` and `01` are equal as numbers.
    """
    answers = await _fetch(run, [*statements.sizes(), *statements.only(), *statements.changed()])
    one_size, other_size, one_only, other_only, *changes = answers
    rows = (_first_number(one_size), _first_number(other_size))
    only = [_only_rows(one_only), _only_rows(other_only)]
    if rows[0] - only[0].row_count != rows[1] - only[1].row_count:
        return None
    comparison = Comparison(
        (statements.one, statements.other),
        f"matched by {', '.join(statements.key)}",
        statements.matches,
        rows,
        columns=list(statements.common),
        only=only,
    )
    groups = statements.column_groups
    if groups:
        _count_changes(comparison, groups, changes[: len(groups)])
        _collect_pairs(comparison, groups, changes[len(groups) :], key_width=len(statements.key))
    return comparison


def _count_changes(comparison: Comparison, groups: list[list[str]], totals: list[list[list[Any]]]) -> None:
    """Note how many rows differ, in total and in each column."""
    comparison.changed = _first_number(totals[0])
    for names, total in zip(groups, totals, strict=True):
        for name, number in zip(names, total[0][1:], strict=True):
            if int(number or 0):
                comparison.by_column[name] = int(number)


def _collect_pairs(
    comparison: Comparison, groups: list[list[str]], changes: list[list[list[Any]]], *, key_width: int
) -> None:
    """Note which values became which, from rows with a key, then old value, new value and a mark for each column."""
    comparison.read_rows = min(map(len, changes))
    for names, rows in zip(groups, changes, strict=True):
        for row in rows[: comparison.read_rows]:
            keys = [_shorten(cell) for cell in row[:key_width]]
            key = to_compact_json(keys) if key_width > 1 else to_compact_json(keys[0])
            for number, name in enumerate(names):
                start = key_width + 3 * number
                old, new, differs = row[start : start + 3]
                if differs:
                    pairs = comparison.pairs.setdefault(name, {})
                    pairs.setdefault((to_compact_json(old), to_compact_json(new)), []).append(key)


def _first_number(rows: list[list[Any]]) -> int:
    return int(rows[0][0])


def _only_rows(rows: list[list[Any]]) -> OnlyRows:
    """Return the rows that only one side has; their number is the first column of each row."""
    if not rows:
        return OnlyRows(0, [])
    return OnlyRows(_first_number(rows), [row[1:] for row in rows[:_MAX_SHOWN]])


def _pages(results: RowPage | Results) -> Sequence[RowPage | str]:
    if isinstance(results, Results):
        return results.results
    return [results]


async def _fetch(run: Run, statements: Sequence[str]) -> list[list[list[Any]]]:
    """Run the statements and return the rows of each."""
    answers: list[list[list[Any]]] = []
    for page in _pages(await run(statements)):
        if not isinstance(page, RowPage):
            raise Invalid(f"They can't be compared: {page}", "Compare what they have in common with `query_rows`.")
        answers.append([json.loads(line) for line in page.lines.split("\n")[:-1]])
    return answers


@dataclass(frozen=True)
class _Statements:
    """The statements that compare two sides, in their database's SQL; the sides have the aliases `a` and `b`."""

    one: TableRef
    other: TableRef
    matches: dict[str, str]
    common: dict[str, str]
    key: Sequence[str]
    words: ComparisonDialect

    @property
    def compared_columns(self) -> list[str]:
        return [name for name in self.common if name not in self.key]

    @property
    def column_groups(self) -> list[list[str]]:
        """The compared columns in groups that fit into one result: two values of each, and whether they differ."""
        columns = self.compared_columns
        return [columns[start : start + _MAX_COLUMNS] for start in range(0, len(columns), _MAX_COLUMNS)]

    def sizes(self) -> list[str]:
        return [f"SELECT count(*) FROM {side.sql_name}" for side in (self.one, self.other)]

    def counts(self) -> list[str]:
        """Return statements for each side's rows, whether the key has duplicates, and in how many rows it is NULL."""
        other_key = [self.common[name] for name in self.key]
        return [_count_keys(self.one.sql_name, self.key), _count_keys(self.other.sql_name, other_key)]

    def only(self) -> list[str]:
        """Return statements for the rows of one side only.

        They use joins, for which SQLite creates a missing index; for NOT EXISTS it reads everything for each row.
        """
        return [
            self._only_on_side("a", self.one.sql_name, "b", self.other.sql_name),
            self._only_on_side("b", self.other.sql_name, "a", self.one.sql_name),
        ]

    def _only_on_side(self, alias: str, table: str, other_alias: str, other_table: str) -> str:
        columns = ", ".join(self._column(name, alias) for name in self.common)
        return (
            f"SELECT count(*) OVER (), {columns} FROM {table} AS {alias} LEFT JOIN {other_table} AS {other_alias} ON"
            f" {self._same_key()} WHERE {self._column(self.key[0], other_alias)} IS NULL ORDER BY"
            f" {self._key_columns(alias)} LIMIT {_MAX_SHOWN}"
        )

    def changed(self) -> list[str]:
        """Return statements for the numbers of rows that differ, then statements for their values."""
        if not self.compared_columns:
            return []
        joined = (
            f"FROM {self.one.sql_name} AS a JOIN {self.other.sql_name} AS b ON {self._same_key()}"
            f" WHERE {self._any_differs()}"
        )
        statements: list[str] = []
        for names in self.column_groups:
            sums = ", ".join(f"sum(CASE WHEN {self._differs(name)} THEN 1 ELSE 0 END)" for name in names)
            statements.append(f"SELECT count(*), {sums} {joined}")
        for names in self.column_groups:
            values = ", ".join(self._changed_values(name) for name in names)
            keys = self._key_columns("a")
            statements.append(f"SELECT {keys}, {values} {joined} ORDER BY {keys} LIMIT {MAX_ROWS}")
        return statements

    def _any_differs(self) -> str:
        """Return a comparison of rows, because SQLite bounds how deep an expression with many ORs may be."""
        one_row = ", ".join(self._value(name, "a") for name in self.compared_columns)
        other_row = ", ".join(self._value(name, "b") for name in self.compared_columns)
        return f"({one_row}) {self.words.differs} ({other_row})"

    def _differs(self, name: str) -> str:
        return f"{self._value(name, 'a')} {self.words.differs} {self._value(name, 'b')}"

    def _changed_values(self, name: str) -> str:
        """Return both values of a column and a mark if they differ.

        Long values without changes would fill the page.
        """
        values = (self._column(name, "a"), self._column(name, "b"), "1")
        return ", ".join(f"CASE WHEN {self._differs(name)} THEN {value} END" for value in values)

    def whole_rows(self) -> list[str]:
        """Return statements for how many rows each side has, then for those that one side has more often."""
        number = "times"
        while number in map(_fold, self.common):
            number += "_"
        names = ", ".join(quote_identifier(name) for name in self.common)
        rows = (
            f"FROM ({self._signed_rows('a', self.one.sql_name, '', number)} UNION ALL"
            f" {self._signed_rows('b', self.other.sql_name, '-', number)}) AS u"
            f" GROUP BY {names} HAVING sum({number})"
        )
        statements = self.sizes()
        for sign, operator in (("", ">"), ("-", "<")):
            statements.append(
                f"SELECT sum({sign}sum({number})) OVER (), {names}, {sign}sum({number}) {rows} {operator} 0"
                f" ORDER BY {names} LIMIT {_MAX_SHOWN}"
            )
        return statements

    def _signed_rows(self, alias: str, table: str, sign: str, number: str) -> str:
        """Return a query for a side's rows with 1 or -1, whose sum says which side has a row more often."""
        values = ", ".join(f"{self._value(name, alias)} AS {quote_identifier(name)}" for name in self.common)
        return f"SELECT {values}, {sign}1 AS {number} FROM {table} AS {alias}"

    def _same_key(self) -> str:
        return " AND ".join(f"{self._value(name, 'a')} = {self._value(name, 'b')}" for name in self.key)

    def _value(self, name: str, alias: str) -> str:
        match = self.common[name]
        return self.words.value(self._column(name, alias), self.one.columns[name], self.other.columns[match])

    def _column(self, name: str, alias: str) -> str:
        if alias == "b":
            name = self.common[name]
        return f"{alias}.{quote_identifier(name)}"

    def _key_columns(self, alias: str) -> str:
        return ", ".join(self._column(name, alias) for name in self.key)


def _count_keys(table: str, key: Sequence[str]) -> str:
    """Return a statement for a table's rows, whether its key has duplicates, and in how many rows it is NULL."""
    columns = ", ".join(map(quote_identifier, key))
    without_null = _none_null(key)
    duplicates = f"SELECT 1 FROM {table} WHERE {without_null} GROUP BY {columns} HAVING count(*) > 1"
    return (
        f"SELECT count(*), (SELECT count(*) FROM ({duplicates} LIMIT 1) AS d), (SELECT count(*) FROM"
        f" {table} WHERE NOT ({without_null})) FROM {table}"
    )


def _none_null(names: Sequence[str]) -> str:
    return " AND ".join(f"{quote_identifier(name)} IS NOT NULL" for name in names)
