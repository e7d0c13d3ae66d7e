"""Connections to one database: few, opened when needed, and returned clean.

Every piece of work is one transaction. Its first trip, which changes nothing, is also the test whether the connection
still lives; if not it goes over a new one. So a restart, a failover or a killed backend costs the next call a few
milliseconds, and a database that is down costs nothing until it is asked. Nothing here needs a session that lasts
longer than a transaction, so poolers like PgBouncer may stand between.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

import anyio
import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Notify
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.none import NoneDumper
from psycopg.types.string import StrDumperUnknown, TextLoader

from mcp_batteries.errors import Problem, Refused, Unavailable, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_batteries.user_folders import reader_passwords_folder
from mcp_postgres.engine.audit.function_audit import CodeAudit
from mcp_postgres.engine.audit.visible_schema import VisibleObjects
from mcp_postgres.engine.connection.errors import (
    LockTimeout,
    hide_values,
    in_doubt_problem,
    outage_problem,
    to_problem,
    unreachable_problem,
)
from mcp_postgres.engine.connection.lock_holders import describe_lock_holders
from mcp_postgres.engine.connection.passwords import Passwords, reader_password_file
from mcp_postgres.engine.connection.pipeline import Connection
from mcp_postgres.engine.connection.result_values import NO_ENCODING
from mcp_postgres.engine.connection.role import READ_ROLE, Role
from mcp_postgres.engine.connection.session import Opening, Prefetch, ServiceFileState, Session
from mcp_postgres.operator_sql import READER_ROLE
from mcp_postgres.policy import Database, VisibleSchema

__all__ = ["SERVER_ROLE", "ConnectionPool", "run_shielded"]

T = TypeVar("T")

logger = logging.getLogger(__name__)
# It warns of what it raises too: a statement of a pipeline that failed.
logging.getLogger("psycopg").setLevel(logging.ERROR)

# Seconds beyond a statement's limit after which the server counts as gone.
_GRACE_SECONDS = 5.0
_TEST_SECONDS = 3.0
_RANDOM = random.SystemRandom()
# How long the end waits for sessions that are being cleaned.
_RELEASE_SECONDS = 0.5
_CLEAN_SECONDS = 5.0
# Turns of the event loop that a call takes from its last statement to its answer (see `run_shielded`), which goes
# first.
_ANSWER_TURNS = 2
# What a function may have left in the session, which others use next: as DISCARD ALL, and the state of random().
#
# The last answer is whether there may be more, which no statement takes away: variables, connections, indexes of code
# that PostgreSQL does not know.
_RESET = (
    "ROLLBACK; CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; DEALLOCATE ALL; UNLISTEN *; DISCARD TEMP;"
    " DISCARD SEQUENCES; SELECT pg_catalog.pg_advisory_unlock_all(), pg_catalog.setseed({seed}); "
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname IN ('dblink', 'hypopg', 'pg_variables'))"
    " OR EXISTS (SELECT FROM pg_catalog.pg_language WHERE lanname NOT IN ('internal', 'c', 'sql', 'plpgsql'))"
)
# Stands for the server's own role, instead of a caller's, for queries whose answers no caller sees.
SERVER_ROLE: Final = object()
_CAN_BE_SUPERUSER = """SELECT pg_catalog.bool_or(m.rolsuper)::pg_catalog.text FROM pg_catalog.pg_roles m
WHERE pg_catalog.pg_has_role(current_user, m.oid, 'MEMBER')"""
_DEFAULT_PARAMETERS: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "application_name": "mcp-postgres",
}  # fmt: skip


class _BytesLoader(Loader):
    """Reads texts of a database without an encoding: what is not UTF-8 becomes `NOT_UTF8`."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="replace")


class _TextAdapters:
    """Every value comes as PostgreSQL writes it: exact, whatever Python's types can hold."""

    def __init__(self, client_encoding: str) -> None:
        self.connection = None
        self.adapters = AdaptersMap()
        loader = TextLoader
        if client_encoding == NO_ENCODING:
            loader = _BytesLoader
        self.adapters.register_loader(0, loader)
        self.adapters.register_dumper(str, StrDumperUnknown)
        self.adapters.register_dumper(type(None), NoneDumper)


class ConnectionPool:
    """The connections to one database.

    Args:
        max_connections: how many there may be.
        find_address: the address at the time of connecting, where it isn't known before.
        passwords: asked at each connect if neither address nor libpq's own sources give one.
        is_trusted: the operator vouches for all code in the database.
        has_callers: everybody who asks has a role of their own there.
        visible_schema: what of it is served; nothing of it is judged where that is all.
        announces: whether the log says it if the role could do harm.
        trusted_functions: functions by schema and name, and extensions, that the operator vouches for.
    """

    def __init__(
        self,
        database: Database,
        *,
        visible_schema: VisibleSchema,
        max_connections: int,
        find_address: Callable[[], Awaitable[str]] | None = None,
        passwords: Passwords,
        is_trusted: bool = False,
        has_callers: bool = False,
        trusted_functions: frozenset[tuple[str, ...]] = frozenset(),
        announces: bool = True,
    ) -> None:
        self._announces = announces
        self._trusted_functions = trusted_functions
        self.database = database
        self.is_trusted = is_trusted
        self.has_callers = has_callers
        # As of the last connect.
        self.role: Role | None = None
        self._client_encoding = "UTF8"
        self._visible_schema = visible_schema
        self._audit = self._new_audit(closed=True)
        self._find_address = find_address
        self._passwords = passwords
        self._free_slots = asyncio.Semaphore(max_connections)
        self._idle_sessions: list[Session] = []
        self._open_sessions: set[Session] = set()
        # Those that are being cleaned, whose callers have their answers.
        self._releases: set[asyncio.Task[None]] = set()

    @property
    def has_encoding(self) -> bool:
        """Whether texts of the database are in an encoding that PostgreSQL knows, as of the last connect."""
        return self._client_encoding != NO_ENCODING

    @asynccontextmanager
    async def session(
        self, opening: Opening, *, seconds: float, role: object, prefetch: Prefetch | None = None
    ) -> AsyncGenerator[Session]:
        """Open a transaction by `opening`; what isn't committed at its end is rolled back, which nobody waits for.

        Args:
            role: the caller's, or `SERVER_ROLE`; of no account where everybody is the server's own.

        Raises:
            Unavailable: there is no connection to be had.
            Refused: the role could do harm that nothing here could hold back, or the caller has none.
        """
        caller = self._caller_role(role)
        await self._free_slots.acquire()
        release: asyncio.Task[None] | None = None
        try:
            with hide_values(bool(self._visible_schema)):
                session = await self._acquire(opening, caller, prefetch)
                try:
                    async with asyncio.timeout(seconds + _GRACE_SECONDS):
                        yield session
                except TimeoutError:
                    await self._discard(session)
                    raise self._explain_timeout(session) from None
                except psycopg.Error as error:
                    problem = to_problem(error, self.database.name)
                    if isinstance(problem, LockTimeout):
                        problem = await _name_lock_holders(session, problem)
                    await self._release(session)
                    raise problem from error
                except LockTimeout as unnamed:
                    named = await _name_lock_holders(session, unnamed)
                    await self._release(session)
                    raise named from unnamed
                except BaseException:
                    await self._release(session)
                    raise
                release = asyncio.create_task(self._release_after_answer(session))
                self._releases.add(release)
                release.add_done_callback(self._on_released)
        finally:
            if release is None:
                self._free_slots.release()

    def _caller_role(self, role: object) -> str | None:
        """Return the role of the caller as SQL spells it; None where everybody is the server's own."""
        if not self.has_callers or role is SERVER_ROLE:
            return None
        if not isinstance(role, str):
            raise Refused("The caller's token names no role.", "The operator can give it one (`--role-claim`).")
        return quote_identifier(role)

    def _explain_timeout(self, session: Session) -> Problem:
        if session.in_doubt:
            return in_doubt_problem(self.database.name)
        return outage_problem(f"The database `{self.database.name}` does not answer any more: `timeout`.")

    async def _release_after_answer(self, session: Session) -> None:
        for _ in range(_ANSWER_TURNS):
            await asyncio.sleep(0)
        await self._release(session)

    def _on_released(self, release: asyncio.Task[None]) -> None:
        self._releases.discard(release)
        self._free_slots.release()
        if not release.cancelled() and (error := release.exception()) is not None:
            logger.error("A connection could not be given back", exc_info=error)

    @asynccontextmanager
    async def listen(self, channel: str) -> AsyncGenerator[AsyncGenerator[Notify]]:
        """Listen to a channel, over a connection of its own that lasts as long as the block.

        Raises:
            Unavailable: there is no connection to be had.
        """
        session = await self._connect()
        try:
            await session.run(f'LISTEN "{channel}"')
            yield session.connection.notifies()
        finally:
            with anyio.CancelScope(shield=True):
                await self._discard(session)

    async def close(self) -> None:
        """Close them all."""
        if self._releases:
            await asyncio.wait(self._releases, timeout=_RELEASE_SECONDS)
        for session in list(self._open_sessions):
            await self._discard(session)

    async def _acquire(self, opening: Opening, caller: str | None, prefetch: Prefetch | None) -> Session:
        """Return a session with a transaction begun, over a connection that is there or a new one."""
        service = _read_service_state(self.database.address)
        while self._idle_sessions or self._releases:
            if not self._idle_sessions:
                # One that is being cleaned is there sooner than a new one.
                await asyncio.wait(self._releases, return_when=asyncio.FIRST_COMPLETED)
                continue
            session = self._idle_sessions.pop()
            if session.service != service:
                # The service file was changed, so the connection may lead elsewhere than a new one.
                await self._discard(session)
            elif await self._reopen(session, opening, caller, prefetch):
                return session
        session = await self._connect()
        try:
            await self._open_transaction(session, opening, caller, prefetch)
        except psycopg.Error as error:
            await self._discard(session)
            raise to_problem(error, self.database.name) from error
        except BaseException:
            await self._discard(session)
            raise
        return session

    async def _reopen(self, session: Session, opening: Opening, caller: str | None, prefetch: Prefetch | None) -> bool:
        """Begin a transaction over a connection that was idle; returns whether that still lives."""
        try:
            async with asyncio.timeout(_TEST_SECONDS):
                await self._open_transaction(session, opening, caller, prefetch)
        except Refused:
            await self._release(session)
            raise
        except psycopg.Error:
            await self._discard(session)
            return False
        except TimeoutError:
            await self._discard(session)
            # The other idle connections would each take as long to find out, so they go too.
            while self._idle_sessions:
                await self._discard(self._idle_sessions.pop())
            return False
        except BaseException:
            await self._discard(session)
            raise
        return True

    async def _open_transaction(
        self, session: Session, opening: Opening, caller: str | None, prefetch: Prefetch | None
    ) -> None:
        session.caller_role = caller
        if caller is None:
            await session.open(opening(session.role, None), prefetch(session.role) if prefetch else ())
            return
        try:
            is_superuser = await session.fetch_last_value(
                "; ".join((*opening(session.role, caller), _CAN_BE_SUPERUSER))
            )
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as error:
            raise Refused(
                f"The caller's role can't be taken: {quote(error.diag.message_primary or '')}.",
                "The operator can make it, and GRANT it to the server's own role.",
            ) from error
        if is_superuser != "false":
            raise Refused("The caller's role is a superuser, or may become one.", "The operator can name another.")

    async def _connect(self) -> Session:
        service = _read_service_state(self.database.address)
        connection = await self._open_connection()
        try:
            role = await self._read_role(connection)
        except psycopg.Error as error:
            await connection.close()
            raise unreachable_problem(self.database.name, error) from error
        except BaseException:
            await connection.close()
            raise
        self._adopt_role(role)
        session = Session(connection, role, service, self._audit)
        connection.add_notice_handler(
            lambda notice: session.hear(
                notice.severity_nonlocalized, notice.message_primary or "", notice.message_detail or ""
            )
        )
        self._open_sessions.add(session)
        return session

    async def _open_connection(self) -> Connection:
        """Connect to the server.

        Raises:
            Unavailable: it can't be reached, or the address is wrong.
        """
        try:
            # Another connection that is opened meanwhile may change the one to ask for.
            client_encoding = self._client_encoding
            connection = await self._connect_with(client_encoding)
            server_encoding = connection.info.parameter_status("server_encoding")
            if server_encoding != NO_ENCODING or client_encoding == NO_ENCODING:
                return connection
            # PostgreSQL would refuse every answer with one name in it that is not UTF-8.
            await connection.close()
            self._client_encoding = NO_ENCODING
            return await self._connect_with(NO_ENCODING)
        except Problem:
            raise
        except psycopg.ProgrammingError:
            raise Unavailable(
                f"The address of `{self.database.name}` is not understood.", "The operator can mend it."
            ) from None
        except (psycopg.Error, OSError) as error:
            if "no password supplied" in str(error):
                self._log_password_file()
            raise unreachable_problem(self.database.name, error) from None

    def _log_password_file(self) -> None:
        """Tell the operator which file has the password of the role that `--create-reader` made for this server."""
        parameters = conninfo_to_dict(self.database.address)
        file = reader_password_file(parameters, reader_passwords_folder())
        if parameters.get("user") == READER_ROLE and file.exists():
            logger.warning("The password of `%s` is in %s: name it by `--password-file`.", READER_ROLE, file)

    async def _connect_with(self, client_encoding: str) -> Connection:
        parameters = await self._connection_parameters()
        parameters["client_encoding"] = client_encoding
        return await AsyncConnection.connect(
            make_conninfo("", **parameters),
            autocommit=True,
            prepare_threshold=None,
            context=_TextAdapters(client_encoding),
            cursor_factory=AsyncRawCursor,
        )

    async def _connection_parameters(self) -> dict[str, Any]:
        address = self.database.address
        if self._find_address is not None:
            address = await self._find_address()
        parameters = {**_DEFAULT_PARAMETERS, **conninfo_to_dict(address)}
        if "password" not in parameters:
            password = await self._passwords(parameters)
            if password:
                parameters["password"] = password
        return parameters

    def _adopt_role(self, role: Role) -> None:
        """Note the role of a new connection, and judge code anew if it is another: it may trust other code."""
        if role.harmful and self.role is None and self._announces:
            logger.warning(
                "The role of `%s` %s. `mcp-postgres --create-reader URL` makes a role that can only read.",
                self.database.name,
                role.explain_judging(),
            )
        if role != self.role:
            self._audit = self._new_audit(closed=self._is_closed_world(role))
        self.role = role

    async def _read_role(self, connection: Connection) -> Role:
        """Return the role of a new connection, and what it can do.

        Raises:
            Refused: the database is not served to it.
        """
        answer = await connection.cursor().execute(READ_ROLE)
        while answer.nextset() and not (answer.description and answer.description[0].name == "json_build_object"):
            pass
        row = await answer.fetchone()
        assert row is not None
        role = replace(Role.parse(row[0]), has_callers=self.has_callers)
        if self.has_callers and not role.is_judged:
            raise Refused(
                f"The database `{self.database.name}` is not served: a query could become another caller's role, and "
                "PostgreSQL does not let the server's role look at what a query would run.",
                "The operator can GRANT SET ON PARAMETER log_min_messages to that role (PostgreSQL 15 and later).",
            )
        if self._visible_schema and not role.is_judged:
            raise Refused(
                f"The database `{self.database.name}` is not served: `--only` and `--mask` need to see what a query "
                "touches, and PostgreSQL does not let the server's role look at that.",
                "The operator can GRANT SET ON PARAMETER log_min_messages to that role (PostgreSQL 15 and later).",
            )
        if self._is_closed_world(role) and not role.is_judged:
            raise Refused(
                f"The database `{self.database.name}` is not served to this role, which {role.explain_judging()}: a "
                "query "
                "could use that, and PostgreSQL does not let the role look at what a query would run.",
                "The operator can give the server a role that can only read (`--create-reader`), GRANT SET ON "
                "PARAMETER log_min_messages to this one (PostgreSQL 15 and later), or start with `--trust-database`.",
            )
        return role

    def _new_audit(self, *, closed: bool) -> CodeAudit:
        return CodeAudit(closed=closed, visible=VisibleObjects(self._visible_schema), trusted=self._trusted_functions)

    def _is_closed_world(self, role: Role) -> bool:
        """Return whether nobody's code but the trusted may run."""
        return (bool(role.harmful) or self.has_callers) and not self.is_trusted

    async def _release(self, session: Session) -> None:
        session.acting_role = None
        session.caller_role = None
        try:
            async with asyncio.timeout(_CLEAN_SECONDS):
                await session.finish_pipeline()
                may_have_leftovers = await session.fetch_last_value(_RESET.format(seed=_RANDOM.uniform(-1, 1)))
        except (psycopg.Error, TimeoutError):
            await self._discard(session)
        except BaseException:
            await self._discard(session)
            raise
        else:
            session.take_warnings()
            if session.must_be_closed or may_have_leftovers == "t":
                await self._discard(session)
            else:
                self._idle_sessions.append(session)

    async def _discard(self, session: Session) -> None:
        self._open_sessions.discard(session)
        await session.connection.close()


def _read_service_state(address: str) -> ServiceFileState:
    """Return what tells whether the service file was changed, where one is used."""
    if "service=" not in address.replace(" ", "") and "PGSERVICE" not in os.environ:
        return ()
    states: list[tuple[int, int]] = []
    user_file = os.environ.get("PGSERVICEFILE", "~/.pg_service.conf")
    system_folder = os.environ.get("PGSYSCONFDIR", "/etc")
    for path in (user_file, os.path.join(system_folder, "pg_service.conf")):
        with contextlib.suppress(OSError):
            state = os.stat(os.path.expanduser(path))
            states.append((state.st_ino, state.st_mtime_ns))
    return tuple(states)


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Do `work` in a task of its own, so that a cancelled call still cleans up after itself.

    anyio goes on cancelling a scope's awaits until it is left; psycopg stops the statement on the server when it is
    cancelled, which takes some awaits. So the work is cancelled once, and waited for.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait([task])
    except BaseException:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        if not task.cancelled() and (late := task.exception()) is not None:
            logger.info("A cancelled call ended: %s", late)
        raise
    return task.result()


async def _name_lock_holders(session: Session, problem: LockTimeout) -> LockTimeout:
    """Return the problem with the table that is locked, and by whom; as it is where that is over, or can't be seen.

    The transaction goes back to its start.
    """
    text = session.last_sql
    holders = ""
    with contextlib.suppress(psycopg.Error):
        await session.finish_pipeline()
        if session.connection.info.transaction_status != TransactionStatus.IDLE:
            await session.run("ROLLBACK TO SAVEPOINT mcp_start")
        holders = await describe_lock_holders(session, text, row_table=problem.row_table)
    if not holders:
        return problem
    return LockTimeout(f"{problem.failure} {holders}", problem.fix)
