"""The tools as methods, for tests that need no server around them: what callers send in, results out."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_batteries.server.calling.bound_function import bind_tool
from mcp_batteries.server.declaration.decorators import DeclaredTool, declarations
from mcp_fs.engine.reading.text_page import LineIndex
from mcp_fs.policy import Policy
from mcp_fs.policy.path_arguments import PathArguments
from mcp_fs.tools import read, search

_ROOMS = (read, search)


class Tools:
    """Every tool of a server over one policy; a result is what the tool's function returns."""

    def __init__(self, policy: Policy) -> None:
        self._dependencies = [policy, PathArguments(policy), LineIndex()]

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        ((declared, function),) = [
            (declared, function)
            for room in _ROOMS
            for declared, function in declarations(room)
            if isinstance(declared, DeclaredTool) and function.__name__ == name
        ]
        bound = bind_tool(function, declared, self._dependencies)
        parameters = inspect.signature(bound.method).parameters

        async def call(*values: Any, **named: Any) -> Any:
            arguments = {parameter.name: parameter.default for parameter in parameters.values()}
            arguments |= dict(zip(parameters, values, strict=False)) | named
            if bound.planner is not None:
                arguments[bound.planner.parameter] = await bound.planner.make_plan(arguments)
            return await bound.method(**arguments)

        return call
