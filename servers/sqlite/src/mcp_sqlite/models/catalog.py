"""Databases and their tables: a line for each table, or run of tables that are alike."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import spell_identifier
from mcp_batteries.sql.language.joins import JoinKey, guess_join_keys
from mcp_batteries.sql.language.table_groups import format_number_ranges, group_numbered_tables
from mcp_batteries.sql.results.row_files import RowFiles
from mcp_batteries.sql.results.rows import format_count, format_size, to_one_line

__all__ = ["Catalog", "render_row_count"]

_Json = Mapping[str, Any]
# What tables may differ in that stand in one line.
_DIFFERENCES = ("name", "rows", "exact", "obstacle", "values_gap", "has_ranges")
# Tables that are named because their values were not read.
_MAX_UNREAD_TABLES = 8
_TIME_RANGE = re.compile(r'"[0-9]{4}-[01][0-9]-[0-3][0-9][^"]*" to "')


@dataclass(frozen=True)
class Catalog:
    """The databases and their tables; one entry per database from the worker's `catalog`.

    Attributes:
        files: of the operator's folder, in the first list.
    """

    databases: Sequence[tuple[str, _Json]]
    cursor: str | None = None
    files: RowFiles | None = None

    def text(self) -> str:
        """Return a block for each database, with a line for each table or run of tables."""
        blocks: list[str] = []
        if self.cursor:
            blocks.append(f"[truncated: the next page: cursor={self.cursor}]")
        for name, database in self.databases:
            if "problem" in database:
                blocks.append(f"{name}: not read: {database['problem']}")
            else:
                blocks.append(_render_database(name, database))
        if self.files:
            blocks.append(self.files.text())
        return "\n".join(blocks)


def _render_database(name: str, database: _Json) -> str:
    tables: Sequence[_Json] = database["tables"]
    count = format_count(database["total"], "table or view", "tables and views")
    if database["unlisted"]:
        count += f" of that name, {format_count(database['unlisted'], 'other')}"
    facts = [
        count,
        format_size(database["bytes"]),
        f"journal {database['journal']}",
    ]
    if database["immutable"]:
        facts.append("opened as a file that can't change: what other programs write is not seen")
    title = name
    if database["folder"]:
        title = f"{name} (in {database['folder']})"
    lines = [f"{title}: {', '.join(facts)}; sqlite://{quote(name, safe='')}/.schema"]
    if database["compact"]:
        lines.append("(columns: `get_table`, or `list_tables` with `name`)")
    guesses = _guess_keys(database)
    legend = _list_legend(tables)
    if guesses:
        legend.append("->?: by its name")
    if legend:
        lines.append(f"({'; '.join(legend)})")
    runs = group_numbered_tables(tables, lambda table: str(table["name"]), _describe_equally)
    lines += [f"- {_render_run(run, guesses.get(run[0]['name'], {}))}" for run in runs]
    return "\n".join(lines)


def _list_legend(tables: Sequence[_Json]) -> list[str]:
    """Return what the signs in the lines of tables mean."""
    legend: list[str] = []
    detailed = [table for table in tables if table["columns"] and table["detailed"]]
    if any(table["needed"] for table in detailed):
        legend.append("!: NOT NULL")
    indexes = "indexes" if all(table["profiled"] for table in detailed) else "UNIQUE"
    if any(table["constraints"] for table in detailed):
        legend.append(f"behind `;` all {indexes}, CHECK, ON DELETE, triggers")
    elif detailed:
        legend.append(f"no {indexes}, CHECK, ON DELETE or triggers")
    legend += _describe_value_lists(tables)
    legend += _describe_ranges(tables)
    unread = _name_tables_with_gap(tables, "no time")
    if unread:
        legend.append(f"there was no time to read all values of {unread}: `get_table`")
    damaged = _name_tables_with_gap(tables, "damage")
    if damaged:
        legend.append(f"the file is damaged where values of {damaged} are: `run_check`")
    return legend


def _name_tables_with_gap(tables: Sequence[_Json], gap: str) -> str:
    """Return the tables of which values were not read for one reason."""
    names = [spell_identifier(str(table["name"])) for table in tables if table["values_gap"] == gap]
    if len(names) > _MAX_UNREAD_TABLES:
        return f"{', '.join(names[:_MAX_UNREAD_TABLES])}, …"
    return ", ".join(names)


def _describe_value_lists(tables: Sequence[_Json]) -> list[str]:
    """Return what the values in the brackets behind columns are."""
    tables_with_values = [table for table in tables if table["values"]]
    if not tables_with_values:
        return []
    legend = ["a|b: all values"]
    if any(table["counts"] for table in tables_with_values):
        legend = ["a|b: all values, :rows of each"]
    if any(table["sampled"] for table in tables_with_values):
        legend.append("~: only those of about 1,000 rows")
    return legend


def _describe_ranges(tables: Sequence[_Json]) -> list[str]:
    """Return what the ranges in the brackets behind columns are."""
    tables_with_ranges = [table for table in tables if table["ranges"]]
    if not tables_with_ranges:
        return []
    legend = ["x to y: least and greatest as ORDER BY sorts"]
    if any(table["profiled"] for table in tables):
        legend = ["x to y: least and greatest as ORDER BY sorts, null:rows if any"]
    if any(not table["has_ranges"] for table in tables):
        legend.append("neither in tables over 100,000 rows or not counted")
    if any(_has_time_range(table) for table in tables_with_ranges):
        legend.append("times have the form of the earliest unless others are named")
    return legend


def _has_time_range(table: _Json) -> bool:
    """Return whether a range in the line of a table is one of times."""
    return any(_TIME_RANGE.match(text) for text in table["ranges"].values())


def _guess_keys(database: _Json) -> dict[str, dict[str, str]]:
    """Return tables that columns seem to refer to, by table and column."""
    columns: dict[str, list[str]] = {}
    declared: list[JoinKey] = []
    for table in database["tables"]:
        columns[table["name"]] = table["columns"]
        declared += [JoinKey(table["name"], (column,), "", ()) for column in table["keys"]]
    guesses: dict[str, dict[str, str]] = {}
    for key in guess_join_keys(columns, database["primary"], declared):
        guesses.setdefault(key.table, {})[key.columns[0]] = key.other
    return guesses


def _describe_equally(table: _Json) -> str:
    """Return what tables have in common that stand in one line."""
    return to_compact_json({name: value for name, value in table.items() if name not in _DIFFERENCES})


def _render_run(run: Sequence[_Json], guesses: Mapping[str, str]) -> str:
    """Return the line of one table, or of several that are alike."""
    table = run[0]
    name = spell_identifier(str(table["name"]))
    if len(run) > 1:
        name += f" … {spell_identifier(str(run[-1]['name']))} ({len(run)} of them)"
    if table["kind"] != "table":
        name += f" ({table['kind']})"
    if table["kind"] != "view":
        name += f" {render_row_count(run)}"
    if not table["columns"]:
        parents = dict.fromkeys(map(spell_identifier, table["keys"].values()))
        if parents:
            name += f" -> {', '.join(parents)}"
        return to_one_line(name)
    columns = [
        _render_listed_column(table, column, type_name, guesses)
        for column, type_name in zip(table["columns"], table["types"], strict=False)
    ]
    if table["more"]:
        columns.append(f"… {table['more']} more")
    constraints = "".join(f"; {constraint}" for constraint in table["constraints"])
    return to_one_line(f"{name}: {', '.join(columns)}{constraints}")


def _render_listed_column(table: _Json, name: str, type_name: str, guesses: Mapping[str, str]) -> str:
    """Return a column in the list of tables: its type if neither a key nor values show it."""
    column = spell_identifier(name)
    if table["detailed"]:
        column += _render_details(table, name, type_name)
    if name in table["primary"]:
        column += " (key)"
    if name in table["keys"]:
        column += f" -> {spell_identifier(table['keys'][name])}"
    elif name in guesses and name not in table["values"]:
        column += f" -> {spell_identifier(guesses[name])}?"
    if name in table["masked"]:
        return f"{column} (masked)"
    if name in table["values"]:
        sign = "~" if table["sampled"] else ""
        return f"{column} ({sign}{'|'.join(table['values'][name])})"
    if name in table["ranges"]:
        return f"{column} ({table['ranges'][name]})"
    return column


def _render_details(table: _Json, name: str, type_name: str) -> str:
    is_plain_key = name in table["primary"] and type_name == "integer"
    shows_type = not (name in table["keys"] or name in table["values"] or is_plain_key)
    details = ""
    if shows_type and type_name:
        details = f" {type_name}"
    if name in table["needed"]:
        details += "!"
    if name in table["defaults"]:
        details += f" default {table['defaults'][name]}"
    return details


def render_row_count(tables: Sequence[_Json]) -> str:
    """Return how many rows a table has, or each of several that are alike."""
    counts = [table["rows"] for table in tables if table["rows"] is not None]
    if len(counts) < len(tables):
        obstacles = [table["obstacle"] for table in tables if table["rows"] is None and table["obstacle"]]
        return f"rows not counted ({obstacles[0]})" if obstacles else "many rows"
    text = f"{format_number_ranges(counts)} {'row' if counts == [1] else 'rows'}"
    if not all(table["exact"] for table in tables):
        text = f"about {text}"
    return f"{text} each" if len(tables) > 1 else text
