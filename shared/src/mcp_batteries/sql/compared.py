"""Finds the rows in which two tables or views differ: rows of one side only, and rows with one key but other values.

Everything is SQL that a server runs like callers' queries: within the same limits, and only on what is served. All
facts about rows come from one call and so from one moment. Both databases share the statements; each defines how values
are compared.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import clip
from mcp_batteries.sql.identifiers import identifier
from mcp_batteries.sql.rows import Results, RowPage, compact, count, one_line

__all__ = ["MAX_CELL", "ROWS", "Comparison", "Side", "Words", "compared"]

# So many rows of one key are read, to find which values became which.
ROWS = 100
# So many characters of a value are read, to find where two values differ.
MAX_CELL = 2_000
# So many characters of a value are shown.
_WIDTH = 100
# So many of these characters stand before the first that differs.
_BEFORE = 30
# So many rows of one side only, pairs of values of a column, and keys of a pair are shown.
_SHOWN = 20
_LONGEST = 10_000
# One statement reads the values of so many columns: a result has up to 1,664 in PostgreSQL and 2,000 in SQLite.
_AT_ONCE = 500


@dataclass(frozen=True)
class Side:
    """A table or view.

    Attributes:
        name: for answers.
        spelled: as SQL spells it.
        columns: names and types.
        key: columns of its primary key, or of another unique key.
        masked: names of columns that are not compared.
    """

    name: str
    spelled: str
    columns: dict[str, str]
    key: Sequence[str] = ()
    masked: Collection[str] = ()


@dataclass(frozen=True)
class Words:
    """How one database compares.

    Attributes:
        value: for a column as SQL names it and its types on both sides, an expression that tells two values apart.
        differs: the operator that treats NULL as a value.
    """

    value: Callable[[str, str, str], str]
    differs: str


@dataclass
class Comparison:
    """What `compared` has found.

    Attributes:
        only: for each side, how many rows only it has, and some of them.
        matches: columns that both have, by each side's names.
        changed: how many rows with one key differ, in total and for each column.
        looked: how many of these rows were read.
        pairs: for each column, values of both sides as JSON with their keys, as far as they were read.
        notes: remarks of the server on these rows, such as what is masked in a view.
    """

    sides: tuple[Side, Side]
    how: str
    matches: dict[str, str]
    rows: tuple[int, int] = (0, 0)
    columns: Sequence[str] = ()
    only: list[tuple[int, list[list[Any]]]] = field(default_factory=list[tuple[int, list[list[Any]]]])
    changed: int = 0
    looked: int = 0
    by_column: dict[str, int] = field(default_factory=dict[str, int])
    pairs: dict[str, dict[tuple[str, str], list[str]]] = field(
        default_factory=dict[str, dict[tuple[str, str], list[str]]]
    )
    notes: list[str] = field(default_factory=list[str])

    def text(self) -> str:
        one, other = self.sides
        sizes = [f"{side.name} {count(rows, 'row')}" for side, rows in zip(self.sides, self.rows, strict=True)]
        lines = [f"{', '.join(sizes)}; {self.how}"]
        for side, there in ((one, self.matches.keys()), (other, self.matches.values())):
            if names := [name for name in side.columns if name not in there]:
                lines.append(f"columns only in {side.name}: {', '.join(names)}")
            lines += [f"masked in {side.name}, not compared: {', '.join(side.masked)}"] if side.masked else []
        lines += [f"[{note}]" for note in self.notes]
        if not self.changed and not any(number for number, _ in self.only):
            return _lines([*lines, "No row differs."])
        for side, (number, rows) in zip(self.sides, self.only, strict=True):
            lines.append(f"only in {side.name}: {count(number, 'row')}")
            if rows and compact(self.columns) not in lines:
                lines.append(compact(self.columns))
            lines += (compact([_short(cell) for cell in row]) for row in rows)
            lines += [f"… {number - len(rows):,} more"] if rows and number > len(rows) else []
        if self.by_column:
            lines.append(f"changed: {count(self.changed, 'row')} ({one.name} | {other.name}: key)")
            if self.changed > self.looked:
                lines.append(f"[values of the first {self.looked} of them, in the order of the key]")
        for column, number in self.by_column.items():
            lines.append(f"{column}, {count(number, 'row')}")
            pairs = self.pairs.get(column, {})
            for pair, keys in list(pairs.items())[:_SHOWN]:
                more = f", … {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
                lines.append(f"- {_apart(*pair)}: {', '.join(keys[:_SHOWN])}{more}")
            lines += [f"- … {len(pairs) - _SHOWN} more"] if len(pairs) > _SHOWN else []
        return clip(_lines(lines), _LONGEST, "ask for a part with `query_rows`")


def _short(cell: Any) -> Any:
    text = cell if isinstance(cell, str) else compact(cell)
    return cell if len(text) <= _WIDTH else f"{text[:_WIDTH]}…[cut]"


def _apart(was: str, now: str) -> str:
    """Two values beside each other; long ones from where they begin to differ."""
    if max(len(was), len(now)) <= _WIDTH + len('""'):
        return f"{was} | {now}"
    if was == now:
        return f"{was[:_WIDTH]}…[cut] | begins alike, differs behind the part that was read"
    letters = enumerate(zip(was, now, strict=False))
    same = next((place for place, (one, other) in letters if one != other), min(len(was), len(now)))
    start = same - _BEFORE if same > _WIDTH // 2 else 0
    return " | ".join(
        ("[cut]…" if start else "") + text[start : start + _WIDTH] + ("…[cut]" if len(text) > start + _WIDTH else "")
        for text in (was, now)
    )


def _lines(lines: Sequence[str]) -> str:
    """`lines` as a text; no name can look like one of its lines."""
    return "\n".join(map(one_line, lines))


# Runs statements that only read, with `ROWS` of each and cells up to `MAX_CELL`.
#
# The statements of one call see one moment, or a note says that they do not; those of two calls see two moments.
Run = Callable[[Sequence[str]], Awaitable[RowPage | Results]]


async def compared(one: Side, other: Side, words: Words, run: Run) -> Comparison:
    """Finds the rows in which two tables differ, with notes.

    Raises:
        Problem: they have no column in common, or a query fails.
    """
    notes: list[str] = []

    async def noted(statements: Sequence[str]) -> RowPage | Results:
        results = await run(statements)
        notes.extend(note for page in _pages(results) if isinstance(page, RowPage) for note in page.notes)
        return results

    comparison = await _compared(one, other, words, noted)
    comparison.notes = list(dict.fromkeys(notes))
    return comparison


async def _compared(one: Side, other: Side, words: Words, run: Run) -> Comparison:
    """In which rows two tables differ.

    Rows are matched by the key of either side. Without a common key, or if it does not identify rows, whole rows are
    compared. All rows and numbers come from one call of `run`; only the key is checked before.

    Raises:
        Problem: they have no column in common, or a query fails.
    """
    matches = _matches(one, other)
    common = {name: match for name, match in matches.items() if name not in one.masked and match not in other.masked}
    if not common:
        raise Invalid(f"`{one.name}` and `{other.name}` have no column in common.", "`get_table` shows their columns.")
    key = _key(one, other, common)
    asked = _Asked(one, other, matches, common, key, words)
    how = "they share no key"
    if key:
        counts = [[int(number) for number in rows[0]] for rows in await _answers(run, asked.counts())]
        repeated = [side for side, (_, times, _) in zip((one, other), counts, strict=True) if times]
        if repeated:
            how = f"{', '.join(key)} is not unique in {repeated[0].name}"
        elif all(nulls for _, _, nulls in counts):
            how = f"{', '.join(key)} is NULL in rows of both"
        else:
            comparison = await _by_key(asked, run)
            if comparison is not None:
                return comparison
            how = f"a value of {', '.join(key)} stands for several rows of the other"
    found = await _answers(run, asked.whole_rows())
    rows = int(found[0][0][0]), int(found[1][0][0])
    only = list(map(_only, found[2:]))
    return Comparison((one, other), f"whole rows are compared: {how}", matches, rows, [*common, "times"], only)


def _matches(one: Side, other: Side) -> dict[str, str]:
    """Columns that both have: with the same name, otherwise with one that differs only in case."""
    alike = {_folded(name): name for name in reversed(other.columns) if name not in one.columns}
    both = {name: name if name in other.columns else alike.pop(_folded(name), None) for name in one.columns}
    return {name: match for name, match in both.items() if match is not None}


def _folded(name: str) -> str:
    """`name` as SQL folds it, the letters of ASCII only: SQLite may have `É` beside `é`."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _key(one: Side, other: Side, common: dict[str, str]) -> list[str]:
    """The columns of a key of either side, if both have them, by the names of `one`."""
    if one.key and all(name in common for name in one.key):
        return list(one.key)
    back = {match: name for name, match in common.items()}
    return [back[name] for name in other.key] if other.key and all(name in back for name in other.key) else []


async def _by_key(asked: _Asked, run: Run) -> Comparison | None:
    """None if a row has several with the same key on the other side: as numbers, the texts `1` and `01` are equal."""
    found = await _answers(run, [*asked.sizes(), *asked.only(), *asked.changed()])
    rows = int(found[0][0][0]), int(found[1][0][0])
    only = list(map(_only, found[2:4]))
    if rows[0] - only[0][0] != rows[1] - only[1][0]:
        return None
    how = f"matched by {', '.join(asked.key)}"
    comparison = Comparison((asked.one, asked.other), how, asked.matches, rows, list(asked.common), only)
    if not asked.compared:
        return comparison
    totals = found[4 : 4 + len(asked.parts)]
    parts = found[4 + len(asked.parts) :]
    sums = [number for total in totals for number in total[0][1:]]
    comparison.changed = int(totals[0][0][0])
    comparison.looked = min(map(len, parts))
    comparison.by_column = {
        name: int(number) for name, number in zip(asked.compared, sums, strict=True) if int(number or 0)
    }
    width = len(asked.key)
    for names, changed in zip(asked.parts, parts, strict=True):
        for row in changed[: comparison.looked]:
            keys = [_short(cell) for cell in row[:width]]
            key = compact(keys) if width > 1 else compact(keys[0])
            for place, name in enumerate(names):
                was, now, differs = row[width + 3 * place : width + 3 * place + 3]
                if differs:
                    pairs = comparison.pairs.setdefault(name, {})
                    pairs.setdefault((compact(was), compact(now)), []).append(key)
    return comparison


def _only(rows: list[list[Any]]) -> tuple[int, list[list[Any]]]:
    """The number of rows that only one side has, which is repeated in each row, and the rows to show."""
    return int(rows[0][0]) if rows else 0, [row[1:] for row in rows[:_SHOWN]]


def _pages(results: RowPage | Results) -> Sequence[RowPage | str]:
    return results.found if isinstance(results, Results) else [results]


async def _answers(run: Run, statements: Sequence[str]) -> list[list[list[Any]]]:
    answers: list[list[list[Any]]] = []
    for page in _pages(await run(statements)):
        if not isinstance(page, RowPage):
            raise Invalid(f"They can't be compared: {page}", "Compare what they have in common with `query_rows`.")
        answers.append([json.loads(line) for line in page.lines.split("\n")[:-1]])
    return answers


@dataclass(frozen=True)
class _Asked:
    """The statements that compare two sides, in their database's SQL."""

    one: Side
    other: Side
    matches: dict[str, str]
    common: dict[str, str]
    key: Sequence[str]
    words: Words

    @property
    def compared(self) -> list[str]:
        return [name for name in self.common if name not in self.key]

    @property
    def parts(self) -> list[list[str]]:
        """`compared` in groups that fit into one result: two values of each column, and whether they differ."""
        return [self.compared[place : place + _AT_ONCE] for place in range(0, len(self.compared), _AT_ONCE)]

    def sizes(self) -> list[str]:
        return [f"SELECT count(*) FROM {side.spelled}" for side in (self.one, self.other)]

    def counts(self) -> list[str]:
        """For each side its rows, whether the key has duplicates, and in how many rows it is NULL."""
        statements: list[str] = []
        for side, names in ((self.one, self.key), (self.other, [self.common[name] for name in self.key])):
            columns = ", ".join(map(identifier, names))
            repeated = f"SELECT 1 FROM {side.spelled} WHERE {_none_null(names)} GROUP BY {columns} HAVING count(*) > 1"
            statements.append(
                f"SELECT count(*), (SELECT count(*) FROM ({repeated} LIMIT 1) AS d), (SELECT count(*) FROM"
                f" {side.spelled} WHERE NOT ({_none_null(names)})) FROM {side.spelled}"
            )
        return statements

    def only(self) -> list[str]:
        """Uses joins, for which SQLite creates a missing index; for NOT EXISTS it reads everything for each row."""
        return [
            f"SELECT count(*) OVER (), {self._shown(side)} FROM {here} AS {side} LEFT JOIN {there} AS {rest} ON"
            f" {self._alike()} WHERE {self._column(self.key[0], rest)} IS NULL ORDER BY {self._ordered(side)} LIMIT"
            f" {_SHOWN}"
            for side, here, rest, there in (
                ("a", self.one.spelled, "b", self.other.spelled),
                ("b", self.other.spelled, "a", self.one.spelled),
            )
        ]

    def changed(self) -> list[str]:
        if not self.compared:
            return []
        differ = {
            name: f"{self._value(name, 'a')} {self.words.differs} {self._value(name, 'b')}" for name in self.compared
        }
        joined = f"FROM {self.one.spelled} AS a JOIN {self.other.spelled} AS b ON {self._alike()}"
        # Not as so many ORs: SQLite bounds how deep an expression is.
        rows = (", ".join(self._value(name, side) for name in self.compared) for side in ("a", "b"))
        joined += f" WHERE {f' {self.words.differs} '.join(f'({row})' for row in rows)}"
        sums = {name: f"sum(CASE WHEN {term} THEN 1 ELSE 0 END)" for name, term in differ.items()}
        keys = ", ".join(self._column(name, "a") for name in self.key)
        # Long values that are the same on both sides would fill the page.
        values = {
            name: ", ".join(
                f"CASE WHEN {term} THEN {value} END"
                for value in (self._column(name, "a"), self._column(name, "b"), "1")
            )
            for name, term in differ.items()
        }
        return [
            *(f"SELECT count(*), {', '.join(sums[name] for name in names)} {joined}" for names in self.parts),
            *(
                f"SELECT {keys}, {', '.join(values[name] for name in names)} {joined} ORDER BY {self._ordered('a')}"
                f" LIMIT {ROWS}"
                for names in self.parts
            ),
        ]

    def whole_rows(self) -> list[str]:
        """How many rows each has; then those that one side has more often, and by how much."""
        number = "times"
        while number in map(_folded, self.common):
            number += "_"
        names = [identifier(name) for name in self.common]
        parts = [
            f"SELECT {', '.join(f'{self._value(name, side)} AS {identifier(name)}' for name in self.common)},"
            f" {sign}1 AS {number} FROM {spelled} AS {side}"
            for side, sign, spelled in (("a", "", self.one.spelled), ("b", "-", self.other.spelled))
        ]
        rows = f"FROM ({' UNION ALL '.join(parts)}) AS u GROUP BY {', '.join(names)} HAVING sum({number})"
        ordered = f"ORDER BY {', '.join(names)} LIMIT {_SHOWN}"
        return [
            *self.sizes(),
            *(
                f"SELECT sum({sign}sum({number})) OVER (), {', '.join(names)}, {sign}sum({number}) {rows} {than} 0"
                f" {ordered}"
                for sign, than in (("", ">"), ("-", "<"))
            ),
        ]

    def _alike(self) -> str:
        return " AND ".join(f"{self._value(name, 'a')} = {self._value(name, 'b')}" for name in self.key)

    def _value(self, name: str, side: str) -> str:
        match = self.common[name]
        return self.words.value(self._column(name, side), self.one.columns[name], self.other.columns[match])

    def _column(self, name: str, side: str) -> str:
        return f"{side}.{identifier(name if side == 'a' else self.common[name])}"

    def _shown(self, side: str) -> str:
        return ", ".join(self._column(name, side) for name in self.common)

    def _ordered(self, side: str) -> str:
        return ", ".join(self._column(name, side) for name in self.key)


def _none_null(names: Sequence[str]) -> str:
    return " AND ".join(f"{identifier(name)} IS NOT NULL" for name in names)
