"""What the role of a connection could do if nobody held it back, to be told to the operator and the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["ROLE", "Role"]

ROLE = """
SELECT json_build_object(
    'name', current_user, 'superuser', r.rolsuper, 'createdb', r.rolcreatedb, 'createrole', r.rolcreaterole,
    'replication', r.rolreplication, 'bypassrls', r.rolbypassrls,
    'version', current_setting('server_version_num')::int, 'standby', pg_is_in_recovery(),
    'database', current_database(),
    'member', (SELECT coalesce(json_agg(m.rolname ORDER BY 1), '[]') FROM pg_roles m
               WHERE m.rolname = ANY (ARRAY['pg_read_server_files', 'pg_write_server_files',
                   'pg_execute_server_program',
                                            'pg_signal_backend', 'pg_monitor', 'pg_write_all_data', 'pg_maintain'])
               AND NOT r.rolsuper AND pg_has_role(current_user, m.oid, 'USAGE')),
    'log', CASE WHEN r.rolsuper THEN true WHEN current_setting('server_version_num')::int >= 150000
           THEN has_parameter_privilege(current_user, 'log_min_messages', 'SET') ELSE false END,
    'creates', has_database_privilege(current_user, current_database(), 'CREATE'))::text
FROM pg_roles r WHERE r.rolname = current_user
"""

WRITABLE = """
SELECT json_build_object(
    'tables', count(*),
    'writable', count(*) FILTER (WHERE has_table_privilege(c.oid, 'INSERT') OR has_table_privilege(c.oid, 'UPDATE')
                                 OR has_table_privilege(c.oid, 'DELETE')),
    'owned', count(*) FILTER (WHERE pg_has_role(c.relowner, 'USAGE')),
    'others', (SELECT count(*) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()
               AND application_name <> 'mcp-postgres'))::text
FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace NOT IN
    (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\\_%' OR nspname = 'information_schema')
"""


@dataclass(frozen=True)
class Role:
    """The role, and the server it is on.

    Attributes:
        judged: whether functions can be looked at before a statement runs, because the role may keep the server's
            log quiet meanwhile.
    """

    name: str
    superuser: bool
    version: int
    standby: bool
    judged: bool
    powers: Sequence[str]

    @classmethod
    def read(cls, text: str) -> Role:
        """From what `ROLE` finds."""
        found: dict[str, Any] = json.loads(text)
        powers = [word for word in ("superuser", "createdb", "createrole", "replication", "bypassrls") if found[word]]
        return cls(
            found["name"],
            found["superuser"],
            found["version"],
            found["standby"],
            found["log"],
            [*powers, *found["member"]],
        )

    @property
    def major(self) -> int:
        return self.version // 10000

    def sentence(self) -> str:
        """What it is, in a sentence."""
        what = f"role `{self.name}` on PostgreSQL {self.major}"
        if self.standby:
            what += " (a standby)"
        if self.superuser:
            return f"{what} is a superuser; reads are judged function by function"
        powers = f" has {', '.join(self.powers)}" if self.powers else " has no special powers"
        return what + powers

    def report(self, found: dict[str, int]) -> str:
        """All of it, for a person."""
        lines = [
            f"Role `{self.name}` on PostgreSQL {self.version // 10000}.{self.version % 10000}"
            + (", a standby." if self.standby else "."),
            f"Special powers: {', '.join(self.powers) or 'none'}.",
            f"Tables: {found['tables']}, of which it may change {found['writable']} and owns {found['owned']}.",
        ]
        if self.superuser:
            lines.append(
                "A superuser can reach files, programs and other sessions. Queries are held by the gate, which "
                "refuses functions that do more than read; `edit_schema` is refused."
            )
        elif found["others"]:
            lines.append(
                f"{found['others']} other sessions use the same role: a query could end or wait for them. "
                "A role of its own can't."
            )
        if self.powers or found["writable"]:
            lines.append("`mcp-postgres --print-role-sql` prints SQL for a role that can only read.")
        else:
            lines.append("It can only read: as it should be.")
        return "\n".join(lines) + "\n"
