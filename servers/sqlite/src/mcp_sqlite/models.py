"""The results of the tools as text: rows as lines of JSON arrays, everything else as lines that a person can read too.

Each result is one text. Rows are sent once: a second, structured copy would double the largest answers, and hosts that
show only structured content fall back to the text where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.limits import clip
from mcp_batteries.sql.alike import folded, spread
from mcp_batteries.sql.joins import Key, guessed, joins
from mcp_batteries.sql.rows import compact, count, one_line, size

__all__ = ["Backup", "Catalog", "Check", "Export", "Plan", "TableInfo"]

_Json = Mapping[str, Any]
_OF_ONE = ("name", "rows", "exact")
"""What tables may differ in that stand in one line."""
_LONGEST = 20_000
"""Characters of a description; hardly any is that long."""
_NEAREST = (
    "nearest rows: WHERE column MATCH ? AND k = 10 ORDER BY distance; MATCH takes a JSON array of numbers, or the "
    "vector of another row by a subquery"
)


@dataclass(frozen=True)
class Catalog:
    """The databases and their tables; one entry per database from the worker's `catalog`."""

    databases: Sequence[tuple[str, _Json]]
    cursor: str | None = None

    def text(self) -> str:
        blocks = [f"[truncated: the next page: cursor={self.cursor}]"] if self.cursor else []
        for name, found in self.databases:
            if "problem" in found:
                blocks.append(f"{name}: not read: {found['problem']}")
                continue
            facts = [count(found["total"], "table or view", "tables and views"), size(found["bytes"])]
            facts.append(f"journal {found['journal']}")
            if found["immutable"]:
                facts.append("opened as a file that can't change: what other programs write is not seen")
            lines = [f"{name}: {', '.join(facts)}; sqlite://{name}/.schema"]
            if found["compact"]:
                lines.append("(columns: `get_table`, or `list_tables` with `name`)")
            notes: list[str] = []
            if any(table["needed"] and table["columns"] and table["detailed"] for table in found["tables"]):
                notes.append("!: NOT NULL")
            if any(table["values"] for table in found["tables"]):
                counted = any(table["counts"] and table["values"] for table in found["tables"])
                each = ", :rows with each" if counted else ""
                notes.append(f"in brackets: all values of columns with few, in the first 1,000 rows{each}")
            lines += [f"({'; '.join(notes)})"] if notes else []
            guesses = _guesses(found)
            runs = folded(found["tables"], lambda table: str(table["name"]), _facts)
            lines += [f"- {_tables(run, guesses.get(run[0]['name'], {}))}" for run in runs]
            blocks.append("\n".join(lines))
        return "\n".join(blocks)


def _guesses(found: _Json) -> dict[str, dict[str, str]]:
    """Tables that columns seem to refer to, by table and column."""
    columns = {table["name"]: table["columns"] for table in found["tables"]}
    known = [Key(table["name"], (column,), "", ()) for table in found["tables"] for column in table["keys"]]
    guesses: dict[str, dict[str, str]] = {}
    for key in guessed(columns, found["primary"], known):
        guesses.setdefault(key.table, {})[key.columns[0]] = key.other
    return guesses


def _facts(table: _Json) -> str:
    return compact({name: value for name, value in table.items() if name not in _OF_ONE})


def _tables(run: Sequence[_Json], guesses: Mapping[str, str]) -> str:
    table = run[0]
    kind = "" if table["kind"] == "table" else f" ({table['kind']})"
    if len(run) > 1:
        kind = f" … {run[-1]['name']} ({len(run)} of them){kind}"
    more = f", … {table['more']} more" if table["more"] else ""
    rows = "" if table["kind"] == "view" else f" {_rows(*run)}"
    keys = table["keys"]
    if not table["columns"]:
        leads = f" -> {', '.join(dict.fromkeys(keys.values()))}" if keys else ""
        return one_line(f"{table['name']}{kind}{rows}{leads}")
    columns = [
        _listed(table, name, kind, guesses) for name, kind in zip(table["columns"], table["types"], strict=False)
    ]
    return one_line(f"{table['name']}{kind}{rows}: {', '.join(columns)}{more}")


def _listed(table: _Json, name: str, kind: str, guesses: Mapping[str, str]) -> str:
    """A column in the list of tables: its type if neither a key nor values show it."""
    keys, values, times = table["keys"], table["values"], table["times"]
    typed = table["detailed"] and not (
        name in keys or name in values or (name in table["primary"] and kind == "integer")
    )
    column = f"{name} {kind}" if typed and kind else name
    column += "!" if table["detailed"] and name in table["needed"] else ""
    column += " (key)" if name in table["primary"] else ""
    if name in keys:
        return f"{column} -> {keys[name]}"
    if name in values:
        return f"{column} ({'|'.join(values[name])})"
    if name in times:
        return f"{column} ({' to '.join(times[name])})"
    return f"{column} -> {guesses[name]}?" if name in guesses else column


def _rows(*tables: _Json) -> str:
    known = [table["rows"] for table in tables if table["rows"] is not None]
    if len(known) < len(tables):
        return "many rows"
    about = "" if all(table["exact"] for table in tables) else "about "
    return f"{about}{spread(known)} {'row' if known == [1] else 'rows'}{' each' if len(tables) > 1 else ''}"


@dataclass(frozen=True)
class TableInfo:
    """One table, from the worker's `describe`."""

    uri: str
    found: _Json

    def text(self) -> str:
        found = self.found
        rows = "" if found["kind"] == "view" else f", {_rows(found)}"
        lines = [one_line(f"{found['kind']} {found['name']}{rows}; {self.uri}")]
        lines += self._defined() if self._is_told_by_its_definition else self._columns()
        keys = [f"- {k['table']}.{k['column']} -> {k['to'] or '(key)'}{_on(k)}" for k in found["referred_by"]]
        lines += ["referred to by:", *map(one_line, keys)] if keys else []
        keys = [f"- {line}" for line in self._joins()]
        lines += ["joined through others:", *map(one_line, keys)] if keys else []
        if indexes := [index for index in found["indexes"] if not self._is_told(index)]:
            lines.append("indexes:")
            for index in indexes:
                facts = [word for word in ("unique", "partial") if index[word]]
                words = f" {' '.join(facts)}" if facts else ""
                lines.append(one_line(f"- {index['name']} ({', '.join(index['columns'])}){words}"))
        if found["triggers"]:
            lines += ["triggers:", *(f"- {name}: {sql}" for name, sql in found["triggers"])]
        if found["kind"] == "vector":
            lines.append(_NEAREST)
        if found["sql"] and not self._is_told_by_its_definition:
            lines += ["definition:", f"{found['sql']};"]
        if "sample" in found:
            lines += ["sample rows:", found["sample"].rstrip("\n")]
        return clip("\n".join(lines), _LONGEST, f"the whole definition: {self.uri}/.schema")

    @property
    def _is_told_by_its_definition(self) -> bool:
        """Whether its definition shows all columns, each in its line."""
        columns: Sequence[_Json] = self.found["columns"]
        shown = all(one_line(str(column["name"])) == column["name"] and not column["masked"] for column in columns)
        return self.found["kind"] == "table" and bool(self.found["sql"]) and not self.found["broken"] and shown

    def _is_told(self, index: _Json) -> bool:
        """Whether a UNIQUE or PRIMARY KEY of the definition made it, over columns with the same names there."""
        made = self._is_told_by_its_definition and str(index["name"]).startswith("sqlite_autoindex_")
        return made and all(str(column) in self.found["sql"] for column in index["columns"])

    def _defined(self) -> list[str]:
        """The definition, and facts about the columns that it does not contain."""
        known = [one_line(f"- {c['name']}: {c['values']}") for c in self.found["columns"] if c.get("values")]
        return [f"{self.found['sql']};", *["frequent values:"] * bool(known), *known]

    def _columns(self) -> list[str]:
        found, lines = self.found, ["columns:"]
        if found["broken"]:
            lines.append(f"- none: it can't be read: {found['broken']}")
        for column in found["columns"]:
            facts = [str(column["type"] or "any")]
            if column["key"]:
                facts.append("primary key" if column["key"] == 1 else f"primary key, part {column['key']}")
            if column["not_null"]:
                facts.append("not null")
            if column["default"] is not None:
                facts.append(f"default {column['default']}")
            if column["hidden"] in (2, 3):
                facts.append("generated")
            elif column["hidden"]:
                facts.append("hidden, not in SELECT *")
            if column["masked"]:
                facts.append("masked")
            values = f"; values: {column['values']}" if column.get("values") else ""
            lines.append(one_line(f"- {column['name']}: {', '.join(facts)}{values}"))
        keys = [f"- {k['column']} -> {k['table']}.{k['to'] or '(key)'}{_on(k)}" for k in found["refers_to"]]
        return [*lines, *["refers to:"] * bool(keys), *map(one_line, keys)]

    def _joins(self) -> list[str]:
        primary: dict[str, str] = self.found["primary"]
        parts: dict[tuple[str, int], list[Any]] = {}
        for table, number, column, other, to in self.found["keys"]:
            parts.setdefault((table, number), []).append((column, other, to))
        spelled = {name.lower(): name for name in (*primary, *(table for table, _ in parts))}
        keys: list[Key] = []
        for (table, _), columns in parts.items():
            said: str = columns[0][1]
            other = spelled.get(said.lower(), said)
            # A key that names no columns refers to the primary key.
            to = tuple(str(column or primary.get(other, "")) for _, _, column in columns)
            if all(to):
                keys.append(Key(table, tuple(column for column, _, _ in columns), other, to))
        near: dict[str, list[str]] = {}
        for table, column in self.found["near"]:
            near.setdefault(table, []).append(column)
        return joins([*keys, *guessed(near, primary, keys)], self.found["name"])


def _on(key: _Json) -> str:
    action = key.get("on_delete")
    return "" if action in (None, "NO ACTION") else f" (on delete {action.lower()})"


@dataclass(frozen=True)
class Plan:
    """How SQLite would run a statement."""

    tree: str
    scans: Sequence[str]
    indexes: Sequence[str]
    then: str = ""
    """The tree with `indexes`."""
    tried: int = 0
    """Candidates for indexes."""

    def text(self) -> str:
        lines = [self.tree or "Nothing to plan: the statement reads no table."]
        if self.scans:
            lines.append(f"Reads whole: {'; '.join(scan.removeprefix('SCAN ') for scan in self.scans)}.")
        if self.indexes:
            lines += ["With these indexes:", *self.indexes]
            lines += ["The plan then:", self.then]
        elif self.scans:
            lines.append(
                f"None of the {self.tried} indexes that were tried would help: over what is compared and ordered by, "
                "alone and together."
                if self.tried
                else "No index was found to try."
            )
        return clip("\n".join(lines), _LONGEST, "explain a part of the statement")


@dataclass(frozen=True)
class Check:
    """The result of an integrity check."""

    database: str
    said: Sequence[str]
    keys: Sequence[str]

    def text(self) -> str:
        if not self.said and not self.keys:
            return f"`{self.database}` is whole: no damage, no foreign key points nowhere."
        said = "\n".join([f"`{self.database}` has problems:", *self.said, *self.keys])
        return (
            said
            if not self.said
            else f"{said}\nA backup is the remedy; `.recover` of the sqlite3 shell saves what it can."
        )


@dataclass(frozen=True)
class Export:
    name: str
    rows: int
    size: int

    def text(self) -> str:
        return f"Wrote {count(self.rows, 'row')}, {size(self.size)}, to `{self.name}`."


@dataclass(frozen=True)
class Backup:
    name: str
    size: int

    def text(self) -> str:
        return f"Wrote a consistent copy, {size(self.size)}, to `{self.name}`."
