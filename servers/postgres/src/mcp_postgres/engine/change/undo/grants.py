"""Grants in the way back from a change of the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from mcp_postgres.engine.change.database_object import DatabaseObject, GrantState
from mcp_postgres.engine.change.undo.sql_comments import remark

__all__ = ["grant_identity", "grant_option_statement", "grant_statements", "revoke_statements"]


class _Grant(NamedTuple):
    """The name of a grant: what it is made of.

    Attributes:
        right: `select` and the like.
        column: the column that it is for; empty where it is for all of the object.
        target: the object as SQL spells it behind ON.
        grantee: the role that has it.
        prefix: what stands before the verb: that it is about objects to come.
    """

    right: str
    column: str
    target: str
    grantee: str
    prefix: str


class _GrantGroup(NamedTuple):
    """What the grants of one statement have in common."""

    prefix: str
    target: str
    grantee: str
    has_option: bool


def grant_statements(grants: Iterable[DatabaseObject]) -> list[str]:
    """Return statements that grant again: one for all rights of one role on one object."""
    own_grants, remarks = _without_others_grants(grants, "revoked")
    return remarks + _statements(own_grants, "GRANT", "TO", " WITH GRANT OPTION")


def revoke_statements(grants: Iterable[DatabaseObject]) -> list[str]:
    """Return statements that revoke grants: one for all rights of one role on one object."""
    own_grants, remarks = _without_others_grants(grants, "new")
    # What was granted by such an option goes with it.
    return remarks + _statements(own_grants, "REVOKE", "FROM", " CASCADE")


def _without_others_grants(grants: Iterable[DatabaseObject], change: str) -> tuple[list[DatabaseObject], list[str]]:
    """Return the grants that the owner made, and remarks for those that other roles made."""
    own_grants: list[DatabaseObject] = []
    remarks: list[str] = []
    for grant in grants:
        grantor = grant.state[GrantState.GRANTOR]
        if grantor:
            remarks.append(remark(f"not undone: {grant.label} by {grantor}, {change}"))
        else:
            own_grants.append(grant)
    return own_grants, remarks


def _statements(grants: Iterable[DatabaseObject], verb: str, preposition: str, option_clause: str) -> list[str]:
    rights_by_group: dict[_GrantGroup, list[str]] = {}
    for grant in grants:
        parts = _Grant(*json.loads(grant.name))
        group = _GrantGroup(parts.prefix, parts.target, parts.grantee, _has_option(grant))
        right = parts.right
        if parts.column:
            right = f"{parts.right} ({parts.column})"
        rights_by_group.setdefault(group, []).append(right)
    statements: list[str] = []
    for group, rights in rights_by_group.items():
        ending = option_clause if group.has_option else ""
        statements.append(
            f"{group.prefix}{verb} {', '.join(rights)} ON {group.target} {preposition} {group.grantee}{ending};"
        )
    return statements


def _has_option(grant: DatabaseObject) -> bool:
    return grant.state[GrantState.GRANT_OPTION] == "true"


def grant_identity(grant: DatabaseObject) -> tuple[str, ...]:
    """Return the right, the number of the table, and its holder."""
    _, right, *holder = grant.key.split("/")
    return right, grant.parent.partition(".")[0][1:], *holder


def grant_option_statement(grant: DatabaseObject) -> str:
    """Return the statement that gives or takes the right to pass a grant on."""
    if _has_option(grant):
        return grant_statements([grant])[0]
    (line,) = revoke_statements([grant])
    return line.replace("REVOKE ", "REVOKE GRANT OPTION FOR ", 1).removesuffix(";") + " CASCADE;"
