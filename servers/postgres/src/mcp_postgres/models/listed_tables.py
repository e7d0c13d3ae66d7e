"""Tables and other objects in a list: a line each, short ones where there are many."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.language.table_groups import format_number_ranges, group_numbered_tables
from mcp_batteries.sql.results.rows import format_count, format_size
from mcp_postgres.models.facts import (
    INDEX,
    KINDS_WITHOUT_ROW_COUNT,
    describe_children,
    format_comment,
    format_rows,
    is_counted,
    known_row_counts,
    name_constraints_with_index,
)
from mcp_postgres.models.listed_columns import ColumnValues, Layout, format_columns, shorten

__all__ = ["FEW_TABLES", "PROFILED_TABLES", "find_lone_tables", "format_objects"]

_Json = Mapping[str, Any]
# Lines of tables beyond which a list shows what they refer to, and no columns.
_MANY_TABLES = 60
# Tables up to which a list has types of columns, and what else a change may meet.
FEW_TABLES = 20
# Tables up to which a list has most of the values and the comments of columns, and plain indexes.
PROFILED_TABLES = 6
_MAX_CONSTRAINT_CHARACTERS = 120
_PLAIN_FOREIGN_KEY = re.compile(r"FOREIGN KEY \(.*\) REFERENCES .*\)")
_FOREIGN_KEY_OF_COLUMN = re.compile(r"FOREIGN KEY \((?P<column>\w+)\) REFERENCES [\w.]+\(\w+\) (?P<rules>.+)")
# What tables may differ in that stand in one line.
_GROUPED_FACTS = ("schema", "spelled", "name", "oid", "rows", "bytes", "details", "counted")


def format_objects(objects: Sequence[_Json]) -> list[str]:
    """Return a line for each object, or for tables that are alike; short ones where there are many."""
    are_tables = bool(objects) and "columns" in objects[0]
    if not are_tables:
        return [f"- {_format_object([item], Layout())}" for item in objects]
    groups = group_numbered_tables(objects, _group_name, _group_facts)
    if len(groups) <= _MANY_TABLES:
        layout = Layout(len(groups) <= FEW_TABLES, len(groups) <= PROFILED_TABLES, _find_common_grants(groups))
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


def _find_common_grants(groups: Sequence[Sequence[_Json]]) -> Sequence[str]:
    """Return what is granted alike on all tables of which that is known."""
    details = [_details_of(group) for group in groups]
    grants = [table["grants"] for table in details if table is not None]
    if not grants or any(others != grants[0] for others in grants):
        return ()
    return grants[0]


def _format_object(group: Sequence[_Json], layout: Layout) -> str:
    item = group[0]
    if "signature" in item:
        return f"{item['spelled']}{item['signature'] or ''} ({item['kind']}){format_comment(item)}"
    title = " ".join(filter(None, (_format_title(group), ", ".join(_format_sizes(group)))))
    constraints = "".join(f"; {constraint}" for constraint in _list_constraints(group, layout))
    columns = format_columns(item, _describe_columns(group), layout)
    return f"{title}{columns}{constraints}{format_comment(item)}"


def _list_legend(groups: Sequence[Sequence[_Json]], layout: Layout) -> list[str]:
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
    elif any(is_counted(table) for table in tables):
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


def _list_constraints(group: Sequence[_Json], layout: Layout) -> list[str]:
    """Return what a change of a table may meet, beside types and keys."""
    details = _details_of(group)
    if details is None:
        return []
    lines = [*_list_rules_of_rows(details), *_list_code(details)]
    if layout.is_profiled:
        lines += _list_indexes(details, unique=False)
    lines = [shorten(line, _MAX_CONSTRAINT_CHARACTERS) for line in lines]
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
    constraints = name_constraints_with_index(details)
    lines: list[str] = []
    for index in details["indexes"]:
        match = INDEX.fullmatch(index["definition"])
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


def _format_sizes(group: Sequence[_Json]) -> list[str]:
    """Return how many rows, bytes and partitions tables have, one or several that are alike."""
    item = group[0]
    facts: list[str] = []
    if item["kind"] not in KINDS_WITHOUT_ROW_COUNT:
        facts.append(format_rows(group))
    if item["bytes"] is None and item["locked"]:
        facts.append(f"size unknown: {item['locked']}")
    if item["bytes"] is not None and item["kind"] != "sequence":
        total = format_size(sum(each["bytes"] or 0 for each in group))
        facts.append(f"{total} together" if len(group) > 1 else total)
    if item["partitions"] is not None:
        facts.append(format_count(item["partitions"], "partition"))
    if item["children"]:
        facts.append(describe_children(item["children"], is_counted=item["counts_children"]))
    return facts


def _format_briefly(group: Sequence[_Json]) -> str:
    """Return tables without their columns: how many rows they have, and what they refer to."""
    item = group[0]
    text = _format_title(group)
    row_counts = known_row_counts(group)
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
