"""The question about a call shows everything that the call would send or write, for every tool of every server."""

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_batteries.server.calling.confirmation_text import describe_call

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
TOOLS = [
    pytest.param(tool, id=f"{file.stem}-{tool['name']}")
    for file in sorted(SNAPSHOTS.glob("*.json"))
    for tool in json.loads(file.read_text("utf-8"))["tools"]
    if not tool.get("annotations", {}).get("readOnlyHint")
]
# A long text is the same to all of them; every fourth is tried with each change, the others every week.
SOME_TOOLS = [
    pytest.param(*tool.values, id=tool.id, marks=[pytest.mark.weekly] if number % 4 else [])
    for number, tool in enumerate(TOOLS)
]
LONG_CHARACTERS = 30_000


class Values:
    """Arguments for a schema, in which each text is another mark."""

    def __init__(self, schema: dict[str, Any], filling: str) -> None:
        self._root, self._filling = schema, filling
        self._numbers = itertools.count()
        self.marks: list[str] = []

    def of(self, schema: dict[str, Any], name: str = "") -> Any:
        """A value that fits `schema`, with all optional members."""
        if "$ref" in schema:
            schema = self._root["$defs"][schema["$ref"].rpartition("/")[2]]
        for kind in ("anyOf", "oneOf"):
            if kind in schema:
                return self.of(next(one for one in schema[kind] if one.get("type") != "null"), name)
        if "enum" in schema or "const" in schema:
            return schema.get("const", schema.get("enum", [None])[0])
        match schema.get("type"):
            case "object":
                # The hash of the file that is there is no text that leaves.
                named = {key: one for key, one in schema.get("properties", {}).items() if key not in ("delete", "sha")}
                members = {key: self.of(one, key) for key, one in named.items()}
                if isinstance(schema.get("additionalProperties"), dict):
                    members |= {"some.txt": self.of(schema["additionalProperties"], name)}
                return members
            case "array":
                return [self.of(schema.get("items", {"type": "string"}), name) for _ in range(2)]
            case "integer" | "number":
                return 7
            case "boolean":
                return False
            case _:
                self.marks.append(f"mark-{next(self._numbers)}-")
                return f"{self.marks[-1]}{self._filling}"


def lengths(said: str) -> Iterator[int]:
    for found in re.finditer(r"([0-9,]+) characters", said):
        yield int(found[1].replace(",", ""))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_question_shows_all_that_leaves(tool: dict[str, Any]) -> None:
    values = Values(tool["inputSchema"], "end")
    arguments = values.of(tool["inputSchema"])
    said = describe_call(tool["name"], arguments)
    assert not [mark for mark in values.marks if f"{mark}end" not in said], said


@pytest.mark.share(7)
@pytest.mark.parametrize("tool", SOME_TOOLS)
def test_a_question_says_how_much_of_a_long_text_it_leaves_out(tool: dict[str, Any]) -> None:
    values = Values(tool["inputSchema"], "x" * LONG_CHARACTERS)
    arguments = values.of(tool["inputSchema"])
    said = describe_call(tool["name"], arguments)
    shown = said.count("x")
    if values.marks:
        assert "characters are not shown" in said
        assert shown + sum(lengths("".join(re.findall(r"\[\.\.\. .*? \.\.\.\]", said)))) >= LONG_CHARACTERS
