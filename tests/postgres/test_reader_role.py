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

from mcp_batteries.errors import Conflict, Refused, Unavailable
from mcp_batteries.run import run
from mcp_batteries.settings import load
from mcp_postgres.engine.connection.role import READ_ROLE, Role
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
    if base.rows(f"SELECT 1 FROM pg_roles WHERE rolname = '{READER_ROLE}'"):
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
    base.run("CREATE TABLE later (x integer); INSERT INTO later VALUES (7)", "owner")
    said = await answers(
        settings, "SELECT count(*) FROM t", "SELECT x FROM later", "SELECT pg_read_file('/etc/passwd')"
    )
    assert "[3]" in said[0] and "[7]" in said[1] and "permission denied" in said[2], said
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
        assert not found_role.harmful and found_role.reads_verifiers == ("pg_authid" in message)


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


def test_without_the_right_to_grant_everything_it_grants_schema_by_schema(base: Base, tmp_path: Path) -> None:
    base.run("CREATE ROLE boss LOGIN PASSWORD 'boss' CREATEROLE; GRANT owner TO boss")
    try:
        _, message = created(tmp_path, settings_for("--create-reader", base.url("boss")))
        assert "It can read 4 of 4" in message, message
        # Up to PostgreSQL 15, who may make roles may grant any but a superuser's.
        granted = base.rows("SELECT current_setting('server_version_num')::integer < 160000")[0][0]
        assert ("pg_authid" in message) == granted
        assert granted == bool(base.rows(f"SELECT 1 WHERE pg_has_role('{READER_ROLE}', 'pg_read_all_data', 'MEMBER')"))
    finally:
        drop_reader(base)
        base.run("DROP OWNED BY boss CASCADE; DROP ROLE boss")


def test_who_may_not_make_roles_and_what_is_not_there_are_told(base: Base, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="CREATEROLE"):
        created(tmp_path, settings_for("--create-reader", base.url("owner")))
    with pytest.raises(Unavailable, match="can't be reached"):
        created(tmp_path, settings_for("--create-reader", base.url("postgres").replace(base.name, "nowhere")))
    with pytest.raises(Unavailable, match="MySQL"):
        created(tmp_path, settings_for("--create-reader", "mysql://root@localhost/shop"))
    assert not base.rows(f"SELECT 1 FROM pg_roles WHERE rolname = '{READER_ROLE}'")


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
