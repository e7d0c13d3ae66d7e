"""Strict argument checks, with refusals in one line that a model can act on.

The SDK drops unknown arguments, takes `true` for 1 and answers a mistake with a paragraph of library prose.
Here the published schema and the check are the same: unknown names are refused with the valid ones, and booleans are
not numbers. Values that can mean only one thing are accepted, because clients and models send them: "42" for 42, null
for what may be left out, `oldText` for `old_text`, one value for a list of one.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from mcp_batteries.errors import Invalid, quote

__all__ = ["check_arguments", "parsed", "plain", "published", "slim"]

Schema = dict[str, Any]

_NOTHING: tuple[Any, ...] = ([], {}, "")
_LEAST = ("minimum", "minItems", "minLength")
_MOST = 1000


def slim(schema: Schema) -> Schema:
    """`schema` (JSON Schema as pydantic writes it) without the parts that cost a model tokens and do not help it.

    Generated titles, null alternatives of optional arguments, references to small definitions and defaults that say
    nothing (false, an empty text, list or object) go; names, descriptions, types, bounds, enums and other defaults
    stay. Objects refuse unknown properties unless they say otherwise.
    """
    definitions = cast("dict[str, Schema]", schema.get("$defs", {}))

    def walk(node: Any, path: tuple[str, ...] = ()) -> Any:
        if isinstance(node, list):
            return [walk(item, path) for item in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        node = cast("Schema", node)
        if (reference := node.get("$ref")) is not None:
            name = str(reference).rpartition("/")[2]
            if name in path:  # recursive: an object is as much as can be said without $defs
                return {"type": "object"}
            rest = {key: value for key, value in node.items() if key != "$ref"}
            return walk({**definitions[name], **rest}, (*path, name))
        slimmed: Schema = {}
        for key, value in node.items():
            if key in ("title", "$defs"):
                continue
            if key == "properties":
                properties = cast("dict[str, Any]", value)
                slimmed[key] = {name: walk(child, path) for name, child in properties.items()}
            else:
                slimmed[key] = walk(value, path)
        optional = slimmed.get("default", ...) is None
        if optional:
            del slimmed["default"]
        if isinstance(slimmed.get("anyOf"), list):
            variants = [item for item in slimmed["anyOf"] if item != {"type": "null"}]
            if optional:
                slimmed["anyOf"] = variants
            if len(variants) == 1:
                slimmed = {**variants[0], **{k: v for k, v in slimmed.items() if k != "anyOf"}}
        if (said := slimmed.get("default", ...)) is False or said in _NOTHING:  # what is left out reads as that anyway
            del slimmed["default"]
        if slimmed.get("type") == "object" and "properties" in slimmed:
            slimmed.setdefault("additionalProperties", False)
        if slimmed.get("additionalProperties") is True:  # what is not said is allowed
            del slimmed["additionalProperties"]
        return slimmed

    return cast("Schema", walk(schema))


def published(schema: Any) -> Any:
    """A slimmed `schema` as clients see it: without bounds that nobody exceeds on purpose.

    Those are lower bounds of 0 and 1, maximum lengths, and upper bounds from 1,000 on; the check names them.
    """
    if isinstance(schema, list):
        return [published(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("Schema", schema).items()
    return {key: published(value) for key, value in members if not _is_far(key, value)}


def _is_far(key: str, value: Any) -> bool:
    if not isinstance(value, int):
        return False
    return value in (0, 1) if key in _LEAST else key == "maxLength" or (key == "maximum" and value >= _MOST)


def check_arguments(tool: str, model: type[BaseModel], schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments for `tool`, validated against `model`; nested models stay models.

    Args:
        schema: the slimmed schema the client was shown; its words are used in the messages.

    Raises:
        Invalid: names every argument that is wrong, what was expected, and what was sent.
    """
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    renamed = _renamed(arguments, properties)
    unknown = [name for name in renamed if name not in properties]
    mistakes = _misnamed(unknown, renamed, schema)
    given: dict[str, Any] = {}
    for name, value in renamed.items():
        if name not in properties:
            continue
        if value is None and _may_be_left_out(name, schema):
            continue
        given[name] = _meant(value, properties[name])
        mistakes.extend(_booleans_for_numbers(given[name], properties[name], f"`{name}`"))
    if not mistakes:
        try:
            checked = model.model_validate(given)
        except ValidationError as error:
            mistakes = [_mistake(dict(item), schema) for item in error.errors(include_url=False)]
        else:
            fields = type(checked).model_fields.items()
            return {field.alias or name: getattr(checked, name) for name, field in fields}
    valid = ", ".join(f"`{name}`" for name in properties) or "none"
    raise Invalid(f"`{tool}` was not run: {'; '.join(dict.fromkeys(mistakes))}.", f"Its arguments are: {valid}.")


def _misnamed(unknown: Sequence[str], members: Mapping[str, Any], schema: Schema) -> list[str]:
    """The messages for unknown argument names, and for required ones that are missing as well."""
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    missing = [name for name in schema.get("required", ()) if name not in members] if unknown else []
    mistakes: list[str] = []
    for name in unknown:
        near = difflib.get_close_matches(name, properties, n=1, cutoff=0.65)
        if len(unknown) == len(missing) == 1:  # Whatever it is called, it can only be that one.
            near = missing
        mistakes.append(f"there is no argument {quote(name)}" + (f" (did you mean `{near[0]}`?)" if near else ""))
        missing = [item for item in missing if item not in near]
    return [*mistakes, *(f"`{name}` is required ({_expected(properties[name])})" for name in missing)]


def _kinds(schema: Schema) -> set[Any]:
    return {schema.get("type"), *(item.get("type") for item in schema.get("anyOf", ()))} - {None}


def _may_be_left_out(name: str, schema: Schema) -> bool:
    return name not in schema.get("required", ()) and "null" not in _kinds(schema["properties"][name])


def _renamed(members: Mapping[str, Any], properties: Mapping[str, Schema]) -> dict[str, Any]:
    """`members`, with names in camel case or other case replaced by the property that they mean."""
    if members.keys() <= properties.keys():
        return dict(members)
    known = {plain(name): name for name in properties}
    names = {name: name if name in properties else known.get(plain(name), name) for name in members}
    taken = Counter(names.values())
    return {names[name] if taken[names[name]] == 1 else name: value for name, value in members.items()}


def plain(name: str) -> str:
    """`name` without case and without the separators between words."""
    return re.sub(r"[\s_-]", "", name).casefold()


def _meant(value: Any, schema: Schema) -> object:
    """`value` in the shape that `schema` wants, if that is unambiguous; otherwise unchanged."""
    kinds = _kinds(schema)
    if isinstance(value, str) and kinds and kinds <= {"array", "object", "null"}:
        # Some hosts send an array or object argument as JSON inside a string.
        value = parsed(value)
    items = cast("Schema", schema.get("items", {}))
    one = dict if _kinds(items) == {"object"} else str | int | float
    if "array" in kinds and isinstance(value, one) and value != {}:
        value = [value]
    if isinstance(value, list):
        many = cast("list[Any]", value)
        if kinds == {"string"} and len(many) == 1:
            return _meant(many[0], schema) if isinstance(many[0], str) else many
        return [_meant(item, items) for item in many] if items else many
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return _meant_members(members, schema) if "properties" in schema else members
    if isinstance(value, int) and not isinstance(value, bool) and kinds == {"string"}:
        return str(value)
    if isinstance(value, str) and value not in schema.get("enum", [value]):
        alike = [item for item in schema["enum"] if plain(str(item)) == plain(value)]
        return alike[0] if len(alike) == 1 else value
    return value


def _meant_members(members: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    properties = cast("dict[str, Schema]", schema["properties"])
    return {
        name: _meant(member, properties.get(name, {}))
        for name, member in _renamed(members, properties).items()
        if member is not None or name not in properties or not _may_be_left_out(name, schema)
    }


def parsed(text: str) -> Any:
    """The array or object that `text` contains as JSON; otherwise `text`.

    Raises:
        Invalid: an object in it has a name twice; taking the last one would drop the other value.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        return text
    return cast("object", value) if isinstance(value, list | dict) else text


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        twice = next(name for name, times in Counter(name for name, _ in members).items() if times > 1)
        raise Invalid(f"An object in the JSON text has {quote(twice)} twice.", "Give each an object of its own.")
    return found


def _booleans_for_numbers(value: Any, schema: Schema, where: str) -> list[str]:
    if isinstance(value, bool):
        kinds = _kinds(schema)
        if kinds & {"integer", "number"} and "boolean" not in kinds:
            return [f"{where} must be {_expected(schema)}, not `{str(value).lower()}`"]
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [
            mistake
            for index, item in enumerate(cast("list[Any]", value))
            for mistake in _booleans_for_numbers(item, schema["items"], f"{where}[{index}]")
        ]
    return []


def _mistake(error: dict[str, Any], schema: Schema) -> str:
    location = cast("tuple[str | int, ...]", error["loc"])
    where = ""
    node: Schema = schema
    for part in location:
        if isinstance(part, int):
            where += f"[{part}]"
            node = node.get("items", {})
        elif part in node.get("properties", {}):
            where += f".{part}" if where else str(part)
            node = node["properties"][part]
        elif isinstance(node.get("additionalProperties"), dict):
            where += f".{part}" if where else str(part)
            node = node["additionalProperties"]
        elif error["type"] == "extra_forbidden":
            return f"`{where}` has no field {quote(str(part))}"
    if error["type"] == "missing":
        return f"`{where}` is required ({_expected(node)})"
    if error["type"] in ("value_error", "assertion_error"):
        said, also, rest = (str(error["msg"]).partition(", ")[2] or str(error["msg"])).partition("; ")
        sent = f", not {_shown(error['input'])}" if said.startswith("must be ") else ""
        return f"`{where}`: {said}{sent}{also}{rest}"
    return f"`{where}` must be {_expected(node)}, not {_shown(error['input'])}"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return "an object"
        case list():
            return "an array" if value else "an empty array"
        case str():
            return quote(json.dumps(value, ensure_ascii=False), 60)
        case _:
            return quote(json.dumps(value, default=str), 60)


_NOUNS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


def _expected(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(f"`{item}`" for item in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return " or ".join(_expected(item) for item in schema["anyOf"])
    words = _NOUNS.get(str(schema.get("type")), "a valid value")
    if "pattern" in schema:
        words += f" matching `{schema['pattern']}`"
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        noun = _NOUNS.get(str(schema["items"].get("type")), "a value").partition(" ")[2]
        words += f" of {noun}s" if noun and " " not in noun else ""
    unit = {"string": " characters", "array": " items"}.get(str(schema.get("type")), "")
    low = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
    high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    if low is not None and high is not None:
        return f"{words} from {low} to {high}{unit}" if not unit else f"{words} of {low} to {high}{unit}"
    if low is not None:
        return f"{words}, at least {low}{unit.removesuffix('s') if low == 1 else unit}"
    if high is not None:
        return f"{words}, at most {high}{unit}"
    return words
