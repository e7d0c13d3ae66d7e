"""TLS to the database: a private authority, names that must match, and what is said when they don't.

The wheel's PostgreSQL is built without TLS, so the proxy takes it; `debian.py` does the same with PostgreSQL's own.
"""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from postgres.authority import Authority
from postgres.proxy import proxied
from postgres.serving import Base, cluster, inside, make, text_of

pytestmark = pytest.mark.anyio
HOST = "db.example.test"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def context(authority: Authority, *, days: int = 1) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(*authority.issue("server", HOST, days=days))
    return made


def address(base: Base, port: int, authority: Authority, **words: str) -> str:
    """As the operator writes it: the host that the certificate names, and where that is."""
    all_words = {
        "host": HOST, "hostaddr": "127.0.0.1", "port": str(port), "user": "reader", "password": "reader",
        "dbname": base.name, "sslmode": "verify-full", "sslrootcert": str(authority.certificate), **words,
    }  # fmt: skip
    return "app=" + " ".join(f"{name}={value}" for name, value in all_words.items() if value)


@asynccontextmanager
async def refused(database: str) -> AsyncGenerator[str]:
    """What a call says that must fail; never a password or a path."""
    async with inside(database) as client:
        result = await client.call("query_rows", sql="SELECT 1")
        said = text_of(result)
        assert result["isError"], said
        assert "reader" not in said.replace('user "reader"', "") and "/" not in said, said
        yield said


async def test_a_server_whose_private_authority_is_known_is_believed(authority: Authority) -> None:
    base = make()
    async with proxied(cluster().wait_until_ready(), context(authority)) as proxy:
        url = (
            f"app=postgresql://reader:reader@{HOST}:{proxy.port}/{base.name}"
            f"?hostaddr=127.0.0.1&sslmode=verify-full&sslrootcert={authority.certificate}"
        )
        async with inside("--timeout", "1", url) as client:
            assert "[3]" in text_of(await client.call("query_rows", sql="SELECT count(*) FROM t"))
            assert proxy.open == 1
            assert "time limit" in text_of(await client.call("query_rows", sql="SELECT pg_sleep(600)"))


async def test_the_request_to_cancel_goes_the_same_way(authority: Authority) -> None:
    base = make()

    async def until(running: int) -> None:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(600)%' AND pid <> pg_backend_pid()"
        with anyio.fail_after(30):
            while base.rows(asked + " AND state = 'active'") != [(running,)]:
                await anyio.sleep(0.02)

    async with (
        proxied(cluster().wait_until_ready(), context(authority)) as proxy,
        inside(address(base, proxy.port, authority)) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(partial(client.call, "query_rows", sql="SELECT pg_sleep(600)"))
        await until(1)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await until(0)


async def test_what_must_not_be_believed_is_said(authority: Authority, tmp_path: Path) -> None:
    base = make()
    stranger = Authority(tmp_path, "stranger")
    async with proxied(cluster().wait_until_ready(), context(authority)) as proxy:
        async with refused(address(base, proxy.port, stranger)) as said:
            assert "certificate verify failed" in said and "`sslrootcert`" in said
        async with refused(address(base, proxy.port, authority, host="127.0.0.1")) as said:
            assert "does not match host name" in said and "write the host as its certificate does" in said
        async with refused(address(base, proxy.port, authority, sslrootcert=str(tmp_path / "none.pem"))) as said:
            assert 'root certificate file "none.pem" does not exist' in said and "`sslrootcert`" in said
        async with refused(address(base, proxy.port, authority, password="wrong")) as said:
            assert "password authentication failed" in said and "mend the password" in said
        async with refused(address(base, proxy.port, authority, password="")) as said:
            assert "no password supplied" in said and "`--password-file`" in said
    async with (
        proxied(cluster().wait_until_ready(), context(authority, days=-2)) as expired,
        refused(address(base, expired.port, authority)) as said,
    ):
        assert "certificate verify failed" in said and "renew the server's" in said
    async with refused(address(base, cluster().wait_until_ready(), authority)) as said:
        assert "does not support SSL, but SSL was required" in said and "switch `ssl` on at the server" in said


async def test_a_certificate_of_the_client_is_shown(authority: Authority) -> None:
    base = make()
    asking = context(authority)
    asking.load_verify_locations(authority.certificate)
    asking.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.issue("reader")
    async with proxied(cluster().wait_until_ready(), asking) as proxy:
        async with refused(address(base, proxy.port, authority)) as said:
            assert "can't be reached" in said
        async with refused(address(base, proxy.port, authority, sslcert=str(certificate), sslkey="none.key")) as said:
            assert 'private key file "none.key"' in said and "`sslkey`" in said
        known = address(base, proxy.port, authority, sslcert=str(certificate), sslkey=str(key))
        async with inside(known) as client:
            assert "[3]" in text_of(await client.call("query_rows", sql="SELECT count(*) FROM t"))


async def test_a_certificate_that_is_mended_needs_no_restart_of_ours(authority: Authority, tmp_path: Path) -> None:
    base = make()
    root = tmp_path / "root.pem"
    root.write_bytes(Authority(tmp_path, "stranger").certificate.read_bytes())
    async with (
        proxied(cluster().wait_until_ready(), context(authority)) as proxy,
        inside(address(base, proxy.port, authority, sslrootcert=str(root))) as client,
    ):
        assert (await client.call("query_rows", sql="SELECT 1"))["isError"]
        root.write_bytes(authority.certificate.read_bytes())
        assert "[1]" in text_of(await client.call("query_rows", sql="SELECT 1"))
