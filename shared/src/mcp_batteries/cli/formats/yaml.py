"""YAML: PyYAML says where each value is, and this module changes the text there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import yaml

from mcp_batteries.cli.formats.base import Malformed, Path, Splice, apply, is_same, line_break, nested, put_members
from mcp_batteries.cli.host_entry.spelling import spell

__all__ = ["Yaml"]


class Yaml:
    """The editor for YAML with mappings of mappings."""

    def read(self, text: str) -> dict[str, Any]:
        try:
            value: Any = yaml.safe_load(text)
            root = _root(text)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise Malformed(" ".join(str(error).split())) from None
        if value is None:
            return {}
        if not isinstance(root, yaml.MappingNode):
            raise Malformed("it does not hold keys with values")
        for key, _ in root.value:
            _find(root, key.value)
        return value

    read_leniently = read

    def is_readable(self, text: str) -> bool:
        try:
            self.read(text)
        except Malformed:
            return False
        return True

    def repair(self, text: str) -> str:
        return text

    def comments(self, text: str, path: Path = ()) -> list[str]:
        first = 0
        last = len(text)
        if path:
            holder = _node_at(text, path[:-1])
            pair = _find(holder, path[-1]) if isinstance(holder, yaml.MappingNode) else None
            if pair is None:
                return []
            first = pair[0].start_mark.index
            last = _line_end(text, _end(pair))
        comments: list[str] = []
        position = 0
        for token in cast("Iterator[yaml.Token]", yaml.scan(text, Loader=yaml.SafeLoader)):  # pyright: ignore[reportUnknownMemberType] - its types say nothing
            gap = text[position : token.start_mark.index]
            comments += [
                match[0] for match in re.finditer(r"#[^\r\n]*", gap) if first <= position + match.start() < last
            ]
            position = max(position, token.end_mark.index)
        matches = re.finditer(r"#[^\r\n]*", text[position:])
        comments += [match[0] for match in matches if first <= position + match.start() < last]
        return [comment.rstrip() for comment in comments]

    def put(self, text: str, path: Path, value: Any) -> str:
        root = _root(text)
        if root is None or _is_unwritten(root):
            return _with_lines(text, _block(nested(path, value), ""))
        if not isinstance(root, yaml.MappingNode):
            raise Malformed("it does not hold keys with values")
        holder: yaml.MappingNode = root
        key: yaml.Node | None = None
        is_inside_braces = False
        for depth, name in enumerate(path):
            pair = _find(holder, name)
            if pair is None:
                return _with_member(
                    text, holder, None if is_inside_braces else key, {str(name): nested(path[depth + 1 :], value)}
                )
            if depth == len(path) - 1:
                return self._replace(text, path, pair, value)
            if _is_null(pair[1]):
                missing = nested(path[depth + 1 :], value)
                return _with_null_replaced(text, pair, missing)
            if not isinstance(pair[1], yaml.MappingNode):
                raise Malformed(f"it has something else under `{name}`")
            is_inside_braces = bool(holder.flow_style)
            key = pair[0]
            holder = pair[1]
        return text

    def _replace(self, text: str, path: Path, pair: tuple[yaml.Node, yaml.Node], value: Any) -> str:
        existing = _plain(text, path)
        if is_same(existing, value):
            return text
        if not (isinstance(existing, dict) and isinstance(value, dict)):
            if _is_null(pair[1]):
                return _with_null_replaced(text, pair, value)
            start = pair[1].start_mark.index
            written = spell(value)
            if pair[1].start_mark.line > pair[0].end_mark.line:
                # A list may stand no deeper than its key, but only in lines of its own.
                start = text.index(":", pair[0].end_mark.index) + 1
                written = " " + written
            return apply(text, [Splice(start, _end(pair), written)])
        return put_members(self, text, path, cast("dict[str, Any]", existing), cast("dict[str, Any]", value))

    def remove(self, text: str, path: Path) -> str:
        holder = _node_at(text, path[:-1])
        pair = _find(holder, path[-1]) if isinstance(holder, yaml.MappingNode) else None
        if pair is None or not isinstance(holder, yaml.MappingNode):
            raise Malformed(f"it has no `{path[-1]}`")
        pairs = cast("list[tuple[yaml.Node, yaml.Node]]", holder.value)
        position = next(number for number, (key, _) in enumerate(pairs) if key is pair[0])
        if holder.flow_style:
            return apply(text, _flow_removal(text, pairs, position, holder))
        start = text.rfind("\n", 0, pair[0].start_mark.index) + 1
        splices = [Splice(start, _line_end(text, _end(pair)))]
        if len(pairs) == 1 and len(path) > 1:
            above = _node_at(text, path[:-2])
            assert isinstance(above, yaml.MappingNode)
            parent = _find(above, path[-2])
            assert parent is not None
            place = text.index(":", parent[0].end_mark.index) + 1
            splices.append(Splice(place, place, " {}"))
        return apply(text, splices)


def _root(text: str) -> yaml.Node | None:
    try:
        return cast("yaml.Node | None", yaml.compose(text, Loader=yaml.SafeLoader))  # pyright: ignore[reportUnknownMemberType] - its types say nothing
    except (yaml.YAMLError, RecursionError) as error:
        raise Malformed(" ".join(str(error).split())) from None


def _plain(text: str, path: Path) -> Any:
    value: Any = yaml.safe_load(text)
    for key in path:
        value = value[key]
    return value


def _find(holder: yaml.MappingNode, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", holder.value)
    matches = [pair for pair in pairs if isinstance(pair[0], yaml.ScalarNode) and pair[0].value == key]
    if len(matches) > 1:
        raise Malformed(f"it has the key `{key}` twice")
    return matches[0] if matches else None


def _node_at(text: str, path: Path) -> yaml.Node | None:
    node = _root(text)
    for key in path:
        pair = _find(node, key) if isinstance(node, yaml.MappingNode) else None
        if pair is None:
            raise Malformed(f"it has no `{key}`")
        node = pair[1]
    return node


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _is_unwritten(node: yaml.Node) -> bool:
    """Return whether a document begins, with `---`, and says nothing."""
    return _is_null(node) and not node.value


def _end(pair: tuple[yaml.Node, yaml.Node]) -> int:
    """Return where the last character of a pair is; PyYAML's own end of a block is behind the comments after it."""
    key, node = pair
    while True:
        is_flow = isinstance(node, yaml.CollectionNode) and node.flow_style
        if isinstance(node, yaml.ScalarNode) or is_flow or not node.value:
            return max(node.end_mark.index, key.end_mark.index)
        if isinstance(node, yaml.MappingNode):
            key, node = cast("tuple[yaml.Node, yaml.Node]", node.value[-1])
        else:
            node = cast("yaml.Node", node.value[-1])


def _line_end(text: str, position: int) -> int:
    if position and text[position - 1] == "\n":
        return position
    return text.find("\n", position) + 1 or len(text)


def _block(value: dict[str, Any], indent: str, unit: str = "  ") -> list[str]:
    """Return mappings down to the entry's keys as lines, and what is inside those as JSON."""
    lines: list[str] = []
    for key, item in value.items():
        if isinstance(item, dict) and item and len(indent) < 2 * len(unit):
            lines.append(f"{indent}{_spell_key(key)}:")
            lines += _block(cast("dict[str, Any]", item), indent + unit, unit)
        else:
            lines.append(f"{indent}{_spell_key(key)}: {spell(item)}")
    return lines


def _spell_key(key: str) -> str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key) and key.lower() not in (
        "y",
        "n",
        "yes",
        "no",
        "on",
        "off",
        "null",
    ):
        return key
    return spell(key)


def _with_lines(text: str, lines: list[str]) -> str:
    """Return the text with lines behind its end."""
    end = line_break(text)
    if re.search(r"^\.\.\.", text, re.MULTILINE):
        raise Malformed("something follows behind the end of its only document")
    if text and not text.endswith("\n"):
        text += end
    return text + "".join(line + end for line in lines)


def _with_member(text: str, holder: yaml.MappingNode, key: yaml.Node | None, member: dict[str, Any]) -> str:
    """Return the text with one more member of a mapping, which is the value of `key`, if that stands in lines."""
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", holder.value)
    if holder.flow_style:
        if not pairs and key is not None and holder.start_mark.line == key.end_mark.line:
            return _with_block(text, key, holder.start_mark.index, holder.end_mark.index, member)
        separator = ", " if pairs else ""
        place = holder.start_mark.index + 1
        return apply(text, [Splice(place, place, spell(member)[1:-1] + separator)])
    indent = " " * pairs[0][0].start_mark.column
    if key is None:
        return _with_lines(text, _indent(_block(member, ""), indent))
    end = line_break(text)
    place = text.rfind("\n", 0, pairs[0][0].start_mark.index) + 1
    outer = " " * key.start_mark.column
    unit = indent.removeprefix(outer) or "  "
    lines = _indent(_block(member, unit, unit), outer)
    return apply(text, [Splice(place, place, "".join(line + end for line in lines))])


def _indent(lines: list[str], indent: str) -> list[str]:
    return [indent + line for line in lines]


def _with_null_replaced(text: str, pair: tuple[yaml.Node, yaml.Node], value: Any) -> str:
    """Return the text with a value where a key has none."""
    key, node = pair
    start = node.start_mark.index
    end = node.end_mark.index
    if start == end:
        # The place of a value that is not written is somewhere behind the colon.
        start = end = text.index(":", key.end_mark.index) + 1
    return _with_block(text, key, start, end, value)


def _with_block(text: str, key: yaml.Node, start: int, end: int, value: Any) -> str:
    """Return the text with a mapping in lines of its own where something short stands behind a key."""
    if not isinstance(value, dict):
        return apply(text, [Splice(start, end, " " + spell(value))])
    lines = _indent(_block(cast("dict[str, Any]", value), "  "), " " * key.start_mark.column)
    line = _line_end(text, end)
    written = "".join(line + line_break(text) for line in lines)
    if line == len(text) and not text.endswith("\n"):
        written = line_break(text) + written
    before = text[:start].rstrip(" \t")
    return before + text[end:line] + written + text[line:]


def _flow_removal(
    text: str, pairs: list[tuple[yaml.Node, yaml.Node]], position: int, holder: yaml.MappingNode
) -> list[Splice]:
    start = pairs[position][0].start_mark.index
    if position + 1 < len(pairs):
        return [Splice(start, pairs[position + 1][0].start_mark.index)]
    if position:
        return [Splice(_end(pairs[position - 1]), _end(pairs[position]))]
    return [Splice(holder.start_mark.index, holder.end_mark.index, "{}")]
