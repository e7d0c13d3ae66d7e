"""Hosts' configuration files as hosts and people write them, and readers that are as strict as the hosts."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import yaml

from mcp_batteries.hosts import HOST_NAMES

HOSTS = [host for host in HOST_NAMES if host not in ("cherry-studio", "jetbrains")]
CONTAINERS = {
    "amp": "amp.mcpServers",
    "vscode": "servers",
    "visual-studio": "servers",
    "codex": "mcp_servers",
    "zed": "context_servers",
    "goose": "extensions",
    "opencode": "mcp",
}
STRICT = ("antigravity", "claude-desktop", "claude-code", "cline")
NO_TRAILING_COMMAS = (*STRICT, "gemini-cli", "continue", "devin")


def container(host: str) -> str:
    return CONTAINERS.get(host, "mcpServers")


def read(host: str, data: bytes | None) -> dict[str, Any]:
    """What the host reads; fails where the host would."""
    text = (data or b"").decode("utf-8-sig")
    if host == "codex":
        return tomllib.loads(text)
    if host == "goose":
        return yaml.load(text, Loader=_UniqueKeys) or {}
    if not without_comments(text).strip():
        return {}
    if host not in STRICT:
        text = without_comments(text)
    if host not in NO_TRAILING_COMMAS:
        text = without_trailing_commas(text)
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that stands twice, as Goose does."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        keys = [key.value for key, _ in node.value]
        assert len(set(keys)) == len(keys), keys
        return super().construct_mapping(node, deep)


def without_comments(text: str) -> str:
    """JSON with blanks for comments, character by character, as `strip-json-comments` works."""
    written: list[str] = []
    position, inside = 0, ""
    while position < len(text):
        two = text[position : position + 2]
        if inside == '"':
            if text[position] == "\\":
                written.append(two)
                position += 2
                continue
            inside = "" if text[position] == '"' else inside
        elif inside == "//":
            inside = "" if text[position] in "\r\n" else inside
        elif inside == "/*" and two == "*/":
            inside = ""
            written.append("  ")
            position += 2
            continue
        elif not inside and two in ("//", "/*"):
            inside = two
            written.append("  ")
            position += 2
            continue
        elif not inside and text[position] == '"':
            inside = '"'
        written.append(" " if inside in ("//", "/*") else text[position])
        position += 1
    assert inside != "/*"
    return "".join(written)


def without_trailing_commas(text: str) -> str:
    strings = re.split(r'("(?:[^"\\]|\\.)*")', text)
    joined = "\0".join(strings[::2])
    joined = re.sub(r",(\s*[}\]])", r" \1", joined)
    plain = joined.split("\0")
    return "".join(
        part + (strings[number * 2 + 1] if number * 2 + 1 < len(strings) else "") for number, part in enumerate(plain)
    )


COMMENT = re.compile(r"c\d+c")


def comments(data: bytes | None) -> list[str]:
    """The comments of our tests, each of which stands once."""
    return COMMENT.findall((data or b"").decode())


class Writer:
    """Writes values as one person or host would."""

    def __init__(self, host: str, rng: random.Random) -> None:
        self.host, self.rng = host, rng
        self._count = rng.randrange(10**6) * 1000
        self.ours: tuple[str, ...] = ()
        self.is_inside_ours = False
        self.with_comments = host not in STRICT and rng.random() < 0.5
        self.with_trailing_commas = host not in NO_TRAILING_COMMAS and rng.random() < 0.3

    def comment(self) -> str:
        """Words that stand once; `comments` finds none inside an entry of ours, with which they may go."""
        self._count += 1
        return f"i{self._count}i" if self.is_inside_ours else f"c{self._count}c"

    def document(self, value: dict[str, Any], *, plain: bool = False) -> str:
        """`value` in some spelling; with `plain` as a program writes it."""
        if self.host == "codex":
            text = self._toml(value)
        elif self.host == "goose":
            text = self._yaml(value, plain=plain)
        elif plain:
            text = json.dumps(value, indent=self.rng.choice([2, 4, "\t", None]), sort_keys=self.rng.random() < 0.3)
            text += self.rng.choice(["", "\n"])
        else:
            text = self.rng.choice([self._wild_json, self._neat_json])(value)
        return text

    @contextmanager
    def inside(self, key: str | None) -> Generator[None]:
        was = self.is_inside_ours
        self.is_inside_ours = was or key in self.ours
        try:
            yield
        finally:
            self.is_inside_ours = was

    def _neat_json(self, value: dict[str, Any]) -> str:
        unit = self.rng.choice(["  ", "    ", "\t"])

        def write(item: Any, depth: int) -> str:
            if not isinstance(item, dict | list) or not item:
                return json.dumps(item)
            opening, closing = "{}" if isinstance(item, dict) else "[]"
            if self.rng.random() < 0.2:
                return json.dumps(item)
            lines: list[str] = []
            parts: list[str] = []
            for key, one in item.items() if isinstance(item, dict) else ((None, one) for one in item):
                with self.inside(_owner(key, one)):
                    parts.append(("" if key is None else f"{json.dumps(key)}: ") + write(one, depth + 1))
            for number, part in enumerate(parts):
                comma = "," if number + 1 < len(parts) or self.with_trailing_commas else ""
                behind = f" // {self.comment()}" if self.with_comments and self.rng.random() < 0.3 else ""
                before = (
                    f"{unit * (depth + 1)}// {self.comment()}\n"
                    if self.with_comments and self.rng.random() < 0.3
                    else ""
                )
                lines.append(f"{before}{unit * (depth + 1)}{part}{comma}{behind}\n")
            return f"{opening}\n{''.join(lines)}{unit * depth}{closing}"

        return write(value, 0) + self.rng.choice(["", "\n", "\n\n"])

    def _wild_json(self, value: Any) -> str:
        def blank() -> str:
            kinds = ["", "", " ", "\n", "\t"]
            if self.with_comments:
                kinds += [f" // {self.comment()} {{[\n", f"/* {self.comment()} }} */"]
            return self.rng.choice(kinds)

        def write(item: Any) -> str:
            if not isinstance(item, dict | list):
                return json.dumps(item)
            parts: list[str] = []
            for key, one in item.items() if isinstance(item, dict) else ((None, one) for one in item):
                with self.inside(_owner(key, one)):
                    parts.append(("" if key is None else f"{json.dumps(key)}{blank()}:{blank()}") + write(one))
            opening, closing = "{}" if isinstance(item, dict) else "[]"
            text = opening
            for number, part in enumerate(parts):
                text += blank() + part
                if number + 1 < len(parts) or (self.with_trailing_commas and self.rng.random() < 0.5):
                    text += blank() + ","
            return text + blank() + closing

        return blank() + write(value) + blank()

    def _toml(self, value: dict[str, Any]) -> str:
        """Plain keys first, then tables: with headers, in one line or with dotted keys."""
        lines: list[str] = []
        key = container(self.host)
        for name, item in value.items():
            if name != key:
                lines.append(f"{name} = {_inline(item)}" + (f"  # {self.comment()}" if self.with_comments else ""))
        style = self.rng.choice(["headers", "headers", "inline", "dotted", "one table"])
        servers = value.get(key)
        if servers is not None and style == "inline":
            lines.append(f"{key} = {_inline(servers)}")
        elif servers is not None and style == "dotted" and all(servers.values()):
            for name, entry in servers.items():
                lines += [f"{key}.{json.dumps(name)}.{one} = {_inline(item)}" for one, item in entry.items()]
            if not servers:
                lines.append(f"[{key}]")
        elif servers is not None and style == "one table":
            lines.append(f"[{key}]")
            lines += [f"{json.dumps(name)} = {_inline(entry)}" for name, entry in servers.items()]
        elif servers is not None:
            if not servers:
                lines.append(f"[{key}]")
            for name, entry in servers.items():
                lines += ["", *([f"# {self.comment()}"] if self.with_comments else []), f"[{key}.{json.dumps(name)}]"]
                lines += [f"{one} = {_inline(item)}" for one, item in entry.items() if not isinstance(item, dict)]
                for one, item in entry.items():
                    if isinstance(item, dict):
                        lines += [f"[{key}.{json.dumps(name)}.{one}]"]
                        lines += [f"{json.dumps(own)} = {_inline(inner)}" for own, inner in item.items()]
        if self.with_comments:
            lines.append(f"# {self.comment()}")
        return "\n".join(lines) + self.rng.choice(["\n", "\n", "\n\n", ""])

    def _yaml(self, value: dict[str, Any], *, plain: bool) -> str:
        if not value:
            return self.rng.choice(["", "{}\n"] if plain else ["", "\n", f"# {self.comment()}\n", "---\n"])
        flow = self.rng.choice([False, False, None]) if plain else self.rng.choice([False, False, False, None, True])
        indent = self.rng.choice([2, 4])
        text = yaml.safe_dump(value, default_flow_style=flow, indent=indent, sort_keys=False, width=10**6)
        if self.with_comments and flow is False and not plain:
            lines: list[str] = []
            for line in text.splitlines():
                if re.match(rf" {{{indent}}}[^ #]", line):
                    self.is_inside_ours = line.strip().split(":")[0] in self.ours
                if not line.startswith(" "):
                    self.is_inside_ours = False
                if self.rng.random() < 0.2:
                    lines.append(f"{line[: len(line) - len(line.lstrip(' '))]}# {self.comment()}")
                behind = f" # {self.comment()}" if self.rng.random() < 0.2 else ""
                lines.append(line + behind)
            self.is_inside_ours = False
            text = "\n".join(lines) + self.rng.choice(["\n", f"\n\n# {self.comment()}\n"])
        if not plain and self.rng.random() < 0.2:
            text = "---\n" + text
        if not plain and self.rng.random() < 0.3:
            text = text.replace(f"{container('goose')}: {{}}\n", f"{container('goose')}:\n")
        return text


def _owner(key: str | None, item: Any) -> str | None:
    """The key of a member; what VS Code asks for belongs to the server of whose variable it is."""
    if isinstance(item, dict) and "id" in item and item["id"] != "mine":
        return "github"
    return key


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def encoded(text: str, rng: random.Random) -> bytes:
    """With line ends of Windows or a byte order mark, some of the time."""
    if rng.random() < 0.25:
        text = text.replace("\n", "\r\n")
    return text.encode("utf-8-sig" if rng.random() < 0.15 else "utf-8")


def foreign_value(host: str, rng: random.Random) -> dict[str, Any]:
    """A file's meaning without any server of ours."""
    settings: dict[str, Any] = {
        "theme": "dark",
        "a": 1.5,
        "list": [1, ']{\\"', True],
        "deep": {"x": {"y": "//"}, "é": "#"},
    }
    value = {key: item for key, item in settings.items() if rng.random() < 0.4}
    if host == "codex":
        value = {key: item for key, item in value.items() if key != "deep"}
    if rng.random() < 0.7:
        value[container(host)] = {
            name: foreign_server(host, rng) for name in ("other", "o two", "x.y") if rng.random() < 0.4
        }
    if host == "vscode" and rng.random() < 0.3:
        value["inputs"] = [{"type": "promptString", "id": "mine", "description": "d"}][: rng.randrange(2)]
    items = list(value.items())
    rng.shuffle(items)
    return dict(items)


def foreign_server(host: str, rng: random.Random) -> dict[str, Any]:
    key = "cmd" if host == "goose" else "command"
    command: Any = ["npx", "-y"] if host == "opencode" else "npx"
    return {
        key: command,
        "args": ["a", "b\\"][: rng.randrange(3)],
        **({"env": {"A": "b"}} if rng.random() < 0.3 else {}),
    }
