"""`/metrics`: the figures of this process in Prometheus' text format, for callers who may read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcp_batteries.errors import Invalid
from mcp_batteries.observability.audit import REFUSED_STATUS

try:
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        Gauge,
        GCCollector,
        Histogram,
        PlatformCollector,
        ProcessCollector,
        generate_latest,
    )
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_1_0_0
except ImportError:
    raise Invalid(
        "--metrics needs the library prometheus-client.", "Install this server with the extra `metrics`."
    ) from None

__all__ = ["Prometheus"]

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Prometheus:
    """The figures of one server; a sink of `measures`.

    Args:
        gauges: evaluated at each scrape; name to (meaning, figure).
    """

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._requests = Counter(
            "mcp_requests", "Requests answered.", ["method", "tool", "outcome"], registry=self._registry
        )
        self._seconds = Histogram(
            "mcp_request_seconds",
            "From a request to its answer.",
            ["method", "tool"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._responses = Counter("mcp_http_responses", "HTTP responses begun.", ["status"], registry=self._registry)
        for name, (meaning, figure) in gauges.items():
            Gauge(name, meaning, registry=self._registry).set_function(figure)

    def __call__(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        self._requests.labels(method, tool, outcome).inc()
        self._seconds.labels(method, tool).observe(seconds)

    def counting(self, app: ASGIApp) -> ASGIApp:
        """Wrap `app` to count its responses by status.

        A call that a limit refused in a session counts by the limit's status, though its response has 200.
        """

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_counted(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status = scope.get("state", {}).get(REFUSED_STATUS, message["status"])
                    self._responses.labels(str(status)).inc()
                await send(message)

            await app(scope, receive, send_counted)

        return count

    def page(self, app: ASGIApp) -> ASGIApp:
        """Wrap `app` to serve the figures at `/metrics`."""

        async def serve_figures(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["path"] == "/metrics" and scope["method"] in ("GET", "HEAD"):
                text = generate_latest(self._registry)
                await Response(text, media_type=CONTENT_TYPE_PLAIN_1_0_0)(scope, receive, send)
            else:
                await app(scope, receive, send)

        return serve_figures
