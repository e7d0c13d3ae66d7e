"""Databases with their schemas, and lists of what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from mcp_batteries.sql.results.row_files import RowFiles
from mcp_batteries.sql.results.rows import format_count, format_size
from mcp_postgres.models.facts import describe_children, format_comment
from mcp_postgres.models.listed_tables import format_objects

__all__ = ["MAX_LISTED_FUNCTIONS", "Catalog", "CatalogEntry", "RowCount"]

_Json = Mapping[str, Any]
# Names of schemas that are alike.
_MAX_ALIKE = 5
# Functions that follow a list of tables.
MAX_LISTED_FUNCTIONS = 10


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
            text += f", {describe_children(self.child_count, is_counted=self.counts_children)}"
        return text


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
        lines += format_objects(entry.objects)
    lines += format_objects(entry.functions[:MAX_LISTED_FUNCTIONS])
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
    return f"schema {schema['spelled']}: {tables}, {views}, {size}{_format_unlisted(schema)}{format_comment(schema)}"


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
