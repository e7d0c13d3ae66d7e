"""mcp-weather beside other weather servers, in one run, on one loopback upstream; prints a table of medians.

    python tests/benchmarks/bench_weather.py [--quick]

Peers are `open-meteo-mcp-server` of npm, whose upstreams can be set, and `@dangahagan/weather-mcp`, whose cannot: of
that one only what needs no upstream is measured. Everybody is asked over stdio for the same 24 hours of the same
five variables; an uncached call is one for a place not asked about before.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from driver import memory  # noqa: E402

from e2e import npm  # noqa: E402
from mcp_batteries.testing.wire import MODERN, StdioWire  # noqa: E402
from weather.upstream import Upstream  # noqa: E402

VARIABLES = ["temperature_2m", "precipitation_probability", "precipitation", "weather_code", "wind_speed_10m"]
OPEN_METEO, WEATHER_MCP = "open-meteo-mcp-server", "@dangahagan/weather-mcp"


@dataclass(frozen=True)
class Peer:
    name: str
    command: Callable[[Upstream], list[str]]
    call: Callable[[float], tuple[str, dict]] | None = None
    """For the place at this longitude; None where the upstream cannot be chosen."""
    revision: str = "2025-06-18"
    variables: Callable[[Upstream], dict[str, str]] = field(default=lambda _: {})


def everybody() -> list[Peer]:
    found = [
        Peer(
            "mcp-weather",
            lambda up: [sys.executable, "-m", "mcp_weather", "--cache", "memory", *up.arguments],
            lambda east: ("get_forecast", {"place": f"47.37,{east:.2f}", "hours": 24}),
            MODERN,
        )
    ]
    for package, version in ((OPEN_METEO, "2.1.0"), (WEATHER_MCP, "1.23.0")):
        try:
            program = npm.program(npm.installed(f"{package}@{version}"), package)
        except RuntimeError as error:
            click.echo(f"{package} is left out: {error}", err=True)
            continue
        call = None
        if package == OPEN_METEO:

            def call(east: float) -> tuple[str, dict]:
                asked = {"latitude": 47.37, "longitude": round(east, 2), "hourly": VARIABLES, "forecast_days": 1}
                return "weather_forecast", asked

        found.append(
            Peer(
                f"{package.rpartition('/')[2]} {version}",
                lambda _, program=program: [npm.NODE, program],
                call,
                variables=_point_at,
            )
        )
    return found


def _point_at(upstream: Upstream) -> dict[str, str]:
    services = ("", "AIR_QUALITY_", "ARCHIVE_", "MARINE_", "GEOCODING_", "FLOOD_", "CLIMATE_", "ENSEMBLE_", "SEASONAL_")
    return {f"OPEN_METEO_{service}API_URL": upstream.url for service in services} | {"ANALYTICS_ENABLED": "false"}


@asynccontextmanager
async def started(peer: Peer, upstream: Upstream):
    environment = {**os.environ, **peer.variables(upstream)}
    async with StdioWire(peer.command(upstream), revision=peer.revision, env=environment) as wire:
        begun = time.perf_counter()
        with anyio.fail_after(60):
            await wire.open()
        yield wire, (time.perf_counter() - begun) * 1000
        wire.process.terminate()


async def measure(peer: Peer, upstream: Upstream, rounds: int) -> dict[str, float | None]:
    starts: list[float] = []
    for _ in range(rounds):
        async with started(peer, upstream) as (_, ms):
            starts.append(ms)
    async with started(peer, upstream) as (wire, _):
        listed = (await wire.request("tools/list"))["tools"]
        figures: dict[str, float | None] = {
            "cold start, ms": statistics.median(starts),
            "memory idle, MB": memory(wire.process.pid),
            "tools": len(listed),
            "tools/list, bytes": len(json.dumps(listed, separators=(",", ":"), ensure_ascii=False).encode()),
            "answer, bytes": None,
            "of it text, bytes": None,
            "uncached p50, ms": None,
            "cached p50, ms": None,
            "upstream requests of 100 cached": None,
        }
        if peer.call is None:
            return figures

        async def ask(east: float) -> float:
            name, arguments = peer.call(east)
            begun = time.perf_counter()
            answer = await wire.request("tools/call", {"name": name, "arguments": arguments})
            taken = (time.perf_counter() - begun) * 1000
            assert not answer.get("isError"), answer
            figures["answer, bytes"] = len(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode())
            figures["of it text, bytes"] = sum(len(item.get("text", "").encode()) for item in answer["content"])
            return taken

        await ask(0.5)
        figures["uncached p50, ms"] = statistics.median([await ask(1 + number / 100) for number in range(100)])
        await ask(0.5)
        before = len(upstream.requests)
        figures["cached p50, ms"] = statistics.median([await ask(0.5) for _ in range(100)])
        figures["upstream requests of 100 cached"] = len(upstream.requests) - before
        return figures


async def run(rounds: int) -> None:
    found: dict[str, dict[str, float | None]] = {}
    with Upstream() as upstream:
        for peer in everybody():
            try:
                found[peer.name] = await measure(peer, upstream, rounds)
            except (Exception, BaseExceptionGroup) as error:
                click.echo(f"{peer.name}: {error!r}", err=True)
    table = Table("", *found)
    for row in next(iter(found.values())):
        cells = [figures[row] for figures in found.values()]
        table.add_row(
            row,
            *(
                "its upstream is fixed" if cell is None else f"{cell:,.4g}" if cell < 1000 else f"{cell:,.0f}"
                for cell in cells
            ),
        )
    Console(width=120).print(table)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds.")
def main(quick: bool) -> None:
    anyio.run(run, 3 if quick else 10)


if __name__ == "__main__":
    main()
