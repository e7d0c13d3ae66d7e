"""One table, view or sequence by itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_batteries.server.calling.results import to_compact_json
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.results.rows import RowPage, format_count, format_size
from mcp_postgres.models.facts import (
    INDEX,
    KINDS_WITHOUT_ROW_COUNT,
    format_comment,
    format_rows,
    name_constraints_with_index,
    null_share,
)

__all__ = ["TableInfo"]

_Json = Mapping[str, Any]
_MAX_LISTED = 20
# What a column is, as its description and its line call it.
_COLUMN_FLAGS = ("masked", "not_null", "identity")
_RELATED_FACTS = ("sequence", "partition_of", "partition_by", "inherits", "inherited_by", "foreign_server")


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
        lines = [f"{table['kind']} {table['spelled']}{format_comment(table)}"]
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
        if table["kind"] not in KINDS_WITHOUT_ROW_COUNT:
            facts.append(format_rows([table]))
        if table["bytes"] is not None:
            facts.append(format_size(table["bytes"]))
        elif table["locked"]:
            facts.append(f"size unknown: {table['locked']}")
        return f"{', '.join(facts)}, owner {table['owner']}; {self.uri}"

    def _format_indexes(self) -> list[str]:
        table = self.description
        if not table["indexes"]:
            return []
        constraints = name_constraints_with_index(table)
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
    return f"- {column['spelled']}: {', '.join(facts)}{format_comment(column)}"


def _format_values(column: _Json) -> list[str]:
    """Return the values that a column can have, or that are the most frequent ones."""
    if column["enum"]:
        return ["one of " + ", ".join(column["enum"])]
    shares: Mapping[str, int] = column["values"] or {}
    texts = [f"{value} {share} %" for value, share in shares.items()]
    if texts:
        texts[0] = f"common values by the last ANALYZE {texts[0]}"
    if column["nulls"]:
        texts.append(f"null in {null_share(column)} % of the rows")
    return texts


def _format_index(index: _Json, constraints: Collection[str]) -> str:
    """Return an index without the words that every definition has, and without what its constraint already says."""
    facts = "size unknown"
    if index["bytes"] is not None:
        facts = format_size(index["bytes"])
    if index["scans"] is not None:
        facts += f", {format_count(index['scans'], 'scan')}"
    if not index["valid"]:
        facts += ", INVALID"
    match = INDEX.fullmatch(index["definition"])
    if match is None:
        return f"- {index['definition']}; {facts}"
    name = match["name"]
    if unquote_identifier(name) in constraints:
        return f"- {name}: {facts}"
    return f"- {name}: {match[1] or ''}{match['what']}; {facts}"
