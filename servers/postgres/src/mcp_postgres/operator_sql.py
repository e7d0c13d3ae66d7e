"""SQL for the operator to read and run: a role that can only read, and triggers that announce changes.

The server never runs any of it.
"""

from __future__ import annotations

__all__ = ["CONNECTION_LIMIT", "READER_ROLE", "READER_SETTINGS", "notify_sql", "reader_role_sql"]

READER_ROLE = "mcp_reader"
# Connections of all servers with that role; one has up to seven with the default settings.
CONNECTION_LIMIT = 20
READER_SETTINGS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
}
_ROLE = """\
-- A role for mcp-postgres that can only read; `mcp-postgres --create-reader URL` makes one by itself.
-- Run this as an administrator, in the database to be served;
-- change the name, the password and the schemas as you need.
CREATE ROLE mcp_reader LOGIN PASSWORD 'change me' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION
    CONNECTION LIMIT {limit};
{settings}

-- What it reads, with these lines for each schema ...
GRANT USAGE ON SCHEMA public TO mcp_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO mcp_reader;
GRANT SELECT ON ALL SEQUENCES IN SCHEMA public TO mcp_reader;
-- ... and this for each role that creates tables: else what it creates later is not read.
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO mcp_reader;
--   ALTER DEFAULT PRIVILEGES FOR ROLE app_owner IN SCHEMA public GRANT SELECT ON TABLES TO mcp_reader;
-- To keep a secret out:
--   REVOKE SELECT ON public.secrets FROM mcp_reader;
-- GRANT pg_read_all_data (PostgreSQL 14 and later) is one line for everything, but also reads secrets of the catalogs:
-- the verifiers of passwords in pg_authid, passwords in pg_user_mapping and pg_subscription.

-- For --dba: statistics of all sessions and statements.
GRANT pg_monitor TO mcp_reader;
-- Before PostgreSQL 15 everybody may create in public:
--   REVOKE CREATE ON SCHEMA public FROM PUBLIC;
-- Everybody may write messages to the write-ahead log, and end sessions of their own role, by a query; up to PostgreSQL
-- 15 also make and write large objects in a transaction that only reads. This takes it from all roles in this
-- database; GRANT it to those who need it. Superusers keep it.
DO $$
DECLARE item regprocedure;
BEGIN
    FOR item IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
        AND proname IN ('pg_logical_emit_message', 'pg_terminate_backend', 'pg_cancel_backend')
        OR pronamespace = 'pg_catalog'::regnamespace AND current_setting('server_version_num')::integer < 160000
        AND proname IN ('lo_creat', 'lo_create', 'lo_from_bytea', 'lo_put', 'lowrite', 'lo_truncate', 'lo_truncate64',
            'lo_unlink', 'lo_import', 'lo_export') LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', item);
    END LOOP;
END $$;
-- A role that there was before may have powers by which a query does harm:
--   ALTER ROLE mcp_reader NOSUPERUSER NOREPLICATION NOCREATEROLE;
--   REVOKE pg_signal_backend, pg_execute_server_program, pg_read_server_files, pg_write_server_files, pg_checkpoint
--       FROM mcp_reader;  -- and from PostgreSQL 17 on pg_maintain, from 18 on pg_signal_autovacuum_worker
-- Lets the server look through views for functions that do more than read (PostgreSQL 15 and later):
--   GRANT SET ON PARAMETER log_min_messages TO mcp_reader;

-- For --role-claim, where each caller over HTTP has a role: the server's role becomes them, and has no rights itself.
--   CREATE ROLE mcp_gateway LOGIN PASSWORD 'change me' NOINHERIT; GRANT analyst, clerk TO mcp_gateway;
--   GRANT SET ON PARAMETER log_min_messages TO mcp_gateway;  -- PostgreSQL 15 and later

-- For --write and --ddl take a role of its own that owns the tables to be changed and is not a superuser:
--   CREATE ROLE mcp_writer LOGIN PASSWORD 'change me'; GRANT app_owner TO mcp_writer;
"""

_NOTIFY = """\
-- Triggers that tell mcp-postgres (--listen {channel}) of changes at once. Run this in the database to be served,
-- with the tables you want followed in the list; each of their statements then costs about 0.05 ms more.
-- It does not work through a pooler in transaction mode.
CREATE FUNCTION {channel}_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('{channel}', TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME);
    RETURN NULL;
END $$;
DO $$
DECLARE item regclass;
BEGIN
    FOREACH item IN ARRAY ARRAY['public.my_table']::regclass[] LOOP
        EXECUTE format('CREATE TRIGGER {channel}_notify AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                       'FOR EACH STATEMENT EXECUTE FUNCTION {channel}_notify()', item);
    END LOOP;
END $$;
-- To undo it: DROP FUNCTION {channel}_notify() CASCADE;
"""


def reader_role_sql() -> str:
    """Return SQL for a role that can only read."""
    settings = "\n".join(f"ALTER ROLE {READER_ROLE} SET {name} = '{value}';" for name, value in READER_SETTINGS.items())
    return _ROLE.replace("{limit}", str(CONNECTION_LIMIT)).replace("{settings}", settings)


def notify_sql(channel: str) -> str:
    """Return SQL for triggers that notify `channel`."""
    return _NOTIFY.replace("{channel}", channel)
