"""Grants in the way back from a change of the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mcp_postgres.engine.change.objects import DatabaseObject
from mcp_postgres.engine.change.undo.sql_comments import remark

__all__ = ["grant_identity", "grant_option_statement", "grant_statements"]


def grant_statements(things: Iterable[DatabaseObject], *, is_grant: bool) -> list[str]:
    """Return statements that revoke grants, or grant them `again`: one for all rights of one role on one thing."""
    rights: dict[tuple[str, str, str, bool], list[str]] = {}
    lines: list[str] = []
    for thing in things:
        right, column, what, whom, place = json.loads(thing.name)
        if thing.state[1]:
            lines.append(remark(f"not undone: {thing.label} by {thing.state[1]}, {'revoked' if is_grant else 'new'}"))
            continue
        option = thing.state[0] == "true"
        rights.setdefault((place, what, whom, option), []).append(f"{right} ({column})" if column else right)
    # What was granted by such an option goes with it.
    verb, to, more = ("GRANT", "TO", " WITH GRANT OPTION") if is_grant else ("REVOKE", "FROM", " CASCADE")
    return lines + [
        f"{place}{verb} {', '.join(names)} ON {what} {to} {whom}{more if option else ''};"
        for (place, what, whom, option), names in rights.items()
    ]


def grant_identity(thing: DatabaseObject) -> tuple[str, ...]:
    """Return the right, the key of the table, and its holder."""
    return thing.key.split("/")[1], thing.parent.partition(".")[0][1:], *thing.key.split("/")[2:]


def grant_option_statement(thing: DatabaseObject) -> str:
    """Return the statement that gives or takes the right to pass a grant on."""
    if thing.state[0] == "true":
        return grant_statements([thing], is_grant=True)[0]
    (line,) = grant_statements([thing], is_grant=False)
    return line.replace("REVOKE ", "REVOKE GRANT OPTION FOR ", 1).removesuffix(";") + " CASCADE;"
