"""Prove that no code of other roles runs through reading: every kind of carrier, place, way in and role, one by one.

An independent connection looks for effects after every call; before, each carrier's harm is done directly, to show
that it would be seen. Harmless twins of the same kinds have to be answered.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Collection, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import psycopg

from mcp_postgres.engine.advisor import indexes
from postgres import extension_calls
from postgres.gate_cases import CHANGES, FITTING, HARM, PLACES, RELATIONS, VALUES, Value
from postgres.serving import Base, Inside, inside, make, served, text_of
from postgres.ways import WAYS, asked
from proofs.tally import Tally

POWERS = {
    "signaller": "pg_signal_backend",
    "programmer": "pg_execute_server_program",
    "filer": "pg_write_server_files",
    "file_reader": "pg_read_server_files",
    "checkpointer": "pg_checkpoint",
    "replicator": None,
    "climber": "postgres",
    "reloader": None,
}
"""Roles that could do harm, and what they are members of; each also as one that may keep the log quiet."""


class Scene:
    """A database with every carrier in it, a victim, and an independent look at what happened.

    Args:
        away: a folder that the database's own user can write to.
        extension: what to install instead of what the carriers need; without the carriers.
    """

    def __init__(self, away: Path, extension: str | None = None) -> None:
        self.away, self.base = away, make()
        self.files = away.parent / f"{away.name}-files"
        """The folder for exports and imports."""
        self.files.mkdir()
        self.crashes = 0
        self.observer = self.base.connect()
        self.version: int = self.observer.info.server_version // 10000
        self._roles()
        needed = sorted({kind.extension for kind in VALUES.values()} - {""}) if extension is None else [extension]
        self.extensions = [name for name in needed if self._install(name)]
        self.base.run(
            "CREATE SCHEMA evil AUTHORIZATION mallory; CREATE SCHEMA evil_x AUTHORIZATION mallory;"
            "CREATE SCHEMA tame AUTHORIZATION mallory; CREATE SCHEMA tame_x AUTHORIZATION mallory; CREATE SCHEMA fine;"
            "GRANT USAGE ON SCHEMA evil, tame, fine TO PUBLIC;"
            "ALTER DEFAULT PRIVILEGES FOR ROLE mallory GRANT SELECT ON TABLES TO PUBLIC"
        )
        with self.base.connect("mallory") as mallory:
            mallory.execute(HARM.replace("{away}", str(away)).encode())
        if extension is None:
            self._lay_carriers()
        self._begin()

    def _lay_carriers(self) -> None:
        with self.base.connect("mallory") as mallory:
            for lay in self._lays("evil"):
                mallory.execute(lay.encode())
            for lay in self._lays("tame"):
                mallory.execute(lay.encode())
        self.base.run(
            "CREATE FUNCTION fine.fine_harm(integer DEFAULT 1) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS"
            " 'BEGIN RETURN 1; END'"
        )
        for lay in self._lays("fine"):
            self.base.run(lay)
        self.base.run("GRANT SELECT ON ALL TABLES IN SCHEMA fine TO PUBLIC; ANALYZE")

    def _install(self, extension: str) -> bool:
        """Return whether the extension could be created."""
        try:
            self.base.run(f'CREATE EXTENSION IF NOT EXISTS "{extension}" CASCADE')
        except psycopg.Error:
            return False
        return True

    def _roles(self) -> None:
        have = {name for (name,) in self.observer.execute("SELECT rolname FROM pg_roles").fetchall()}
        if "mallory" not in have:
            self.base.run("CREATE ROLE mallory LOGIN PASSWORD 'mallory'")
            for name, power in POWERS.items():
                for role in (name, f"{name}_judged"):
                    self.base.run(f"CREATE ROLE {role} LOGIN PASSWORD '{role}'")
                    if power is not None and (power != "pg_checkpoint" or self.version >= 15):
                        self.base.run(f"GRANT {power} TO {role}")
                self.base.run(
                    f"GRANT SET ON PARAMETER log_min_messages TO {name}_judged; GRANT reader TO {name}_judged"
                )
            self.base.run("ALTER ROLE replicator REPLICATION; ALTER ROLE replicator_judged REPLICATION")
        for role in ("reloader", "reloader_judged"):
            self.base.run(f"GRANT EXECUTE ON FUNCTION pg_reload_conf() TO {role}")
        for role in POWERS:
            self.base.run(f"GRANT USAGE ON SCHEMA public TO {role}, {role}_judged")
            self.base.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}, {role}_judged")
            self.base.run(f"GRANT INSERT, UPDATE, DELETE ON public.u TO {role}, {role}_judged, reader")

    def _lays(self, schema: str) -> Iterator[str]:
        for kind in self.kinds():
            if schema == "fine" and not kind.twin:
                continue
            if schema == "tame" and not tame(kind.lay):
                continue
            if kind.lay:
                yield filled(kind.lay, schema)
        for lay, _ in CHANGES.values():
            if schema != "tame" or tame(lay):
                yield filled(lay, schema)

    def kinds(self) -> list[Value]:
        return [kind for kind in VALUES.values() if self.has(kind)]

    def has(self, kind: Value) -> bool:
        return kind.since <= self.version and (not kind.extension or kind.extension in self.extensions)

    def relations(self) -> list[str]:
        """The tables and views to be read by their names."""
        laid = "".join(kind.lay for kind in self.kinds())
        return [name for name in RELATIONS if re.search(rf"{{s}}\.{name}\b", laid)]

    def _begin(self) -> None:
        self.victim = psycopg.connect(
            self.base.url("monitor", more="?application_name=victim"), autocommit=True, connect_timeout=10
        )
        self.before = self._state()

    def _state(self) -> Any:
        return self.observer.execute(
            "SELECT (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM public.t), (SELECT count(*) FROM public.u),"
            " (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_replication_slots), pg_conf_load_time()"
        ).fetchone()

    def rest(self) -> None:
        """Take the present state for the one before."""
        self.victim.close()
        self._begin()

    def harmed(self) -> list[str]:
        """What happened since the last look; it is undone."""
        seen = [f"file {name}" for name in os.listdir(self.away)]
        for name in os.listdir(self.away):
            (self.away / name).unlink()
        try:
            self.victim.execute("SELECT 1")
        except psycopg.Error:
            seen.append("victim ended")
        try:
            now = self._state()
        except psycopg.OperationalError:
            # That is a fault of the extension's, which every role meets; no code of anybody ran.
            self.crashes += 1
            self.victim.close()
            self.observer = _reconnected(self.base)
            self._begin()
            return [name for name in seen if name.startswith("file")]
        if now != self.before:
            seen.append(f"state: {self.before} -> {now}")
            self.observer.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        if seen:
            self.victim.close()
            self._begin()
        return seen

    def directly(self, sql: str) -> list[str]:
        """What a statement does as a superuser in a READ ONLY transaction that nobody guards.

        Where PostgreSQL was built without what it needs, it says so, which counts.
        """
        with self.base.connect() as connection:
            try:
                connection.execute("BEGIN TRANSACTION READ ONLY")
                connection.execute(sql.encode())
            except psycopg.errors.FeatureNotSupported as error:
                return [str(error)]
            except psycopg.Error:
                pass
            finally:
                connection.execute("ROLLBACK")
        return self.harmed()

    def close(self) -> None:
        self.victim.close()
        self.observer.close()
        shutil.rmtree(self.files)


def _reconnected(base: Base) -> psycopg.Connection[Any]:
    """A new connection, once the server has come back."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return base.connect()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise


def filled(text: str, schema: str) -> str:
    """A carrier's SQL for one schema; names of twins are their own, as names are told apart by nothing else."""
    function = "evil.harm(1)" if schema == "evil" else "abs(1)"
    if schema != "evil":
        text = re.sub(r"\{s\}\.(?!U&)(\w+)", r"{s}.{s}_\1", text)
    return text.format(s=schema, f=function)


def tame(lay: str) -> bool:
    """Whether a twin can be of a role that nobody trusts: nothing in it is a function of its own."""
    return bool(lay) and not re.search(r"FUNCTION|AGGREGATE|OPERATOR|pg_create", lay.replace("EXECUTE FUNCTION", ""))


@contextmanager
def every_table() -> Generator[None]:
    """Within the block indexes are tried on tables of a few rows too."""
    few, indexes.MIN_PAGES = indexes.MIN_PAGES, -1
    try:
        yield
    finally:
        indexes.MIN_PAGES = few


@contextmanager
def scene(extension: str | None = None) -> Generator[Scene]:
    with tempfile.TemporaryDirectory() as away:
        os.chmod(away, 0o777)
        made = Scene(Path(away), extension)
        yield made
        made.close()
        shutil.rmtree(away, ignore_errors=True)
        Path(away).mkdir()


async def call(wire: Inside, tool: str, **arguments: Any) -> tuple[bool, str]:
    result = await wire.call(tool, **arguments)
    said = text_of(result)
    assert "Traceback" not in said and "failed inside" not in said, said
    return bool(result.get("isError")) or ": failed: " in said, said


def show(place: Scene, tally: Tally, share: float, chance: random.Random) -> None:
    """That each carrier's harm would be seen."""
    for name, kind in VALUES.items():
        if place.has(kind) and chance.random() < share:
            seen: list[str] = []
            for template in (
                "SELECT {e}",
                "SELECT id FROM public.t WHERE {e} > 0",
                "SELECT id FROM public.t LIMIT {e}",
            ):
                seen = seen or place.directly(template.format(e=filled(kind.use, "evil")))
            tally.note("carriers shown", name, not seen and "does no harm")
    for name, (_, change) in CHANGES.items() if share == 1 else ():
        with place.base.connect() as connection:
            connection.execute("BEGIN")
            connection.execute(filled(change, "evil").encode())
            connection.execute("ROLLBACK")
        # From 18 on a trigger runs as the role whose statement fired it: the table's owner, behind a foreign key.
        owners = place.version >= 18 and name == "trigger behind a foreign key"
        tally.note("carriers shown", name, not (place.harmed() or owners) and "does no harm")


async def values(
    place: Scene, tally: Tally, wire: Inside, role: str, share: float, chance: random.Random, *, closed: bool
) -> None:
    """Carriers in expressions, in each place, by each way that takes SQL; each carrier once whatever the share."""
    for name, kind in VALUES.items():
        if not place.has(kind):
            continue
        for spot, template in PLACES.items():
            for way in WAYS:
                if chance.random() >= share and (spot, way) != ("output", "query"):
                    continue
                schemas = [
                    "evil",
                    *(["fine"] if kind.twin else []),
                    *(["tame"] if tame(kind.lay) and kind.twin else []),
                ]
                for schema in schemas:
                    sql = template.format(e=filled(kind.use, schema))
                    tool, arguments = asked(way, sql, table="public.u", role="reader")
                    failed, said = await call(wire, tool, **arguments)
                    for left in place.files.glob("out.*"):
                        left.unlink()
                    case = f"{role}, {way}, {spot}, {name}, {schema}"
                    if seen := place.harmed():
                        tally.note(f"{schema} cases", case, seen)
                    elif failed and schema != "evil" and closed and ("another role" in said or "do more" in said):
                        tally.note(f"{schema} cases", case, said or "refused")
                    else:
                        tally.note(f"{schema} cases")
                        tally.counts[f"{schema} {'refused' if failed else 'answered'}"] += 1
                        if closed and failed == (schema != "evil"):
                            tally.odd.append(f"{case}: {said}")


async def changes(place: Scene, tally: Tally, wire: Inside, role: str) -> None:
    """Carriers that run when rows change, in dry runs; only what a role may change at all."""
    for name, (lay, change) in CHANGES.items():
        for schema in ("evil", "fine", *(["tame"] if tame(lay) else [])):
            failed, said = await call(wire, "write_rows", sql=filled(change, schema), dry_run=True)
            seen = place.harmed()
            bad = bool(seen) or (schema != "evil" and failed)
            tally.note(f"{schema} changes", f"{role}, {name}", bad and f"{seen} {said}")


async def other_ways(place: Scene, tally: Tally, wire: Inside, role: str) -> None:
    """Everything that reads without SQL of the caller's."""
    (place.files / "in.csv").write_text("x\n1\n", "utf-8")
    (place.files / "in.jsonl").write_text('{"x": 1}\n', "utf-8")
    ways: tuple[tuple[str, dict[str, Any]], ...] = (
        ("get_table", {"sample": 1}),
        ("copy_from_file", {"file": "in.csv", "dry_run": True}),
        ("copy_from_file", {"file": "in.jsonl", "dry_run": True}),
    )
    for relation in place.relations():
        for tool, more in ways:
            await call(wire, tool, table=f"evil.{relation}", **more)
            tally.note("other ways", f"{role}, {tool}, {relation}", place.harmed())
        await call(wire, "search_schema", query=relation)
        tally.note("other ways", f"{role}, search_schema, {relation}", place.harmed())
        for kind, typed, inside_of in (
            ("schema", "ev", {}),
            ("table", relation, {"schema": "evil"}),
            ("column", "", {"schema": "evil", "table": relation}),
        ):
            await wire.complete(kind, typed, database="app", **inside_of)
            tally.note("completions", f"{role}, {kind}, {relation}", place.harmed())
        for uri in (
            f"evil/{relation}",
            f"evil/{relation}/.schema",
            f"evil/{relation}?column=x&value=1",
            f"evil/{relation}/1",
        ):
            try:
                await wire.read(f"postgres://app/{uri}")
            except Exception as error:  # whatever it says, it may do nothing
                assert "failed inside" not in str(error), error
            tally.note("other ways", f"{role}, {uri}", place.harmed())
        if relation in ("indexed", "parted", "whole", "counted"):
            for tool, more in ways:
                twin = text_of(await wire.call(tool, table=f"tame.tame_{relation}", **more))
                bad = "another role" in twin or "do more" in twin
                tally.note("other ways, twins", f"{role}, {tool}, {relation}", bad and twin)


async def own_statements(place: Scene, tally: Tally, role: str) -> None:
    """Functions that fit the server's own calls better, in a schema named like the role and in `public`."""
    with place.base.connect() as connection:
        schemas = ["public"]
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (role,)).fetchone():
            connection.execute(
                f'CREATE SCHEMA "{role}" AUTHORIZATION mallory; GRANT USAGE ON SCHEMA "{role}" TO PUBLIC'.encode()
            )
            schemas.append(role)
        connection.execute("GRANT CREATE ON SCHEMA public TO mallory")
    with place.base.connect("mallory") as mallory:
        for schema in schemas:
            for name, takes, gives, value in FITTING:
                body = f"BEGIN PERFORM evil.do_harm(); RETURN {value.format()}; END"
                made = f'CREATE OR REPLACE FUNCTION "{schema}".{name}({takes}) RETURNS {gives} LANGUAGE plpgsql AS'
                mallory.execute(f"{made} $x${body}$x$".encode())
    place.harmed()
    async with inside("--dba", "--write", f"app={place.base.url(role)}") as wire:
        for tool, arguments in (
            ("list_objects", {}), ("list_objects", {"kind": "functions"}), ("list_objects", {"kind": "types"}),
            ("list_objects", {"kind": "sequences"}), ("list_objects", {"kind": "extensions"}),
            ("list_objects", {"kind": "triggers"}), ("list_objects", {"kind": "policies"}),
            ("list_objects", {"kind": "grants"}), ("list_objects", {"kind": "roles"}),
            ("search_schema", {"query": "t"}), ("get_table", {"table": "public.t", "sample": 3}), ("get_health", {}),
            ("list_top_queries", {}), ("list_sessions", {"which": "all"}), ("list_settings", {}),
            ("find_indexes", {"queries": ["SELECT * FROM public.t WHERE name LIKE 'a%' AND id > 1 ORDER BY id"]}),
            ("list_settings", {"query": "work"}), ("query_rows", {"sql": "TABLE public.t"}),
            ("query_rows", {"sql": "SELECT 'x'::varchar, '\\x00'::bytea, now()"}),
            ("explain_query", {"sql": "SELECT * FROM public.t WHERE id = $1"}),
            ("write_rows", {"sql": "DELETE FROM public.u", "dry_run": True}),
        ):  # fmt: skip
            await call(wire, tool, **arguments)
            tally.note("own statements", f"{role}, {tool}", place.harmed())
        for uri in (
            ".schema",
            ".health",
            ".activity",
            ".role",
            "public/.schema",
            "public/t",
            "public/t/1",
            "public/t/.schema",
        ):
            said = ""
            try:
                await wire.read(f"postgres://app/{uri}")
            except Exception as error:
                said = str(error)
            tally.note("own statements", f"{role}, {uri}", place.harmed() or said)


async def extensions(tally: Tally, share: float, chance: random.Random, only: Collection[str] = ()) -> None:
    """Call functions of extensions, each in a database of its own, with what would leave a trace."""
    with psycopg.connect(Base("postgres").url("postgres"), autocommit=True) as connection:
        rows = connection.execute("SELECT name FROM pg_available_extensions ORDER BY name").fetchall()
    for (extension,) in rows:
        if extension.endswith("-3") or (only and extension not in only):
            continue
        with scene(extension) as place:
            if extension in place.extensions:
                await _calls_of(extension, place, tally, share, chance)
            else:
                tally.counts["extensions that can't be created"] += 1


async def _calls_of(extension: str, place: Scene, tally: Tally, share: float, chance: random.Random) -> None:
    with place.base.connect() as connection:
        connection.execute("CREATE SCHEMA postgres AUTHORIZATION mallory; GRANT USAGE ON SCHEMA postgres TO PUBLIC")
        functions = extension_calls.functions_of(connection, extension)
    with place.base.connect("mallory") as mallory:
        mallory.execute(extension_calls.LAY.encode())
    place.rest()
    # Some of them compute for long with the values that they get.
    async with inside("--timeout", 3, f"app={place.base.url('postgres')}") as wire:
        allowed: list[extension_calls.Function] = []
        for function in functions:
            first, *more = extension_calls.calls(function)
            _, said = await call(wire, "query_rows", sql=first)
            if extension_calls.is_refused(said):
                more = []
            else:
                allowed.append(function)
            for sql in more:
                if chance.random() < share:
                    tally.counts["calls of extensions' functions"] += 1
                    await call(wire, "query_rows", sql=sql)
            tally.note("functions of extensions", f"{extension}, {function.spelled}", place.harmed())
        tally.counts["functions of extensions, allowed"] += len(allowed)
        tally.counts["crashes of the server"] += place.crashes
        with place.base.connect("mallory") as mallory:
            for lay in extension_calls.lay_decoys(extension):
                mallory.execute(lay.encode())
        place.rest()
        for function in allowed:
            for sql in itertools.islice(extension_calls.calls(function), 2):
                await call(wire, "query_rows", sql=sql)
            tally.note("functions of extensions, with decoys", f"{extension}, {function.spelled}", place.harmed())


@asynccontextmanager
async def followed(place: Scene, role: str) -> AsyncGenerator[None]:
    """Every relation subscribed to, and looked at once after a commit."""
    async with served("--poll", "50", f"app={place.base.url(role)}") as wire:
        for relation in place.relations():
            await wire.subscribe(f"postgres://app/evil/{relation}")
        await wire.subscribe("postgres://app/public/t")
        place.base.run("UPDATE public.t SET name = name || 'x' WHERE id = 1")
        await wire.notification("notifications/resources/updated")
        place.base.run("UPDATE public.t SET name = 'a' WHERE id = 1")
        await wire.notification("notifications/resources/updated")
        yield


async def prove(
    share: float, seed: int, *, roles: list[str] | None = None, shown: float = 1.0, follow: bool = True
) -> Tally:
    """Try a share of all cases, and show the harm of a share of the carriers."""
    tally, chance = Tally(), random.Random(seed)
    with scene() as place, every_table():
        show(place, tally, shown, chance)
        judged = ["postgres", *(f"{name}_judged" for name in POWERS)]
        for role in roles or [*judged, "owner", "reader"]:
            flags = ["--write"] if role in ("postgres", "owner") else []
            part = share if role == "postgres" else share / 8
            async with inside("--write", "--files", place.files, f"app={place.base.url(role)}") as wire:
                await values(place, tally, wire, role, part, chance, closed=role in judged)
                if flags and role == "postgres":
                    await changes(place, tally, wire, role)
                await other_ways(place, tally, wire, role)
            if follow and role in ("postgres", "reader", "replicator_judged"):
                async with followed(place, role):
                    pass
                tally.note("followed", role, place.harmed())
        for role in [*POWERS] if roles is None else list[str]():
            async with inside(f"app={place.base.url(role)}") as wire:
                for sql in ("SELECT 1", "SELECT evil.harm()", "SELECT pg_reload_conf()"):
                    failed, said = await call(wire, "query_rows", sql=sql)
                    # Who inherits a superuser's rights may look at what would run.
                    held = (
                        "is not served" in said if role != "climber" else "may become one" in said or "[1 row]" in said
                    )
                    bad = place.harmed() or not held or failed != ("[1 row]" not in said)
                    tally.note("roles not served", f"{role}, {sql}", bad and (said or "no answer"))
        for role in roles or ["postgres", "signaller_judged", "programmer_judged"]:
            await own_statements(place, tally, role)
    if roles is None:
        await extensions(tally, share, chance)
    return tally


def main() -> int:
    """Call the functions of the extensions that are named, and nothing else."""
    tally = Tally()
    anyio.run(extensions, tally, 1.0, random.Random(1), sys.argv[1:])
    return tally.report(odd=True)


if __name__ == "__main__":
    sys.exit(main())
