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
_MOST_COLUMNS = 30
_MANY = 60
"""Lines of tables beyond which a list shows what they refer to, and no columns."""
_OF_ONE = ("spelled", "name", "oid", "rows", "bytes")
"""What tables may differ in that stand in one line."""


@dataclass(frozen=True)
class Catalog:
    """Databases with their schemas, and objects of one kind.

    Attributes:
        databases: name, remarks, its schemas, its objects on this page.
    """

    databases: Sequence[tuple[str, str, Sequence[_Json], Sequence[_Json]]]
    cursor: str | None = None

    def text(self) -> str:
        blocks = [f"[truncated: the next page: cursor={self.cursor}]"] if self.cursor else []
        for name, about, schemas, objects in self.databases:
            lines = [f"{name}: {about}; postgres://{name}/.schema"]
            for schema in schemas:
                held = f"{count(schema['tables'], 'table')}, {count(schema['views'], 'view')}, {size(schema['bytes'])}"
                lines.append(f"schema {schema['spelled']}: {held}{_comment(schema)}")
            tables = bool(objects) and "columns" in objects[0]
            runs = folded(objects, _name, _facts) if tables else [[item] for item in objects]
            brief = tables and len(runs) > _MANY
            if brief:
                lines.append(f"[{len(objects)} here, without columns: `name` shows those of a few, `get_table` of one]")
            lines += [_brief(run) if brief else f"- {_object(run)}" for run in runs]
            lines += [] if schemas or objects else ["nothing of that kind"]
            blocks.append("\n".join(lines))
        return "\n".join(blocks)


def _name(item: _Json) -> str:
    return str(item["spelled"])


def _facts(item: _Json) -> str:
    return compact({name: value for name, value in item.items() if name not in _OF_ONE})


def _object(run: Sequence[_Json]) -> str:
    item = run[0]
    if "signature" in item:
        return f"{item['spelled']}{item['signature'] or ''} ({item['kind']}){_comment(item)}"
    facts = [_rows(run)] if item["kind"] not in ("view", "sequence", "foreign table") else []
    if item["bytes"] is not None and item["kind"] != "sequence":
        facts.append(size(sum(each["bytes"] or 0 for each in run)) + (" together" if len(run) > 1 else ""))
    if item["partitions"] is not None:
        facts.append(count(item["partitions"], "partition"))
    columns: Sequence[str] = [*(item["columns"] or ()), *(item["wide"] or ())]
    key: Sequence[str] = item["key"] or ()
    columns = [f"{column} (key)" if column.partition(" -> ")[0] in key else column for column in columns]
    more = f", … {len(columns) - _MOST_COLUMNS} more" if len(columns) > _MOST_COLUMNS else ""
    held = "" if item["kind"] == "sequence" else f": {', '.join(columns[:_MOST_COLUMNS])}{more}"
    return f"{_title(run)}{' ' if facts else ''}{', '.join(facts)}{held}{_comment(item)}"


def _brief(run: Sequence[_Json]) -> str:
    item = run[0]
    refers: Sequence[str] = item["refers"] or ()
    known = [each["rows"] for each in run if each["rows"] is not None and each["rows"] >= 0 and item["kind"] != "view"]
    rows = f" {spread(known)}" if known else ""
    return f"{_title(run)}{rows}{' -> ' if refers else ''}{', '.join(refers)}"


def _title(run: Sequence[_Json]) -> str:
    item = run[0]
    several = f" … {run[-1]['spelled']} ({len(run)} of them)" if len(run) > 1 else ""
    kind = "" if item["kind"] == "table" else f" ({item['kind']})"
    return f"{item['spelled']}{several}{kind}"


def _comment(item: _Json) -> str:
    return f" -- {' '.join(item['comment'].split())}" if item.get("comment") else ""


def _rows(run: Sequence[_Json]) -> str:
    # What ANALYZE last estimated; -1 where it never ran.
    known = [item["rows"] for item in run if item["rows"] is not None and item["rows"] >= 0]
    each = " each" if len(run) > 1 else ""
    return f"about {spread(known)} {'row' if known == [1] else 'rows'}{each}" if known else "not analyzed"


@dataclass(frozen=True)
class TableInfo:
    """One table, view or sequence, from `catalog.describe`.

    Attributes:
        sample: some rows, or why there are none.
    """

    uri: str
    found: _Json
    sample: RowPage | str | None = None

    def definition(self) -> str:
        """The part that only a change of the schema changes."""
        found = self.found
        lines = [f"{found['kind']} {found['spelled']}{_comment(found)}"]
        lines += [_column({**column, "values": None}) for column in found["columns"]]
        lines += [f"- {item['definition']}" for item in found["constraints"]]
        lines += [f"- {item['definition']}" for item in found["indexes"]]
        lines += [f"- {item}" for title in ("triggers", "rules", "policies") for item in found[title]]
        lines += [str(found["definition"])] if found["definition"] else []
        return "\n".join(lines)

    def text(self) -> str:
        found = self.found
        facts = [f"{'unlogged ' if found['unlogged'] else ''}{found['kind']} {found['spelled']}"]
        if found["kind"] not in ("view", "sequence", "foreign table"):
            facts.append(_rows([found]))
        if found["bytes"] is not None:
            facts.append(size(found["bytes"]))
        lines = [f"{', '.join(facts)}, owner {found['owner']}; {self.uri}"]
        lines += [f"comment: {found['comment']}"] if found["comment"] else []
        for word in ("sequence", "partition_of", "partition_by", "inherits", "inherited_by", "foreign_server"):
            lines += [f"{word.replace('_', ' ')}: {found[word]}"] if found[word] else []
        lines += ["columns:", *map(_column, found["columns"])] if found["kind"] != "sequence" else []
        constraints = [f"{item['name']}: {item['definition']}" for item in found["constraints"]]
        ways = ("joined through others", found.get("joins", ()))
        for title, items in (("constraints", constraints), ("referred to by", found["referred_by"]), ways):
            lines += [f"{title}:", *(f"- {item}" for item in items)] if items else []
        if found["indexes"]:
            own = {item["name"] for item in found["constraints"] if item["definition"].startswith(_WITH_INDEX)}
            lines += ["indexes:", *(_index(index, own) for index in found["indexes"])]
        for title in ("triggers", "rules", "policies", "grants", "partitions"):
            items: Sequence[str] = found[title] or ()
            shown = [f"- {item}" for item in items[:20]]
            shown += [f"- … {len(items) - 20} more"] if len(items) > 20 else []
            lines += [f"{title}:", *shown] if items else []
        if found["security"]:
            lines.append(f"row security is on, {'for the owner too' if found['forced'] else 'not for the owner'}")
            lines[-1] += "" if found["policies"] else "; no policy lets anybody see rows"
        lines += ["definition:", found["definition"]] if found["definition"] else []
        if isinstance(self.sample, str):
            lines.append(f"no sample rows: {self.sample}")
        elif self.sample is not None:
            lines += ["sample rows:", compact(self.sample.columns), self.sample.lines.rstrip("\n")]
        return "\n".join(lines)


def _column(column: _Json) -> str:
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
    return f"- {column['spelled']}: {', '.join(facts)}{_comment(column)}"


_WITH_INDEX = ("PRIMARY KEY", "UNIQUE", "EXCLUDE")
_WORD = r'(?:"(?:[^"]|"")+"|[^\s".]+)'
_INDEX = re.compile(rf"CREATE (UNIQUE )?INDEX (?P<name>{_WORD}) ON (?:{_WORD}\.)?{_WORD} USING (?P<what>.+)", re.DOTALL)


def _index(index: _Json, constraints: Collection[str]) -> str:
    """An index without the words that every definition has, and without what its constraint already says."""
    scans = "" if index["scans"] is None else f", {count(index['scans'], 'scan')}"
    facts = f"{size(index['bytes'])}{scans}{'' if index['valid'] else ', INVALID'}"
    found = _INDEX.fullmatch(index["definition"])
    if found is None:
        return f"- {index['definition']}; {facts}"
    name = found["name"]
    if unquoted(name) in constraints:
        return f"- {name}: {facts}"
    return f"- {name}: {found[1] or ''}{found['what']}; {facts}"


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
