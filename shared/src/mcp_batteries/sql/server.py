"""Builds a SQL server: the common part of both `server.py`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, ClassVar, Protocol

from mcp_batteries.server.assemble import Assembled, ServerSettings, assemble
from mcp_batteries.server.declaration.decorators import declarations
from mcp_batteries.server.list_changes import ChangeFeedConfig
from mcp_batteries.server.skills import SkillSource
from mcp_batteries.sql.base import AnyPolicy, Engine, Room
from mcp_batteries.sql.resources import Resources
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery
from mcp_batteries.sql.saved_query_tools import SavedTools
from mcp_batteries.subscriptions.hub import Source

__all__ = ["assemble_sql", "saved_queries"]


class SqlSettings(ServerSettings, Protocol):
    """The part of a SQL server's settings that is needed here."""

    COMMAND: ClassVar[str]


def saved_queries(
    folder: str | None, policy: AnyPolicy, engine: Engine, taken: Collection[str] = ()
) -> SavedQueries | None:
    """The saved queries of a folder; None without a folder.

    Args:
        taken: names whose tools would clash with the server's own.
    """

    async def compile_query(query: SavedQuery) -> None:
        await engine.compile(policy.saved(query))

    return SavedQueries(folder, compile_query, taken) if folder else None


def assemble_sql(
    settings: SqlSettings,
    resources: Resources[Any, Any],
    tools: Mapping[type[Room[Any, Any]], Mapping[str, bool]],
    rooms: Sequence[object],
    *,
    opens: Sequence[AbstractAsyncContextManager[Any]],
    watcher: Source,
    follows: ChangeFeedConfig,
    skills: Sequence[SkillSource],
    title: str,
    begin: str,
    tools_change: bool = False,
) -> Assembled:
    """The server with these rooms, and with saved queries as tools.

    Args:
        tools: the rooms of tools, each with the flags that enable it, and whether the operator has set them.
        rooms: all others.
        begin: the tool that a model should begin with.
        tools_change: whether tools may appear or disappear for reasons other than saved queries.
    """
    policy = resources.policy
    engine = resources.engine
    queries = resources.queries
    saved = SavedTools(queries, policy, engine) if queries else None
    writable = [word for word, can in (("rows", policy.can_write), ("the schema", policy.can_reshape)) if can]
    changes = " and ".join(writable).capitalize()
    rule = f"{changes} can be changed; try a dry run first."
    if not writable:
        rule = "Neither rows nor the schema can be changed."
    turned_off: dict[str, str] = {}
    for kind, flags in tools.items():
        if missing := [flag for flag, is_set in flags.items() if not is_set]:
            remedy = f"The operator can start the server with `{' '.join(missing)}`."
            names = (getattr(method, "__name__", "") for _, method in declarations(kind(policy, engine)))
            turned_off |= dict.fromkeys(names, remedy)
    server = assemble(
        settings.COMMAND,
        settings,
        rooms=[*(kind(policy, engine) for kind, flags in tools.items() if all(flags.values())), *rooms],
        turned_off=turned_off,
        opens=[*opens, *([saved] if saved else [])],
        sources=[watcher],
        follows=follows,
        skills=skills,
        tools_change=tools_change or saved is not None,
        later=() if saved is None else ("saved_queries",),
        title=title,
        version=version(settings.COMMAND),
        instructions=(
            f"Serves the {title} databases {', '.join(policy.databases)}. {rule} Begin with {begin}; answers that "
            "were cut say how to go on."
        ),
    )
    if saved is not None:
        saved.server = server
    return server
