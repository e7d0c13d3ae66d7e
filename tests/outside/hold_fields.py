"""Holds our tools' requests, and every field that they read of an answer, against GitHub's description of its API.

    cd tests && python -m outside.hold_fields [FOLDER]

calls every tool over the oracle, which judges path, parameters, body, headers and version of each request, and notes
the names that are looked up in each REST answer. What is wrong with a request is printed, as are operations that GitHub
is about to give up and names that an operation's schema has nowhere: they are misspelt, or gone. The description is
that of the npm package @octokit/openapi of the version the oracle was cut from, fetched by npm; FOLDER names an
unpacked one instead.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import anyio

from github_server.oracle import Oracle
from github_server.oracle.cut import REST, fetch
from github_server.oracle.description import judged
from github_server.serving import EVERYTHING, TOKEN, served
from github_server.test_every_tool import CALLS, prepared
from mcp_github.client import api as api_module
from mcp_github.client.http import Client, Request
from mcp_github.client.response import Response

__all__ = ["Schemas", "deprecated_operations", "judge_requests", "read_fields", "unknown_fields"]

SHARED = {"incomplete_results", "total_count", "role_name", "protected", "run_duration_ms"}
"""Looked for in answers of several operations by the same code, of which only some have them; described there."""


KNOWN = {"GET /orgs/{org}/issue-fields: slug"}
"""Read where it is there; without it the name is written as in an address."""


class _Noted(dict[str, Any]):
    """An object of an answer that notes the names that are looked up in it."""

    def __init__(self, values: Iterable[tuple[str, Any]], names: set[str]) -> None:
        super().__init__(values)
        self._names = names

    def get(self, key: str, default: Any = None) -> Any:
        self._names.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._names.add(key)
        return super().__getitem__(key)


class Schemas:
    """The names that answers of each operation may have, at whatever depth."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._whole = description

    def names(self, operation: str) -> set[str]:
        """All property names of the answers of `VERB template`."""
        verb, _, template = operation.partition(" ")
        names = set[str]()
        for status, answer in self._whole["paths"][template][verb.lower()]["responses"].items():
            if status[0] == "2":
                for media in self._found(answer).get("content", {}).values():
                    self._collect(media.get("schema", {}), names, set())
                    for example in media.get("examples", {}).values():
                        _collect_values(self._found(example).get("value"), names)
        return names

    def _found(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            _, _, kind, name = node["$ref"].split("/")
            node = self._whole["components"][kind][name]
        return node

    def _collect(self, node: dict[str, Any], names: set[str], seen: set[str]) -> None:
        """Add the names of a schema."""
        reference = node.get("$ref")
        if reference in seen:
            return
        if reference:
            seen.add(reference)
        node = self._found(node)
        names.update(node.get("properties", {}))
        children = [child for key in ("anyOf", "oneOf", "allOf") for child in node.get(key, [])]
        children += node.get("properties", {}).values()
        children += [node[key] for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)]
        for child in children:
            self._collect(child, names, seen)


def _collect_values(value: Any, names: set[str]) -> None:
    if isinstance(value, dict):
        names.update(value)
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        _collect_values(child, names)


async def read_fields(calls: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, set[str]]:
    """The names that tools look up in answers, by operation as `VERB template`."""
    read: dict[str, set[str]] = {}
    current = [""]
    send = Client.send

    async def noting_send(client: Client, request: Request) -> Response:
        response = await send(client, request)
        operation = judged(request.method, request.path, {}, b"").operation
        current[0] = f"{request.method} {operation.template}" if operation else ""
        return response

    def parse(body: bytes, description: str, *, has_written: bool = False) -> Any:
        names = read.setdefault(current[0], set())
        return json.loads(body, object_pairs_hook=lambda pairs: _Noted(pairs, names))

    with Oracle() as oracle:
        prepared(oracle)
        with (
            mock.patch.object(Client, "send", noting_send),
            mock.patch.object(api_module, "_parse_json", parse),
            mock.patch.object(api_module, "scrub", lambda data: (data, 0)),
            # It tries every name that GitHub has for anything.
            mock.patch.object(api_module, "find_unset", lambda *_, **__: []),
        ):
            async with served(oracle, *EVERYTHING) as client:
                for tool, arguments in calls:
                    await client.call_tool(tool, arguments)
    read.pop("", None)
    return read


async def judge_requests(calls: Iterable[tuple[str, dict[str, Any]]]) -> tuple[set[str], list[str]]:
    """The operations of the requests that the calls make, GraphQL's apart, and what is wrong with the requests."""
    with Oracle() as oracle:
        prepared(oracle)
        async with served(oracle, *EVERYTHING) as client:
            for tool, arguments in calls:
                await client.call_tool(tool, arguments)
        operations = set[str]()
        for seen in oracle.seen:
            operation = judged(seen.verb, seen.target, seen.headers, seen.body).operation
            if operation is not None:
                operations.add(f"{seen.verb} {operation.template}")
        return operations, oracle.violations


def deprecated_operations(operations: Iterable[str], description: dict[str, Any]) -> list[str]:
    """Those of `operations` that the description calls deprecated, or has no more."""
    found: list[str] = []
    for name in sorted(operations):
        verb, _, template = name.partition(" ")
        operation = description["paths"].get(template, {}).get(verb.lower())
        if operation is None or operation.get("deprecated"):
            found.append(name)
    return found


def unknown_fields(read: dict[str, set[str]], schemas: Schemas) -> list[str]:
    """What was read and no answer of the operation has."""
    found: list[str] = []
    for operation, names in sorted(read.items()):
        found += [f"{operation}: {name}" for name in sorted(names - schemas.names(operation) - SHARED)]
    return [each for each in found if each not in KNOWN]


def main() -> int:
    """Print what is read and not described, and return whether there is any."""
    os.environ["GITHUB_TOKEN"] = TOKEN
    member = "generated/api.github.com.json"
    if len(sys.argv) > 1:
        text = (Path(sys.argv[1]) / member).read_bytes()
    else:
        text = fetch(REST, member)
    description = json.loads(text)
    operations, wrong = anyio.run(judge_requests, CALLS)
    read = anyio.run(read_fields, CALLS)
    wrong += [f"deprecated: {name}" for name in deprecated_operations(operations, description)]
    unknown = unknown_fields(read, Schemas(description))
    print(*wrong, *unknown, sep="\n")
    print(f"requests of {len(operations)} operations, {len(wrong)} wrong")
    count = sum(map(len, read.values()))
    print(f"{count} fields of {len(read)} operations, {len(unknown)} of them not described")
    return bool(wrong or unknown)


if __name__ == "__main__":
    sys.exit(main())
