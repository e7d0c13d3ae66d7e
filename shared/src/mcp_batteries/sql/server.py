"""Builds a SQL server: the common part of both `server.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from types import ModuleType
from typing import Any, ClassVar, Protocol

from mcp_batteries.server.assemble import Assembled, assemble
from mcp_batteries.server.calling.call_params import RUN_SCRIPT
from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.declaration.decorators import DeclaredTool, declarations
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import SkillSource
from mcp_batteries.settings.server_settings import ServerSettings
from mcp_batteries.sql.policy import AnyPolicy, ReadStatement
from mcp_batteries.sql.resources import Resources
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery
from mcp_batteries.sql.saved_query_tools import SavedTools
from mcp_batteries.subscriptions.hub import Source

__all__ = ["SAVED_QUERY_ROWS", "assemble_sql", "saved_queries"]

# The query of this name would have the tool that every server may have for scripts.
_RESERVED_NAME = RUN_SCRIPT.removeprefix("run_")
# The answer of a saved query has at most so many rows.
SAVED_QUERY_ROWS = 100

# The flags of gates, where they are more than their names.
_FLAGS = {"files": "--files FOLDER"}


class SqlSettings(ServerSettings, Protocol):
    """The part of a SQL server's settings that is needed here."""

    COMMAND: ClassVar[str]


def saved_queries(
    folder: str | None,
    policy: AnyPolicy,
    compile_statement: Callable[[ReadStatement], Awaitable[None]],
    reserved_names: Collection[str] = (),
) -> SavedQueries | None:
    """Return the saved queries of a folder; None without a folder.

    Args:
        compile_statement: lets the database check a statement without running it.
        reserved_names: names whose tools would clash with the server's own.
    """

    async def compile_query(query: SavedQuery) -> None:
        await compile_statement(policy.saved(query))

    if not folder:
        return None
    return SavedQueries(folder, compile_query, (*reserved_names, _RESERVED_NAME))


def assemble_sql(
    settings: SqlSettings,
    resources: Resources[Any],
    tools: Sequence[ModuleType],
    rooms: Sequence[object],
    *,
    dependencies: Sequence[object],
    switches: Mapping[str, bool],
    run_saved: Callable[[ReadStatement], Awaitable[TextResult]],
    opens: Sequence[AbstractAsyncContextManager[Any]],
    watcher: Source,
    follows: ChangeFeedConfig,
    skills: Sequence[SkillSource],
    title: str,
    begin: str,
    tools_change: bool = False,
) -> Assembled:
    """Return the server with these rooms, and with saved queries as tools.

    Args:
        tools: the modules of tools.
        rooms: all others.
        dependencies: what tools get by its type.
        switches: the gates of tools, and whether the operator has opened each.
        run_saved: returns the first rows of a saved query.
        begin: the tool that a model should begin with.
        tools_change: whether tools may appear or disappear for reasons other than saved queries.
    """
    policy = resources.policy
    queries = resources.queries
    saved = SavedTools(queries, policy, run_saved) if queries else None
    writable = [word for word, can in (("rows", policy.can_write), ("the schema", policy.can_reshape)) if can]
    changes = " and ".join(writable).capitalize()
    rule = f"{changes} can be changed; one call takes checks, changes and a look at the end, or is tried by a dry run."
    if not writable:
        rule = "Neither rows nor the schema can be changed."
    server = assemble(
        settings.COMMAND,
        settings,
        rooms=[*tools, *rooms],
        dependencies=dependencies,
        turned_off=_explain_closed(tools, switches),
        opens=[*opens, *([saved] if saved else [])],
        sources=[watcher],
        follows=follows,
        skills=skills,
        tools_change=tools_change or saved is not None,
        later=() if saved is None else ("saved_queries",),
        title=title,
        version=version(settings.COMMAND),
        instructions=(
            f"Serves the {title} databases {', '.join(policy.databases)}. {rule} Begin with {begin}; or, where "
            "names are known or easily guessed, with the statement: a wrong one changes nothing and is answered with "
            "the tables and columns. Answers that "
            "were cut say how to go on."
        ),
    )
    if saved is not None:
        saved.server = server
    return server


def _explain_closed(tools: Sequence[ModuleType], switches: Mapping[str, bool]) -> dict[str, str]:
    """Return how the operator can open each tool with a closed gate."""
    turned_off: dict[str, str] = {}
    for module in tools:
        for declaration, function in declarations(module):
            if isinstance(declaration, DeclaredTool):
                flags = [_FLAGS.get(gate, f"--{gate}") for gate in declaration.gates if not switches[gate]]
                if flags:
                    remedy = f"The operator can start the server with `{' '.join(flags)}`."
                    turned_off[function.__name__] = remedy
    return turned_off
