"""The one form of what a call says, for everybody who counts, allows, notes or runs calls.

Clients and models write a call in many forms: arguments as JSON text, an empty array for an empty object, `args` for
`arguments`, arguments beside the name, several calls by their names. All of that is understood here and nowhere else,
so that no form of a call can pass by a limit or a scope that another form meets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from mcp_batteries.errors import Invalid
from mcp_batteries.server.calling.arguments import normalize_name, parse_json

__all__ = [
    "CALL_TOOL",
    "CALL_TOOLS",
    "MAX_CALLS",
    "MAX_SCRIPT_CALLS",
    "MAX_SERVICE_CALLS",
    "RUN_SCRIPT",
    "called_tools",
    "count_calls",
    "normalize_call",
    "rename_call",
    "rename_tools",
    "runs_script",
    "unwrap_call",
]

CALL_TOOLS = "call_tools"
# Runs a script that may also make changes.
RUN_SCRIPT = "run_script"
# Calls one tool, for clients that see three tools in place of all: see `mount.discovery`.
CALL_TOOL = "call_tool"
# Calls in one `call_tools`.
MAX_CALLS = 20
# Calls in one script; before it runs nobody knows how many it makes.
MAX_SCRIPT_CALLS = 5000
# Those of them that ask a service, which counts what its user asks.
MAX_SERVICE_CALLS = 500
# Calls inside calls: `call_tools`, in it `call_tool`, in it the tool.
_MAX_DEPTH = 3
# What models call the arguments of a call inside another, when they don't call them so.
_OTHER_NAMES_OF_ARGUMENTS = ("args", "parameters", "params", "input")


def normalize_call(params: Mapping[str, Any], depth: int = 1) -> Mapping[str, Any]:
    """Return the parameters of `tools/call` with a name, if it has one, and an object of arguments.

    The calls inside `call_tool` and `call_tools` have the same form then. What can't be understood stays as it was
    sent; the check of arguments refuses it.

    Args:
        depth: which of the calls inside each other it is.
    """
    name = _to_name(params.get("name"))
    arguments = _to_object(params.get("arguments"))
    if "name" not in params or not isinstance(arguments, Mapping):
        return params
    members = cast("Mapping[str, Any]", arguments)
    if depth < _MAX_DEPTH and name == CALL_TOOL:
        members = _normalize_inner_call(members, depth + 1)
    elif depth < _MAX_DEPTH and name == CALL_TOOLS:
        members = _normalize_list(members, depth + 1)
    return {**params, "name": name, "arguments": members}


def rename_tools(
    params: Mapping[str, Any], resolve: Callable[[Any], str | None], imply: Callable[[Any], Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return a normalized call with each tool under its own name, also in the calls inside it.

    Args:
        resolve: returns the own name of the tool that is called by this or another name; None if none is.
        imply: returns the arguments that another name implies.
    """
    name = params.get("name")
    if name not in (CALL_TOOL, CALL_TOOLS):
        own_name = resolve(name)
        if own_name is None or own_name == name:
            return params
        return rename_call(params, own_name, imply(name))
    arguments: Any = params.get("arguments")
    if not isinstance(arguments, Mapping):
        return params
    members = cast("Mapping[str, Any]", arguments)
    calls: Any = members.get("calls")
    if name == CALL_TOOL:
        members = rename_tools(members, resolve, imply)
    elif isinstance(calls, list):
        renamed: list[Any] = []
        for call in cast("list[Any]", calls):
            renamed.append(rename_tools(cast("Any", call), resolve, imply) if isinstance(call, Mapping) else call)
        members = {**members, "calls": renamed}
    return {**params, "arguments": members}


def rename_call(call: Mapping[str, Any], own_name: str, implied: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a normalized call under a tool's own name, with the arguments that its other name implies."""
    arguments: Any = call.get("arguments")
    if implied and isinstance(arguments, Mapping):
        arguments = {**implied, **cast("Mapping[str, Any]", arguments)}
        return {**call, "name": own_name, "arguments": arguments}
    return {**call, "name": own_name}


def unwrap_call(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the call that a normalized `call_tool` makes; any other call itself."""
    arguments: Any = params.get("arguments")
    if params.get("name") == CALL_TOOL and isinstance(arguments, Mapping):
        return cast("Mapping[str, Any]", arguments)
    return params


def called_tools(params: Mapping[str, Any]) -> list[Any]:
    """Return the names of all tools that a normalized call calls: its own, and those of the calls inside it.

    A name that is no text, which nothing has, is one of them.
    """
    call = unwrap_call(params)
    calls = _calls_inside(call)
    if calls is None:
        return [call.get("name")]
    names: list[Any] = [CALL_TOOLS]
    for inner in calls:
        if isinstance(inner, Mapping):
            names.append(unwrap_call(cast("Mapping[str, Any]", inner)).get("name"))
    return names


def runs_script(params: Mapping[str, Any]) -> bool:
    """Return whether a normalized call runs a script, whose calls nobody knows before."""
    call = unwrap_call(params)
    if call.get("name") == RUN_SCRIPT:
        return True
    arguments: Any = call.get("arguments")
    if call.get("name") != CALL_TOOLS or not isinstance(arguments, Mapping):
        return False
    return any(normalize_name(name) == "script" for name in cast("Mapping[str, Any]", arguments))


def count_calls(params: Mapping[str, Any]) -> int:
    """Return how many calls a normalized call makes, for limits that count them; a script counts as a full list."""
    if runs_script(params):
        return MAX_CALLS
    calls = _calls_inside(unwrap_call(params))
    if calls is None:
        return 1
    return min(max(len(calls), 1), MAX_CALLS)


def _calls_inside(call: Mapping[str, Any]) -> list[Any] | None:
    """Return the calls that a normalized `call_tools` makes; None for any other call."""
    arguments: Any = call.get("arguments")
    if call.get("name") != CALL_TOOLS or not isinstance(arguments, Mapping):
        return None
    calls: Any = cast("Mapping[str, Any]", arguments).get("calls")
    if not isinstance(calls, list):
        return None
    return cast("list[Any]", calls)


def _normalize_inner_call(call: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    """Return a call inside another, whose arguments may have another name, or stand beside the name of the tool."""
    if not isinstance(_to_name(call.get("name")), str):
        return call
    others = {key: value for key, value in call.items() if key != "name"}
    other_names = [name for name in _OTHER_NAMES_OF_ARGUMENTS if name in others]
    if "arguments" in others:
        arguments: Any = others.pop("arguments")
    elif len(others) == 1 and other_names:
        arguments = others.pop(other_names[0])
    else:
        arguments = others
        others = {}
    return {**others, **normalize_call({"name": call["name"], "arguments": arguments}, depth)}


def _normalize_list(arguments: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    """Return the arguments of `call_tools`, with each call as `name` and `arguments`.

    The schema tells models the shorter `{NAME: ARGUMENTS}`; they know the other form from the protocol.
    """
    names = [name for name in arguments if normalize_name(name) == "calls"]
    if len(names) != 1:
        return arguments
    others = {key: value for key, value in arguments.items() if key != names[0]}
    return {**others, "calls": _expand(arguments[names[0]], depth)}


def _expand(calls: Any, depth: int) -> list[Any]:
    calls = _parse(calls)
    if not isinstance(calls, list):
        calls = [calls]
    expanded: list[Any] = []
    for call in map(_parse, cast("list[Any]", calls)):
        if not isinstance(call, dict) or not call:
            expanded.append(call)
            continue
        members = cast("dict[str, Any]", call)
        if isinstance(members.get("name"), str | list):
            expanded.append(_normalize_inner_call(members, depth))
        else:
            for name, value in members.items():
                expanded.append(normalize_call({"name": name, "arguments": value}, depth))
    return expanded


def _to_name(value: Any) -> Any:
    """Return the name in a list of one, which some clients send; any other value unchanged."""
    if isinstance(value, list):
        names = cast("list[Any]", value)
        if len(names) == 1:
            return names[0]
    return cast("Any", value)


def _to_object(value: Any) -> Any:
    """Return arguments as an object: their JSON text, and an empty array, as PHP writes an empty object."""
    value = _parse(value)
    if value in (None, "", []):
        return {}
    return value


def _parse(value: Any) -> Any:
    """Return the array or object that a text contains as JSON; any other value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except Invalid:
        return value  # The check of arguments reports it; nothing is called.
