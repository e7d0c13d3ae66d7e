"""What has to hold before a change is committed, and how it is."""

from __future__ import annotations

from mcp_postgres.engine.connection.session import Session

__all__ = [
    "CHECK_CONSTRAINTS",
    "COMMIT",
    "FIND_CHANGED_CATALOGS",
    "READ_TRANSACTION_ID",
    "SCHEMA_FIX",
    "can_reach_server",
]

_CATALOGS = (
    "pg_class", "pg_attribute", "pg_attrdef", "pg_constraint", "pg_index", "pg_proc", "pg_type", "pg_namespace",
    "pg_trigger", "pg_rewrite", "pg_policy", "pg_extension", "pg_default_acl", "pg_description", "pg_enum",
    "pg_db_role_setting", "pg_auth_members", "pg_publication", "pg_largeobject_metadata", "pg_shdescription",
)  # fmt: skip
FIND_CHANGED_CATALOGS = "SELECT concat_ws(', ', {}, {}) ".format(
    # Not everybody may read it, but whoever writes it holds its lock until the end.
    "CASE WHEN EXISTS (SELECT 1 FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'pg_authid'::regclass"
    " AND mode = 'RowExclusiveLock') THEN 'pg_authid' END",
    ", ".join(
        f"CASE WHEN EXISTS (SELECT 1 FROM {name} WHERE age(xmin) <= age($1::xid)) THEN '{name}' END"
        for name in _CATALOGS
    ),
)
SCHEMA_FIX = (
    "The operator can give the server a role that owns the schema (`--print-role-sql` shows how), or start it with "
    "`--admin`."
)
CHECK_CONSTRAINTS = "SET CONSTRAINTS ALL IMMEDIATE"
# A function may have set something for the session, which others use too.
COMMIT = "UNLISTEN *; RESET ROLE; RESET ALL; COMMIT"
READ_TRANSACTION_ID = "SELECT (pg_current_xact_id()::text::bigint % 4294967296)::text"


def can_reach_server(session: Session) -> bool:
    """Return whether the role could reach files and programs by what it defines."""
    return session.role.is_superuser or session.audit.closed
