"""`--check`: this very configuration, tried by a real client, reported so that a person enjoys reading it."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from mcp_batteries.settings import Settings, variable

__all__ = ["check"]

_SECONDS = 20.0

Demonstration = Callable[[Any], "tuple[str, Callable[[], None]] | None"]
"""`<package>.changes.demonstration(settings)`: a URI and a harmless way to cause an update of it, or None."""


@dataclass
class _Report:
    title: str
    show: Callable[[Table], None] = lambda _: None
    """Called with all there is so far, whenever there is more."""
    rows: list[tuple[bool | None, str, str, float]] = field(default_factory=list[tuple[bool | None, str, str, float]])

    def begin(self, name: str) -> None:
        self.show(self.table(name))

    def add(self, outcome: bool | None, name: str, said: str, started: float) -> None:
        self.rows.append((outcome, name, said, (time.perf_counter() - started) * 1000))
        self.show(self.table())

    async def step(self, name: str, work: Callable[[], Awaitable[str | None]]) -> bool:
        started = time.perf_counter()
        self.begin(name)
        outcome: bool | None = True
        try:
            with anyio.fail_after(_SECONDS):
                said = await work()
            if said is None:
                outcome, said = None, "not tried: nothing here may be changed"
        except TimeoutError:
            outcome, said = False, f"no answer within {_SECONDS:g} s"
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - failures belong in the report
            outcome, said = False, _reason(error)
        self.add(outcome, name, said, started)
        return outcome is not False

    def table(self, doing: str = "") -> Table:
        table = Table(title=self.title, title_justify="left", expand=False)
        table.add_column("")
        table.add_column("step", style="bold")
        table.add_column("what happened", overflow="fold")
        table.add_column("ms", justify="right", style="dim")
        marks = {True: "[green]✓", False: "[red]✗", None: "[yellow]–"}
        for outcome, name, said, ms in self.rows:
            table.add_row(marks[outcome], name, escape(said), f"{ms:.0f}")
        if doing:
            table.add_row("[dim]…", doing, "", "")
        return table

    @property
    def ok(self) -> bool:
        return all(outcome is not False for outcome, *_ in self.rows)


def check(package: str, settings: Settings) -> int:
    """Start the server as its own process, use it as a client would, print a table.

    Returns:
        0 when every step that could be tried worked, else 1.
    """
    console = Console()
    report = _Report(escape(f"{settings.COMMAND} {' '.join(_quiet(settings).arguments())}"))
    with tempfile.TemporaryFile("w+") as stderr:
        if sys.stdout.isatty():
            with Live(console=console, auto_refresh=False) as live:
                report.show = lambda table: live.update(table, refresh=True)
                anyio.run(_try, package, settings, report, stderr)
        else:
            anyio.run(_try, package, settings, report, stderr)
            console.print(report.table())
        stderr.seek(0)
        complaints = stderr.read().strip()
    if complaints:
        console.print("[bold]The server also said:[/bold]")
        console.print(complaints, markup=False, highlight=False)
    console.print("[green]Everything works.[/green]" if report.ok else "[red]Something does not work, see above.[/red]")
    return 0 if report.ok else 1


_OURS: dict[str, Any] = {"check": False, "transport": "stdio", "audit_file": None}


def _quiet(settings: Settings) -> Settings:
    return settings.model_copy(update=_OURS)


def _named(settings: Settings) -> set[str]:
    return {variable(type(settings), name) for name in _OURS}


async def _try(package: str, settings: Settings, report: _Report, stderr: Any) -> None:
    # Tokens, passwords, proxies and certificates are found there; the SDK by itself would hand on hardly any of it.
    environment = {name: value for name, value in os.environ.items() if name not in _named(settings)}
    environment |= settings.secrets()
    words = ["-m", package, *_quiet(settings).arguments()]
    command = StdioServerParameters(command=sys.executable, args=words, env=environment)
    started = time.perf_counter()
    report.begin("start")
    try:
        async with Client(stdio_client(command, errlog=stderr)) as client:
            report.add(True, "start", f"answers, speaks {client.protocol_version}", started)
            await report.step("tools", lambda: _tools(client))
            await report.step("resources", lambda: _resources(client))
            await report.step("prompts", lambda: _prompts(client))
            await report.step("call a read tool", lambda: _call(client))
            await report.step("subscribe, see a change", lambda: _watch(client, package, settings))
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - failures belong in the report
        report.add(False, "start", _reason(error), started)


async def _tools(client: Client) -> str:
    tools = (await client.list_tools()).tools
    return f"{len(tools)}: " + ", ".join(tool.name for tool in tools)


async def _resources(client: Client) -> str:
    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    shapes = ", ".join(template.uri_template for template in templates)
    return f"{len(resources)} listed; " + (f"templates {shapes}" if shapes else "no templates")


async def _prompts(client: Client) -> str:
    prompts = (await client.list_prompts()).prompts
    return f"{len(prompts)}: " + ", ".join(prompt.name for prompt in prompts)


async def _call(client: Client) -> str | None:
    for tool in (await client.list_tools()).tools:
        if tool.annotations and tool.annotations.read_only_hint and not tool.input_schema.get("required"):
            result = await client.call_tool(tool.name, {})
            text = next((block.text for block in result.content if isinstance(block, TextContent)), "")
            first = text.strip().partition("\n")[0]
            if result.is_error:
                raise RuntimeError(f"{tool.name}: {first}")
            return f"{tool.name}: {first if len(first) <= 80 else first[:79] + '…'}"
    return None


async def _watch(client: Client, package: str, settings: Settings) -> str | None:
    changes = importlib.import_module(f"{package}.changes")
    demonstration = cast(Demonstration, changes.demonstration)(settings)
    if demonstration is None:
        return None
    uri, cause = demonstration
    said = ""
    async with client.listen(resource_subscriptions=[uri]) as events, anyio.create_task_group() as group:
        started = time.perf_counter()
        cause()
        # What can't be read is never announced: its reason is better than a silence of `_SECONDS`.
        group.start_soon(client.read_resource, uri)
        await anext(aiter(events))
        said = f"{uri} announced after {(time.perf_counter() - started) * 1000:.0f} ms"
        group.cancel_scope.cancel()
    return said


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return str(error) if isinstance(error, MCPError) or str(error) else type(error).__name__
