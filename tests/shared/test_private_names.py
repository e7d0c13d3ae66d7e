"""The table of private names is whole and true: what we use stands in it, and what stands in it is there."""

import ast
import importlib
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server as UvicornBase

from shared.private_names import PRIVATE_NAMES, PrivateName

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "shared" / "src" / "mcp_batteries"
PAGES = ROOT / "docs" / "upstream"
LISTENER = SOURCE / "transports" / "http" / "listener"


def find(path: str) -> Any:
    """Return the module, class or function at the dotted `path`."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"nothing is at {path}")


def has(owner: Any, name: str) -> bool:
    """Tell whether `owner` has the member or parameter `name`."""
    if inspect.isfunction(owner):
        return name in inspect.signature(owner).parameters
    if hasattr(owner, name) or isinstance(owner, ModuleType):
        return hasattr(owner, name)
    return any(
        re.search(rf"self\.{name}\b[^=\n]*=[^=]", inspect.getsource(base))
        for base in owner.__mro__
        if base.__module__ != "builtins"
    )


@pytest.mark.parametrize("private", PRIVATE_NAMES, ids=lambda item: f"{item.owner.rpartition('.')[2]}.{item.name}")
def test_a_private_name_is_still_there(private: PrivateName) -> None:
    assert has(find(private.owner), private.name), f"without {private.owner}.{private.name}: {private.breaks}"


def test_a_name_that_is_gone_is_noticed() -> None:
    owner = find("mcp.server.streamable_http.StreamableHTTPServerTransport")
    assert has(owner, "_request_streams") and not has(owner, "_request_rivers")
    assert not has(find("mcp.shared.jsonrpc_dispatcher.JSONRPCDispatcher.send_raw_request"), "_related")
    with pytest.raises(AttributeError):
        find("mcp.server.mcpserver.MCPServers")


def listed(*owners: str) -> set[str]:
    return {private.name for private in PRIVATE_NAMES if private.owner.startswith(owners)}


def lines_with_private_names() -> Iterator[str]:
    """Every line on which pyright was told that a private name of somebody else is used on purpose."""
    for path in SOURCE.rglob("*.py"):
        for line in path.read_text("utf-8").splitlines():
            if "reportPrivateUsage" in line:
                yield line


def test_each_private_member_that_is_used_is_in_the_table() -> None:
    used = {name for line in lines_with_private_names() for name in re.findall(r"(?<!self)\.(_[a-z]\w*)", line)}
    transport = ast.parse((SOURCE / "sdk.py").read_text("utf-8"))
    used |= private_members_of_self(transport, "SessionTransport") - {"_stream_key"}
    used |= {
        node.arg
        for node in ast.walk(transport)
        if isinstance(node, ast.keyword) and node.arg is not None and node.arg.startswith("_")
    }
    assert used == {name for name in listed("mcp.") if name.startswith("_")}


def private_members_of_self(tree: ast.AST, class_name: str) -> set[str]:
    body = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == class_name)
    return {name for name in members_of(body, {"self"}) if name.startswith("_")}


def members_of(tree: ast.AST, variables: set[str]) -> set[str]:
    """Return the members that code reads or writes of `variables`, such as `self`."""
    return {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) in variables
    }


def methods_of(tree: ast.AST) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_member_of_uvicorn_that_is_used_is_in_the_table() -> None:
    """uvicorn says of none of its classes what is public, but how to configure and run a server."""
    connection = ast.parse((LISTENER / "connection.py").read_text("utf-8"))
    ours = members_of(connection, {"self"}) | methods_of(connection)
    used = {name for name in ours if has(HttpToolsProtocol, name)} - {"__init__"}
    assert used == listed(f"{HttpToolsProtocol.__module__}.HttpToolsProtocol")
    cycles = members_of(connection, {"self.cycle", "self.running"})
    assert cycles == listed(f"{RequestResponseCycle.__module__}.RequestResponseCycle")
    server = ast.parse((LISTENER / "uvicorn_server.py").read_text("utf-8"))
    body = next(node for node in ast.walk(server) if isinstance(node, ast.ClassDef) and node.name == "UvicornServer")
    ours = members_of(body, {"self"}) | methods_of(body)
    assert {name for name in ours if has(UvicornBase, name)} - {"__init__"} == listed("uvicorn.server.")


def test_private_modules_are_in_the_table() -> None:
    used: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if not re.search(r"^\s*from (?:mcp|uvicorn)\b.*\._", text, re.MULTILINE):
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and re.match(r"(mcp|uvicorn)\..*\._|mcp\._", node.module)
            ):
                used |= {f"{node.module}.{alias.name}" for alias in node.names}
    private = {f"{item.owner}.{item.name}" for item in PRIVATE_NAMES if re.search(r"\._[a-z]\w*$", item.owner)}
    assert used == private


def test_each_private_name_has_a_proposal_by_which_it_could_go() -> None:
    for private in PRIVATE_NAMES:
        text = (PAGES / f"{private.page}.md").read_text("utf-8")
        assert f"`{private.name}`" in text, f"{private.page}.md does not say {private.name}"
    pages = {path.stem for path in PAGES.glob("*.md")} - {"README", "request-ids"}
    assert pages == {private.page for private in PRIVATE_NAMES}


def test_no_untried_version_is_taken_while_private_names_are_used() -> None:
    project = tomllib.loads((ROOT / "shared" / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = dict(re.findall(r"^(mcp|uvicorn)(?:\[.*\])?(>=\S+)$", "\n".join(project["dependencies"]), re.MULTILINE))
    extras = "\n".join(line for lines in project.get("optional-dependencies", {}).values() for line in lines)
    bounds |= dict(re.findall(r"^(mcp|uvicorn)(?:\[.*\])?(>=\S+)$", extras, re.MULTILINE))
    for package, bound in bounds.items():
        low, high = re.findall(r"(\d+)\.(\d+)", bound)[:2]
        assert (int(high[0]), int(high[1])) == (int(low[0]), int(low[1]) + 1), f"{package}{bound}"
    assert bounds.keys() == {"mcp", "uvicorn"}
