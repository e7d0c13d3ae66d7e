"""The tools as methods, for tests that need no server around them: what callers send in, results out."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from mcp.server.mcpserver import Context
from starlette.requests import Request

from mcp_batteries.server.calling.bound_function import bind_tool
from mcp_batteries.server.declaration.decorators import DeclaredTool, declarations
from mcp_fs.engine.journal.journal import ChangeRecorder
from mcp_fs.engine.journal.store import JournalStore
from mcp_fs.engine.reading.text_page import LineIndex
from mcp_fs.policy import Policy
from mcp_fs.policy.path_arguments import PathArguments
from mcp_fs.settings import Settings
from mcp_fs.tools import read, search, undo, write

_FUNCTIONS = {
    function.__name__: (declared, function)
    for room in (read, search, write, undo)
    for declared, function in declarations(room)
    if isinstance(declared, DeclaredTool)
}


class Tools:
    """Every tool of a server over one policy; a result is what the tool's function returns.

    Attributes:
        address: of the caller; None on stdio.
    """

    def __init__(self, policy: Policy, store: JournalStore | None = None) -> None:
        self.address: str | None = None
        self._dependencies = [policy, PathArguments(policy), Settings(), LineIndex(), ChangeRecorder(store)]
        if store is not None:
            self._dependencies.append(store)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name not in _FUNCTIONS:
            raise AttributeError(name)
        declared, function = _FUNCTIONS[name]
        bound = bind_tool(function, declared, self._dependencies)
        parameters = inspect.signature(bound.method).parameters

        async def call(*values: Any, **named: Any) -> Any:
            arguments: dict[str, Any] = {}
            for parameter in parameters.values():
                arguments[parameter.name] = parameter.default
                if parameter.annotation is Context:
                    arguments[parameter.name] = self._context()
            arguments |= dict(zip(parameters, values, strict=False)) | named
            if bound.planner is not None:
                arguments[bound.planner.parameter] = await bound.planner.make_plan(arguments)
            return await bound.method(**arguments)

        setattr(self, name, call)
        return call

    def _context(self) -> Any:
        request = None
        if self.address is not None:
            scope = {"type": "http", "client": (self.address, 1), "server": ("127.0.0.1", 1)}
            request = Request(scope)
        return SimpleNamespace(request_context=SimpleNamespace(request=request))
