"""Bring the compose files up and use what runs: `uv run python -m docker.deployments`.

With Docker the images of PostgreSQL, Valkey and HAProxy come from the registry. Without an engine this takes
podman-compose and Debian's podman with netavark and aardvark-dns (`images.py` says what else), and stand-ins made of
Debian's packages: they start as the official images do (root first, which they give up themselves), but are not them.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2

from docker.images import BASE, ROOT, Engine, engine, run
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from tools.members import Member, members

COMPOSER = "podman-compose==1.6.0"
PACKAGES = "postgresql valkey-server haproxy"
POSTGRES = r"""#!/bin/bash
set -e
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
  chown postgres /var/lib/postgresql /var/run/postgresql
  exec setpriv --reuid=postgres --regid=postgres --clear-groups -- "$0"
fi
if [ ! -s "$data/PG_VERSION" ]; then
  initdb -D "$data" -U "$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD") --auth=trust
  sed -i '/^host/d' "$data/pg_hba.conf"
  echo "host all all all scram-sha-256" >> "$data/pg_hba.conf"
  pg_ctl -D "$data" -w start -o "-c listen_addresses="
  createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
  for script in /docker-entrypoint-initdb.d/*; do sh "$script"; done
  pg_ctl -D "$data" -w stop
fi
exec postgres -D "$data" -c listen_addresses='*'
"""
VALKEY = """#!/bin/sh
set -e
if [ "$(id -u)" = 0 ]; then
  chown valkey .
  exec setpriv --reuid=valkey --regid=valkey --clear-groups -- "$@"
fi
[ -w . ] || exit 1
exec "$@"
"""
STAND_INS = {
    "docker.io/library/postgres:18-alpine": (POSTGRES, "VOLUME /var/lib/postgresql\nSTOPSIGNAL SIGINT"),
    "docker.io/valkey/valkey:8-alpine": (VALKEY, "WORKDIR /data"),
    "docker.io/library/haproxy:3.0-alpine": (
        '#!/bin/sh\nexec haproxy -W -db -f /usr/local/etc/haproxy/haproxy.cfg "$@"\n',
        "USER haproxy\nSTOPSIGNAL SIGUSR1",
    ),
}


@dataclass
class Composer:
    """`docker compose`, or what stands for it."""

    docker: Engine
    words: list[str]

    @contextmanager
    def up(self, file: str, **environment: str) -> Iterator[None]:
        """All services of `file`, until the end of the block; nothing stays behind."""
        variables = self.docker.environment | environment
        command = [*self.words, "-f", str(ROOT / file)]
        run(*command, "up", "-d", "--no-build", env=variables)
        try:
            yield
        except BaseException:
            print(run("sh", "-c", '"$@" logs 2>&1', "sh", *command, env=variables)[-6000:], file=sys.stderr)
            raise
        finally:
            run(*command, "down", "-v", env=variables)


def composer(scratch: Path) -> Composer:
    docker = engine(scratch)
    if docker.has_bridge:
        return Composer(docker, [docker.program, "compose"])
    if not Path("/usr/lib/podman/netavark").exists():
        sys.exit("Without an engine this needs Debian's netavark and aardvark-dns too.")
    # HAProxy wants as many files as it has connections.
    limit = run("sh", "-c", "ulimit -Hn")
    configuration = Path(docker.environment["CONTAINERS_CONF"])
    text = configuration.read_text("utf-8").replace("nofile=1024:4096", f"nofile={limit}:{limit}")
    configuration.write_text(f'{text}[network]\nnetwork_backend = "netavark"\n', "utf-8")
    stand_ins(docker, scratch)
    return Composer(docker, ["uvx", "--quiet", COMPOSER])


def stand_ins(docker: Engine, scratch: Path) -> None:
    """Local images under the names that the compose files give, of packages that Debian's servers have."""
    packages = (
        f"FROM {BASE}\nRUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "
        f"{PACKAGES} && rm -rf /var/lib/apt/lists/* /var/lib/postgresql/*\n"
    )
    for number, (image, (script, more)) in enumerate(STAND_INS.items()):
        context = scratch / f"stand-in-{number}"
        context.mkdir()
        (context / "start").write_text(script, "utf-8")
        (context / "start").chmod(0o755)
        file = f'{packages}COPY start /usr/local/bin/start\n{more}\nENTRYPOINT ["/usr/local/bin/start"]\n'
        (context / "Dockerfile").write_text(file, "utf-8")
        docker("build", "--pull=never", "--network=host", "--tag", image, str(context))


@asynccontextmanager
async def client(url: str, token: str = "", revision: str = MODERN) -> AsyncGenerator[HttpWire]:
    """A client of what is being started: it asks until it is answered."""
    async with HttpWire(url, revision=revision, headers={"authorization": f"Bearer {token}"} if token else {}) as wire:
        with anyio.fail_after(60):
            while True:
                try:
                    await wire.open()
                    break
                except (httpx2.TransportError, WireError):
                    await anyio.sleep(0.1)
        yield wire


async def told(wire: HttpWire, tool: str, **arguments: object) -> str:
    answer = await wire.call(tool, **arguments)
    return answer["content"][0]["text"]


async def one_machine() -> None:
    async with client("http://127.0.0.1:8001/mcp") as wire:
        with anyio.fail_after(60):
            while "reader" not in (said := await told(wire, "query_rows", sql="SELECT current_user AS name")):
                assert "can't be reached" in said, said  # The database may still be starting.
        refused = await told(wire, "query_rows", sql="CREATE TABLE t (x int)")
        assert "takes one query" in refused, refused
        print("mcp-postgres over HTTP:", " ".join(said.split()))
    async with client("http://127.0.0.1:8002/mcp") as wire:
        said = await told(wire, "read_text", path="notes.txt")
        assert "one" in said, said
        assert "write_file" not in str(await wire.request("tools/list"))
        print("mcp-fs over HTTP:", " ".join(said.split()))


async def replicas(docker: Engine, token: str, folder: Path) -> None:
    url = "http://localhost:8080/mcp"
    async with (
        client(url, token) as first,
        client(url, token, "2025-11-25") as second,
        httpx2.AsyncClient(trust_env=False) as stranger,
    ):
        refused = await stranger.post(
            url, json=first.message("tools/list"), headers=first.headers_for({}) | {"authorization": ""}
        )
        assert refused.status_code == 401, refused
        assert (await stranger.get(url.replace("/mcp", "/metrics"))).status_code == 404
        for wire in (first, second):
            await wire.subscribe("file:///data/notes.txt")
        said = await told(first, "write_file", path="notes.txt", content="two\n", overwrite=True)
        assert (folder / "notes.txt").read_text("utf-8") == "two\n", said
        for wire in (first, second):
            await wire.notification("notifications/resources/updated")
        print("two replicas: written through the proxy, and both eras heard of it")
        (one,) = (name for name in docker("ps", "--format", "{{.Names}}").split() if "replica-1" in name)
        docker("stop", "--time", "25", one)
        async with client(url, token) as third:
            assert "two" in await told(third, "read_text", path="notes.txt")
        print("one replica stopped: the other answers")


def image(docker: Engine, command: str) -> Member:
    [server] = [server for server in members(ROOT) if server.command == command]
    words = [*docker.build, "-f", "docker/Dockerfile", "--build-arg", f"SERVER={command}", "--tag", server.image, "."]
    docker("build", *words)
    return server


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        scratch.chmod(0o755)
        compose = composer(scratch)
        folder, keys = scratch / "data", scratch / "secrets"
        for made in (folder, keys):
            made.mkdir(mode=0o755)
        (folder / "notes.txt").write_text("one\n", "utf-8")
        server = image(compose.docker, "mcp-fs")
        image(compose.docker, "mcp-postgres")
        # What a URL could not hold.
        passwords = {name: f"{secrets.token_hex(8)}@/:%" for name in ("POSTGRES_PASSWORD", "READER_PASSWORD")}
        with compose.up("docker/compose.yaml", FOLDER=str(folder), **passwords):
            anyio.run(one_machine)
        (keys / "state-keys").write_text(secrets.token_hex(32), "utf-8")
        command = [compose.docker.program, "run", "--rm", server.image, "--new-token", "alice destroy"]
        shown = run("sh", "-c", '"$@" 2>&1', "sh", *command, env=compose.docker.environment)
        (line,) = (line for line in shown.split("\n") if line.startswith("alice "))
        (keys / "tokens").write_text(f"{line}\n", "utf-8")
        token = next(word for word in shown.split() if word.startswith("mcpb_"))
        # As deploy/compose.yaml says: what the servers shall change is theirs.
        for path in (folder, folder / "notes.txt"):
            shutil.chown(path, 65532, 65532)
        with compose.up("deploy/compose.yaml", MCP_IMAGE=server.image, MCP_DATA=str(folder), MCP_SECRETS=str(keys)):
            anyio.run(replicas, compose.docker, token, folder)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
