"""Saved queries as tools that appear, change and disappear with their files."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Sequence
from typing import Annotated, Any

import anyio
from pydantic import Field

from mcp_batteries.server.calling.results import TextResult
from mcp_batteries.server.calling.tool import StrictTool, strict_tool
from mcp_batteries.server.declaration.decorators import DeclaredTool
from mcp_batteries.server.declaration.views import TABLE
from mcp_batteries.server.dynamic_tools import DynamicTools
from mcp_batteries.sql.arguments import MAX_SECONDS
from mcp_batteries.sql.policy import AnyPolicy, ReadStatement
from mcp_batteries.sql.saved_queries import SavedQueries, SavedQuery
from mcp_batteries.subscriptions.file_watcher import FileWatcher

__all__ = ["SavedTools"]

_TYPES = {"text": str, "integer": int, "real": float}


class SavedTools(DynamicTools):
    """Keeps the server's tools in step with the folder of queries.

    Args:
        run: returns the first rows of a saved query.
    """

    def __init__(
        self, queries: SavedQueries, policy: AnyPolicy, run: Callable[[ReadStatement], Awaitable[TextResult]]
    ) -> None:
        super().__init__()
        self._queries = queries
        self._policy = policy
        self._run = run
        self._watcher = FileWatcher([queries.folder], locate=lambda uri: None, probe=_probe)
        self._wake = anyio.Event()
        self._watched: set[str] = set()

    async def _begin(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        self._watched.clear()
        await self._refresh()
        return [lambda: self._watcher.run(self._wake_refresh), self._follow]

    def _wake_refresh(self, paths: Collection[Hashable]) -> None:
        self._wake.set()

    async def _follow(self) -> None:
        while True:
            # First the watch, then the look: what comes between is seen. A file that comes while others are armed is
            # in no list that was made before.
            self._wake = anyio.Event()
            while (paths := {self._queries.folder, *self._queries.files()}) != self._watched:
                if new := paths - self._watched:
                    await self._watcher.add(new)
                if removed := self._watched - paths:
                    self._watcher.discard(removed)
                self._watched = paths
            await self._refresh()
            await self._wake.wait()

    async def _refresh(self) -> None:
        before = {_tool_name(name) for name in self._queries.queries}
        changed = await self._queries.refresh()
        if not changed or self.server is None:
            return
        await self.server.offer([self._tool(query) for query in self._queries.queries.values()], before)
        for name in changed:
            await self.server.hub.updated(self._policy.saved_uri(name))
        await self.server.hub.list_changed()

    def _tool(self, query: SavedQuery) -> StrictTool:
        async def run(**values: Any) -> TextResult:
            arguments = {name: value for name, value in values.items() if value is not None}
            return await self._run(self._policy.saved(query, arguments))

        annotations: dict[str, Any] = {
            item.name: Annotated[_TYPES[item.kind], Field(description=item.description)] for item in query.parameters
        }
        run.__name__ = _tool_name(query.name)
        run.__annotations__ = {**annotations, "return": TextResult}
        run.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
            [
                inspect.Parameter(
                    item.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if item.default is None else item.default,
                    annotation=annotations[item.name],
                )
                for item in query.parameters
            ],
            return_annotation=TextResult,
        )
        broken = (
            ""
            if query.complaint is None
            else f"\n\nThe file is broken, this is its last good version: {query.complaint}"
        )
        run.__doc__ = query.description.rstrip(".") + "." + broken[:120]
        title = query.name.replace("_", " ").capitalize()
        return strict_tool(
            run,
            DeclaredTool(
                title=title,
                effect="read",
                idempotent=True,
                open_world=False,
                seconds=MAX_SECONDS,
                view=TABLE,
                toolsets=("saved_queries",),
            ),
        )


def _tool_name(name: str) -> str:
    return f"run_{name}"


def _probe(path: str) -> Hashable | None:
    status = os.stat(path)
    return (status.st_mtime_ns, status.st_size, status.st_ino)
