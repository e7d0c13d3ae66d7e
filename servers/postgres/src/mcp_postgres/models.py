"""The results of the tools as text: rows as lines of JSON arrays, everything else as lines that a person can read
too."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple
from urllib.parse import quote

from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.language.table_groups import format_number_ranges, group_numbered_tables
from mcp_batteries.sql.results.row_files import RowFiles
from mcp_batteries.sql.results.rows import RowPage, format_count, format_size

__all__ = [
    "FEW_TABLES",
    "MAX_LISTED_FUNCTIONS",
    "PROFILED_TABLES",
    "Catalog",
    "CatalogEntry",
    "ColumnValues",
    "Plan",
    "Report",
    "RowCount",
    "TableInfo",
    "find_lone_tables",
]

_Json = Mapping[str, Any]
_MAX_COLUMNS = 30
_MAX_LISTED = 20
_KINDS_WITHOUT_ROW_COUNT = ("view", "sequence", "foreign table")
# What a column is, as its description and its line call it.
_COLUMN_FLAGS = ("masked", "not_null", "identity")
_RELATED_FACTS = ("sequence", "partition_of", "partition_by", "inherits", "inherited_by", "foreign_server")
# Names of schemas that are alike.
_MAX_ALIKE = 5
# Functions that follow a list of tables.
MAX_LISTED_FUNCTIONS = 10
# Lines of tables beyond which a list shows what they refer to, and no columns.
_MANY_TABLES = 60
# Tables up to which a list has types of columns, and what else a change may meet.
FEW_TABLES = 20
# Tables up to which a list has most of the values and the comments of columns, and plain indexes.
PROFILED_TABLES = 6
_MAX_PROFILE_CHARACTERS = 160
_MAX_VALUE_CHARACTERS = 60
_MAX_COMMENT_CHARACTERS = 80
_MAX_DEFAULT_CHARACTERS = 40
_MAX_CONSTRAINT_CHARACTERS = 120
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_BOOLEANS = {"t": "true", "f": "false"}
_PLAIN_FOREIGN_KEY = re.compile(r"FOREIGN KEY \(.*\) REFERENCES .*\)")
_FOREIGN_KEY_OF_COLUMN = re.compile(r"FOREIGN KEY \((?P<column>\w+)\) REFERENCES [\w.]+\(\w+\) (?P<rules>.+)")
_SHORT_TYPES = {
    "timestamp with time zone": "timestamptz", "timestamp without time zone": "timestamp",
    "time without time zone": "time", "character varying": "varchar", "double precision": "float8",
    "character(": "char(",
}  # fmt: skip
_PLAIN_KEY_TYPES = ("integer", "bigint")
# What tables may differ in that stand in one line.
_GROUPED_FACTS = ("schema", "spelled", "name", "oid", "rows", "bytes", "details", "counted")


@dataclass(frozen=True)
class CatalogEntry:
    """One database.

    Attributes:
        remarks: what is to be known of it, such as the role of the server.
        objects: those of one kind on this page.
        functions: where the objects are tables, and these the first; one more than is shown if there is.
        counts: instead of the objects, how many rows each has.
    """

    name: str
    remarks: str
    schemas: Sequence[_Json] = ()
    objects: Sequence[_Json] = ()
    functions: Sequence[_Json] = ()
    counts: Sequence[RowCount] = ()


@dataclass(frozen=True)
class RowCount:
    """How many rows a table has, or why nobody counted them.

    Attributes:
        table: as SQL spells it.
        is_filtered: whether policies may hide some from the role.
        child_count: how many tables inherit it.
        counts_children: whether their rows are counted with its own; a query of it reads them in any case.
    """

    table: str
    rows: int | None
    reason: str = ""
    is_filtered: bool = False
    child_count: int = 0
    counts_children: bool = False

    def text(self) -> str:
        if self.rows is None:
            return f"{self.table} not counted: {self.reason}"
        text = f"{self.table} {format_count(self.rows, 'row')}"
        if self.is_filtered:
            text += " that its policies show to the role"
        if self.child_count:
            text += f", {_describe_children(self.child_count, is_counted=self.counts_children)}"
        return text


@dataclass(frozen=True)
class ColumnValues:
    """What all rows of a table say of a column.

    Attributes:
        nulls: rows where it is NULL.
        values: all its values with their numbers of rows, NULL among them; empty where there are many.
        others: its range, and what is odd, where the values are not listed.
    """

    nulls: int
    values: Sequence[str] = ()
    others: Sequence[str] = ()

    def text(self, *, is_reference: bool) -> str:
        """Return what is to be said; of a column that refers to another table only how often it is NULL."""
        if self.values and not is_reference:
            return "|".join(self.values)
        facts: list[str] = []
        if not is_reference:
            facts += self.others
        if self.nulls:
            facts.append(f"null:{self.nulls}")
        return ", ".join(facts)


@dataclass(frozen=True)
class Catalog:
    """Databases with their schemas, and objects of one kind.

    Attributes:
        databases: what is told of each.
        files: of the operator's folder, in the first list.
    """

    databases: Sequence[CatalogEntry]
    cursor: str | None = None
    files: RowFiles | None = None

    def text(self) -> str:
        """Return all databases, behind the cursor of the next page."""
        blocks: list[str] = []
        if self.cursor:
            blocks.append(f"[truncated: the next page: cursor={self.cursor}]")
        blocks += [_format_database(database) for database in self.databases]
        if self.files:
            blocks.append(self.files.text())
        return "\n".join(blocks)


def _format_database(entry: CatalogEntry) -> str:
    lines = [f"{entry.name}: {entry.remarks}; postgres://{quote(entry.name, safe='')}/.schema"]
    lines += map(_format_schema, entry.schemas)
    if entry.counts:
        lines += [f"- {count.text()}" for count in entry.counts]
    else:
        lines += _format_objects(entry.objects)
    lines += _format_objects(entry.functions[:MAX_LISTED_FUNCTIONS])
    if len(entry.functions) > MAX_LISTED_FUNCTIONS:
        lines.append("[more functions: `kind` functions]")
    if len(lines) == 1:
        lines.append("nothing of that kind")
    return "\n".join(lines)


def _format_schema(schema: _Json) -> str:
    tables = format_count(schema["tables"], "table")
    views = format_count(schema["views"], "view")
    size = format_size(schema["bytes"])
    if schema["locked"]:
        size += f" without {format_count(schema['locked'], 'locked table')}"
    if schema["alike"]:
        names = _format_alike_names(schema["alike"])
        return (
            f"{len(schema['alike'])} schemas with the same {tables} and {views}, {size} together: {names}; "
            f"below, {schema['spelled']} stands for all"
        )
    return f"schema {schema['spelled']}: {tables}, {views}, {size}{_format_unlisted(schema)}{_format_comment(schema)}"


def _format_unlisted(schema: _Json) -> str:
    """Return how many relations of a schema its list leaves out, whose bytes its size has too."""
    counts = ""
    if schema["unreadable"]:
        counts += f", {schema['unreadable']} more that the role can't read"
    if schema["of_extensions"]:
        counts += f", {schema['of_extensions']} more of extensions"
    if schema["inheriting"]:
        counts += f", {schema['inheriting']} more that inherit"
    return counts


def _format_alike_names(names: Sequence[str]) -> str:
    """Return the names of schemas, of many only the first and the last."""
    if len(names) <= _MAX_ALIKE:
        return ", ".join(names)
    return f"{', '.join(names[: _MAX_ALIKE - 1])} … {names[-1]}"


def _format_objects(objects: Sequence[_Json]) -> list[str]:
    """Return a line for each object, or for tables that are alike; short ones where there are many."""
    are_tables = bool(objects) and "columns" in objects[0]
    if not are_tables:
        return [f"- {_format_object([item], _Layout())}" for item in objects]
    groups = group_numbered_tables(objects, _group_name, _group_facts)
    if len(groups) <= _MANY_TABLES:
        layout = _Layout(len(groups) <= FEW_TABLES, len(groups) <= PROFILED_TABLES, _find_common_grants(groups))
        lines = [f"- {_format_object(group, layout)}" for group in groups]
        return [*_list_legend(groups, layout), *lines]
    note = f"[{len(objects)} here, without columns: `name` shows those of a few, `get_table` of one]"
    return [note, *map(_format_briefly, groups)]


def find_lone_tables(objects: Sequence[_Json]) -> set[str]:
    """Return the names of tables that stand in a line of their own, not in one with others of their shape."""
    groups = group_numbered_tables(objects, _group_name, _group_facts)
    return {_group_name(group[0]) for group in groups if len(group) == 1}


def _group_name(item: _Json) -> str:
    return str(item["spelled"])


def _group_facts(item: _Json) -> str:
    return to_compact_json({name: value for name, value in item.items() if name not in _GROUPED_FACTS})


class _Layout(NamedTuple):
    """How much a list says of each table.

    Attributes:
        has_types: whether it has the types of columns.
        is_profiled: whether it has most of the values, and the comments, of columns.
        common_grants: what is granted on all of them alike, which is told once.
    """

    has_types: bool = False
    is_profiled: bool = False
    common_grants: Sequence[str] = ()


def _find_common_grants(groups: Sequence[Sequence[_Json]]) -> Sequence[str]:
    """Return what is granted alike on all tables of which that is known."""
    details = [_details_of(group) for group in groups]
    grants = [table["grants"] for table in details if table is not None]
    if not grants or any(others != grants[0] for others in grants):
        return ()
    return grants[0]


def _format_object(group: Sequence[_Json], layout: _Layout) -> str:
    item = group[0]
    if "signature" in item:
        return f"{item['spelled']}{item['signature'] or ''} ({item['kind']}){_format_comment(item)}"
    title = " ".join(filter(None, (_format_title(group), ", ".join(_format_sizes(group)))))
    constraints = "".join(f"; {constraint}" for constraint in _list_constraints(group, layout))
    columns = _format_columns(item, _describe_columns(group), layout)
    return f"{title}{columns}{constraints}{_format_comment(item)}"


def _list_legend(groups: Sequence[Sequence[_Json]], layout: _Layout) -> list[str]:
    """Return what the signs in the lines of tables mean, where they have more than names and types."""
    described = [group for group in groups if _details_of(group)]
    if not described:
        return []
    legend: list[str] = []
    if any(_has_required_column(group[0]) for group in described):
        legend.append("!: NOT NULL")
    facts = "constraints beside keys, triggers, rules, row security, grants"
    if layout.is_profiled:
        facts = facts.replace("triggers", "indexes, triggers")
    if layout.common_grants:
        facts = facts.replace("grants", "other grants")
    if layout.common_grants:
        legend.append(f"each granted to {' and '.join(layout.common_grants)}")
    if any(_list_constraints(group, layout) for group in described):
        legend.append(f"behind `;` all {facts}")
    else:
        legend.append(f"no {facts}")
    if len(described) < len(groups):
        legend.append("lines of several tables leave that out")
    legend += _describe_brackets([group[0] for group in described])
    return [f"({'; '.join(legend)})"]


def _has_required_column(table: _Json) -> bool:
    """Return whether a column is NOT NULL that is no part of the key."""
    key = table["key"] or ()
    return any(column["not_null"] and column["name"] not in key for column in table["details"]["columns"])


def _describe_brackets(tables: Sequence[_Json]) -> list[str]:
    """Return what stands in the brackets behind columns: counts of rows that were read, or shares of an estimate."""
    columns = [column for table in tables for column in table["details"]["columns"]]
    counted: list[ColumnValues] = [column["counted"] for column in columns if column.get("counted") is not None]
    estimated = [column for column in columns if column.get("counted") is None]
    legend = _describe_counts(counted)
    if any(column.nulls for column in counted):
        legend.append("null:rows if any")
    elif any(_is_counted(table) for table in tables):
        legend.append("no NULLs where values were read")
    if any(column["values"] or column["nulls"] for column in estimated):
        legend.append("%: shares of rows by the last ANALYZE, of columns with few values")
    return legend


def _describe_counts(columns: Sequence[ColumnValues]) -> list[str]:
    """Return what the values and ranges of columns are that were read."""
    legend: list[str] = []
    if any(column.values for column in columns):
        legend.append("a|b: all values, :rows of each")
    if any(column.others for column in columns):
        legend.append("x to y: least and greatest, texts by their bytes")
    return legend


def _is_counted(table: _Json) -> bool:
    return table.get("counted") is not None


def _details_of(group: Sequence[_Json]) -> _Json | None:
    """Return what else is known of a table that stands in a line of its own."""
    if len(group) > 1:
        return None
    return group[0].get("details")


def _describe_columns(group: Sequence[_Json]) -> Sequence[_Json]:
    """Return what else is known of a table's columns."""
    details = _details_of(group)
    if details is None or group[0]["kind"] == "sequence":
        return ()
    return details["columns"]


def _list_constraints(group: Sequence[_Json], layout: _Layout) -> list[str]:
    """Return what a change of a table may meet, beside types and keys."""
    details = _details_of(group)
    if details is None:
        return []
    lines = [*_list_rules_of_rows(details), *_list_code(details)]
    if layout.is_profiled:
        lines += _list_indexes(details, unique=False)
    lines = [_shorten(line, _MAX_CONSTRAINT_CHARACTERS) for line in lines]
    if details["grants"] and not layout.common_grants:
        lines.append(f"granted to {' and '.join(details['grants'])}")
    if details["closed"]:
        lines.append(f"expressions are left out: {details['closed']}")
    return lines


def _list_rules_of_rows(details: _Json) -> list[str]:
    """Return the constraints that are no plain keys, and the unique indexes without a constraint."""
    definitions = [item["definition"] for item in details["constraints"]]
    lines = [_shorten_foreign_key(definition) for definition in definitions if not _is_plain_key(definition)]
    lines += _list_indexes(details, unique=True)
    return lines


def _shorten_foreign_key(definition: str) -> str:
    """Return a constraint, without the table that an arrow behind the column shows."""
    match = _FOREIGN_KEY_OF_COLUMN.fullmatch(definition)
    return f"{match['column']} {match['rules']}" if match else definition


def _list_indexes(details: _Json, *, unique: bool) -> list[str]:
    """Return the indexes that no constraint made, those that forbid something or the others; an invalid one is none."""
    title = "UNIQUE" if unique else "INDEX"
    constraints = _name_constraints_with_index(details)
    lines: list[str] = []
    for index in details["indexes"]:
        match = _INDEX.fullmatch(index["definition"])
        if match is None or bool(match[1]) != unique:
            continue
        if index["valid"] and unquote_identifier(match["name"]) not in constraints:
            lines.append(f"{title} {match['what'].removeprefix('btree ')}")
    return lines


def _list_code(details: _Json) -> list[str]:
    """Return how many triggers, rules and policies a statement may meet."""
    lines: list[str] = []
    for title in ("trigger", "rule"):
        if details[f"{title}s"]:
            lines.append(format_count(len(details[f"{title}s"]), title))
    if details["security"] or details["policies"]:
        state = "on" if details["security"] else "off"
        count = format_count(len(details["policies"]), "policy", "policies")
        lines.append(f"row security {state}, {count}")
    return lines


def _is_plain_key(definition: str) -> bool:
    return definition.startswith("PRIMARY KEY") or _PLAIN_FOREIGN_KEY.fullmatch(definition) is not None


def _shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"


def _format_sizes(group: Sequence[_Json]) -> list[str]:
    """Return how many rows, bytes and partitions tables have, one or several that are alike."""
    item = group[0]
    facts: list[str] = []
    if item["kind"] not in _KINDS_WITHOUT_ROW_COUNT:
        facts.append(_format_rows(group))
    if item["bytes"] is None and item["locked"]:
        facts.append(f"size unknown: {item['locked']}")
    if item["bytes"] is not None and item["kind"] != "sequence":
        total = format_size(sum(each["bytes"] or 0 for each in group))
        facts.append(f"{total} together" if len(group) > 1 else total)
    if item["partitions"] is not None:
        facts.append(format_count(item["partitions"], "partition"))
    if item["children"]:
        facts.append(_describe_children(item["children"], is_counted=item["counts_children"]))
    return facts


def _describe_children(count: int, *, is_counted: bool) -> str:
    preposition = "with" if is_counted else "without"
    return f"{preposition} the {format_count(count, 'table that inherits it', 'tables that inherit it')}"


def _format_columns(item: _Json, details: Sequence[_Json], layout: _Layout) -> str:
    if item["kind"] == "sequence":
        return ""
    types: Sequence[str] = (item["types"] or ()) if layout.has_types else ()
    columns = [
        _format_listed_column(column, type_name, item["key"] or (), detail, layout)
        for column, type_name, detail in zip_longest(
            (*(item["columns"] or ()), *(item["wide"] or ())), types, details, fillvalue=""
        )
    ]
    text = f": {', '.join(columns[:_MAX_COLUMNS])}"
    if len(columns) > _MAX_COLUMNS:
        text += f", … {len(columns) - _MAX_COLUMNS} more"
    return text


def _format_listed_column(column: str, type_name: str, key: Sequence[str], detail: _Json | str, layout: _Layout) -> str:
    """Return a column with its type, if neither the table it refers to nor that it is a plain key shows it."""
    name, arrow, table = column.partition(" -> ")
    is_key = name in key
    text = name
    if type_name and not table and not (is_key and type_name in _PLAIN_KEY_TYPES):
        for long, short in _SHORT_TYPES.items():
            type_name = type_name.replace(long, short)
        text += f" {type_name}"
    if isinstance(detail, str):
        facts = ""
    else:
        facts = _format_column_facts(detail, layout, is_reference=bool(table) or is_key)
        if detail["not_null"] and not is_key:
            text += "!"
    text += f"{arrow}{table}"
    if is_key:
        text += " (key)"
    return text + facts


def _format_column_facts(column: _Json, layout: _Layout, *, is_reference: bool) -> str:
    """Return a column's default, its values and its comment."""
    facts = ""
    if column.get("masked"):
        facts += " masked"
    default = column["default"]
    if column["generated"]:
        facts += " generated"
    elif default is not None and not default.startswith("nextval("):
        facts += f" default {_shorten(default, _MAX_DEFAULT_CHARACTERS)}"
    counted: ColumnValues | None = column.get("counted")
    if counted is not None:
        values = counted.text(is_reference=is_reference)
    else:
        shown_column = {**column, "values": None} if is_reference else column
        values = _format_shares(shown_column, _MAX_PROFILE_CHARACTERS if layout.is_profiled else _MAX_VALUE_CHARACTERS)
    if values:
        facts += f" ({values})"
    if column["comment"] and layout.is_profiled:
        facts += f" /* {_shorten(column['comment'], _MAX_COMMENT_CHARACTERS)} */"
    return facts


def _format_shares(column: _Json, max_characters: int) -> str:
    """Return values of a column with their share of the rows, if they are short, and that of NULL."""
    shares: Mapping[str, int] = column["values"] or {}
    texts = [f"{_format_value(column, value)} {share}%" for value, share in shares.items()]
    if sum(map(len, texts)) > max_characters:
        texts = []
    if column["nulls"]:
        texts.append(f"null {_null_share(column)}%")
    return "|".join(texts)


def _null_share(column: _Json) -> int:
    """Return how many of a hundred rows are NULL; all only where there is no other."""
    if column["nulls"] == 1:
        return 100
    return min(99, max(1, round(100 * column["nulls"])))


def _format_value(column: _Json, value: str) -> str:
    if column["type"] == "boolean":
        return _BOOLEANS.get(value, value)
    return value if _NUMBER.fullmatch(value) else to_compact_json(value)


def _format_briefly(group: Sequence[_Json]) -> str:
    """Return tables without their columns: how many rows they have, and what they refer to."""
    item = group[0]
    text = _format_title(group)
    row_counts = _known_row_counts(group)
    if row_counts and item["kind"] != "view":
        text += f" {format_number_ranges(row_counts)}"
    if item["refers"]:
        text += f" -> {', '.join(item['refers'])}"
    return text


def _format_title(group: Sequence[_Json]) -> str:
    item = group[0]
    title = str(item["spelled"])
    if len(group) > 1:
        title += f" … {group[-1]['spelled']} ({len(group)} of them)"
    if item["kind"] != "table":
        title += f" ({item['kind']})"
    return title


def _format_comment(item: _Json) -> str:
    if item.get("comment"):
        return f" -- {' '.join(item['comment'].split())}"
    return ""


def _known_row_counts(group: Sequence[_Json]) -> list[int]:
    """Return what ANALYZE last estimated, where it ran: -1 says that it never did."""
    return [item["rows"] for item in group if item["rows"] is not None and item["rows"] >= 0]


def _format_rows(group: Sequence[_Json]) -> str:
    if len(group) == 1 and _is_counted(group[0]):
        return format_count(group[0]["counted"], "row")
    row_counts = _known_row_counts(group)
    if not row_counts:
        return "not analyzed"
    unit = "row" if row_counts == [1] else "rows"
    each = " each" if len(group) > 1 else ""
    text = f"about {format_number_ranges(row_counts)} {unit}{each}"
    if group[0]["uncounted"]:
        text += f" without {format_count(group[0]['uncounted'], 'partition')} that nobody analyzed"
    return text


@dataclass(frozen=True)
class TableInfo:
    """One table, view or sequence, from `describe`.

    Attributes:
        sample: some rows, or why there are none.
    """

    uri: str
    description: _Json
    sample: RowPage | str | None = None

    def definition(self) -> str:
        """Return the part that only a change of the schema changes."""
        table = self.description
        lines = [f"{table['kind']} {table['spelled']}{_format_comment(table)}"]
        if table["closed"]:
            lines.append(_format_closed(table))
        lines += [_format_column({**column, "values": None, "nulls": None}) for column in table["columns"]]
        lines += [f"- {item['definition']}" for item in (*table["constraints"], *table["indexes"])]
        lines += [f"- {item}" for item in (*table["triggers"], *table["rules"], *table["policies"])]
        if table["definition"]:
            lines.append(str(table["definition"]))
        return "\n".join(lines)

    def text(self) -> str:
        """Return everything about the table."""
        table = self.description
        lines = [self._format_heading()]
        if table["closed"]:
            lines.append(_format_closed(table))
        if table["comment"]:
            lines.append(f"comment: {table['comment']}")
        lines += [f"{name.replace('_', ' ')}: {table[name]}" for name in _RELATED_FACTS if table[name]]
        if table["inherited_by"]:
            lines.append("its rows and bytes are its own: a query of it reads those that inherit it too")
        if table["kind"] != "sequence":
            lines.append("columns:")
            lines += map(_format_column, table["columns"])
        constraints = [f"{item['spelled']}: {item['definition']}" for item in table["constraints"]]
        lines += _format_list("constraints", constraints)
        lines += _format_list("referred to by", table["referred_by"])
        lines += _format_list("joined through others", table.get("joins", ()))
        lines += self._format_indexes()
        for title in ("triggers", "rules", "policies", "grants", "partitions"):
            lines += _format_list(title, table[title] or (), limit=_MAX_LISTED)
        if table["security"]:
            lines.append(self._format_security())
        if table["definition"]:
            lines += ["definition:", table["definition"]]
        lines += self._format_sample()
        return "\n".join(lines)

    def _format_heading(self) -> str:
        table = self.description
        kind = f"{table['kind']} {table['spelled']}"
        if table["unlogged"]:
            kind = f"unlogged {kind}"
        facts = [kind]
        if table["kind"] not in _KINDS_WITHOUT_ROW_COUNT:
            facts.append(_format_rows([table]))
        if table["bytes"] is not None:
            facts.append(format_size(table["bytes"]))
        elif table["locked"]:
            facts.append(f"size unknown: {table['locked']}")
        return f"{', '.join(facts)}, owner {table['owner']}; {self.uri}"

    def _format_indexes(self) -> list[str]:
        table = self.description
        if not table["indexes"]:
            return []
        constraints = _name_constraints_with_index(table)
        since = table["scans_since"] or "statistics began"
        lines = [_format_index(index, constraints) for index in table["indexes"]]
        return [f"indexes, with scans since {since}:", *lines]

    def _format_security(self) -> str:
        owner = "for the owner too" if self.description["forced"] else "not for the owner"
        if self.description["policies"]:
            return f"row security is on, {owner}"
        return f"row security is on, {owner}; no policy lets anybody see rows"

    def _format_sample(self) -> list[str]:
        if self.sample is None:
            return []
        if isinstance(self.sample, str):
            return [f"no sample rows: {self.sample}"]
        return ["sample rows:", to_compact_json(self.sample.columns), self.sample.lines.rstrip("\n")]


def _format_closed(table: _Json) -> str:
    """Return what is not known of a table while somebody holds a lock."""
    return f"[{table['closed']}: until that ends, expressions are left out (defaults, checks, definitions)]"


def _format_list(title: str, items: Sequence[str], *, limit: int | None = None) -> list[str]:
    """Return a heading with a line for each item, at most `limit` of them; nothing where there is no item."""
    if not items:
        return []
    lines = [f"{title}:"]
    lines += [f"- {item}" for item in items[:limit]]
    if limit is not None and len(items) > limit:
        lines.append(f"- … {len(items) - limit} more")
    return lines


def _format_column(column: _Json) -> str:
    facts = [str(column["type"]), *_format_values(column)]
    facts += [name.replace("_", " ") for name in _COLUMN_FLAGS if column.get(name)]
    if column["generated"] and column["default"] is None:
        facts.append("generated")
    elif column["generated"]:
        facts.append(f"generated as {column['default']}")
    elif column["default"] is not None:
        facts.append(f"default {column['default']}")
    return f"- {column['spelled']}: {', '.join(facts)}{_format_comment(column)}"


def _format_values(column: _Json) -> list[str]:
    """Return the values that a column can have, or that are the most frequent ones."""
    if column["enum"]:
        return ["one of " + ", ".join(column["enum"])]
    shares: Mapping[str, int] = column["values"] or {}
    texts = [f"{value} {share} %" for value, share in shares.items()]
    if texts:
        texts[0] = f"common values by the last ANALYZE {texts[0]}"
    if column["nulls"]:
        texts.append(f"null in {_null_share(column)} % of the rows")
    return texts


_WITH_INDEX = ("PRIMARY KEY", "UNIQUE", "EXCLUDE")
_WORD = r'(?:"(?:[^"]|"")+"|[^\s".]+)'
_INDEX = re.compile(rf"CREATE (UNIQUE )?INDEX (?P<name>{_WORD}) ON (?:{_WORD}\.)?{_WORD} USING (?P<what>.+)", re.DOTALL)


def _name_constraints_with_index(table: _Json) -> set[str]:
    """Return the constraints of a table that are indexes of the same name."""
    return {item["name"] for item in table["constraints"] if item["definition"].startswith(_WITH_INDEX)}


def _format_index(index: _Json, constraints: Collection[str]) -> str:
    """Return an index without the words that every definition has, and without what its constraint already says."""
    facts = "size unknown"
    if index["bytes"] is not None:
        facts = format_size(index["bytes"])
    if index["scans"] is not None:
        facts += f", {format_count(index['scans'], 'scan')}"
    if not index["valid"]:
        facts += ", INVALID"
    match = _INDEX.fullmatch(index["definition"])
    if match is None:
        return f"- {index['definition']}; {facts}"
    name = match["name"]
    if unquote_identifier(name) in constraints:
        return f"- {name}: {facts}"
    return f"- {name}: {match[1] or ''}{match['what']}; {facts}"


@dataclass(frozen=True)
class Plan:
    """What PostgreSQL would do, or did, for a statement.

    Attributes:
        tree: a line per step, indented.
        findings: what stands out.
        notes: how the plan came about.
        for_views: the row width of each step, which models do not read.
    """

    tree: Sequence[str]
    findings: Sequence[str] = ()
    notes: Sequence[str] = ()
    for_views: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def text(self) -> str:
        return "\n".join([*(f"[{note}]" for note in self.notes), *self.tree, *self.findings])


@dataclass(frozen=True)
class Report:
    """Findings, each a heading with lines below it."""

    sections: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[str] = ()

    def text(self) -> str:
        lines = [f"[{note}]" for note in self.notes]
        for title, section_lines in self.sections:
            lines += [title, *section_lines]
        return "\n".join(lines)
