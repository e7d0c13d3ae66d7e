"""The one `main` of every server: settings in, a served process out, and a truthful exit status.

Conventions tie it to a server's package: see `program.program_of`.
"""

from __future__ import annotations

import gc
import os
import sys

from mcp_batteries.transports.stdio.cached_handshake import replay

# Every import here is waited for by each start, also by one whose client is answered without a server.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, NoReturn

    from mcp_batteries.observability.wire_log import WireLog
    from mcp_batteries.program import Program
    from mcp_batteries.settings import Settings
    from mcp_batteries.transports.stdio.cached_handshake.store import AnswerStore
    from mcp_batteries.transports.stdio.serve import Claim

__all__ = ["loop_options", "run"]

# The module `signal` has no SIGPIPE on Windows, where pipes are closed too.
_SIGPIPE = 13
_STDOUT_DESCRIPTOR = 1


def run(package: str | Program, arguments: list[str] | None = None) -> NoReturn:
    """Run a server, given as a package name or a `Program`, according to `arguments` (default: the command line); exit.

    Exit status: 0 done; 1 could not start; 2 bad usage; 130, 141 and 143 after SIGINT, SIGPIPE and SIGTERM.
    """
    if sys.flags.optimize > 1:
        sys.exit(
            "Python runs without docstrings, which describe the tools: leave out PYTHONOPTIMIZE=2, or set it to 1."
        )
    if arguments is None:
        _restart_in_utf8_mode()
    handover: replay.Handover | None = None
    if isinstance(package, str) and arguments is None:
        handover = replay.replay(package)
    # Start-up makes 578 modules and no garbage worth finding: collecting costs 6 % of it.
    gc.disable()
    from mcp_batteries.program import program_of
    from mcp_batteries.settings import load

    program = program_of(package) if isinstance(package, str) else package
    # On Windows a pipe or file would get the code page, which has no tick and not every name of a folder.
    encode: Any = getattr(sys.stdout, "reconfigure", None)
    if encode and not sys.stdout.isatty():
        encode(encoding="utf-8")
    if arguments is None:
        arguments = sys.argv[1:]
    settings = load(program.settings(), arguments)
    try:
        status = _run(program, settings, handover)
        # It is None if whoever started this closed it, as for a server in the background.
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Who reads what is printed, as `head` does, has enough. Python, which flushes at its end, would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT_DESCRIPTOR)
        status = 128 + _SIGPIPE
    sys.exit(status)


def _restart_in_utf8_mode() -> None:
    """Start this process anew in Python's UTF-8 mode, if the locale has another encoding.

    File names are bytes, and hardly any is of such a locale: under ISO-8859-1 or GBK most would be unreadable, and what
    a client asks for would name another file. Nothing was read from the client yet. Where nobody says otherwise Python
    does this by itself, in the C locale, and from 3.15 on in every one (PEP 686).
    """
    if sys.flags.utf8_mode or sys.getfilesystemencoding() == "utf-8" or getattr(sys, "frozen", False):
        return
    # For the processes that this one starts; of itself it could have been told to ignore its environment.
    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _version(settings: Settings) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(settings.COMMAND)
    except PackageNotFoundError:
        # A file outside any distribution.
        return "0"


def _run(program: Program, settings: Settings, handover: replay.Handover | None) -> int:
    """Do what `settings` ask for; return the exit status."""
    if settings.version:
        print(f"{settings.COMMAND} {_version(settings)}")  # noqa: T201
        return 0
    if settings.new_token:
        return _print_new_token(settings, settings.new_token)
    prepared = _prepare(settings)
    if isinstance(prepared, int):
        return prepared
    settings = prepared
    if settings.print_config or settings.install:
        mistake = _find_start_failure(program, settings)
        if mistake:
            return _fail(settings, mistake)
    if settings.print_config:
        return _print_config(settings, settings.print_config)
    if settings.install or settings.uninstall or settings.purge:
        return _change_host(settings)
    if settings.check:
        from mcp_batteries.cli.check import check

        return check(program, settings)
    printout = settings.printout()
    if printout is not None:
        print(printout)  # noqa: T201
        return 0
    return _serve(program, settings, handover)


def _print_new_token(settings: Settings, request: str) -> int:
    from mcp_batteries.errors import Problem
    from mcp_batteries.transports.http.auth.tokens import create_token

    try:
        token, line = create_token(request, settings.auth_scope_prefix)
    except Problem as problem:
        return _fail(settings, str(problem))
    # On two streams, so that `>> FILE` keeps the line while the person sees the token.
    print(line, flush=True)  # noqa: T201
    print(f"The token, shown this once: {token}", file=sys.stderr)  # noqa: T201
    return 0


def _find_start_failure(program: Program, settings: Settings) -> str:
    """Return why the server would end at each start by a host; empty if it would not.

    A printed entry may be for another machine, so of that only the names of tools count.
    """
    is_for_this_machine = bool(settings.install)
    if settings.transport != "stdio" or not (is_for_this_machine or settings.tools or settings.exclude_tools):
        return ""
    import logging

    from mcp_batteries.errors import Problem
    from mcp_batteries.program import program_of
    from mcp_batteries.server.tool_filter import UnknownTool

    # What a member warns of at its start is for the host's log.
    logging.disable(logging.CRITICAL)
    try:
        trial = settings.for_trial()
        program.build(trial)
        if is_for_this_machine:
            # One process for several leaves out those that can't start.
            for member in trial.parts()[1:]:
                program_of(member.package()).build(member)
    except UnknownTool as problem:
        return str(problem)
    except Problem as problem:
        return str(problem) if is_for_this_machine else ""
    finally:
        logging.disable(logging.NOTSET)
    return ""


def _print_config(settings: Settings, host: str) -> int:
    """Print the entry for `host`, and how to complete it."""
    from mcp_batteries.cli.host_entry.refusals import describe_unusable_paths, refuse_incomplete
    from mcp_batteries.cli.host_entry.text import describe_location, make_entry
    from mcp_batteries.cli.host_entry.variables import entry_variables, secrets_hint
    from mcp_batteries.errors import Problem

    try:
        refuse_incomplete(settings)
        text = make_entry(host, settings)
    except Problem as problem:
        return _fail(settings, str(problem))
    print(text)  # noqa: T201
    print(f"Goes into: {describe_location(host)}", file=sys.stderr)  # noqa: T201
    unusable = describe_unusable_paths(settings)
    if unusable:
        print(unusable, file=sys.stderr)  # noqa: T201
    _say_how_to_send_a_token(settings, host, text)
    secrets = settings.secrets()
    variables = [question for question in entry_variables(settings) if question.variable in secrets]
    if variables:
        hint = secrets_hint(host, variables, text, "in its place there")
        print(f"The entry holds no password or key: {hint}.", file=sys.stderr)  # noqa: T201
    return 0


def _say_how_to_send_a_token(settings: Settings, host: str, text: str) -> None:
    from mcp_batteries.cli.host_entry.variables import token_hint, token_question

    if settings.transport == "stdio" or not (settings.auth_file or settings.auth_tokens) or settings.auth_issuer:
        return
    question = token_question(host, settings)
    if question is None:
        hint = "add the header `Authorization: Bearer TOKEN` to the entry, in the way of this host"
    else:
        hint = token_hint(host, question, text)
    print(f"The server asks for a token, and --new-token makes one: {hint}.", file=sys.stderr)  # noqa: T201


def _change_host(settings: Settings) -> int:
    """Add this server to a host, or remove it there."""
    from mcp_batteries.cli.setup import set_up
    from mcp_batteries.errors import Problem

    try:
        print(set_up(settings))  # noqa: T201
    except Problem as problem:
        return _fail(settings, str(problem))
    return 0


def _prepare(settings: Settings) -> Settings | int:
    """Do what a server's own option asks for; return the settings to go on with, or the exit status if that was all."""
    name = settings.preparation()
    if name is None:
        return settings
    if settings.dry_run:
        return _fail(settings, "--dry-run changes nothing, and another option here asks for a change: leave out one.")
    import importlib

    from mcp_batteries.errors import Problem

    module = importlib.import_module(f"{settings.package()}.{name}")
    try:
        settings, message = module.prepare(settings, _data_folder())
    except Problem as problem:
        return _fail(settings, str(problem))
    if settings.print_config:
        # On another stream than the entry, so that `>> FILE` keeps only that.
        print(message, file=sys.stderr, flush=True)  # noqa: T201
        return settings
    print(message, flush=True)  # noqa: T201
    if settings.install or settings.check:
        return settings
    return 0


def _data_folder() -> Path:
    from mcp_batteries.user_folders import data_folder

    return data_folder()


def _serve(program: Program, settings: Settings, handover: replay.Handover | None) -> int:
    """Build the server and serve it; return the exit status."""
    _disable_core_dumps()
    _unblock_child_signals()
    claim: Claim | None = None
    first: AnswerStore | None = None
    # Asked before the claim, which takes standard input for messages.
    is_at_terminal = settings.transport == "stdio" and sys.stdin is not None and sys.stdin.isatty()
    if settings.transport == "stdio":
        from mcp_batteries.transports.stdio import serve as stdio

        # From here on nothing but protocol messages can reach the client, whatever an import prints.
        claim = stdio.claim()
        if handover is not None:
            from mcp_batteries.settings import variable
            from mcp_batteries.transports.stdio.cached_handshake.store import AnswerStore

            first = AnswerStore(handover, settings.front_dependencies(), variable(type(settings), ""))
    _configure_log(settings)
    import anyio

    from mcp_batteries.errors import Problem

    try:
        server = program.build(settings)
    except Problem as problem:
        return _fail(settings, str(problem))
    if is_at_terminal:
        # What keeps it from starting is the only line then.
        _greet(settings)
    gc.freeze()
    gc.enable()
    try:
        if claim is not None:
            from mcp_batteries.sdk import lowlevel
            from mcp_batteries.transports.stdio import serve as stdio

            wire: WireLog | None = None
            if settings.wire_log:
                from mcp_batteries.observability.wire_log import WireLog

                wire = WireLog(settings.wire_log)
            arguments = (lowlevel(server), server.hub.initialization_options(server), claim, first, wire)
            return anyio.run(stdio.serve, *arguments, backend_options=loop_options(settings))
        from mcp_batteries.transports.http import serve as http

        return anyio.run(http.serve, server, settings, server.hub.close, backend_options=loop_options(settings))
    except Problem as problem:
        return _fail(settings, str(problem))
    finally:
        # The interpreter's last collection would walk everything that was ever imported.
        gc.freeze()


def _configure_log(settings: Settings) -> None:
    import logging

    from mcp_batteries.observability.logs import JsonFormatter, TextFormatter

    logging.basicConfig(level=settings.log_level.upper())
    formatter: logging.Formatter = TextFormatter()
    if settings.log_format == "json":
        formatter = JsonFormatter()
    for handler in logging.getLogger().handlers:
        handler.setFormatter(formatter)


def _disable_core_dumps() -> None:
    """Disable core dumps: they contain every secret and all data read. Use `prlimit` to enable them again."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _unblock_child_signals() -> None:
    """Undo an inherited ignored SIGCHLD, with which no exit status is kept and all children seem to succeed."""
    if sys.platform != "win32":
        import signal

        if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def loop_options(settings: Settings) -> dict[str, Any]:
    """Return the options with which `anyio.run` creates the event loop."""
    # psycopg cannot work on the loop that Windows gives.
    if not any(part.SELECTOR_LOOP for part in settings.parts()) and not (settings.bus or "").startswith("postgres"):
        return {}
    import asyncio

    return {"loop_factory": asyncio.SelectorEventLoop}


def _greet(settings: Settings) -> None:
    """Tell a person at a terminal what this program waits for."""
    from mcp_batteries.cli.host_entry.text import make_entry
    from mcp_batteries.errors import Problem

    try:
        example = make_entry("claude-desktop", settings)
    except Problem as problem:
        example = str(problem)
    first = (settings.__doc__ or "").partition("\n")[0]
    print(  # noqa: T201
        f"{settings.COMMAND} {_version(settings)} — {first}\n"
        "It waits for MCP messages on standard input: a host such as VS Code starts it, rarely a person.\n"
        "Ctrl-C leaves; --check tries it; --print-config HOST prints the entry for a host, such as this one:\n\n"
        f"{example}\n",
        file=sys.stderr,
    )


def _fail(settings: Settings, message: str) -> int:
    """Say why the server could not start; return the exit status."""
    import logging

    from mcp_batteries.observability.logs import log_announcement
    from mcp_batteries.settings import mask_passwords

    # A mistake in an address is quoted with it, and hosts keep what is said here.
    log_announcement(f"{settings.COMMAND}: {mask_passwords(message)}", logging.ERROR)
    return 1
