"""The results of the tools as text: rows as lines of JSON arrays, everything else as lines that a person can read too.

Each result is one text. Rows are sent once: a second, structured copy would double the largest answers, and hosts that
show only structured content fall back to the text where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from mcp_batteries.clipping import clip
from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import spell_identifier
from mcp_batteries.sql.language.joins import JoinKey, describe_joins, guess_join_keys
from mcp_batteries.sql.language.table_groups import format_number_ranges, group_numbered_tables
from mcp_batteries.sql.results.row_files import RowFiles
from mcp_batteries.sql.results.rows import format_count, format_size, to_one_line

__all__ = ["Backup", "Catalog", "Check", "Plan", "TableInfo"]

_Json = Mapping[str, Any]
# What tables may differ in that stand in one line.
_DIFFERENCES = ("name", "rows", "exact", "obstacle", "values_gap", "has_ranges")
# Characters of a description; hardly any is that long.
_MAX_LENGTH = 20_000
# Characters of a trigger: some are longer than all else that is said of their table.
_MAX_TRIGGER_LENGTH = 600
# Tables that are named because their values were not read.
_MAX_UNREAD_TABLES = 8
_HOW_TO_FIND_NEAREST = (
    "nearest rows: WHERE column MATCH ? AND k = 10 ORDER BY distance; MATCH takes a JSON array of numbers, or the "
    "vector of another row by a subquery"
)
_GENERATED = (2, 3)
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
        name += f" {_render_row_count(run)}"
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


def _render_row_count(tables: Sequence[_Json]) -> str:
    counts = [table["rows"] for table in tables if table["rows"] is not None]
    if len(counts) < len(tables):
        obstacles = [table["obstacle"] for table in tables if table["rows"] is None and table["obstacle"]]
        return f"rows not counted ({obstacles[0]})" if obstacles else "many rows"
    text = f"{format_number_ranges(counts)} {'row' if counts == [1] else 'rows'}"
    if not all(table["exact"] for table in tables):
        text = f"about {text}"
    return f"{text} each" if len(tables) > 1 else text


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
            heading += f", {_render_row_count([self.description])}"
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


@dataclass(frozen=True)
class Plan:
    """How SQLite would run a statement.

    Attributes:
        scans: the steps that read whole tables.
        indexes: the DDL of indexes that would help.
        tree_with_indexes: the plan with these.
        candidate_count: how many candidates for indexes were tried.
    """

    tree: str
    scans: Sequence[str]
    indexes: Sequence[str]
    tree_with_indexes: str = ""
    candidate_count: int = 0

    def text(self) -> str:
        """Return the plan as a tree, and what would make a better one."""
        lines = [self.tree or "Nothing to plan: the statement reads no table."]
        if self.scans:
            lines.append(f"Reads whole: {'; '.join(scan.removeprefix('SCAN ') for scan in self.scans)}.")
        if self.indexes:
            lines += ["With these indexes:", *self.indexes, "The plan then:", self.tree_with_indexes]
        elif self.scans and self.candidate_count:
            lines.append(
                f"None of the {self.candidate_count} indexes that were tried would help: over what is compared and "
                "ordered by, alone and together."
            )
        elif self.scans:
            lines.append("No index was found to try.")
        return clip("\n".join(lines), _MAX_LENGTH, "explain a part of the statement")


# What integrity_check says of indexes that lack rows or have too many, and of rows that no constraint would let in.
_INDEX_COMPLAINT = re.compile(r"row \d+ missing from index |wrong # of entries in index ")
_FULL_TEXT_COMPLAINT = re.compile(r"full-text index |malformed inverted index for FTS|fts[345]: ", re.IGNORECASE)
_ROW_COMPLAINT = re.compile(r"(?:NULL|non-\w+) value in |CHECK constraint failed in ")


@dataclass(frozen=True)
class Check:
    """The result of an integrity check.

    Attributes:
        complaints: what SQLite says is wrong in the file.
        broken_keys: foreign keys that point nowhere.
        unchecked: full-text tables whose words were not compared with their rows.
        collated: tables that were not checked, because an index needs a collation of their application.
    """

    database: str
    complaints: Sequence[str]
    broken_keys: Sequence[str]
    unchecked: Sequence[str] = ()
    collated: Sequence[str] = ()

    def text(self) -> str:
        """Return what is wrong, and what helps."""
        lines = [f"`{self.database}` is whole: no damage, no foreign key points nowhere."]
        if self.complaints or self.broken_keys:
            lines = [f"`{self.database}` has problems:", *self.complaints, *self.broken_keys]
        if self.complaints:
            lines.append(self._remedy())
        if self.collated:
            names = ", ".join(map(spell_identifier, self.collated))
            lines.append(f"Not checked, because their order needs a collation of their application: {names}.")
        if self.unchecked:
            names = ", ".join(map(spell_identifier, self.unchecked))
            lines.append(
                f"Not compared with their rows: the words of the full-text indexes {names}; "
                "`INSERT INTO name(name) VALUES ('integrity-check')` does that (of FTS5 with `rank` as 1)."
            )
        return "\n".join(lines)

    def _remedy(self) -> str:
        if all(map(_INDEX_COMPLAINT.match, self.complaints)):
            return "The rows are whole: `REINDEX` makes the indexes anew (`edit_schema`, or the operator)."
        if all(map(_FULL_TEXT_COMPLAINT.match, self.complaints)):
            return "The rows are whole: `INSERT INTO name(name) VALUES ('rebuild')` makes such an index anew."
        if all(map(_ROW_COMPLAINT.match, self.complaints)):
            return "The file is whole: these rows broke a rule that came later. Change them."
        return "A backup is the remedy; `.recover` of the sqlite3 shell saves what it can."


@dataclass(frozen=True)
class Backup:
    """A copy of a database that was written."""

    name: str
    size: int

    def text(self) -> str:
        """Return a sentence on the file."""
        return f"Wrote a consistent copy, {format_size(self.size)}, to `{self.name}`."
