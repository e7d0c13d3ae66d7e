"""What a connection's role could do without our restrictions, to tell the operator and the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcp_postgres.engine.audit.builtin_functions import READ_ONLY_FUNCTIONS

__all__ = ["READ_ROLE", "Role"]

# Several statements, whose first has names find PostgreSQL's own things only; the third has the answer.
READ_ROLE = """
BEGIN TRANSACTION READ ONLY; SELECT pg_catalog.set_config('search_path', 'pg_catalog', true);
WITH reach AS (SELECT m.* FROM pg_roles m WHERE m.rolname IN (current_user, session_user)
    OR pg_has_role(current_user, m.oid, 'MEMBER') OR pg_has_role(session_user, m.oid, 'MEMBER'))
SELECT json_build_object(
    'name', current_user, 'superuser', (SELECT bool_or(rolsuper) FROM reach),
    'createdb', r.rolcreatedb, 'createrole', (SELECT bool_or(rolcreaterole) FROM reach),
    'replication', (SELECT bool_or(rolreplication) FROM reach), 'bypassrls', r.rolbypassrls,
    'version', current_setting('server_version_num')::int, 'standby', pg_is_in_recovery(),
    'database', current_database(),
    'path', (SELECT reset_val FROM pg_settings WHERE name = 'search_path'),
    'member', (SELECT coalesce(json_agg(rolname ORDER BY 1), '[]') FROM reach WHERE NOT r.rolsuper
        AND rolname = ANY (ARRAY['pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program',
            'pg_signal_backend', 'pg_signal_autovacuum_worker', 'pg_checkpoint', 'pg_monitor', 'pg_write_all_data',
            'pg_maintain'])),
    'functions', (SELECT coalesce(json_agg(DISTINCT p.proname), '[]') FROM pg_proc p WHERE p.oid < 16384
        AND p.provolatile = 'v' AND p.proacl IS NOT NULL AND NOT r.rolsuper
        AND EXISTS (SELECT 1 FROM reach m WHERE has_function_privilege(m.oid, p.oid, 'EXECUTE'))),
    'log', CASE WHEN r.rolsuper THEN true WHEN current_setting('server_version_num')::int >= 150000
           THEN has_parameter_privilege(current_user, 'log_min_messages', 'SET') ELSE false END,
    'verifiers', has_column_privilege('pg_authid', 'rolpassword', 'SELECT'),
    'creates', has_database_privilege(current_user, current_database(), 'CREATE'))::text
FROM pg_roles r WHERE r.rolname = current_user;
ROLLBACK
"""

# Predefined roles by which a query does harm although it runs in a READ ONLY transaction.
_HARMFUL_ROLES = {
    "pg_read_server_files": "reads the server's files", "pg_write_server_files": "writes the server's files",
    "pg_execute_server_program": "runs programs", "pg_signal_backend": "ends other roles' sessions",
    "pg_signal_autovacuum_worker": "ends autovacuum", "pg_checkpoint": "forces checkpoints",
    "pg_maintain": "locks every table",
}  # fmt: skip
# Functions that not everybody may call, and that only tell of the server.
_INFORMATIVE_FUNCTIONS = {
    "pg_current_logfile", "pg_ls_archive_statusdir", "pg_ls_logdir", "pg_ls_logicalmapdir", "pg_ls_logicalsnapdir",
    "pg_ls_replslotdir", "pg_ls_summariesdir", "pg_ls_tmpdir", "pg_ls_waldir",
}  # fmt: skip

COUNT_WRITABLE_TABLES = """
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
_ROLE_ATTRIBUTES = ("superuser", "createdb", "createrole", "replication", "bypassrls")
_HARMFUL_ATTRIBUTES = ("superuser", "replication")


@dataclass(frozen=True)
class Role:
    """The role, and the server it is on; what other roles it may become counts as its own.

    Attributes:
        is_judged: whether what a statement would run can be looked at before, because the role may keep the server's
            log quiet meanwhile.
        harmful: the powers by which a query could do harm outside of its READ ONLY transaction.
        search_path: the role's own `search_path`.
        reads_verifiers: whether PostgreSQL shows it the verifiers of all passwords.
    """

    name: str
    is_superuser: bool
    version: int
    is_standby: bool
    is_judged: bool
    powers: Sequence[str]
    harmful: Sequence[str]
    search_path: str
    reads_verifiers: bool = False
    # Whether it stands in for callers, each by a role of their own.
    has_callers: bool = False

    @classmethod
    def parse(cls, text: str) -> Role:
        """Return the role that `READ_ROLE` finds."""
        facts: dict[str, Any] = json.loads(text)
        powers = [attribute for attribute in _ROLE_ATTRIBUTES if facts[attribute]]
        powers += facts["member"]
        harmful = [power for power in powers if power in _HARMFUL_ATTRIBUTES or power in _HARMFUL_ROLES]
        functions: list[str] = []
        if not facts["superuser"]:
            functions = sorted({*facts["functions"]} - READ_ONLY_FUNCTIONS - _INFORMATIVE_FUNCTIONS)
        return cls(
            facts["name"],
            facts["superuser"],
            facts["version"],
            facts["standby"],
            facts["log"],
            [*powers, *(f"{name}()" for name in functions)],
            [*harmful, *(f"{name}()" for name in functions)],
            facts["path"],
            facts["verifiers"],
        )

    @property
    def sees_other_roles(self) -> bool:
        """Whether PostgreSQL shows the role what other roles do."""
        return self.is_superuser or "pg_monitor" in self.powers

    @property
    def major(self) -> int:
        return self.version // 10000

    def explain_judging(self) -> str:
        """Return why what it runs is judged, as the rest of a sentence."""
        if self.has_callers:
            return "stands in for callers of several roles"
        if self.is_superuser:
            return "is a superuser, or may become one"
        if self.harmful:
            return f"has {', '.join(f'`{word}`' for word in self.harmful[:5])}"
        return "may keep the log quiet, so that queries are judged"

    def describe(self, caller: str | None = None) -> str:
        """Return what it is, or in its stead the role of the caller, in a sentence."""
        if caller is not None:
            return f"you are the role `{caller}` on PostgreSQL {self.major}; what a query would run is judged first"
        description = f"role `{self.name}` on PostgreSQL {self.major}"
        if self.is_standby:
            description += " (a standby)"
        if self.is_superuser:
            return f"{description} is a superuser; what a query would run is judged first"
        powers = " has no special powers"
        if self.powers:
            powers = f" has {', '.join(self.powers)}"
        return description + powers

    def report(self, counts: dict[str, int], *, trusted: bool, caller: str | None = None) -> str:
        """Return all of it, for a person; of the caller's role no more than what it may do to tables."""
        if caller is not None:
            return (
                f"{self.describe(caller).capitalize()}.\nTables: {counts['tables']}, of which you may change "
                f"{counts['writable']} and own {counts['owned']}.\n"
            )
        full_version = f"{self.version // 10000}.{self.version % 10000}"
        standby_note = ", a standby." if self.is_standby else "."
        lines = [
            f"Role `{self.name}` on PostgreSQL {full_version}{standby_note}",
            f"Special powers: {', '.join(self.powers) or 'none'}.",
            f"Tables: {counts['tables']}, of which it may change {counts['writable']} and owns {counts['owned']}.",
        ]
        if self.harmful:
            lines.append(_explain_harm(trusted=trusted))
        elif counts["others"]:
            lines.append(
                f"{counts['others']} other sessions use the same role: a query could end or wait for them. "
                "A role of its own can't."
            )
        if self.reads_verifiers:
            lines.append(
                "It reads the verifiers of all roles' passwords, in pg_authid: a role with fewer rights does not."
            )
        if self.powers or counts["writable"]:
            lines.append(
                "`mcp-postgres --create-reader URL` makes a role that can only read; `--print-role-sql` prints the SQL."
            )
        else:
            lines.append("It can only read: as it should be.")
        return "\n".join(lines) + "\n"


def _explain_harm(*, trusted: bool) -> str:
    """Return what a role that could do harm means, and what is run of it."""
    code_trust = (
        "Nothing that another role laid is run, but a role that owns a table could change it in the moment "
        "between the look and the run"
    )
    if trusted:
        code_trust = "Code of other roles is trusted, by `--trust-database`"
    return (
        "It can reach files, programs or other sessions. Queries that would do more than read are refused. "
        f"{code_trust}. `edit_schema` is refused."
    )
