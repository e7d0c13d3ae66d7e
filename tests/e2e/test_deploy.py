"""What is in `deploy/`: valid where a schema says so, true to the settings, at work where the programs are there."""

import asyncio
import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import kubernetes_validate
import pytest
import yaml

from e2e.services import free_port, serving
from e2e.test_replicas import DIAGNOSTIC, LEGACY
from mcp_batteries.settings import Settings
from mcp_batteries.testing.wire import MODERN, HttpWire
from shared.http_subject import running

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
KUBERNETES = "1.34"


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text("utf-8")))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_manifests_are_what_the_schema_of_kubernetes_says(file: Path) -> None:
    for document in documents(file):
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    spoilt = documents(file)[0]
    spoilt["sepc"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(spoilt, KUBERNETES, strict=True)


def test_manifests_agree_with_each_other() -> None:
    found = {document["kind"]: document for file in MANIFESTS for document in documents(file)}
    assert found.keys() == {
        *("ConfigMap", "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy"),
    }
    template = found["Deployment"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    for selector in (
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector == labels
    container = template["spec"]["containers"][0]
    drain = int(next(value for name, value in found["ConfigMap"]["data"].items() if name.endswith("_DRAIN_SECONDS")))
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert template["spec"]["terminationGracePeriodSeconds"] > drain + pause + 1
    # Else the name of a Service could be read as a setting of the server's.
    assert template["spec"]["enableServiceLinks"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert template["spec"]["securityContext"]["runAsNonRoot"] is True
    assert {item["name"] for item in template["spec"]["volumes"]} == {"keys", "tmp"}
    ports = {port["port"] for rule in found["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]}
    assert ports == {item["containerPort"] for item in container["ports"]}
    assert all(rule["to"] for rule in found["NetworkPolicy"]["spec"]["egress"])
    settings = [*found["ConfigMap"]["data"], *(item["name"] for item in container["env"])]
    assert {name.removeprefix("MCP_WEATHER_").lower() for name in settings} <= Settings.model_fields.keys()


def test_compose_names_settings_and_files_that_exist() -> None:
    services = documents(DEPLOY / "compose.yaml")[0]["services"]
    for name in ("replica-1", "replica-2"):
        flags = {word.partition("=")[0][2:].replace("-", "_") for word in services[name]["command"] if word[0] == "-"}
        assert flags <= Settings.model_fields.keys()
        assert f"server {name}:8000" in (DEPLOY / "nginx.conf").read_text("utf-8")
        assert f"server {name} {name}:8000" in (DEPLOY / "haproxy.cfg").read_text("utf-8")
    for service in services.values():
        for volume in service.get("volumes", []):
            if volume.startswith("./"):
                assert (DEPLOY / volume.partition(":")[0]).exists()


def test_the_page_names_settings_that_exist() -> None:
    page = (DEPLOY.parent / "docs" / "http.md").read_text("utf-8")
    packages = ("mcp_fs", "mcp_github", "mcp_postgres", "mcp_batteries.mount")
    kinds = [importlib.import_module(f"{package}.settings").Settings for package in packages]
    known = {name for kind in kinds for name in kind.model_fields}
    for flag in re.findall(r"`--([a-z-]+)", page):
        assert flag.replace("-", "_") in known, flag


@asynccontextmanager
async def proxied(
    kind: str, folder: Path, replicas: Sequence[Any], changes: Sequence[tuple[str, str]] = ()
) -> AsyncGenerator[str]:
    """The URL of `replicas` behind the proxy of `deploy/`, its addresses replaced by those here."""
    name = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}[kind]
    text, port = (DEPLOY / name).read_text("utf-8"), free_port()
    for number, replica in enumerate(replicas, 1):
        text = text.replace(f"replica-{number}:8000", f"127.0.0.1:{replica.address[1]}")
    text = text.replace("listen 8080", f"listen 127.0.0.1:{port}").replace("bind :8080", f"bind 127.0.0.1:{port}")
    text = text.replace(" /tmp/nginx", f" {folder}/nginx")
    for old, new in changes:
        text = text.replace(old, new)
    (folder / name).write_text(text, "utf-8")
    program = shutil.which(kind, path=os.environ["PATH"] + ":/usr/sbin")
    assert program is not None, f"{kind} is not installed"
    words = ["-c", str(folder / name), "-g", "daemon off;"] if kind == "nginx" else ["-f", str(folder / name), "-db"]
    with subprocess.Popen([program, *words], stdin=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}/mcp"
            async with httpx2.AsyncClient(trust_env=False) as client:
                with anyio.fail_after(60):
                    while True:
                        assert process.poll() is None, f"{kind} ended"
                        try:
                            if (await client.get(url.replace("/mcp", "/readyz"))).status_code == 200:
                                break
                        except httpx2.TransportError:
                            pass
                        await anyio.sleep(0.05)
            yield url
        finally:
            process.terminate()


@pytest.mark.debian
@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
@pytest.mark.parametrize("bus", ["redis", "nats", "postgresql"])
async def test_replicas_behind_a_proxy(kind: str, bus: str, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(serving(bus))
        command = [*DIAGNOSTIC, "--bus", service.url, "--trusted-proxy", "127.0.0.1", "--metrics"]
        replicas = [await stack.enter_async_context(running(command)) for _ in range(2)]
        url = await stack.enter_async_context(proxied(kind, tmp_path, replicas))
        # Sessions of older clients stay whole, calls of newer ones go anywhere.
        wires: list[HttpWire] = []
        for revision in (LEGACY, MODERN) * 3:
            wire = await stack.enter_async_context(HttpWire(url, revision=revision))
            await wire.open()
            await wire.subscribe("test://template/x/data")
            wires.append(wire)
        for _ in range(5):
            for wire in wires:
                assert not (await wire.call("test_simple_text")).get("isError")
        with anyio.fail_after(60):  # The bus may still be on its way.
            while not all(any(m.get("method") == "notifications/resources/updated" for m in w.messages) for w in wires):
                for replica in replicas:
                    async with HttpWire(replica.url, revision=MODERN) as direct:
                        await direct.call("announce", uri="test://template/x/data")
                await anyio.sleep(0.05)
        for wire in wires:
            wire.messages.clear()
        # Every change reaches everybody, wherever it was announced.
        for announcing in wires:
            await announcing.call("announce", uri="test://template/x/data")
            for wire in wires:
                await wire.updated("test://template/x/data")
        # A replica dies: the next calls work, and who listens again hears.
        replicas[0].process.kill()
        await replicas[0].ends()
        for wire in wires:
            wire.headers.pop("mcp-session-id", None)
        for revision in (LEGACY, MODERN):
            await _until_served(url, revision)
            wire = await stack.enter_async_context(HttpWire(url, revision=revision))
            await wire.open()
            await wire.subscribe("test://template/x/data")
            await wire.call("announce", uri="test://template/x/data")
            await wire.updated("test://template/x/data")
        async with httpx2.AsyncClient(trust_env=False) as client:
            for path in ("/metrics", "/%6detrics", "/metrics?x=y"):
                assert (await client.get(url.replace("/mcp", path))).status_code == 404


async def _until_served(url: str, revision: str) -> None:
    """Wait until the proxy has noticed who is gone: so many requests in a row are answered."""
    row, headers = 0, {"mcp-protocol-version": revision, "accept": "application/json, text/event-stream"}
    with anyio.fail_after(60):
        while row < 8:
            async with httpx2.AsyncClient(trust_env=False) as client:
                try:
                    answer = await client.post(url, content=b"{", headers=headers)
                    row = row + 1 if answer.status_code < 500 else 0
                except httpx2.TransportError:
                    row = 0


class Names(asyncio.DatagramProtocol):
    """A name server (RFC 1035) that knows some IPv4 addresses."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self._addresses = addresses
        self._transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        end = data.index(b"\0", 12) + 5
        name, kind = data[13 : 13 + data[12]].decode(), data[end - 4 : end - 2]
        found = self._addresses.get(name) if kind == b"\0\1" else None
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(found) if found else b""
        head = data[:2] + b"\x81\x80\0\1\0" + bytes([bool(found)]) + b"\0\0\0\0"
        self._transport.sendto(head + data[12:end] + answer, addr)


@pytest.mark.debian
@pytest.mark.anyio
async def test_haproxy_follows_a_replica_to_another_address(tmp_path: Path) -> None:
    """As a container that is made anew has; the other replica is not there, which keeps nobody from starting."""
    addresses, port = {"replica-1": "127.0.0.1"}, free_port()
    command = [sys.executable, "-m", "mcp_example", "--transport", "http", "--port", str(port), "--host"]
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: Names(addresses), ("127.0.0.1", 0))
    where = "nameserver names 127.0.0.1:{}".format(transport.get_extra_info("sockname")[1])
    try:
        async with AsyncExitStack() as stack:
            async with running([*command, "127.0.0.1"]):
                changes = [("parse-resolv-conf", where), (":8000", f":{port}")]
                url = await stack.enter_async_context(proxied("haproxy", tmp_path, [], changes))
            addresses["replica-1"] = "127.0.0.2"
            await stack.enter_async_context(running([*command, "127.0.0.2"]))
            async with httpx2.AsyncClient(trust_env=False) as client:
                with anyio.fail_after(60):
                    while (await client.get(url.replace("/mcp", "/readyz"))).status_code != 200:
                        await anyio.sleep(0.1)
    finally:
        transport.close()
