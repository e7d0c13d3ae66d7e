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
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

import anyio
import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Notify
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.none import NoneDumper
from psycopg.types.string import StrDumperUnknown, TextLoader

from mcp_batteries.errors import Problem, Refused, Unavailable, quote
from mcp_batteries.sql.identifiers import identifier
from mcp_postgres.engine.audit.function_audit import World
from mcp_postgres.engine.audit.visible_schema import ServedPart
from mcp_postgres.engine.connection.errors import in_doubt, problem, unreachable, without_values
from mcp_postgres.engine.connection.passwords import Passwords
from mcp_postgres.engine.connection.pipeline import Raw, Statement
from mcp_postgres.engine.connection.role import ROLE, Role
from mcp_postgres.engine.connection.session import Service, Session
from mcp_postgres.policy import Database, Part

__all__ = ["ITSELF", "Ahead", "Connections", "Opening", "Session", "apart"]

T = TypeVar("T")
Opening = Callable[[Role, str | None], Sequence[str]]
"""What begins a transaction of the server's role, for a caller's."""
Ahead = Callable[[Role], Sequence[Statement]]
"""What goes with the opening in one trip, since it will be asked for next: nothing that changes anything."""

logger = logging.getLogger(__name__)
# It warns of what it raises too: a statement of a pipeline that failed.
logging.getLogger("psycopg").setLevel(logging.ERROR)

_GRACE = 5.0
"""Seconds beyond a statement's limit after which the server counts as gone."""
_TEST_SECONDS = 3.0
_CHANCE = random.SystemRandom()
_LEAVE_SECONDS = 0.5
"""How long the end waits for sessions that are being cleaned."""
_CLEAN_SECONDS = 5.0
_ANSWER_TURNS = 2
"""Turns of the event loop that a call takes from its last statement to its answer (see `apart`), which goes first."""
_END = (
    "ROLLBACK; CLOSE ALL; RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; DEALLOCATE ALL; UNLISTEN *; DISCARD TEMP;"
    " DISCARD SEQUENCES; SELECT pg_catalog.pg_advisory_unlock_all(), pg_catalog.setseed({seed}); "
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname IN ('dblink', 'hypopg', 'pg_variables'))"
    " OR EXISTS (SELECT FROM pg_catalog.pg_language WHERE lanname NOT IN ('internal', 'c', 'sql', 'plpgsql'))"
)
"""What a function may have left in the session, which others use next: as DISCARD ALL, and the state of random().

The last answer is whether there may be more, which no statement takes away: variables, connections, indexes of code
that PostgreSQL does not know.
"""
ITSELF: Final = object()
"""Instead of a caller's role: what shows nobody anything is looked at as the server's own role."""
_BECOME = """SELECT pg_catalog.bool_or(m.rolsuper)::pg_catalog.text FROM pg_catalog.pg_roles m
WHERE pg_catalog.pg_has_role(current_user, m.oid, 'MEMBER')"""
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
    "application_name": "mcp-postgres",
}  # fmt: skip


class _Text:
    """Every value comes as PostgreSQL writes it: exact, whatever Python's types can hold."""

    def __init__(self) -> None:
        self.connection = None
        self.adapters = AdaptersMap()
        self.adapters.register_loader(0, TextLoader)
        self.adapters.register_dumper(str, StrDumperUnknown)
        self.adapters.register_dumper(type(None), NoneDumper)


class Connections:
    """The connections to one database.

    Args:
        most: how many there may be.
        locate: the address at the time of connecting, where it isn't known before.
        password: asked at each connect if neither address nor libpq's own sources give one.
        trusted: the operator vouches for all code in the database.
        callers: everybody who asks has a role of their own there.
        part: what of it is served; nothing of it is judged where that is all.
        announces: whether the log says it if the role could do harm.
        trusted_functions: functions by schema and name, and extensions, that the operator vouches for.
    """

    def __init__(
        self,
        database: Database,
        *,
        part: Part,
        most: int,
        locate: Callable[[], Awaitable[str]] | None = None,
        password: Passwords,
        trusted: bool = False,
        callers: bool = False,
        trusted_functions: frozenset[tuple[str, ...]] = frozenset(),
        announces: bool = True,
    ) -> None:
        self._announces = announces
        self._trusted_functions = trusted_functions
        self.database, self.trusted, self.callers = database, trusted, callers
        self.role: Role | None = None
        """As of the last connect."""
        self._part = part
        self._world = self._new_world(closed=True)
        self._locate, self._password = locate, password
        self._free = asyncio.Semaphore(most)
        self._idle: list[Session] = []
        self._open: set[Session] = set()
        self._leaving: set[asyncio.Task[None]] = set()
        """Those that are being cleaned, whose callers have their answers."""

    @asynccontextmanager
    async def session(
        self, opening: Opening, *, seconds: float, role: object, ahead: Ahead | None = None
    ) -> AsyncGenerator[Session]:
        """A transaction begun by `opening`; what isn't committed at its end is rolled back, which nobody waits for.

        Args:
            role: the caller's, or `ITSELF`; of no account where everybody is the server's own.

        Raises:
            Unavailable: there is no connection to be had.
            Refused: the role could do harm that nothing here could hold back, or the caller has none.
        """
        caller: str | None = None
        if self.callers and role is not ITSELF:
            if not isinstance(role, str):
                raise Refused("The caller's token names no role.", "The operator can give it one (`--role-claim`).")
            caller = identifier(role)
        await self._free.acquire()
        leaving: asyncio.Task[None] | None = None
        try:
            with without_values(bool(self._part)):
                session = await self._begun(opening, caller, ahead)
                try:
                    async with asyncio.timeout(seconds + _GRACE):
                        yield session
                except TimeoutError:
                    await self._drop(session)
                    if session.in_doubt:
                        raise in_doubt(self.database.name) from None
                    raise Unavailable(
                        f"The database `{self.database.name}` does not answer any more: `timeout`.",
                        "Call again.",
                        retry_after=5,
                    ) from None
                except psycopg.Error as error:
                    await self._give_back(session)
                    raise problem(error, self.database.name) from error
                except BaseException:
                    await self._give_back(session)
                    raise
                leaving = asyncio.create_task(self._leave(session))
                self._leaving.add(leaving)
                leaving.add_done_callback(self._left)
        finally:
            if leaving is None:
                self._free.release()

    async def _leave(self, session: Session) -> None:
        for _ in range(_ANSWER_TURNS):
            await asyncio.sleep(0)
        await self._give_back(session)

    def _left(self, leaving: asyncio.Task[None]) -> None:
        self._leaving.discard(leaving)
        self._free.release()
        if not leaving.cancelled() and (error := leaving.exception()) is not None:
            logger.error("A connection could not be given back", exc_info=error)

    @asynccontextmanager
    async def listening(self, channel: str) -> AsyncGenerator[AsyncGenerator[Notify]]:
        """What is told on a channel, over a connection of its own that lasts as long as the block.

        Raises:
            Unavailable: there is no connection to be had.
        """
        session = await self._connected()
        try:
            await session.simple(f'LISTEN "{channel}"')
            yield session.raw.notifies()
        finally:
            with anyio.CancelScope(shield=True):
                await self._drop(session)

    async def close(self) -> None:
        """Close them all."""
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=_LEAVE_SECONDS)
        for session in list(self._open):
            await self._drop(session)

    async def _begun(self, opening: Opening, caller: str | None, ahead: Ahead | None) -> Session:
        service = _service(self.database.address)
        while self._idle or self._leaving:
            if not self._idle:
                # Sooner there than a new one.
                await asyncio.wait(self._leaving, return_when=asyncio.FIRST_COMPLETED)
                continue
            session = self._idle.pop()
            if session.service != service:
                # It may lead elsewhere now.
                await self._drop(session)
                continue
            try:
                async with asyncio.timeout(_TEST_SECONDS):
                    await self._open_by(session, opening, caller, ahead)
            except Refused:
                await self._give_back(session)
                raise
            except psycopg.Error:
                await self._drop(session)
            except TimeoutError:
                await self._drop(session)
                while self._idle:  # To wait for each of them would take as long.
                    await self._drop(self._idle.pop())
            except BaseException:
                await self._drop(session)
                raise
            else:
                return session
        session = await self._connected()
        try:
            await self._open_by(session, opening, caller, ahead)
        except psycopg.Error as error:
            await self._drop(session)
            raise problem(error, self.database.name) from error
        except BaseException:
            await self._drop(session)
            raise
        return session

    async def _open_by(self, session: Session, opening: Opening, caller: str | None, ahead: Ahead | None) -> None:
        session.caller = caller
        if caller is None:
            await session.open(opening(session.role, None), ahead(session.role) if ahead else ())
            return
        try:
            mighty = await session.last("; ".join((*opening(session.role, caller), _BECOME)))
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidParameterValue) as error:
            raise Refused(
                f"The caller's role can't be taken: {quote(error.diag.message_primary or '')}.",
                "The operator can make it, and GRANT it to the server's own role.",
            ) from error
        if mighty != "false":
            raise Refused("The caller's role is a superuser, or may become one.", "The operator can name another.")

    async def _connected(self) -> Session:
        service = _service(self.database.address)
        try:
            address = self.database.address if self._locate is None else await self._locate()
            words: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(address), "client_encoding": "UTF8"}
            if "password" not in words and (password := await self._password(words)):
                words["password"] = password
            raw: Raw = await AsyncConnection.connect(
                make_conninfo("", **words),
                autocommit=True,
                prepare_threshold=None,
                context=_Text(),
                cursor_factory=AsyncRawCursor,
            )
        except Problem:
            raise
        except (psycopg.Error, OSError) as error:
            if isinstance(error, psycopg.ProgrammingError):
                raise Unavailable(
                    f"The address of `{self.database.name}` is not understood.", "The operator can mend it."
                ) from None
            raise unreachable(self.database.name, error) from None
        try:
            role = await self._role_of(raw)
        except psycopg.Error as error:
            await raw.close()
            raise unreachable(self.database.name, error) from error
        except BaseException:
            await raw.close()
            raise
        if role.harmful and self.role is None and self._announces:
            logger.warning(
                "The role of `%s` %s. `mcp-postgres --create-reader URL` makes a role that can only read.",
                self.database.name,
                role.because(),
            )
        if role != self.role:
            self._world = self._new_world(closed=self._is_closed(role))
        self.role = role
        session = Session(raw, role, service, self._world)
        raw.add_notice_handler(
            lambda said: session.notices.append((said.message_primary or "", said.message_detail or ""))
        )
        self._open.add(session)
        return session

    async def _role_of(self, raw: Raw) -> Role:
        """The role of a new connection, and what it can do.

        Raises:
            Refused: the database is not served to it.
        """
        answer = await raw.cursor().execute(ROLE)
        while answer.nextset() and not (answer.description and answer.description[0].name == "json_build_object"):
            pass
        found = await answer.fetchone()
        assert found is not None
        role = replace(Role.read(found[0]), callers=self.callers)
        if self.callers and not role.judged:
            raise Refused(
                f"The database `{self.database.name}` is not served: a query could become another caller's role, and "
                "PostgreSQL does not let the server's role look at what a query would run.",
                "The operator can GRANT SET ON PARAMETER log_min_messages to that role (PostgreSQL 15 and later).",
            )
        if self._part and not role.judged:
            raise Refused(
                f"The database `{self.database.name}` is not served: `--only` and `--mask` need to see what a query "
                "touches, and PostgreSQL does not let the server's role look at that.",
                "The operator can GRANT SET ON PARAMETER log_min_messages to that role (PostgreSQL 15 and later).",
            )
        if self._is_closed(role) and not role.judged:
            raise Refused(
                f"The database `{self.database.name}` is not served to this role, which {role.because()}: a query "
                "could use that, and PostgreSQL does not let the role look at what a query would run.",
                "The operator can give the server a role that can only read (`--create-reader`), GRANT SET ON "
                "PARAMETER log_min_messages to this one (PostgreSQL 15 and later), or start with `--trust-database`.",
            )
        return role

    def _new_world(self, *, closed: bool) -> World:
        return World(closed=closed, part=ServedPart(self._part), trusted=self._trusted_functions)

    def _is_closed(self, role: Role) -> bool:
        """Whether nobody's code but the trusted may run."""
        return (bool(role.harmful) or self.callers) and not self.trusted

    async def _give_back(self, session: Session) -> None:
        session.notices.clear()
        session.acting = session.caller = None
        try:
            async with asyncio.timeout(_CLEAN_SECONDS):
                await session.settle()
                more = await session.last(_END.format(seed=_CHANCE.uniform(-1, 1)))
        except (psycopg.Error, TimeoutError):
            await self._drop(session)
        except BaseException:
            await self._drop(session)
            raise
        else:
            session.notices.clear()
            if session.spent or more == "t":
                await self._drop(session)
            else:
                self._idle.append(session)

    async def _drop(self, session: Session) -> None:
        self._open.discard(session)
        await session.raw.close()


def _service(address: str) -> Service:
    """What tells whether the service file was changed, where one is used."""
    if "service=" not in address.replace(" ", "") and "PGSERVICE" not in os.environ:
        return ()
    found: list[tuple[int, int]] = []
    own, common = os.environ.get("PGSERVICEFILE", "~/.pg_service.conf"), os.environ.get("PGSYSCONFDIR", "/etc")
    for path in (own, os.path.join(common, "pg_service.conf")):
        with contextlib.suppress(OSError):
            state = os.stat(os.path.expanduser(path))
            found.append((state.st_ino, state.st_mtime_ns))
    return tuple(found)


async def apart(work: Coroutine[Any, Any, T]) -> T:
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
