"""OpenTelemetry: sends traces, metrics and logs of the SDK and of this package where the OTEL_* variables say.

The SDK opens a span for each message and takes over the caller's trace; without a provider that is a no-op. This
module installs providers, with OTLP over HTTP, and removes error texts from what it sends, because they may quote a
caller, a file or a row.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio.to_thread
from mcp_types.methods import SPEC_CLIENT_METHODS, SPEC_CLIENT_NOTIFICATION_METHODS

from mcp_batteries.errors import Invalid
from mcp_batteries.observability.logs import RateLimitFilter
from mcp_batteries.redaction.text import redact

try:
    from opentelemetry import metrics, trace
    from opentelemetry._logs import SeverityNumber
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.trace import SpanKind, Status
    from opentelemetry.util.types import AttributeValue
except ImportError:
    raise Invalid(
        "--telemetry needs the libraries of OpenTelemetry.", "Install this server with the extra `otel`."
    ) from None

__all__ = ["Telemetry"]

IsKnownName = Callable[[str, str], bool]

_METHODS = SPEC_CLIENT_METHODS | SPEC_CLIENT_NOTIFICATION_METHODS
_METHOD = "mcp.method.name"
_REQUEST = "jsonrpc.request.id"
_NAMES = ("gen_ai.tool.name", "gen_ai.prompt.name")
_MAX_ID = 40

_LEVELS = {
    logging.DEBUG: SeverityNumber.DEBUG,
    logging.INFO: SeverityNumber.INFO,
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class Telemetry:
    """Providers for one server; a sink of `measures`, sending from construction to the end of `running`.

    Args:
        knows: whether a method would find a tool or prompt under a name.
    """

    def __init__(self, name: str, version: str, knows: IsKnownName) -> None:
        # Otherwise an unreachable collector is logged at each try, several times a minute and at length.
        for exporter in (OTLPSpanExporter, OTLPMetricExporter, OTLPLogExporter):
            logging.getLogger(exporter.__module__).addFilter(RateLimitFilter())
        resource = Resource.create({"service.name": name, "service.version": version})
        self._spans = TracerProvider(resource=resource)
        self._spans.add_span_processor(BatchSpanProcessor(_WithoutTexts(OTLPSpanExporter(), knows)))
        trace.set_tracer_provider(self._spans)
        self._meters = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource)
        metrics.set_meter_provider(self._meters)
        # The name and the unit are those of the semantic conventions for MCP.
        self._seconds = self._meters.get_meter("mcp-batteries").create_histogram(
            "mcp.server.operation.duration", "s", "From a request to its answer."
        )
        self._logs = LoggerProvider(resource=resource)
        self._logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        self._handler = _Handler(self._logs)

    def __call__(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        attributes = {"mcp.method.name": method}
        if tool:
            attributes["gen_ai.tool.name"] = tool
        if outcome != "ok":
            attributes["error.type"] = outcome
        self._seconds.record(seconds, attributes)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        logging.getLogger().addHandler(self._handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(self._handler)
            with anyio.move_on_after(0.5, shield=True):  # An end is not held up by a collector that is away.
                await anyio.to_thread.run_sync(self._flush, abandon_on_cancel=True)

    def _flush(self) -> None:
        for provider in (self._spans, self._meters, self._logs):
            provider.force_flush(400)


class _WithoutTexts(SpanExporter):
    """Passes spans on without error texts, and without names that a client made up."""

    def __init__(self, exporter: SpanExporter, knows: IsKnownName) -> None:
        self._exporter = exporter
        self._knows = knows

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([_without_texts(span, self._knows) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _without_texts(span: ReadableSpan, knows: IsKnownName) -> ReadableSpan:
    """Return `span` without error texts, and without names that a client made up."""
    name = span.name
    attributes = dict(span.attributes or {})
    if span.kind is SpanKind.SERVER:
        name = _mask_invented_names(attributes, knows)
    return ReadableSpan(
        name=name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=attributes,
        links=span.links,
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _mask_invented_names(attributes: dict[str, AttributeValue], knows: IsKnownName) -> str:
    """Replace names that a client made up in the `attributes` of a message's span; return the name of the span."""
    method = str(attributes.get(_METHOD))
    if method not in _METHODS:
        method = "other"
        attributes[_METHOD] = "other"
    if _REQUEST in attributes:
        attributes[_REQUEST] = str(attributes[_REQUEST])[:_MAX_ID]
    name = method
    for key in _NAMES:
        if key in attributes:
            if not knows(method, str(attributes[key])):
                attributes[key] = "unknown"
            name = f"{method} {attributes[key]}"
    return name


class _Handler(logging.Handler):
    """Converts log records to OpenTelemetry's; of an exception it keeps the kind, not the text."""

    def __init__(self, provider: LoggerProvider) -> None:
        super().__init__()
        self._provider = provider

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("opentelemetry"):
            return  # Otherwise a problem of sending would be sent, and so on.
        attributes: dict[str, AttributeValue] | None = None
        if record.exc_info and record.exc_info[1] is not None:
            attributes = {"exception.type": type(record.exc_info[1]).__qualname__}
        self._provider.get_logger(record.name).emit(
            timestamp=int(record.created * 1e9),
            severity_number=_LEVELS.get(record.levelno, SeverityNumber.UNSPECIFIED),
            severity_text=record.levelname,
            body=redact(record.getMessage()),
            attributes=attributes,
        )
