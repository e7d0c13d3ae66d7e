"""One table by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcp_batteries.clipping import clip
from mcp_batteries.sql.language.joins import JoinKey, describe_joins, guess_join_keys
from mcp_batteries.sql.results.rows import to_one_line
from mcp_sqlite.models.catalog import render_row_count

__all__ = ["TableInfo"]

_Json = Mapping[str, Any]
# Characters of a result; hardly any is that long.
_MAX_LENGTH = 20_000
# Characters of a trigger: some are longer than all else that is said of their table.
_MAX_TRIGGER_LENGTH = 600
_HOW_TO_FIND_NEAREST = (
    "nearest rows: WHERE column MATCH ? AND k = 10 ORDER BY distance; MATCH takes a JSON array of numbers, or the "
    "vector of another row by a subquery"
)
_GENERATED = (2, 3)


@dataclass(frozen=True)
class TableInfo:
    """One table, from the worker's `describe`."""

    uri: str
    description: _Json

    def text(self) -> str:
        """Return the definition or the columns, and what depends on the table."""
        lines = [
            self._render_heading(),
            *(self._render_definition() if self._is_shown_by_definition else self._render_columns()),
            *_render_list("referred to by:", map(_render_incoming_key, self.description["referred_by"])),
            *_render_list("joined through others:", self._find_joins()),
            *_render_list("indexes:", map(_render_index, self._list_further_indexes())),
            *self._render_triggers(),
        ]
        if self.description["kind"] == "vector":
            lines.append(_HOW_TO_FIND_NEAREST)
        if self.description["sql"] and not self._is_shown_by_definition:
            lines += ["definition:", f"{self.description['sql']};"]
        if "sample" in self.description:
            note = self.description["sample_note"]
            heading = f"sample rows, {note}" if note else "sample rows:"
            lines += [heading, self.description["sample"].rstrip("\n")]
        return clip("\n".join(lines), _MAX_LENGTH, f"the whole definition: {self.uri}/.schema")

    def _render_heading(self) -> str:
        heading = f"{self.description['kind']} {self.description['name']}"
        if self.description["kind"] != "view":
            heading += f", {render_row_count([self.description])}"
        return to_one_line(f"{heading}; {self.uri}")

    @property
    def _is_shown_by_definition(self) -> bool:
        """Whether the definition shows all columns, each in its line."""
        if self.description["kind"] != "table" or not self.description["sql"] or self.description["broken"]:
            return False
        columns: Sequence[_Json] = self.description["columns"]
        return all(to_one_line(str(column["name"])) == column["name"] and not column["masked"] for column in columns)

    def _list_further_indexes(self) -> list[_Json]:
        """Return the indexes that the definition does not show."""
        return [index for index in self.description["indexes"] if not self._is_index_shown(index)]

    def _is_index_shown(self, index: _Json) -> bool:
        """Return whether a UNIQUE or PRIMARY KEY of the definition made it, over columns with the same names there."""
        if not self._is_shown_by_definition or not str(index["name"]).startswith("sqlite_autoindex_"):
            return False
        return all(str(column) in self.description["sql"] for column in index["columns"])

    def _render_definition(self) -> list[str]:
        """Return the definition, and facts about the columns that it does not contain."""
        columns = [column for column in self.description["columns"] if column.get("values")]
        values = [f"{column['name']}: {column['values']}" for column in columns]
        lines = [f"{self.description['sql']};", *_render_list(self._values_heading(), values)]
        match self.description["values_gap"]:
            case "no time":
                lines.append("(there was no time to read the values of all columns)")
            case "damage":
                lines.append("(the file is damaged where values of this table are: `run_check`)")
            case _:
                pass
        return lines

    def _values_heading(self) -> str:
        """Return what the counts of values are counts of."""
        if self.description["values_of"]:
            return f"frequent values in a sample, {self.description['values_of']}:"
        return "frequent values:"

    def _render_columns(self) -> list[str]:
        lines = ["columns:"]
        if self.description["broken"]:
            lines.append(f"- none: it can't be read: {self.description['broken']}")
        lines += [
            to_one_line(f"- {_render_column(column, self.description['values_of'])}")
            for column in self.description["columns"]
        ]
        return [*lines, *_render_list("refers to:", map(_render_own_key, self.description["refers_to"]))]

    def _render_triggers(self) -> list[str]:
        triggers: list[str] = []
        for name, sql in self.description["triggers"]:
            triggers.append(f"- {name}: {clip(sql, _MAX_TRIGGER_LENGTH, f'the whole trigger: {self.uri}/.schema')}")
        return ["triggers:", *triggers] if triggers else []

    def _find_joins(self) -> list[str]:
        """Return how the table is joined with others, through others."""
        primary: dict[str, str] = self.description["primary"]
        keys = _read_keys(self.description["keys"], primary)
        id_columns: dict[str, list[str]] = {}
        for table, column in self.description["id_columns"]:
            id_columns.setdefault(table, []).append(column)
        return describe_joins([*keys, *guess_join_keys(id_columns, primary, keys)], self.description["name"])


class _KeyColumn(NamedTuple):
    """A column of a foreign key, and the one that it refers to; None for the primary key."""

    column: str
    parent: str
    parent_column: str | None


def _read_keys(rows: Sequence[tuple[str, int, str, str, str | None]], primary: Mapping[str, str]) -> list[JoinKey]:
    """Return the foreign keys of all tables, whose columns stand in a row each."""
    keys: dict[tuple[str, int], list[_KeyColumn]] = {}
    for table, number, column, parent, parent_column in rows:
        keys.setdefault((table, number), []).append(_KeyColumn(column, parent, parent_column))
    tables = [table for table, _ in keys]
    spellings = {name.lower(): name for name in (*primary, *tables)}
    complete: list[JoinKey] = []
    for (table, _), columns in keys.items():
        parent = spellings.get(columns[0].parent.lower(), columns[0].parent)
        # A key that names no columns refers to the primary key.
        parent_columns = tuple(str(column.parent_column or primary.get(parent, "")) for column in columns)
        if all(parent_columns):
            complete.append(JoinKey(table, tuple(column.column for column in columns), parent, parent_columns))
    return complete


def _render_list(heading: str, items: Iterable[str]) -> list[str]:
    """Return a heading with a line for each item; nothing without items."""
    lines = [to_one_line(f"- {item}") for item in items]
    return [heading, *lines] if lines else []


def _render_column(column: _Json, sample: str) -> str:
    facts = [str(column["type"] or "any")]
    if column["key"]:
        facts.append("primary key" if column["key"] == 1 else f"primary key, part {column['key']}")
    if column["not_null"]:
        facts.append("not null")
    if column["default"] is not None:
        facts.append(f"default {column['default']}")
    if column["hidden"] in _GENERATED:
        facts.append("generated")
    elif column["hidden"]:
        facts.append("hidden, not in SELECT *")
    if column["masked"]:
        facts.append("masked")
    line = f"{column['name']}: {', '.join(facts)}"
    if column.get("values") and sample:
        line += f"; values in a sample, {sample}: {column['values']}"
    elif column.get("values"):
        line += f"; values: {column['values']}"
    return line


def _render_incoming_key(key: _Json) -> str:
    return f"{key['table']}.{key['column']} -> {key['to'] or '(key)'}{_render_delete_action(key)}"


def _render_own_key(key: _Json) -> str:
    return f"{key['column']} -> {key['table']}.{key['to'] or '(key)'}{_render_delete_action(key)}"


def _render_delete_action(key: _Json) -> str:
    action = key.get("on_delete")
    return "" if action in (None, "NO ACTION") else f" (on delete {action.lower()})"


def _render_index(index: _Json) -> str:
    words = [f"{index['name']} ({', '.join(index['columns'])})"]
    words += [fact for fact in ("unique", "partial") if index[fact]]
    return " ".join(words)
