"""Callers over HTTP, each a role of their own in the database: nobody is shown what another role may see.

Every way in is tried with every text that could lead to another role. What must not be shown is a mark in rows of
bob's; that the same way shows it to bob is asked first, so that no silence counts as a proof.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_batteries.settings import load
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from mcp_batteries.transports.http.auth.tokens import create_token
from mcp_postgres.settings import Settings
from postgres.serving import Base, major, make
from shared.http_subject import Subject, running

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _roles_can_be_judged() -> None:
    # Asked by a test, not by the module: it starts the database, which collecting tests needs no process for.
    if major() < 15:
        pytest.skip("no role but a superuser can be judged")


MARK, OWN = "mark-of-bob", "mark-of-alice"
SCHEMA = """
CREATE TABLE shared (id integer PRIMARY KEY, whose text DEFAULT current_user, note text);
CREATE TABLE bobs (id integer PRIMARY KEY, note text);
CREATE TABLE alices (id integer PRIMARY KEY, note text);
INSERT INTO shared VALUES (1, 'alice', 'mark-of-alice'), (2, 'bob', 'mark-of-bob');
INSERT INTO bobs VALUES (1, 'mark-of-bob'), (2, 'mark-of-bob'), (3, 'mark-of-bob');
INSERT INTO alices VALUES (1, 'mark-of-alice'), (2, 'mark-of-alice'), (3, 'mark-of-alice');
CREATE FUNCTION watched() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
"""
LAID = """
ALTER TABLE shared ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON shared USING (whose = current_user);
GRANT SELECT, INSERT, UPDATE, DELETE ON shared TO alice, bob;
GRANT SELECT, INSERT ON bobs TO bob; GRANT SELECT, INSERT ON alices TO alice;
CREATE SCHEMA laid; GRANT USAGE ON SCHEMA laid TO alice, bob;
CREATE FUNCTION laid.stable() RETURNS text LANGUAGE plpgsql STABLE AS
    $$ BEGIN PERFORM set_config('role', 'bob', true); RETURN (SELECT string_agg(note, ' ') FROM bobs); END $$;
CREATE FUNCTION laid.clause() RETURNS text LANGUAGE sql STABLE SET role = 'bob' AS
    $$ SELECT string_agg(note, ' ') FROM public.bobs $$;
CREATE FUNCTION laid.none() RETURNS text LANGUAGE plpgsql STABLE AS
    $$ BEGIN EXECUTE 'RESET ROLE'; EXECUTE 'SET LOCAL ROLE bob'; RETURN (SELECT min(note) FROM public.bobs); END $$;
CREATE VIEW laid.view AS SELECT laid.clause() AS note;
CREATE VIEW laid.as_caller WITH (security_invoker) AS SELECT note FROM bobs;
ALTER FUNCTION laid.stable() OWNER TO alice; ALTER FUNCTION laid.clause() OWNER TO alice;
ALTER FUNCTION laid.none() OWNER TO alice; ALTER VIEW laid.view OWNER TO alice;
GRANT SELECT ON ALL TABLES IN SCHEMA laid TO alice, bob;
"""
TEXTS = [
    "SELECT note FROM bobs", "SELECT note FROM shared", "SELECT * FROM laid.as_caller", "TABLE laid.view",
    "SELECT set_config('role', 'bob', true), query_to_xml('SELECT note FROM bobs', true, true, '')",
    "SELECT set_config('role', 'none', true), set_config('role', 'bob', false), (SELECT min(note) FROM bobs)",
    "SELECT set_config('session_authorization', 'bob', true), (SELECT min(note) FROM bobs)",
    "WITH become AS MATERIALIZED (SELECT set_config('role', 'bob', false)) SELECT note FROM become, bobs",
    "SET ROLE bob", "RESET ROLE", "SET SESSION AUTHORIZATION bob", "SET LOCAL role = 'bob'",
    "SELECT laid.stable()", "SELECT laid.clause()", "SELECT laid.none()",
    "UPDATE pg_settings SET setting = 'bob' WHERE name = 'role'",
    "DO $$ BEGIN SET ROLE bob; END $$", "SELECT most_common_vals::text FROM pg_stats WHERE tablename = 'bobs'",
    "SELECT query FROM pg_stat_activity", "SELECT row_to_json(b) FROM bobs b",
    "SELECT table_to_xml('bobs', true, true, '')", "SELECT currval('none'), note FROM bobs",
    "EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM bobs WHERE note = 'mark' || '-of-' || 'bob'",
    "INSERT INTO alices SELECT id + 100, note FROM bobs RETURNING note",
    "UPDATE shared SET note = note WHERE whose = 'bob' RETURNING note", "DELETE FROM shared RETURNING note",
    "MERGE INTO shared s USING bobs b ON s.id = b.id WHEN MATCHED THEN UPDATE SET note = b.note",
]  # fmt: skip
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("query_rows", {"sql": "{q}"}),
    ("query_rows", {"sql": "SELECT 1; {q}; SELECT note FROM shared"}),
    ("query_rows", {"sql": "SET ROLE bob; {q}"}),
    ("query_rows", {"sql": "SELECT 1; SELECT set_config('role', 'bob', true); SET app.x = '1'; {q}"}),
    ("query_rows", {"sql": "EXPLAIN (ANALYZE) {q}"}),
    ("explain_query", {"sql": "{q}"}),
    ("explain_query", {"sql": "{q}", "analyze": True}),
    ("write_rows", {"sql": "{q}", "dry_run": True}),
    ("write_rows", {"sql": "{q}; SELECT note FROM shared", "dry_run": True}),
    ("write_rows", {"sql": "{q}", "as_role": "bob"}),
    ("write_rows", {"sql": "{q}", "as_role": "gateway"}),
    ("find_indexes", {"queries": ["{q}"]}),
]
URIS = [
    "postgres://app/public/bobs", "postgres://app/public/bobs/1", "postgres://app/public/shared",
    "postgres://app/public/bobs?column=note&value=mark-of-bob", "postgres://app/public/shared/2",
    "postgres://app/laid/view", "postgres://app/laid/as_caller", "postgres://app/.activity",
    "postgres://.queries/notes", "postgres://app/public/shared?limit=5&order=newest",
]  # fmt: skip


def prepared() -> Base:
    base = make(SCHEMA)
    have = {name for (name,) in base.rows("SELECT rolname FROM pg_roles")}
    for who, options in (("alice", ""), ("bob", ""), ("gateway", "LOGIN PASSWORD 'gateway' NOINHERIT"), ("root", "")):
        if who not in have:
            base.run(f"CREATE ROLE {who} {options}")
    base.run("GRANT alice, bob, root TO gateway; GRANT SET ON PARAMETER log_min_messages TO gateway; " + LAID)
    base.run("ANALYZE")
    return base


@asynccontextmanager
async def team(base: Base, folder: Path, *more: str) -> AsyncGenerator[tuple[Subject, dict[str, str], Path]]:
    """The server for alice, bob, root, and nobody, who has a token without a role; and the file of tokens."""
    tokens: dict[str, str] = {}
    lines: list[str] = []
    for who in ("alice", "bob", "root", "stranger", "nobody"):
        tokens[who], line = create_token(f"{who} destroy" + (f" role={who}" if who != "nobody" else ""))
        lines.append(line)
    file = folder / "tokens"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    queries = folder / "queries"
    queries.mkdir()
    (queries / "notes.sql").write_text("-- All notes.\nSELECT note FROM shared ORDER BY id\n", "utf-8")
    command = [sys.executable, "-m", "mcp_postgres", "--transport", "http", "--port", "0", "--auth-file", str(file)]
    command += ["--role-claim", "role", "--write", "--dba", "--poll", "50", "--queries", str(queries), *more]
    async with running([*command, f"app={base.url('gateway')}"]) as subject:
        yield subject, tokens, file


@asynccontextmanager
async def clients(
    subject: Subject, tokens: dict[str, str], *who: str, revision: str = MODERN
) -> AsyncGenerator[list[HttpWire]]:
    async with AsyncExitStack() as stack:
        wires: list[HttpWire] = []
        for name in who:
            headers = {"authorization": f"Bearer {tokens[name]}"}
            wire = await stack.enter_async_context(HttpWire(subject.url, revision=revision, headers=headers))
            await wire.open()
            wires.append(wire)
        yield wires


async def said(wire: HttpWire, tool: str, **arguments: Any) -> str:
    try:
        return " ".join(item["text"] for item in (await wire.call(tool, **arguments))["content"])
    except WireError as error:
        return str(error)


async def shown(wire: HttpWire, uri: str) -> str:
    try:
        return str(await wire.request("resources/read", {"uri": uri}))
    except WireError as error:
        return str(error)


def put(arguments: dict[str, Any], text: str) -> dict[str, Any]:
    return {
        name: value.replace("{q}", text) if isinstance(value, str) else [text] if isinstance(value, list) else value
        for name, value in arguments.items()
    }


@pytest.mark.slow
async def test_no_way_in_shows_another_roles_rows(tmp_path: Path) -> None:
    base = prepared()
    tried, seen_by_bob, seen_by_alice = 0, 0, 0
    # One connection for all: what one caller leaves in it, the next would meet.
    async with (
        team(base, tmp_path, "--connections", "1") as (subject, tokens, _),
        clients(subject, tokens, "alice", "bob") as (alice, bob),
    ):
        for text in TEXTS:
            for tool, arguments in WAYS:
                answer = await said(alice, tool, **put(arguments, text))
                # Words of the statement itself come back in errors.
                assert MARK not in answer.replace("whose = 'bob'", ""), (tool, arguments, text, answer)
                tried, seen_by_alice = tried + 1, seen_by_alice + (OWN in answer)
            seen_by_bob += MARK in await said(bob, "query_rows", sql=text)
        for uri in URIS:
            assert MARK not in (await shown(alice, uri)).replace("value=mark-of-bob", ""), uri
            seen_by_bob += MARK in await shown(bob, uri)
        for table in ("bobs", "shared", "laid.view", "laid.as_caller"):
            assert MARK not in await said(alice, "get_table", table=table, sample=5), table
            seen_by_bob += MARK in await said(bob, "get_table", table=table, sample=5)
        assert MARK not in await said(alice, "run_notes") and OWN in await said(alice, "run_notes")
        assert MARK in await said(bob, "run_notes") and OWN not in await said(bob, "run_notes")
        for tool in ("get_health", "list_sessions", "list_top_queries", "list_settings"):
            assert MARK not in await said(alice, tool), tool
        page = await said(bob, "query_rows", sql="SELECT note FROM bobs", limit=1)
        cursor = page.partition("cursor=")[2].partition("]")[0]
        assert MARK in page and MARK not in await said(alice, "query_rows", cursor=cursor)
        assert MARK in await said(bob, "query_rows", cursor=cursor)
    assert tried == len(TEXTS) * len(WAYS) and seen_by_bob >= 12 and seen_by_alice >= 16, (seen_by_bob, seen_by_alice)
    assert base.rows("SELECT count(*) FROM bobs") == [(3,)] and base.rows("SELECT count(*) FROM shared") == [(2,)]


@pytest.mark.slow
async def test_many_at_once_each_see_their_own(tmp_path: Path) -> None:
    base = prepared()
    async with (
        team(base, tmp_path, "--connections", "2") as (subject, tokens, _),
        clients(subject, tokens, "alice", "bob") as wires,
    ):

        async def ask(wire: HttpWire, own: str, other: str) -> None:
            for _ in range(20):
                answer = await said(wire, "query_rows", sql="SELECT current_user, note FROM shared")
                assert own in answer and other not in answer, answer
                answer = await said(wire, "write_rows", sql="UPDATE shared SET note = note RETURNING note")
                assert own in answer and other not in answer, answer

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask, wires[0], OWN, MARK)
                tasks.start_soon(ask, wires[1], MARK, OWN)


async def test_who_has_no_role_that_counts_is_refused(tmp_path: Path) -> None:
    base = prepared()
    base.run("ALTER ROLE root SUPERUSER")
    try:
        async with (
            team(base, tmp_path) as (subject, tokens, _),
            clients(subject, tokens, "nobody", "stranger", "root", "alice") as wires,
        ):
            for wire, why in zip(wires, ("names no role", "can't be taken", "superuser"), strict=False):
                for answer in (
                    await said(wire, "query_rows", sql="SELECT 1"),
                    await said(wire, "list_objects"),
                    await shown(wire, "postgres://app/public/alices"),
                    await said(wire, "write_rows", sql="DELETE FROM alices"),
                ):
                    assert why in answer, answer
            assert "you are the role `alice`" in await said(wires[3], "list_objects")
            assert "current_user" in await said(wires[3], "query_rows", sql="SELECT current_user")
    finally:
        base.run("ALTER ROLE root NOSUPERUSER")


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_notice_is_for_who_could_see_the_change(tmp_path: Path, revision: str) -> None:
    base = prepared()
    table, theirs = "postgres://app/public/shared", "postgres://app/public/bobs"
    async with (
        team(base, tmp_path) as (subject, tokens, _),
        clients(subject, tokens, "alice", "bob", revision=revision) as (alice, bob),
    ):
        for wire in (alice, bob):
            await wire.subscribe(table)
            await wire.subscribe(theirs)
        since = {wire: (await said(wire, "list_changes", uris=[table, theirs])).split('"')[1] for wire in (alice, bob)}
        base.run("INSERT INTO shared VALUES (3, 'bob', 'new'); INSERT INTO bobs VALUES (4, 'new')")
        for uri in (table, theirs):
            await bob.updated(uri)
        assert "shared" in await said(bob, "list_changes", since=since[bob])
        changed = await said(alice, "list_changes", since=since[alice])
        assert "bobs" not in changed and "shared" not in changed, changed
        base.run("INSERT INTO shared VALUES (4, 'alice', 'new')")
        await alice.updated(table)
        assert not [m for m in alice.notifications if m["params"].get("uri") == theirs]


@pytest.mark.slow
async def test_a_saved_query_that_becomes_another_is_told_to_every_role(tmp_path: Path) -> None:
    base = prepared()
    async with team(base, tmp_path) as (subject, tokens, _), clients(subject, tokens, "alice", "bob") as wires:
        for wire in wires:
            await wire.subscribe("postgres://.queries/notes")
        file = tmp_path / "queries" / "notes.sql"
        file.write_text("-- All notes.\nSELECT note, whose FROM shared ORDER BY id\n", "utf-8")
        for wire in wires:
            await wire.notification("notifications/resources/updated")
            assert "whose" in await shown(wire, "postgres://.queries/notes")


async def test_a_session_is_nobody_elses_and_a_stream_ends_with_its_role(tmp_path: Path) -> None:
    base = prepared()
    async with (
        team(base, tmp_path) as (subject, tokens, file),
        clients(subject, tokens, "alice", revision="2025-11-25") as (alice,),
    ):
        assert OWN in await said(alice, "query_rows", sql="SELECT note FROM shared")
        alice.headers["authorization"] = f"Bearer {tokens['bob']}"
        with pytest.raises(WireError):
            await alice.call("query_rows", sql="SELECT note FROM shared")
        alice.headers["authorization"] = f"Bearer {tokens['alice']}"
        # The same token, another role from now on: in the session that there is, too.
        file.write_text(file.read_text("utf-8").replace("role=alice", "role=bob"), "utf-8")
        with anyio.fail_after(20):
            while MARK not in (answer := await said(alice, "query_rows", sql="SELECT note FROM shared")):
                assert OWN in answer
        assert OWN not in answer


@pytest.mark.parametrize(
    "words",
    [
        ["--role-claim", "role"],
        ["--role-claim", "role", "--transport", "http"],
        ["--role-claim", "role", "--transport", "http", "--auth-file", "x", "--ddl"],
        ["--role-claim", "role", "--transport", "http", "--auth-file", "x", "--admin"],
    ],
)
def test_what_does_not_go_together_is_said_at_the_start(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load(Settings, [*words, "postgresql://host/name"])
    assert "--role-claim" in capsys.readouterr().err


@pytest.mark.slow
async def test_a_role_that_cannot_look_first_is_not_served(tmp_path: Path) -> None:
    base = prepared()
    base.run("REVOKE SET ON PARAMETER log_min_messages FROM gateway")
    async with team(base, tmp_path) as (subject, tokens, _), clients(subject, tokens, "alice") as (alice,):
        answer = await said(alice, "query_rows", sql="SELECT 1")
        assert "GRANT SET ON PARAMETER log_min_messages" in answer
