"""The results of the tools as text: rows as lines of JSON arrays, everything else as lines that a person can read
too."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp_batteries.sql.alike import folded, spread
from mcp_batteries.sql.identifiers import unquoted
from mcp_batteries.sql.rows import RowPage, compact, count, size

__all__ = ["Catalog", "Export", "Plan", "Report", "TableInfo"]

_Json = Mapping[str, Any]
_MAX_COLUMNS = 30
_MAX_LISTED = 20
_KINDS_WITHOUT_ROW_COUNT = ("view", "sequence", "foreign table")
_RELATED_FACTS = ("sequence", "partition_of", "partition_by", "inherits", "inherited_by", "foreign_server")
# Lines of tables beyond which a list shows what they refer to, and no columns.
_MANY_TABLES = 60
# What tables may differ in that stand in one line.
_GROUPED_FACTS = ("spelled", "name", "oid", "rows", "bytes")


@dataclass(frozen=True)
class Catalog:
    """Databases with their schemas, and objects of one kind.

    Attributes:
        databases: name, remarks, its schemas, its objects on this page.
    """

    databases: Sequence[tuple[str, str, Sequence[_Json], Sequence[_Json]]]
    cursor: str | None = None

    def text(self) -> str:
        if self.cursor:
            blocks = [f"[truncated: the next page: cursor={self.cursor}]"]
        else:
            blocks = []
        for name, about, schemas, objects in self.databases:
            lines = [f"{name}: {about}; postgres://{name}/.schema"]
            for schema in schemas:
                held = f"{count(schema['tables'], 'table')}, {count(schema['views'], 'view')}, {size(schema['bytes'])}"
                lines.append(f"schema {schema['spelled']}: {held}{_format_comment(schema)}")
            tables = bool(objects) and "columns" in objects[0]
            if tables:
                runs = folded(objects, _group_name, _group_facts)
            else:
                runs = [[item] for item in objects]
            brief = tables and len(runs) > _MANY_TABLES
            if brief:
                lines.append(f"[{len(objects)} here, without columns: `name` shows those of a few, `get_table` of one]")
            lines += [_format_briefly(run) if brief else f"- {_format_object(run)}" for run in runs]
            if not schemas and not objects:
                lines.append("nothing of that kind")
            blocks.append("\n".join(lines))
        return "\n".join(blocks)


def _group_name(item: _Json) -> str:
    return str(item["spelled"])


def _group_facts(item: _Json) -> str:
    return compact({name: value for name, value in item.items() if name not in _GROUPED_FACTS})


def _format_object(run: Sequence[_Json]) -> str:
    item = run[0]
    if "signature" in item:
        return f"{item['spelled']}{item['signature'] or ''} ({item['kind']}){_format_comment(item)}"
    if item["kind"] not in ("view", "sequence", "foreign table"):
        facts = [_format_rows(run)]
    else:
        facts = []
    if item["bytes"] is not None and item["kind"] != "sequence":
        facts.append(size(sum(each["bytes"] or 0 for each in run)) + (" together" if len(run) > 1 else ""))
    if item["partitions"] is not None:
        facts.append(count(item["partitions"], "partition"))
    columns: Sequence[str] = [*(item["columns"] or ()), *(item["wide"] or ())]
    key: Sequence[str] = item["key"] or ()
    columns = [f"{column} (key)" if column.partition(" -> ")[0] in key else column for column in columns]
    more = ""
    if len(columns) > _MAX_COLUMNS:
        more = f", … {len(columns) - _MAX_COLUMNS} more"
    if item["kind"] == "sequence":
        held = ""
    else:
        held = f": {', '.join(columns[:_MAX_COLUMNS])}{more}"
    return f"{_format_title(run)}{' ' if facts else ''}{', '.join(facts)}{held}{_format_comment(item)}"


def _format_briefly(run: Sequence[_Json]) -> str:
    item = run[0]
    refers: Sequence[str] = item["refers"] or ()
    row_counts = [
        each["rows"] for each in run if each["rows"] is not None and each["rows"] >= 0 and item["kind"] != "view"
    ]
    rows = ""
    if row_counts:
        rows = f" {spread(row_counts)}"
    return f"{_format_title(run)}{rows}{' -> ' if refers else ''}{', '.join(refers)}"


def _format_title(run: Sequence[_Json]) -> str:
    item = run[0]
    several = ""
    if len(run) > 1:
        several = f" … {run[-1]['spelled']} ({len(run)} of them)"
    if item["kind"] == "table":
        kind = ""
    else:
        kind = f" ({item['kind']})"
    return f"{item['spelled']}{several}{kind}"


def _format_comment(item: _Json) -> str:
    if item.get("comment"):
        return f" -- {' '.join(item['comment'].split())}"
    return ""


def _format_rows(run: Sequence[_Json]) -> str:
    # What ANALYZE last estimated; -1 where it never ran.
    row_counts = [item["rows"] for item in run if item["rows"] is not None and item["rows"] >= 0]
    each = " each" if len(run) > 1 else ""
    if row_counts:
        return f"about {spread(row_counts)} {'row' if row_counts == [1] else 'rows'}{each}"
    return "not analyzed"


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
        found = self.description
        lines = [f"{found['kind']} {found['spelled']}{_format_comment(found)}"]
        lines += [_format_column({**column, "values": None}) for column in found["columns"]]
        lines += [f"- {item['definition']}" for item in found["constraints"]]
        lines += [f"- {item['definition']}" for item in found["indexes"]]
        lines += [f"- {item}" for title in ("triggers", "rules", "policies") for item in found[title]]
        if found["definition"]:
            lines += [str(found["definition"])]
        return "\n".join(lines)

    def text(self) -> str:
        """Return everything about the table."""
        table = self.description
        lines = [self._format_heading()]
        if table["comment"]:
            lines.append(f"comment: {table['comment']}")
        lines += [f"{name.replace('_', ' ')}: {table[name]}" for name in _RELATED_FACTS if table[name]]
        if table["kind"] != "sequence":
            lines.append("columns:")
            lines += map(_format_column, table["columns"])
        lines += _format_list("constraints", [f"{item['name']}: {item['definition']}" for item in table["constraints"]])
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
            facts.append(size(table["bytes"]))
        return f"{', '.join(facts)}, owner {table['owner']}; {self.uri}"

    def _format_indexes(self) -> list[str]:
        table = self.description
        if not table["indexes"]:
            return []
        constraints = {item["name"] for item in table["constraints"] if item["definition"].startswith(_WITH_INDEX)}
        return ["indexes:", *(_format_index(index, constraints) for index in table["indexes"])]

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
        return ["sample rows:", compact(self.sample.columns), self.sample.lines.rstrip("\n")]


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
    facts = [str(column["type"])]
    if column["enum"]:
        facts.append("one of " + ", ".join(column["enum"]))
    elif column["values"]:
        shares: Mapping[str, int] = column["values"]
        facts.append("common values " + ", ".join(f"{value} {share} %" for value, share in shares.items()))
    if column.get("masked"):
        facts.append("masked")
    if column["not_null"]:
        facts.append("not null")
    if column["identity"]:
        facts.append("identity")
    if column["generated"]:
        facts.append(f"generated as {column['default']}")
    elif column["default"] is not None:
        facts.append(f"default {column['default']}")
    return f"- {column['spelled']}: {', '.join(facts)}{_format_comment(column)}"


_WITH_INDEX = ("PRIMARY KEY", "UNIQUE", "EXCLUDE")
_WORD = r'(?:"(?:[^"]|"")+"|[^\s".]+)'
_INDEX = re.compile(rf"CREATE (UNIQUE )?INDEX (?P<name>{_WORD}) ON (?:{_WORD}\.)?{_WORD} USING (?P<what>.+)", re.DOTALL)


def _format_index(index: _Json, constraints: Collection[str]) -> str:
    """Return an index without the words that every definition has, and without what its constraint already says."""
    if index["scans"] is None:
        scans = ""
    else:
        scans = f", {count(index['scans'], 'scan')}"
    facts = f"{size(index['bytes'])}{scans}{'' if index['valid'] else ', INVALID'}"
    match = _INDEX.fullmatch(index["definition"])
    if match is None:
        return f"- {index['definition']}; {facts}"
    name = match["name"]
    if unquoted(name) in constraints:
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
        for title, found in self.sections:
            lines += [title, *found]
        return "\n".join(lines)


@dataclass(frozen=True)
class Export:
    """Rows that were written to a file."""

    name: str
    rows: int
    bytes: int

    def text(self) -> str:
        return f"Wrote {count(self.rows, 'row')}, {size(self.bytes)}, to `{self.name}`."
