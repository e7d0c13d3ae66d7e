"""What an operator sees: figures, traces, logs and the audit; and that nothing said by anybody is among it."""

import json
import logging
import os
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
import httpx2
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from mcp_batteries.observability.logs import JsonFormatter
from mcp_batteries.testing.wire import MODERN, HttpWire, WireError
from mcp_batteries.transports.http.auth.tokens import create_token
from shared.http_subject import asks_to_end, running

ERAS = ("2025-11-25", MODERN)
SECRET = "canary-of-contents"
pytestmark = pytest.mark.anyio


def command(folder: Path, *more: str) -> list[str]:
    (folder / "files").mkdir(exist_ok=True)
    (folder / "files" / "notes.txt").write_text(SECRET, "utf-8")
    return [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", *more, str(folder / "files")]


async def something_of_everything(wire: HttpWire) -> None:
    """Calls that work, that fail and that make no sense, all of them with the canary in what is said."""
    await wire.open()
    assert SECRET in json.dumps(await wire.call("read_text", path="notes.txt"))
    assert (await wire.call("read_text", path=f"{SECRET}.txt"))["isError"]
    await wire.call("create_directory", path=f"{SECRET}-folder")
    with pytest.raises(WireError):
        await wire.request("resources/read", {"uri": f"file:///{SECRET}"})
    for method, params in (
        ("prompts/get", {"name": SECRET, "arguments": {"y": SECRET}}),
        (f"{SECRET}/method", {}),
        ("tools/call", {"name": SECRET, "arguments": {SECRET: SECRET}}),
        ("tools/call", {"name": "read_text", "arguments": {SECRET: SECRET}}),
    ):
        with suppress(WireError):
            await wire.request(method, params)
    await wire.notify(f"notifications/{SECRET}", {})


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.parametrize("revision", ERAS)
async def test_prometheus_reads_the_figures(revision: str, tmp_path: Path) -> None:
    async with running(command(tmp_path, "--metrics")) as subject:
        async with HttpWire(subject.url, revision=revision) as wire:
            await something_of_everything(wire)
            with pytest.raises(WireError, match="no tool"):
                await wire.call("made-up")
            if revision == MODERN:
                await wire.listen({"resourcesListChanged": True})
            answer = await wire.client.get(subject.url.replace("/mcp", "/metrics"))
        assert answer.headers["content-type"].startswith("text/plain")
        found = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }
        assert found["mcp_requests_total", *sorted(("tools/call", "read_text", "ok"))] == 1
        assert found["mcp_requests_total", *sorted(("tools/call", "read_text", "tool_error"))] == 2
        assert sum(value for key, value in found.items() if key[0] == "mcp_requests_total" and "unknown" in key) == 2
        assert found["mcp_request_seconds_count", *sorted(("tools/call", "read_text"))] == 3
        assert found["mcp_streams",] == (revision == MODERN)
        assert found["mcp_sessions",] == (revision != MODERN)
        assert found["mcp_http_responses_total", "200"] > 5
        assert found["process_open_fds",] > 3
        for word in (SECRET, "made-up"):
            assert word not in answer.text


async def test_what_a_client_got_wrong_counts_as_no_failure_of_the_server(tmp_path: Path) -> None:
    """An operator is called for failures, and any client could call them."""
    audit = tmp_path / "audit"
    async with (
        running(command(tmp_path, "--metrics", "--audit-file", str(audit))) as subject,
        HttpWire(subject.url, revision=MODERN) as wire,
    ):
        with pytest.raises(WireError, match="must be a string") as wrong:
            await wire.request("prompts/get", {"name": "review_file", "arguments": {"path": 5}})
        assert wrong.value.code == -32602
        figures = (await wire.client.get(subject.url.replace("/mcp", "/metrics"))).text
    assert 'mcp_requests_total{method="prompts/get",outcome="-32602",tool=""} 1.0' in figures
    assert json.loads(audit.read_text("utf-8"))["outcome"] == -32602


@pytest.mark.slow
async def test_figures_need_a_scope_where_tokens_are_asked_for_and_a_flag_anywhere(tmp_path: Path) -> None:
    made = {name: create_token(f"{name} {scopes}") for name, scopes in (("alice", "destroy"), ("scraper", "metrics"))}
    (tmp_path / "tokens").write_text("\n".join(line for _, line in made.values()), "utf-8")
    tokens = ["--auth-file", str(tmp_path / "tokens")]
    async with httpx2.AsyncClient(trust_env=False) as client:
        async with running(command(tmp_path, "--metrics", *tokens)) as subject:
            where = subject.url.replace("/mcp", "/metrics")
            assert (await client.get(where)).status_code == 401
            for name, status in (("alice", 403), ("scraper", 200)):
                headers = {"authorization": f"Bearer {made[name][0]}"}
                assert (await client.get(where, headers=headers)).status_code == status
            headers = {"authorization": f"Bearer {made['scraper'][0]}"}
            assert (await client.post(subject.url, json={}, headers=headers)).status_code == 403
        async with running(command(tmp_path)) as subject:
            assert (await client.get(subject.url.replace("/mcp", "/metrics"))).status_code == 404


class Collector(ThreadingHTTPServer):
    """Takes what is sent by OTLP over HTTP."""

    def __init__(self, status: int) -> None:
        received: dict[str, list[bytes]] = {"/v1/traces": [], "/v1/metrics": [], "/v1/logs": []}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received[self.path].append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(status)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.received = received


@pytest.fixture
def collector() -> Generator[Collector]:
    with collecting() as server:
        yield server


@contextmanager
def collecting(status: int = 200) -> Generator[Collector]:
    with Collector(status) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.share(1)
@asks_to_end
@pytest.mark.parametrize("revision", ERAS)
async def test_traces_metrics_and_logs_are_sent_without_words(
    revision: str, collector: Collector, tmp_path: Path
) -> None:
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        "OTEL_BLRP_SCHEDULE_DELAY": "50",
        "OTEL_METRIC_EXPORT_INTERVAL": "50",
        "no_proxy": "127.0.0.1",
    }
    parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    with patch.dict(os.environ, settings):
        async with running(command(tmp_path, "--telemetry")) as subject:
            async with HttpWire(subject.url, revision=revision) as wire:
                await something_of_everything(wire)
                await wire.request(
                    "tools/call", {"name": "read_text", "arguments": {"path": "notes.txt"}, "_meta": parent}
                )
            with anyio.fail_after(30):
                while not (_calls(collector) >= 3 and "0af7651916cd43dd8448eb211c80319c" in _traces(collector)):
                    await anyio.sleep(0.05)
            subject.ask_to_end()
            assert await subject.ends() == 143
    names = {span.name for span in _spans(collector)}
    assert {"tools/call read_text", "tools/call unknown", "prompts/get unknown", "other"} <= names
    assert {"mcp-fs"} == {
        attribute.value.string_value
        for body in collector.received["/v1/traces"]
        for batch in ExportTraceServiceRequest.FromString(body).resource_spans
        for attribute in batch.resource.attributes
        if attribute.key == "service.name"
    }
    for bodies in collector.received.values():
        for body in bodies:
            assert SECRET.encode() not in body


def _spans(collector: Collector) -> list[Any]:
    return [
        span
        for body in collector.received["/v1/traces"]
        for batch in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in batch.scope_spans
        for span in scope.spans
    ]


def _traces(collector: Collector) -> set[str]:
    return {span.trace_id.hex() for span in _spans(collector)}


def _calls(collector: Collector) -> int:
    """How many calls of read_text the newest metrics count."""
    if not collector.received["/v1/metrics"]:
        return 0
    newest = ExportMetricsServiceRequest.FromString(collector.received["/v1/metrics"][-1])
    return sum(
        point.count
        for batch in newest.resource_metrics
        for scope in batch.scope_metrics
        for metric in scope.metrics
        if metric.name == "mcp.server.operation.duration"
        for point in metric.histogram.data_points
        if any(attribute.value.string_value == "read_text" for attribute in point.attributes)
    )


@pytest.mark.slow
async def test_log_records_are_sent_too(collector: Collector, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("not a line\n", "utf-8")
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BLRP_SCHEDULE_DELAY": "50",
        "no_proxy": "127.0.0.1",
    }
    with patch.dict(os.environ, settings):
        async with running(command(tmp_path, "--telemetry", "--auth-file", str(tmp_path / "tokens"))) as subject:
            (tmp_path / "tokens").write_text("neither is this\n", "utf-8")
            with anyio.fail_after(30):
                while not collector.received["/v1/logs"]:
                    await anyio.sleep(0.05)
            assert subject.said
    records = [
        record
        for body in collector.received["/v1/logs"]
        for batch in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope in batch.scope_logs
        for record in scope.log_records
    ]
    assert any("lets nobody in" in record.body.string_value for record in records)
    assert not any("neither" in record.body.string_value for record in records)


@pytest.mark.slow
async def test_a_collector_that_takes_nothing_is_told_of_once_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collecting(400) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with running(command(tmp_path, "--telemetry")) as subject:
            async with HttpWire(subject.url) as wire:
                await wire.open()
            await subject.says("Failed to export metrics")
            with anyio.fail_after(60):
                while len(collector.received["/v1/metrics"]) < 10:
                    await anyio.sleep(0.02)
    assert subject.said.count("Failed to export metrics") == 1


@pytest.mark.slow
async def test_lines_for_machines(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("not a line\n", "utf-8")
    more = ["--log-format", "json", "--auth-file", str(tmp_path / "tokens")]
    async with running(command(tmp_path, *more)) as subject:
        await subject.says("lets nobody in")
    lines = [json.loads(line) for line in subject.said.strip("\0\n").splitlines()]
    assert [(line["level"], line["message"].partition(" ")[0]) for line in lines] == [
        ("error", "line"),
        ("info", "listening"),
    ]


async def test_a_log_that_says_more_quotes_no_argument_either(tmp_path: Path) -> None:
    """The page for operators recommends `info`, and `--telemetry` sends the log elsewhere."""
    async with (
        running(command(tmp_path, "--log-level", "info")) as subject,
        HttpWire(subject.url, revision=MODERN) as wire,
    ):
        await something_of_everything(wire)
        await wire.listen({"resourceSubscriptions": [f"file:///{SECRET}"]})
        await subject.says("read_text' failed: not_found")
    assert SECRET not in subject.said.replace(str(tmp_path), "")


def test_of_an_exception_a_line_has_the_place_and_not_the_words() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "it failed", None, sys.exc_info())
    line = json.loads(JsonFormatter().format(record))
    assert line["error"] == "ValueError"
    assert "test_observed.py" in line["at"][-1]
    assert SECRET not in json.dumps(line)


@pytest.mark.slow
async def test_nothing_of_this_is_imported_unless_asked_for(tmp_path: Path) -> None:
    heavy = [
        "opentelemetry.sdk",
        "prometheus_client",
        "redis",
        "nats",
        "psycopg",
        "jwt",
        "mcp_batteries.transports.http.auth.guard",
    ]
    code = (
        "import sys, runpy\n"
        "from mcp_batteries.settings import load\n"
        "from mcp_fs.settings import Settings\nfrom mcp_fs.server import build\n"
        f"build(load(Settings, [{str(tmp_path)!r}]))\n"
        "import mcp_batteries.transports.stdio.serve\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = await anyio.run_process([sys.executable, "-c", code])
    assert done.stdout.decode().strip() == "[]"
