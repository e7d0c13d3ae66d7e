"""`--create-reader`: the role that it makes, what it may do, and where its password is and is not."""

import contextlib
import os
import stat
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mcp_batteries.errors import Conflict, Invalid, Refused, Unavailable
from mcp_batteries.executables import quote_command
from mcp_batteries.run import run
from mcp_batteries.settings import load
from mcp_postgres.engine.connection.role import READ_ROLE, Role
from mcp_postgres.engine.demo.process import free_port
from mcp_postgres.operator_sql import READER_ROLE
from mcp_postgres.reader_role import prepare
from mcp_postgres.settings import Settings
from postgres.serving import Base, inside, make, text_of


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Base]:
    """A database, on a server without a reader before and afterwards."""
    monkeypatch.setattr(f"{run.__module__}._data_folder", lambda: tmp_path)
    made = make()
    yield made
    drop_reader(made)


def drop_reader(base: Base) -> None:
    if not base.rows(f"SELECT 1 FROM pg_roles WHERE rolname = '{READER_ROLE}'"):
        return
    # Its rights in each database keep a role from being dropped.
    for (name,) in base.rows(
        "SELECT DISTINCT datname FROM pg_shdepend JOIN pg_database d ON d.oid = dbid"
        f" WHERE refobjid = '{READER_ROLE}'::regrole"
    ):
        Base(name).run(f"DROP OWNED BY {READER_ROLE}")
    base.run(f"DROP OWNED BY {READER_ROLE}; DROP ROLE {READER_ROLE}")


def settings_for(*arguments: object) -> Settings:
    return load(Settings, [*map(str, arguments)])


def created(folder: Path, settings: Settings) -> tuple[Any, str]:
    return prepare(settings, folder)


def file_of(settings: Any) -> Path:
    return Path(settings.password_file)


async def answers(settings: Any, *statements: str) -> list[str]:
    async with inside(*settings.arguments()) as wire:
        return [text_of(await wire.call("query_rows", sql=sql)) for sql in statements]


@pytest.mark.anyio
async def test_the_role_reads_and_does_nothing_else(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    execute = psycopg.Connection.execute

    def recorded(connection: Any, query: Any, *rest: Any, **more: Any) -> Any:
        sent.append(query.as_string(connection) if isinstance(query, psycopg.sql.Composable) else str(query))
        return execute(connection, query, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", recorded)
        settings, message = created(tmp_path, settings_for("--create-reader", base.url("postgres")))
    password = file_of(settings).read_text("utf-8").strip()
    assert "The role `mcp_reader` was made. It can read 4 of 4 tables and views and change none" in message, message
    assert settings.databases == (base.url("x").replace("x:x@", f"{READER_ROLE}@"),) and settings.create_reader is None
    assert len(password) >= 32 and password not in message + " ".join(sent) + " ".join(settings.arguments())
    assert any("PASSWORD 'SCRAM-SHA-256$" in statement for statement in sent)
    if sys.platform != "win32":
        assert stat.S_IMODE(file_of(settings).stat().st_mode) == 0o600
        assert stat.S_IMODE(file_of(settings).parent.stat().st_mode) == 0o700
    row = base.rows(
        "SELECT rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolconnlimit,"
        f" rolconfig FROM pg_roles WHERE rolname = '{READER_ROLE}'"
    )[0]
    assert row[:7] == (True, False, False, False, False, False, 20)
    assert row[7] == [
        "default_transaction_read_only=on", "statement_timeout=60s", "idle_in_transaction_session_timeout=60s",
    ]  # fmt: skip
    assert "of tables to come, those that owner, postgres will create" in message, message
    base.run("CREATE TABLE later (x integer); INSERT INTO later VALUES (7)", "owner")
    base.run("CREATE SCHEMA more; CREATE TABLE more.later (x integer); INSERT INTO more.later VALUES (8)", "owner")
    said = await answers(
        settings, "SELECT count(*) FROM t", "SELECT x FROM later", "SELECT x FROM more.later",
        "SELECT last_value FROM s", "SELECT pg_read_file('/etc/passwd')",
    )  # fmt: skip
    assert "[3]" in said[0] and "[7]" in said[1] and "[8]" in said[2] and "[1]" in said[3], said
    assert "permission denied" in said[4], said
    with psycopg.connect(f"{settings.databases[0]}", password=password, autocommit=True) as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("CREATE TABLE made ()")
        connection.execute("SET default_transaction_read_only = off")
        for statement in (b"DELETE FROM t", b"CREATE TABLE made ()", b"CREATE ROLE made"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
        found = connection.execute(READ_ROLE)
        while not found.description or found.description[0].name != "json_build_object":
            found.nextset()
        row = found.fetchone()
        assert row is not None
        found_role = Role.parse(row[0])
        assert not found_role.harmful and not found_role.reads_verifiers and "pg_authid" not in message


def test_a_role_that_is_there_keeps_its_password_unless_it_is_renewed(base: Base, tmp_path: Path) -> None:
    ask = ("--create-reader", base.url("postgres"))
    first = file_of(created(tmp_path, settings_for(*ask))[0])
    password = first.read_text("utf-8")
    again, message = created(tmp_path, settings_for(*ask))
    assert "was there already and keeps its password" in message and file_of(again) == first
    assert first.read_text("utf-8") == password
    # Another database of the same server is read with the same role and password.
    other = make()
    moved, message = created(tmp_path, settings_for("--create-reader", other.url("postgres")))
    assert file_of(moved) == first and "4 of 4" in message
    first.unlink()
    with pytest.raises(Conflict, match="--renew-reader"):
        created(tmp_path, settings_for(*ask))
    renewed, message = created(tmp_path, settings_for(*ask, "--renew-reader"))
    assert "has a new password" in message and file_of(renewed).read_text("utf-8") != password
    first.write_text("wrong\n", "utf-8")
    with pytest.raises(Conflict):
        created(tmp_path, settings_for(*ask))
    assert os.listdir(first.parent) == [first.name]


@pytest.mark.parametrize("power", ["SUPERUSER", "CREATEROLE", "REPLICATION", "IN ROLE pg_write_all_data"])
def test_a_role_of_that_name_with_powers_is_refused(base: Base, tmp_path: Path, power: str) -> None:
    base.run(f"CREATE ROLE {READER_ROLE} LOGIN {power}")
    with pytest.raises(Refused, match="has powers"):
        created(tmp_path, settings_for("--create-reader", base.url("postgres"), "--renew-reader"))


@pytest.mark.anyio
async def test_with_only_it_can_read_that_and_is_served_so(base: Base, tmp_path: Path) -> None:
    base.run("CREATE SCHEMA app; CREATE TABLE app.a (x integer); INSERT INTO app.a VALUES (5); CREATE TABLE app.b ()")
    if base.rows("SELECT current_setting('server_version_num')::integer")[0][0] < 150000:
        with pytest.raises(Unavailable, match="Before PostgreSQL 15"):
            created(tmp_path, settings_for("--create-reader", base.url("postgres"), "--only", "app.a"))
        return
    settings, message = created(
        tmp_path, settings_for("--create-reader", base.url("postgres"), "--only", "app.a", "--only", "public.t")
    )
    assert "It can read 2 of 6" in message and "pg_authid" not in message, message
    said = await answers(settings, "SELECT x FROM app.a", "SELECT count(*) FROM t", "SELECT * FROM u")
    assert "[5]" in said[0] and "[3]" in said[1] and "not served" in said[2], said


@pytest.mark.anyio
async def test_secrets_of_the_catalogs_stay_closed(base: Base, tmp_path: Path) -> None:
    settings, _ = created(tmp_path, settings_for("--create-reader", base.url("postgres")))
    said = await answers(
        settings, "SELECT rolpassword FROM pg_authid", "SELECT * FROM pg_shadow",
        "SELECT umoptions FROM pg_user_mapping", "SELECT subconninfo FROM pg_subscription",
    )  # fmt: skip
    assert all("permission denied" in answer for answer in said), said


def test_a_role_that_reads_the_catalogs_secrets_is_told_of(base: Base, tmp_path: Path) -> None:
    ask = settings_for("--create-reader", base.url("postgres"))
    created(tmp_path, ask)
    base.run(f"GRANT pg_read_all_data TO {READER_ROLE}")
    assert f"REVOKE pg_read_all_data FROM {READER_ROLE}" in created(tmp_path, ask)[1]


@pytest.mark.anyio
async def test_of_a_schema_it_reads_what_others_create_there_later(base: Base, tmp_path: Path) -> None:
    if base.rows("SELECT current_setting('server_version_num')::integer")[0][0] < 150000:
        pytest.skip("`--only` needs PostgreSQL 15")
    base.run("CREATE SCHEMA app", "owner")
    settings, _ = created(tmp_path, settings_for("--create-reader", base.url("postgres"), "--only", "app"))
    base.run("CREATE TABLE app.later (x integer); INSERT INTO app.later VALUES (7)", "owner")
    assert "[7]" in (await answers(settings, "SELECT x FROM app.later"))[0]


@pytest.mark.anyio
async def test_who_leaves_out_the_password_file_is_told_its_name(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    settings, message = created(tmp_path, settings_for("--create-reader", base.url("postgres")))
    file = file_of(settings)
    assert f"To serve it: mcp-postgres --password-file {file} {settings.databases[0]}" in message
    monkeypatch.setattr("mcp_postgres.engine.connection.pool.reader_passwords_folder", lambda: file.parent)
    (answer,) = await answers(settings_for(settings.databases[0]), "SELECT 1")
    assert "no password supplied" in answer and str(file) not in answer
    assert f"is in {file}: name it by `--password-file`" in caplog.text


def test_who_may_make_roles_but_is_no_superuser_grants_what_its_roles_own(base: Base, tmp_path: Path) -> None:
    base.run("CREATE ROLE boss LOGIN PASSWORD 'boss' CREATEROLE; GRANT owner TO boss")
    try:
        _, message = created(tmp_path, settings_for("--create-reader", base.url("boss")))
        assert "It can read 4 of 4" in message and "those that boss, owner will create" in message, message
    finally:
        drop_reader(base)
        base.run("DROP OWNED BY boss CASCADE; DROP ROLE boss")


def test_what_others_own_is_left_out_and_told(base: Base, tmp_path: Path) -> None:
    base.run("CREATE SCHEMA closed; CREATE TABLE closed.a (); CREATE TABLE public.closed ()")
    base.run("CREATE ROLE boss LOGIN PASSWORD 'boss' CREATEROLE; GRANT owner TO boss")
    try:
        _, message = created(tmp_path, settings_for("--create-reader", base.url("boss")))
        assert "It can read 4 of 6" in message and "repeat this as a superuser" in message, message
        assert "It can read 6 of 6" in created(tmp_path, settings_for("--create-reader", base.url("postgres")))[1]
    finally:
        drop_reader(base)
        base.run("DROP OWNED BY boss CASCADE; DROP ROLE boss")


def test_a_repetition_tells_what_it_adds(base: Base, tmp_path: Path) -> None:
    ask = settings_for("--create-reader", base.url("postgres"))
    created(tmp_path, ask)
    base.run(f"REVOKE SELECT ON t FROM {READER_ROLE}")
    assert "it did not read public.t before: REVOKE SELECT ON" in created(tmp_path, ask)[1]
    assert "before" not in created(tmp_path, ask)[1]


def test_who_may_not_make_roles_and_what_is_not_there_are_told(base: Base, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="CREATEROLE"):
        created(tmp_path, settings_for("--create-reader", base.url("owner")))
    with pytest.raises(Unavailable, match="can't be reached"):
        created(tmp_path, settings_for("--create-reader", base.url("postgres").replace(base.name, "nowhere")))
    with pytest.raises(Unavailable, match="MySQL"):
        created(tmp_path, settings_for("--create-reader", "mysql://root@localhost/shop"))
    assert not base.rows(f"SELECT 1 FROM pg_roles WHERE rolname = '{READER_ROLE}'")


def test_the_reader_itself_is_no_administrator_and_no_standby(base: Base, tmp_path: Path) -> None:
    settings, _ = created(tmp_path, settings_for("--create-reader", base.url("postgres")))
    with pytest.raises(Unavailable, match=r"of the role `mcp_reader` only read here.*as a superuser") as refusal:
        created(
            tmp_path,
            settings_for("--create-reader", settings.databases[0], "--password-file", settings.password_file),
        )
    assert "standby" not in str(refusal.value)


def test_where_nothing_listens_the_command_says_what_to_check(tmp_path: Path) -> None:
    nowhere = f"postgresql://postgres@127.0.0.1:{free_port()}/shop"
    with pytest.raises(Unavailable, match=r"can't be reached.*Check the host and the port") as refusal:
        created(tmp_path, settings_for("--create-reader", nowhere))
    assert "later" not in str(refusal.value)


def test_the_command_to_serve_has_the_other_options(base: Base, tmp_path: Path) -> None:
    options = ["--demo", "--dba", "--timeout", "9"]
    settings, message = created(tmp_path, settings_for("--create-reader", base.url("postgres"), *options, "--check"))
    words = ["--demo", "--password-file", settings.password_file, *options[1:], settings.databases[0]]
    assert f"To serve it: {quote_command(['mcp-postgres', *words])}\n" in message


@pytest.mark.parametrize("form", ["{url}?connect_timeout=5", "shop={url}", "host=127.0.0.1 port={port} user=postgres"])
def test_forms_of_an_address(base: Base, tmp_path: Path, form: str) -> None:
    url = base.url("postgres")
    words = psycopg.conninfo.conninfo_to_dict(url)
    given = form.format(url=url, port=words["port"])
    if "://" not in given:
        given += f" password={words['password']} dbname={base.name}"
    settings, _ = created(tmp_path, settings_for("--create-reader", given))
    (address,) = settings.databases
    assert (
        words["password"] not in address and READER_ROLE in address and address.startswith("shop=") == ("shop=" in form)
    )
    assert "connect_timeout" not in form or address.endswith("?connect_timeout=5")


def test_the_command_goes_on_to_a_hosts_entry(
    base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for more in ([], ["--print-config", "cursor"], ["--install", "cursor"]):
        with pytest.raises(SystemExit) as ended:
            run("mcp_postgres", ["--create-reader", base.url("postgres"), *more])
        assert ended.value.code == 0
    entry = (tmp_path / ".cursor" / "mcp.json").read_text("utf-8")
    (file,) = (tmp_path / "readers").iterdir()
    password = file.read_text("utf-8").strip()
    said = "".join(capsys.readouterr())
    for text in (entry, said):
        assert f"{READER_ROLE}@127.0.0.1" in text and str(file.name) in text and password not in text
        assert base.url("postgres") not in text
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    with pytest.raises(SystemExit) as ended:
        run("mcp_postgres", ["--create-reader", base.url("postgres")])
    assert ended.value.code == 1 and "--renew-reader" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(["--renew-reader"], "needs --create-reader"), (["--create-reader", "postgresql:///a", "--write"], "only read")],
)
def test_what_does_not_go_together(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings_for(*arguments)
    assert why in capsys.readouterr().err


def test_a_second_database_is_not_taken_for_one_that_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for("--create-reader", "postgresql:///shop", "postgresql://a:c4n4ry@localhost/blog")
    with pytest.raises(Invalid, match=r"takes one database.*Repeat the command for each") as raised:
        prepare(settings, tmp_path)
    assert "localhost/blog" in str(raised.value) and "c4n4ry" not in str(raised.value)
    monkeypatch.setenv("MCP_POSTGRES_DATABASES", "postgresql:///blog")
    unreachable = f"postgresql://admin@127.0.0.1:{free_port()}/shop"
    with pytest.raises(Unavailable, match="can't be reached"):
        prepare(settings_for("--create-reader", unreachable), tmp_path)


@pytest.mark.anyio
async def test_the_start_with_a_superuser_points_to_it(base: Base, caplog: pytest.LogCaptureFixture) -> None:
    async with inside(base.url("postgres")) as wire:
        await wire.call("query_rows", sql="SELECT 1")
        await wire.call("query_rows", sql="SELECT 2")
    told = [record.getMessage() for record in caplog.records if "--create-reader" in record.getMessage()]
    assert len(told) == 1 and "is a superuser" in told[0]
    caplog.clear()
    async with inside(base.url("reader")) as wire:
        await wire.call("query_rows", sql="SELECT 1")
    assert not [record for record in caplog.records if "--create-reader" in record.getMessage()]
