"""`--create-reader URL`: makes a role that can only read, keeps its password in a private file, and says how to use it.

The password is made here and reaches the server as a SCRAM verifier, so neither a log of statements nor a terminal
shows it. It stands in no host's file either: entries name the file that holds it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import anyio
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable, describe_os_error
from mcp_batteries.errors import quote as quote_text
from mcp_batteries.executables import quote_command
from mcp_batteries.settings import mask_passwords
from mcp_batteries.sql.language.qualified_names import parse_qualified_names
from mcp_postgres.engine.connection.errors import unreachable_problem
from mcp_postgres.engine.connection.passwords import Passwords, reader_password_file
from mcp_postgres.operator_sql import CONNECTION_LIMIT, READER_ROLE, READER_SETTINGS
from mcp_postgres.policy.addresses import parse_named_address
from mcp_postgres.settings import Settings

__all__ = ["prepare"]

_CONNECT_SECONDS = 10
_PASSWORD_BYTES = 24
_MAX_NAMED = 10
_OUTAGE_FIX = "Check the host and the port, and that PostgreSQL runs and listens there; then repeat the command."
_READ_ONLY = "SELECT current_setting('transaction_read_only')::boolean, pg_is_in_recovery()"
_ROLE = """
SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls OR EXISTS (
    SELECT 1 FROM pg_roles m WHERE pg_has_role(r.oid, m.oid, 'MEMBER') AND (m.rolsuper OR m.rolname = ANY (ARRAY[
        'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_signal_backend',
        'pg_write_all_data', 'pg_checkpoint', 'pg_maintain', 'pg_signal_autovacuum_worker'])))
FROM pg_roles r WHERE rolname = %s
"""
_GRANTABLE_SCHEMA = (
    "SELECT 1 FROM pg_namespace WHERE nspname = %s AND has_schema_privilege(oid, 'USAGE WITH GRANT OPTION')"
)
_GRANTABLE_RELATIONS = """
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE nspname = %s AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND has_table_privilege(c.oid, 'SELECT WITH GRANT OPTION') ORDER BY 1
"""
_SCHEMAS = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
_TABLES = """
SELECT count(*) FILTER (WHERE has_table_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')),
    count(*), count(*) FILTER (WHERE has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE')
        AND has_schema_privilege(n.oid, 'USAGE'))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
# Who creates tables and schemas here, as far as this user may set what others get of them.
_OWNERS = """
SELECT rolname FROM pg_roles r
WHERE r.oid = current_user::regrole OR rolname !~ '^pg_' AND pg_has_role(r.oid, 'USAGE') AND r.oid IN (
    SELECT datdba FROM pg_database WHERE datname = current_database()
    UNION SELECT nspowner FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    UNION SELECT relowner FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND nspname !~ '^pg_' AND nspname <> 'information_schema')
ORDER BY 1
"""
_TABLES_TO_COME = """
SELECT string_agg(DISTINCT pg_get_userbyid(d.defaclrole)::text, ', ') FROM pg_default_acl d, aclexplode(d.defaclacl) a
WHERE d.defaclobjtype = 'r' AND a.grantee = current_user::regrole AND a.privilege_type = 'SELECT'
"""
_READABLE_NAMES = """
SELECT format('%%I.%%I', nspname, relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND has_table_privilege(%s, c.oid, 'SELECT') ORDER BY 1
"""
_READS_VERIFIERS = "SELECT has_column_privilege('pg_authid', 'rolpassword', 'SELECT')"
_CREATABLE_SCHEMAS = "SELECT string_agg(nspname, ', ') FROM pg_namespace WHERE has_schema_privilege(oid, 'CREATE')"
_Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class _Target:
    """The database to be read, and what is granted there.

    Attributes:
        name: what the operator called the database, before its address; empty for its own name.
        address: for libpq, of the administrator.
        only: names of what is served, of schemas and of single relations; empty for everything.
    """

    name: str
    address: str
    only: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> dict[str, Any]:
        return dict(conninfo_to_dict(self.address))

    @property
    def reader_address(self) -> str:
        """The address with the reader's name and without any password."""
        if "://" not in self.address:
            words = {key: value for key, value in self.words.items() if key not in ("user", "password", "passfile")}
            return make_conninfo("", **words, user=READER_ROLE)
        parts = urlsplit(self.address)
        hosts = parts.netloc.rpartition("@")[2]
        options = [pair for pair in parse_qsl(parts.query) if pair[0] not in ("user", "password", "passfile")]
        query = urlencode(options, quote_via=quote, safe="/")
        return urlunsplit((parts.scheme, f"{READER_ROLE}@{hosts}", parts.path, query, ""))

    @property
    def entry(self) -> str:
        """The value for the settings."""
        if self.name:
            return f"{self.name}={self.reader_address}"
        return self.reader_address


def prepare(settings: Settings, data_folder: Path) -> tuple[Settings, str]:
    """Make the role that `settings` ask for; the settings of a server that uses it, and what to tell the person.

    Args:
        data_folder: of this user, for the password.

    Raises:
        Conflict: the role is there already, with a password that is not known here.
        Invalid: the command names another database besides.
        Refused: the role that is there could do more than read.
        Unavailable: the server can't be reached, or does not let this user make roles.
    """
    _refuse_further_databases(settings)
    target = _parse_target(settings)
    file = reader_password_file(target.words, data_folder / "readers")
    with _connect_as_administrator(target, settings) as connection:
        state = _make_role(connection, target, settings, file)
    settings = settings.model_copy(
        update={
            "create_reader": None, "renew_reader": False, "databases": (target.entry,), "password_file": str(file),
            "password_command": None,
        }
    )  # fmt: skip
    lines = [
        f"The role `{READER_ROLE}` {state}. {_describe_rights(target, file)}",
        f"Its password is in {file}, which only this user can read.",
        f"Its database: {target.entry}",
    ]
    if settings.install is None and settings.print_config is None:
        options = settings.serving.model_copy(update={"databases": ()}).arguments()
        command = quote_command([settings.COMMAND, *options, target.entry])
        lines.append(f"To serve it: {command}")
        lines.append(
            "The same command with `--install HOST` writes a host's entry, with `--print-config HOST` shows it."
        )
    return settings, "\n".join(lines)


def _refuse_further_databases(settings: Settings) -> None:
    """Refuse databases beside the one of `--create-reader`, to which the role would get no right.

    A variable is not judged: it may be set for the server without a reader.
    """
    if settings.origins.get("databases") == "command line":
        address = quote_text(mask_passwords(settings.databases[0]))
        raise Invalid(
            f"`--create-reader` takes one database, and {address} is another.",
            "Repeat the command for each database, with `--name` for an entry of its own; the role is the same.",
        )


def _parse_target(settings: Settings) -> _Target:
    text = settings.create_reader or ""
    name, address = parse_named_address(text, os.environ)
    try:
        conninfo_to_dict(address)
    except psycopg.ProgrammingError:
        raise Unavailable(
            "The address of `--create-reader` is not understood.", "Write postgresql://user@host:port/name."
        ) from None
    only = tuple(
        parts for database, parts in parse_qualified_names("--only", settings.only) if database in (None, name.lower())
    )
    return _Target(name if text != address else "", address, only)


@contextmanager
def _connect_as_administrator(target: _Target, settings: Settings) -> Generator[_Connection]:
    words: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "application_name": "mcp-postgres", **target.words}
    passwords = Passwords(settings.password_file, settings.password_command)
    if "password" not in words and (password := anyio.run(passwords, words)):
        words["password"] = password
    database = str(words.get("dbname") or "postgres")
    try:
        connection = psycopg.connect(make_conninfo("", **words))
    except (psycopg.Error, OSError) as error:
        raise unreachable_problem(database, error, outage_fix=_OUTAGE_FIX) from None
    with contextlib.closing(connection):
        try:
            # Names must mean PostgreSQL's own functions, whoever may create others here.
            connection.execute("SET search_path = pg_catalog")
            _refuse_read_only(connection)
            yield connection
        except psycopg.errors.InsufficientPrivilege as error:
            raise Unavailable(
                f"The role of `--create-reader` may not do that: {error.diag.message_primary}.",
                "Connect as a superuser or as a role with CREATEROLE.",
            ) from None
        except psycopg.Error as error:
            raise Unavailable(f"PostgreSQL says: {error.diag.message_primary or error}.") from None


def _refuse_read_only(connection: _Connection) -> None:
    """Refuse a connection that can't write; PostgreSQL's own error does not tell a standby from a role's setting."""
    is_read_only, is_standby = cast("tuple[bool, bool]", connection.execute(_READ_ONLY).fetchone())
    if is_standby:
        raise Unavailable("The server only reads: it is a standby.", "Name the primary server.")
    if is_read_only:
        raise Unavailable(
            f"Transactions of the role `{connection.info.user}` only read here: `default_transaction_read_only` is on.",
            "Connect as a superuser or as a role with CREATEROLE; if this is one, switch that setting off for it.",
        )


def _make_role(connection: _Connection, target: _Target, settings: Settings, file: Path) -> str:
    """Make the role or see to its rights; what was done, as the rest of a sentence."""
    row = connection.execute(_ROLE, (READER_ROLE,)).fetchone()
    if row is not None and row[0]:
        raise Refused(
            f"The role `{READER_ROLE}` is there already, and has powers with which a query could do harm.",
            "Take them away or drop the role, then try again: `--print-role-sql` shows how.",
        )
    if row is not None and not settings.renew_reader:
        if not _can_log_in(target, file):
            raise Conflict(
                f"The role `{READER_ROLE}` is there already, and its password is not known here.",
                "Add `--renew-reader` to give it another; whoever uses the old password then needs the new one.",
            )
        added = _grant(connection, target, settings)
        connection.commit()
        return f"was there already and keeps its password (`--renew-reader` gives it another){added}"
    password = secrets.token_urlsafe(_PASSWORD_BYTES)
    verifier = connection.pgconn.encrypt_password(password.encode(), READER_ROLE.encode(), b"scram-sha-256").decode()
    role = sql.Identifier(READER_ROLE)
    secret = sql.Literal(verifier)
    if row is None:
        connection.execute(
            sql.SQL(
                "CREATE ROLE {} LOGIN PASSWORD {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS "
                "CONNECTION LIMIT {}"
            ).format(role, secret, sql.Literal(CONNECTION_LIMIT))
        )
    else:
        connection.execute(sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(role, secret))
    added = _grant(connection, target, settings)
    with _replacing_file(file, password):
        connection.commit()
    return "was made" if row is None else f"has a new password{added}"


def _grant(connection: _Connection, target: _Target, settings: Settings) -> str:
    """Give the reader its rights; return what it reads besides what it read here before, as the end of a sentence.

    Somebody may have taken a table from it on purpose, and nothing tells that from a new table.
    """
    readable_before = _list_readable(connection)
    role = sql.Identifier(READER_ROLE)
    for name, value in READER_SETTINGS.items():
        connection.execute(sql.SQL("ALTER ROLE {} SET {} = {}").format(role, sql.Identifier(name), sql.Literal(value)))
    _grant_connect(connection)
    _grant_tables(connection, target)
    if settings.dba:
        connection.execute(sql.SQL("GRANT pg_monitor TO {}").format(role))
    if settings.only or settings.mask:
        _grant_quiet_log(connection)
    added = [name for name in _list_readable(connection) if name not in readable_before]
    if not readable_before or not added:
        return ""
    names = ", ".join(added[:_MAX_NAMED])
    if len(added) > _MAX_NAMED:
        names += f" and {len(added) - _MAX_NAMED} more"
    return f"; it did not read {names} before: REVOKE SELECT ON ... FROM {READER_ROLE} takes a table away again"


def _list_readable(connection: _Connection) -> list[str]:
    return [name for (name,) in connection.execute(_READABLE_NAMES, (READER_ROLE,))]


def _grant_connect(connection: _Connection) -> None:
    """Let the reader connect, where not everybody may."""
    query = "SELECT has_database_privilege(%s, current_database(), 'CONNECT')"
    allowed = connection.execute(query, (READER_ROLE,)).fetchone()
    if allowed is not None and not allowed[0]:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, sql.Identifier(READER_ROLE)))


def _grant_tables(connection: _Connection, target: _Target) -> None:
    """Let the reader read what is listed, or all tables and those to come.

    `pg_read_all_data` would be one statement, but reads catalogs too: the passwords' verifiers in pg_authid, and
    passwords in pg_user_mapping and pg_subscription. No REVOKE takes these from it.
    """
    if target.only:
        for parts in target.only:
            _grant_part(connection, parts)
        return
    for (schema,) in connection.execute(_SCHEMAS).fetchall():
        _grant_schema(connection, schema)
    _grant_to_come(connection, sql.SQL(""), ("SELECT ON TABLES", "SELECT ON SEQUENCES", "USAGE ON SCHEMAS"))


def _grant_quiet_log(connection: _Connection) -> None:
    """Let the reader have what it runs looked at before."""
    if connection.info.server_version < 150000:
        raise Unavailable(
            "Before PostgreSQL 15 no role but a superuser can be served with `--only` or `--mask`.",
            "Leave them out, and REVOKE from the role what it should not read.",
        )
    connection.execute(sql.SQL("GRANT SET ON PARAMETER log_min_messages TO {}").format(sql.Identifier(READER_ROLE)))


def _grant_part(connection: _Connection, parts: tuple[str, ...]) -> None:
    """Let the reader read one schema, with its tables to come, or one relation."""
    role = sql.Identifier(READER_ROLE)
    schema = sql.Identifier(parts[0])
    if len(parts) == 1:
        _grant_schema(connection, parts[0])
        _grant_to_come(connection, sql.SQL("IN SCHEMA {}").format(schema), ("SELECT ON TABLES", "SELECT ON SEQUENCES"))
        return
    connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, role))
    relation = (
        "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE (nspname, relname) = (%s, %s)"
    )
    if connection.execute(relation, parts).fetchone():
        connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(sql.Identifier(*parts), role))


def _grant_schema(connection: _Connection, schema: str) -> None:
    """Let the reader read what is in a schema now, as far as this user may grant it.

    One relation of an owner whose rights this user has not would make PostgreSQL refuse `ALL TABLES`.
    """
    role = sql.Identifier(READER_ROLE)
    if connection.execute(_GRANTABLE_SCHEMA, (schema,)).fetchone():
        connection.execute(sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), role))
    names = [sql.Identifier(schema, name) for (name,) in connection.execute(_GRANTABLE_RELATIONS, (schema,))]
    if names:
        connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(sql.SQL(", ").join(names), role))


def _grant_to_come(connection: _Connection, scope: sql.Composable, rights: Sequence[LiteralString]) -> None:
    """Let the reader read what those will create who own anything today; of others, only after another call."""
    role = sql.Identifier(READER_ROLE)
    for (owner,) in connection.execute(_OWNERS).fetchall():
        for right in rights:
            connection.execute(
                sql.SQL("ALTER DEFAULT PRIVILEGES FOR ROLE {} {} GRANT {} TO {}").format(
                    sql.Identifier(owner), scope, sql.SQL(right), role
                )
            )


def _connect_as_reader(target: _Target, file: Path) -> _Connection:
    words: dict[str, Any] = {**conninfo_to_dict(target.reader_address), "connect_timeout": _CONNECT_SECONDS}
    connection = psycopg.connect(make_conninfo("", **words, password=file.read_text("utf-8").strip()))
    connection.execute("SET search_path = pg_catalog")
    return connection


def _can_log_in(target: _Target, file: Path) -> bool:
    try:
        _connect_as_reader(target, file).close()
    except (OSError, psycopg.Error):
        return False
    return True


def _describe_rights(target: _Target, file: Path) -> str:
    """Return a sentence about the rights of the role, as the role itself sees them."""
    try:
        with contextlib.closing(_connect_as_reader(target, file)) as connection:
            readable, every, writable = cast("tuple[int, int, int]", connection.execute(_TABLES).fetchone())
            owners = cast("tuple[str | None]", connection.execute(_TABLES_TO_COME).fetchone())[0]
            creates = cast("tuple[str | None]", connection.execute(_CREATABLE_SCHEMAS).fetchone())[0]
            reads_verifiers = cast("tuple[bool]", connection.execute(_READS_VERIFIERS).fetchone())[0]
    except psycopg.Error as error:
        message = str(error).strip().splitlines()[0]
        raise Unavailable(
            f"The role `{READER_ROLE}` is there, but can't log in: {message}.",
            "The server's pg_hba.conf decides that; over a socket it often asks for the system user of the same name.",
        ) from None
    rights = f"It can read {readable} of {every} tables and views and change {writable or 'none'}"
    if readable < every and not target.only:
        rights += "; the others belong to roles for which this user may not grant: repeat this as a superuser"
    if owners:
        rights += f"; of tables to come, those that {owners} will create"
    if creates:
        rights += f"; as everybody may, it can create objects in {creates}: REVOKE CREATE ON SCHEMA ... FROM PUBLIC"
    if reads_verifiers:
        rights += (
            ". By `pg_read_all_data` it also reads the verifiers of all passwords, in pg_authid: "
            f"REVOKE pg_read_all_data FROM {READER_ROLE}, and repeat this for each other database that it reads"
        )
    return f"{rights}."


@contextmanager
def _replacing_file(file: Path, text: str) -> Generator[None]:
    """Have `file`, which only this user can read, hold `text` if the block succeeds, and else what it held."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise Unavailable(f"The password can't be kept in {file}: {describe_os_error(error)}.") from None
    try:
        yield
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
