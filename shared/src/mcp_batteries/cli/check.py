"""`--check`: try this configuration with a real client, one line per step."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import anyio
import click
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from mcp_batteries.cli.host_entry.variables import HIDDEN_SECRET
from mcp_batteries.errors import first_exception
from mcp_batteries.executables import quote_command
from mcp_batteries.program import Probe, Program, program_of
from mcp_batteries.server.calling.call_params import CALL_TOOLS
from mcp_batteries.settings import ONLY_OVER_HTTP, SETTINGS_URI, Settings, is_unreplaced, mask_passwords, variable
from mcp_batteries.settings.command_line import colour_choice

__all__ = ["check"]

_SECONDS = 20.0
_MAX_FOLLOWED_URIS = 20


class _StepResult(NamedTuple):
    """What a step reports: on its line, and with `-v` below it."""

    line: str
    details: Sequence[str] = ()
    was_tried: bool = True


@dataclass
class _Report:
    """The lines of a check, and what they say altogether.

    Attributes:
        last_words: the sentence with which the server ended before it answered.
        is_complete: whether every step was tried.
    """

    verbose: bool
    ok: bool = True
    last_words: str = ""
    is_complete: bool = True

    async def step(self, name: str, work: Callable[[], Awaitable[_StepResult]]) -> None:
        started = time.perf_counter()
        outcome: bool | None = True
        with self.waiting(name):
            try:
                with anyio.fail_after(_SECONDS):
                    result = await work()
                if not result.was_tried:
                    outcome = None
            except TimeoutError:
                outcome = False
                result = _StepResult(f"no answer within {_SECONDS:g} s")
            except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - failures belong in the report
                outcome = False
                result = _StepResult(_reason(error))
        self.add(outcome, name, result, started)

    def add(self, outcome: bool | None, name: str, result: _StepResult, started: float) -> None:
        sign, colour = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "yellow")}[outcome]
        took = f"{(time.perf_counter() - started) * 1000:6.0f} ms"
        line = click.style(result.line, fg="red") if outcome is False else result.line
        name = click.style(f"{name:<9}", bold=True)
        took = click.style(took, dim=True)
        _say(f"{click.style(sign, fg=colour)} {name} {took}  {line}")
        if self.verbose:
            for detail in filter(None, result.details):
                _say(click.style(f"{' ' * 23}{detail}", dim=True))
        self.ok = self.ok and outcome is not False
        self.is_complete = self.is_complete and outcome is not None

    @contextmanager
    def waiting(self, name: str) -> Generator[None]:
        """Show the user what runs; a pipe gets only the lines, even if FORCE_COLOR calls it a terminal."""
        if not sys.stdout.isatty():
            yield
            return
        click.echo(f"  {name} …", nl=False)
        try:
            yield
        finally:
            click.echo("\r\x1b[K", nl=False)


def _say(line: str) -> None:
    try:
        click.echo(mask_passwords(line), color=colour_choice())
    except BrokenPipeError:
        # Nobody reads on (`| head`): the steps and the exit code stay what they are.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def check(program: Program, settings: Settings) -> int:
    """Start the server as its own process, use it as a client would, print a line for each step.

    Mounted servers are tried too, one after the other.

    Returns:
        0 when every step that could be tried worked, else 1.
    """
    works = _check(program, settings)
    for part in settings.parts()[1:]:
        works = _check(program_of(part.package()), part) and works
    return 0 if works else 1


def _check(program: Program, settings: Settings) -> bool:
    report = _Report(settings.verbose)
    _say(click.style(quote_command([settings.COMMAND, *_quiet(settings).arguments()]), bold=True))
    for line in _describe_placeholders(settings):
        report.add(False, "settings", _StepResult(line), time.perf_counter())
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        anyio.run(_try, program, settings, report, stderr)
        stderr.seek(0)
        complaints = stderr.read().strip()
    if complaints and complaints != f"{settings.COMMAND}: {report.last_words}":
        _say(click.style("The server also said:", bold=True))
        _say(complaints)
    if report.ok:
        more = "" if report.verbose else " `-v` shows more."
        subject = "Everything" if report.is_complete else "Everything that was tried"
        _say(click.style(f"{subject} works.", fg="green") + more)
    else:
        _say(click.style("Something does not work, see above.", fg="red"))
    return report.ok


def _describe_placeholders(settings: Settings) -> list[str]:
    """Return a line for each variable that still holds what our entries and pages show in the place of a secret.

    A server may do without it, as GitHub's public data needs no token; who has set it wants more than that.
    """
    lines: list[str] = []
    for question in settings.open_questions():
        if question.variable is None:
            continue
        value = os.environ.get(question.variable, "").strip()
        if value in (question.example, HIDDEN_SECRET) or is_unreplaced(question.variable, value):
            lines.append(f"{question.variable} is still {value}: put your own value there, or remove it.")
    return lines


_OURS: dict[str, Any] = {
    "check": False, "verbose": False, "transport": "stdio", "log_format": "text", "audit_file": None, "wire_log": None,
    **{name: Settings.model_fields[name].default for name in ONLY_OVER_HTTP},
}  # fmt: skip


def _quiet(settings: Settings) -> Settings:
    return settings.model_copy(update=_OURS)


def _own_variables(settings: Settings) -> set[str]:
    return {variable(type(settings), name) for name in _OURS}


async def _try(program: Program, settings: Settings, report: _Report, stderr: Any) -> None:
    # Tokens, passwords, proxies and certificates are found there; the SDK by itself would hand on hardly any of it.
    environment = {name: value for name, value in os.environ.items() if name not in _own_variables(settings)}
    environment |= settings.secrets()
    first, *words = [*program.words, *_quiet(settings).arguments()]
    command = StdioServerParameters(command=first, args=words, env=environment)
    started = time.perf_counter()
    waiting = ExitStack()
    waiting.enter_context(report.waiting("start"))
    try:
        async with Client(stdio_client(command, errlog=stderr)) as client:
            waiting.close()
            report.add(True, "start", _StepResult(f"answers, speaks {client.protocol_version}"), started)
            await report.step("tools", lambda: _tools(client))
            await report.step("resources", lambda: _resources(client))
            await report.step("prompts", lambda: _prompts(client))
            await report.step("call", lambda: _call(client, program, settings))
            await report.step("subscribe", lambda: _watch(client, program, settings))
            await _report_confinement(program, settings, report)
    except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - failures belong in the report
        waiting.close()
        stderr.seek(0)
        report.last_words = _last_words(settings, stderr.read())
        report.add(False, "start", _StepResult(report.last_words or _reason(error)), started)
    if settings.transport == "http":
        await _try_http(program, settings, report, stderr)


async def _try_http(program: Program, settings: Settings, report: _Report, stderr: Any) -> None:
    from mcp_batteries.cli.check_http import answers_over_http, bus_answers

    output: list[str] = []

    async def http() -> _StepResult:
        return _StepResult(await answers_over_http(program, settings, output))

    await report.step("http", http)
    stderr.seek(0, os.SEEK_END)
    stderr.writelines(f"{line}\n" for line in output)
    # psycopg cannot work on the loop that starts processes on Windows.
    if (url := settings.bus) and not (sys.platform == "win32" and url.startswith("postgres")):

        async def bus() -> _StepResult:
            return _StepResult(await bus_answers(url))

        await report.step("bus", bus)


def _last_words(settings: Settings, stderr: str) -> str:
    """Why the process ended, from its last output: its own sentence, or the end of a traceback."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix(f"{settings.COMMAND}: ") if lines else ""


async def _report_confinement(program: Program, settings: Settings, report: _Report) -> None:
    line = await anyio.to_thread.run_sync(program.confinement, settings)
    if line is None:
        return

    async def confinement() -> _StepResult:
        return _StepResult(line)

    await report.step("sandbox", confinement)


async def _tools(client: Client) -> _StepResult:
    tools = (await client.list_tools()).tools
    return _StepResult(str(len(tools)), [", ".join(tool.name for tool in tools)])


async def _resources(client: Client) -> _StepResult:
    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    details = [*(item.uri for item in resources[:20]), *(item.uri_template for item in templates)]
    return _StepResult(f"{len(resources)} listed, {len(templates)} by template", details)


async def _prompts(client: Client) -> _StepResult:
    prompts = (await client.list_prompts()).prompts
    return _StepResult(str(len(prompts)), [", ".join(prompt.name for prompt in prompts)])


async def _call(client: Client, program: Program, settings: Settings) -> _StepResult:
    probe = program.probe(settings) or await _find_call(client)
    if probe is None:
        return _StepResult("not tried: every tool needs arguments", was_tried=False)
    name, arguments = probe
    result = await client.call_tool(name, dict(arguments))
    text = next((block.text for block in result.content if isinstance(block, TextContent)), "")
    first, _, more = text.strip().partition("\n")
    if result.is_error:
        raise RuntimeError(f"{name}: {first}")
    return _StepResult(f"{name}: {first if len(first) <= 80 else first[:79] + '…'}", more.splitlines()[:20])


async def _find_call(client: Client) -> Probe | None:
    """Return a call of the first tool that reads without arguments."""
    for tool in (await client.list_tools()).tools:
        # What changed is asked of what is followed, and here nothing is; and other calls would have to be known.
        if tool.name in ("list_changes", CALL_TOOLS):
            continue
        if tool.annotations and tool.annotations.read_only_hint and not tool.input_schema.get("required"):
            return tool.name, {}
    return None


async def _watch(client: Client, program: Program, settings: Settings) -> _StepResult:
    demonstration = program.demonstration(settings)
    if demonstration is None:
        return await _subscribe(client)
    uri, cause = demonstration
    problem = ""
    async with client.listen(resource_subscriptions=[uri]) as events, anyio.create_task_group() as group:
        started = time.perf_counter()
        cause()
        # What can't be read is announced late or never: its reason is better than a silence of `_SECONDS` or a notice.
        group.start_soon(client.read_resource, uri)
        await anext(aiter(events))
        problem = f"{uri} changed, announced after {(time.perf_counter() - started) * 1000:.0f} ms"
    return _StepResult(problem)


async def _subscribe(client: Client) -> _StepResult:
    """Subscribe to what is listed, where a notice would take a change of what the user has.

    A server that compares contents, as mcp-git does, is silent when a file is merely touched.
    """
    uris = [item.uri for item in (await client.list_resources()).resources if item.uri != SETTINGS_URI]
    if not uris:
        return _StepResult("not tried: nothing is listed, and nothing here may be changed", was_tried=False)
    async with client.listen(resource_subscriptions=uris[:_MAX_FOLLOWED_URIS]):
        # What can be followed can be read; else its notices would lead nowhere.
        await client.read_resource(uris[0])
    followed = uris[:_MAX_FOLLOWED_URIS]
    names = followed[0] if len(followed) == 1 else f"{followed[0]} and {len(followed) - 1} more"
    line = f"follows {names}; no notice tried: it takes a change, and a check makes none"
    return _StepResult(line, followed, was_tried=False)


def _reason(error: BaseException) -> str:
    error = first_exception(error)
    return str(error) if isinstance(error, MCPError) or str(error) else type(error).__name__
