"""Where and as whom to connect, from libpq's files: read again whenever it matters, nothing restarted."""

from pathlib import Path

import anyio
import pytest

from postgres.serving import Base, cluster, inside, make, served, text_of

pytestmark = pytest.mark.anyio
ONE = "SELECT name FROM t WHERE id = 1"


def gone(base: Base, role: str) -> None:
    base.run(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}' AND pid <> pg_backend_pid()"
    )


def passfile(path: Path, word: str) -> None:
    path.write_text(f"127.0.0.1:*:*:*:{word}\n", "utf-8")
    path.chmod(0o600)


@pytest.mark.parametrize("file", ["pgpass", "password-file"])
async def test_a_password_that_changes_is_found_in_its_file(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, role = make(), f"changing_{file[:4]}"
    base.run(f"CREATE ROLE {role} LOGIN PASSWORD 'first'; GRANT SELECT ON t TO {role}")
    path, words = tmp_path / "secret", ["--password-file", str(tmp_path / "secret")]

    def write(word: str) -> None:
        if file == "pgpass":
            passfile(path, word)
        else:
            path.write_text(word + "\n", "utf-8")

    if file == "pgpass":
        monkeypatch.setenv("PGPASSFILE", str(path))
        words = []
    write("first")
    address = f"app=postgresql://{role}@127.0.0.1:{cluster().wait_until_ready()}/{base.name}"
    async with inside(*words, address) as client:
        assert '["a"]' in text_of(await client.call("query_rows", sql=ONE))
        base.run(f"ALTER ROLE {role} PASSWORD 'second'")
        gone(base, role)
        said = text_of(await client.call("query_rows", sql=ONE))
        assert "password authentication failed" in said and "read again at each connect" in said and "first" not in said
        write("second")
        assert '["a"]' in text_of(await client.call("query_rows", sql=ONE))
        path.unlink()
        gone(base, role)
        assert (await client.call("query_rows", sql=ONE))["isError"]
        write("second")
        assert '["a"]' in text_of(await client.call("query_rows", sql=ONE))
    base.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("how", ["address", "environment"])
async def test_a_service_that_moves_is_followed(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = make(), make()
    two.run("UPDATE t SET name = 'elsewhere' WHERE id = 1")
    file = tmp_path / "services.conf"

    def write(base: Base, word: str = "reader") -> None:
        port = cluster().wait_until_ready()
        file.write_text(
            f"[shop]\nhost=127.0.0.1\nport={port}\ndbname={base.name}\nuser=reader\npassword={word}\n", "utf-8"
        )

    write(one)
    monkeypatch.setenv("PGSERVICEFILE", str(file))
    if how == "environment":
        monkeypatch.setenv("PGSERVICE", "shop")
    uri = "postgres://shop/public/t/1"
    async with served(*(["service=shop"] if how == "address" else [])) as wire:
        assert '["a"]' in text_of(await wire.call("query_rows", sql=ONE))
        await wire.subscribe(uri)
        write(two)
        assert '["elsewhere"]' in text_of(await wire.call("query_rows", sql=ONE))
        await wire.updated(uri)
        left = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'reader'"
        with anyio.fail_after(30):
            while one.rows(left) != [(0,)]:
                await anyio.sleep(0.05)
        write(two, "wrong")
        result = await wire.call("query_rows", sql=ONE)
        assert result["isError"] and "password authentication failed" in text_of(result), text_of(result)
        file.write_text("[other]\nhost=127.0.0.1\n", "utf-8")
        result = await wire.call("query_rows", sql=ONE)
        assert (
            result["isError"] and "definition of service" in text_of(result) and "mend the address" in text_of(result)
        )
        write(one)
        assert '["a"]' in text_of(await wire.call("query_rows", sql=ONE))


async def test_a_list_of_databases_that_are_all_down_fails() -> None:
    nowhere = ["one=host=127.0.0.1 port=1 user=u", "two=host=127.0.0.1 port=1 user=u"]
    async with inside(*nowhere) as wire:
        done = await wire.call("list_objects")
        assert "the operator can check host and port, and start PostgreSQL there." in text_of(done)
        assert done["isError"] and all(
            f"The database `{name}` can't be reached" in text_of(done) for name in ("one", "two")
        )
    async with inside(nowhere[0], f"two={make().url()}") as wire:
        done = await wire.call("list_objects")
        assert not done.get("isError") and "The database `one` can't be reached" in text_of(done)
