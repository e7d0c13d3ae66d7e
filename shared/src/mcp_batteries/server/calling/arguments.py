"""Strict argument checks, with refusals in one line that a model can act on.

The SDK drops unknown arguments, takes `true` for 1 and answers a mistake with a paragraph of library prose.
Here the published schema and the check are the same: unknown names are refused with the valid ones, and booleans are
not numbers. Values that can mean only one thing are accepted, because clients and models send them: "42" for 42, null
for what may be left out, `oldText` for `old_text`, one value for a list of one. What hosts are known to add by
themselves is left out, because no model could leave it out.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from mcp_batteries.errors import Invalid, quote, well_formed
from mcp_batteries.server.declaration.fields import EmptyCounts

__all__ = ["NOTHING_WORDS", "check_arguments", "normalize_name", "parse_json", "publish_schema", "slim_schema"]

Schema = dict[str, Any]

_EMPTY_DEFAULTS: tuple[Any, ...] = ([], {}, "")
# What clients and models send in place of a text that they leave out.
NOTHING_WORDS = ("", "null", "None")
# What hosts add to a model's arguments, whatever the schema says: n8n, Cline, Gemini CLI and Cursor.
_HOST_ARGUMENTS = {"toolCallId", "sessionId", "chatInput", "task_progress", "wait_for_previous", "random_string"}
# n8n adds these beside the first three; by themselves they can be a mistake of the model.
_N8N_SIGNS = {"toolCallId", "sessionId", "chatInput"}
_N8N_ARGUMENTS = {"action", "tool"}
_LOWER_BOUNDS = ("minimum", "minItems", "minLength")
_MIN_FAR_BOUND = 1000
_PAGE_SIZES = ("limit", "max_bytes")
# An array or object in a description, such as `{source: target}`.
_FORM = re.compile(r"`[\[{][^`]*`")
# What pydantic puts behind the place of a key that is wrong itself.
_KEY_STEP = "[key]"


def slim_schema(schema: Schema) -> Schema:
    """Return `schema` (JSON Schema as pydantic writes it) without what costs a model tokens and does not help it.

    Generated titles, null alternatives of optional arguments, references to small definitions and defaults that say
    nothing (false, an empty text, list or object) go; names, descriptions, types, bounds, enums and other defaults
    stay. Objects refuse unknown properties unless they say otherwise.
    """
    definitions = cast("dict[str, Schema]", schema.get("$defs", {}))
    return cast("Schema", _slim_node(schema, definitions))


def _slim_node(node: Any, definitions: Mapping[str, Schema], path: tuple[str, ...] = ()) -> Any:
    """Slim a part of a schema.

    Args:
        path: the definitions inside which the part stands.
    """
    if isinstance(node, list):
        return [_slim_node(item, definitions, path) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    node = cast("Schema", node)
    reference = node.get("$ref")
    if reference is not None:
        name = str(reference).rpartition("/")[2]
        if name in path:  # A recursive schema cannot say more than this without $defs.
            return {"type": "object"}
        additions = {key: value for key, value in node.items() if key != "$ref"}
        return _slim_node({**definitions[name], **additions}, definitions, (*path, name))
    slimmed: Schema = {}
    for key, value in node.items():
        if key in ("title", "$defs"):
            continue
        if key == "properties":
            properties = cast("dict[str, Any]", value)
            slimmed[key] = {name: _slim_node(child, definitions, path) for name, child in properties.items()}
        else:
            slimmed[key] = _slim_node(value, definitions, path)
    return _drop_implied(_drop_null(slimmed))


def _drop_null(schema: Schema) -> Schema:
    """Drop a default of null and the alternative that allows it; a single remaining alternative is merged."""
    is_optional = schema.get("default", ...) is None
    if is_optional:
        del schema["default"]
    if not isinstance(schema.get("anyOf"), list):
        return schema
    variants = [item for item in schema["anyOf"] if item != {"type": "null"}]
    if len(variants) == 1:
        others = {key: value for key, value in schema.items() if key != "anyOf"}
        return {**variants[0], **others}
    if is_optional:
        schema["anyOf"] = variants
    return schema


def _drop_implied(schema: Schema) -> Schema:
    """Drop what is understood without being said, and refuse unknown properties."""
    if "default" in schema and _is_empty_default(schema["default"]):
        del schema["default"]
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    if schema.get("additionalProperties") is True:
        del schema["additionalProperties"]
    return schema


def _is_empty_default(value: Any) -> bool:
    """Return whether an argument that is left out is read like `value` anyway."""
    return value is False or value in _EMPTY_DEFAULTS


def publish_schema(schema: Any) -> Any:
    """Return a slimmed `schema` as clients see it: without bounds that nobody exceeds on purpose.

    Those are lower bounds of 0 and 1, maximum lengths, and upper bounds from 1,000 on; the check names them.
    """
    if isinstance(schema, list):
        return [publish_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("Schema", schema).items()
    return {key: publish_schema(value) for key, value in members if not _is_far_bound(key, value)}


def _is_far_bound(key: str, value: Any) -> bool:
    if not isinstance(value, int):
        return False
    if key in _LOWER_BOUNDS:
        return value in (0, 1)
    return key == "maxLength" or (key == "maximum" and value >= _MIN_FAR_BOUND)


def check_arguments(tool: str, model: type[BaseModel], schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments for `tool`, validated against `model`; nested models stay models.

    Args:
        schema: the slimmed schema the client was shown; its words are used in the messages.

    Raises:
        Invalid: names every argument that is wrong, what was expected, and what was sent.
    """
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    renamed = _drop_host_arguments(_rename(arguments, properties), properties)
    mistakes = _name_mistakes(renamed, schema)
    values: dict[str, Any] = {}
    for name, value in renamed.items():
        if name not in properties or _is_left_out(name, value, model, schema):
            continue
        values[name] = _shorten_page(name, _interpret(value, properties[name]), properties)
        if not _is_unicode(values[name]):
            mistakes.append(f"`{name}` holds half of a character, a lone surrogate: send whole ones")
        mistakes.extend(_booleans_for_numbers(values[name], properties[name], f"`{name}`"))
    if mistakes:
        raise _refusal(tool, mistakes, _list_arguments(properties))
    try:
        checked = model.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        forms = [_describe_form(str(item["loc"][0]), properties) for item in errors if item["loc"]]
        advice = " ".join(dict.fromkeys(filter(None, forms))) or _list_arguments(properties)
        raise _refusal(tool, [_describe_mistake(dict(item), schema) for item in errors], advice) from None
    fields = type(checked).model_fields.items()
    return {field.alias or name: getattr(checked, name) for name, field in fields}


def _drop_host_arguments(arguments: Mapping[str, Any], properties: Mapping[str, Schema]) -> dict[str, Any]:
    """Return `arguments` without those that a host added and the tool does not have."""
    added = (_HOST_ARGUMENTS & arguments.keys()) - properties.keys()
    if added & _N8N_SIGNS:
        added |= _N8N_ARGUMENTS - properties.keys()
    return {name: value for name, value in arguments.items() if name not in added}


def _is_unicode(value: object) -> bool:
    """Return whether every text in a value can be stored as it is; half of a surrogate pair can't."""
    match value:
        case str():
            return well_formed(value) is value
        case list():
            return all(map(_is_unicode, cast("list[object]", value)))
        case dict():
            members = cast("dict[object, object]", value)
            return all(map(_is_unicode, members)) and all(map(_is_unicode, members.values()))
        case _:
            return True


def _refusal(tool: str, mistakes: Sequence[str], advice: str) -> Invalid:
    return Invalid(f"`{tool}` was not run: {'; '.join(dict.fromkeys(mistakes))}.", advice)


def _list_arguments(properties: Mapping[str, Schema]) -> str:
    return f"Its arguments are: {', '.join(f'`{name}`' for name in properties) or 'none'}."


def _shorten_page(name: str, value: object, properties: Mapping[str, Schema]) -> object:
    """Return the greatest size of a page for one beyond it, because the page names the cursor of the next."""
    if name not in _PAGE_SIZES or "cursor" not in properties or not isinstance(value, int):
        return value
    return min(value, properties[name].get("maximum", value))


def _describe_form(name: str, properties: Mapping[str, Schema]) -> str:
    """Return how an argument is written, if its description begins with that; else nothing."""
    form = _FORM.match(str(properties.get(name, {}).get("description", "")))
    if form is None:
        return ""
    return f"Write `{name}` as {form[0]}."


def _name_mistakes(arguments: Mapping[str, Any], schema: Schema) -> list[str]:
    """Return the messages for unknown argument names, and for required ones that are missing as well."""
    properties = cast("dict[str, Schema]", schema.get("properties", {}))
    unknown = [name for name in arguments if name not in properties]
    if not unknown:
        return []
    missing = [name for name in schema.get("required", ()) if name not in arguments]
    mistakes: list[str] = []
    for name in unknown:
        similar = difflib.get_close_matches(name, properties, n=1, cutoff=0.65)
        if len(unknown) == len(missing) == 1:  # Whatever it is called, it can only be the missing one.
            similar = missing
        mistake = f"there is no argument {quote(name)}"
        if similar:
            mistake += f" (did you mean `{similar[0]}`?)"
        mistakes.append(mistake)
        missing = [item for item in missing if item not in similar]
    mistakes.extend(f"`{name}` is required ({_describe_schema(properties[name])})" for name in missing)
    return mistakes


def _kinds(schema: Schema) -> set[Any]:
    return {schema.get("type"), *(item.get("type") for item in schema.get("anyOf", ()))} - {None}


def _may_be_left_out(name: str, schema: Schema) -> bool:
    return name not in schema.get("required", ()) and "null" not in _kinds(schema["properties"][name])


def _is_left_out(name: str, value: Any, model: type[BaseModel], schema: Schema) -> bool:
    """Return whether what was sent for an argument means that it is left out."""
    if value is None:
        return _may_be_left_out(name, schema)
    if name in schema.get("required", ()) or not _says_nothing(value, schema["properties"][name]):
        return False
    return name not in _find_empty_counts(model)


def _find_empty_counts(model: type[BaseModel]) -> set[str]:
    """Return the names of arguments whose empty value says something."""
    names: set[str] = set()
    for name, field in model.model_fields.items():
        if any(isinstance(item, EmptyCounts) for item in field.metadata):
            names.add(field.alias or name)
    return names


def _says_nothing(value: Any, schema: Schema) -> bool:
    """Return whether a client sent `value` for an optional argument that it wanted to leave out.

    Models in strict modes must send every argument, and have no null for one that is of a single type.
    """
    match value:
        case bool():
            return False
        case str():
            return value in NOTHING_WORDS and value not in schema.get("enum", ())
        case list() | dict():
            return not value
        case int() | float():
            return value == 0 and _lowest(schema) > 0
        case _:
            return False


def _lowest(schema: Schema) -> float:
    """Return the lower bound of a number; 0 if it has none."""
    bounds = [item.get("minimum", item.get("exclusiveMinimum", 0)) for item in (schema, *schema.get("anyOf", ()))]
    return max(bounds)


def _rename(members: Mapping[str, Any], properties: Mapping[str, Schema]) -> dict[str, Any]:
    """Return `members` with names in camel case or other case replaced by the property that they mean."""
    if members.keys() <= properties.keys():
        return dict(members)
    property_by_plain_name = {normalize_name(name): name for name in properties}
    new_names: dict[str, str] = {}
    for name in members:
        if name in properties:
            new_names[name] = name
        else:
            new_names[name] = property_by_plain_name.get(normalize_name(name), name)
    uses = Counter(new_names.values())
    renamed: dict[str, Any] = {}
    for name, value in members.items():
        # Two names of one property are ambiguous and stay.
        if uses[new_names[name]] == 1:
            renamed[new_names[name]] = value
        else:
            renamed[name] = value
    return renamed


def normalize_name(name: str) -> str:
    """Return `name` without case and without the separators between words."""
    return re.sub(r"[\s_-]", "", name).casefold()


def _interpret(value: Any, schema: Schema) -> object:
    """Return `value` in the shape that `schema` wants, if that is unambiguous; otherwise unchanged."""
    kinds = _kinds(schema)
    if isinstance(value, str) and kinds and kinds <= {"array", "object", "null"}:
        # Some hosts send an array or object argument as JSON inside a string.
        value = parse_json(value)
    if "array" in kinds and _is_single_item(value, schema):
        value = [value]
    match value:
        case list():
            return _interpret_list(cast("list[Any]", value), schema, kinds)
        case dict():
            return _interpret_members(cast("dict[str, Any]", value), schema)
        case bool():
            return value
        case int() if kinds == {"string"}:
            return str(value)
        case str() if value not in schema.get("enum", [value]):
            return _interpret_choice(value, schema["enum"])
        case _:
            return value


def _is_single_item(value: Any, schema: Schema) -> bool:
    """Return whether `value` is one item of the array that `schema` wants."""
    if _kinds(cast("Schema", schema.get("items", {}))) == {"object"}:
        return isinstance(value, dict) and value != {}
    return isinstance(value, str | int | float)


def _interpret_list(values: list[Any], schema: Schema, kinds: set[Any]) -> object:
    if kinds == {"string"} and len(values) == 1:
        # A list of one text stands for the text.
        if isinstance(values[0], str):
            return _interpret(values[0], schema)
        return values
    items = cast("Schema", schema.get("items", {}))
    if not items:
        return values
    return [_interpret(item, items) for item in values]


def _interpret_members(members: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    if "properties" not in schema:
        return members
    properties = cast("dict[str, Schema]", schema["properties"])
    interpreted: dict[str, Any] = {}
    for name, member in _rename(members, properties).items():
        if member is None and name in properties and _may_be_left_out(name, schema):
            continue
        interpreted[name] = _interpret(member, properties.get(name, {}))
    return interpreted


def _interpret_choice(value: str, choices: Sequence[Any]) -> object:
    """Return the choice that differs from `value` only in case and separators, if there is exactly one."""
    similar = [choice for choice in choices if normalize_name(str(choice)) == normalize_name(value)]
    if len(similar) == 1:
        return similar[0]
    return value


def parse_json(text: str) -> Any:
    """Return the array or object that `text` contains as JSON; otherwise `text`.

    Raises:
        Invalid: an object in it has a name twice; taking the last one would drop the other value.
    """
    try:
        value: object = json.loads(text, object_pairs_hook=_require_unique_names)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, list | dict):
        return cast("object", value)
    return text


def _require_unique_names(members: list[tuple[str, Any]]) -> dict[str, Any]:
    by_name = dict(members)
    if len(by_name) < len(members):
        uses = Counter(name for name, _ in members)
        repeated = next(name for name, times in uses.items() if times > 1)
        raise Invalid(f"An object in the JSON text has {quote(repeated)} twice.", "Give each an object of its own.")
    return by_name


def _booleans_for_numbers(value: Any, schema: Schema, location: str) -> list[str]:
    """Return the messages for booleans where numbers are expected, which pydantic would take for 0 and 1."""
    if isinstance(value, bool):
        kinds = _kinds(schema)
        if kinds & {"integer", "number"} and "boolean" not in kinds:
            return [f"{location} must be {_describe_schema(schema)}, not `{str(value).lower()}`"]
    mistakes: list[str] = []
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(cast("list[Any]", value)):
            mistakes.extend(_booleans_for_numbers(item, schema["items"], f"{location}[{index}]"))
    return mistakes


def _describe_mistake(error: dict[str, Any], schema: Schema) -> str:
    """Say in one line what pydantic's `error` means, in the words of the schema that the client was shown.

    Where an object is shown without its members, what is wrong with one of them is said in pydantic's words.
    """
    steps: tuple[str | int, ...] = error["loc"]
    if error["type"] == "extra_forbidden":
        *steps_of_object, name = steps
        return f"`{_locate(steps_of_object, schema).location}` has no field {quote(str(name))}"
    value = _locate(steps, schema)
    match error["type"]:
        case "missing":
            return f"`{value.location}` is required ({_describe_schema(value.schema)})"
        case "value_error" | "assertion_error":
            return f"`{value.location}`: {_describe_refusal(str(error['msg']), error['input'])}"
        case _:
            requirement = f"must be {_describe_schema(value.schema)}"
            if not value.is_shown:
                requirement = _describe_requirement(str(error["msg"]))
            return f"`{value.location}` {requirement}, not {_describe_value(error['input'])}"


class _LocatedValue(NamedTuple):
    """The value at a location of pydantic's, in the schema that the client was shown.

    Attributes:
        location: as a caller writes it, such as `edits[0].old_text`.
        schema: what the value may be; empty if that is not shown.
        is_shown: whether the objects around it are shown with their members.
    """

    location: str
    schema: Schema
    is_shown: bool


def _locate(steps: Sequence[str | int], schema: Schema) -> _LocatedValue:
    """Follow a location of pydantic's through a schema.

    The steps that only name one of several allowed shapes are no members, and left out.
    """
    location = ""
    is_shown = True
    for step in steps:
        if isinstance(step, int):
            location += f"[{step}]"
            schema = schema.get("items", {})
            continue
        member = _member_schema(schema, step)
        if member is not None:
            location = f"{location}.{step}" if location else step
            schema = member
        elif not is_shown or _is_of_any_members(schema):
            is_shown = False
            schema = {}
            if step != _KEY_STEP:
                location += f".{step}"
    return _LocatedValue(location, schema, is_shown)


def _describe_requirement(message: str) -> str:
    """Return what pydantic says a value should be or have, as it stands behind the value's name."""
    _, should, requirement = message.partition(" should ")
    if not should:
        return f"is refused ({message})"
    # Of a list it says how long that is.
    return f"must {requirement.partition(' after validation')[0]}"


def _is_of_any_members(schema: Schema) -> bool:
    """Return whether an object is shown without its members."""
    return schema.get("type") == "object" and not schema.get("properties")


def _member_schema(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a member of an object; None if `schema` has no such member."""
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return cast("Schema", additional)
    return None


def _describe_refusal(message: str, value: Any) -> str:
    """Return the text of a validator's error, with the value that was sent if the text says what it must be."""
    # Pydantic puts "Value error, " before the text.
    text = message.partition(", ")[2] or message
    requirement, separator, advice = text.partition("; ")
    if requirement.startswith("must be "):
        requirement += f", not {_describe_value(value)}"
    return f"{requirement}{separator}{advice}"


def _describe_value(value: Any) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return "an object"
        case []:
            return "an empty array"
        case list():
            return "an array"
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


def _describe_schema(schema: Schema) -> str:
    """Say in a few words what `schema` allows."""
    if "enum" in schema:
        return "one of " + ", ".join(f"`{item}`" for item in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return " or ".join(_describe_schema(item) for item in schema["anyOf"])
    kind = str(schema.get("type"))
    description = _NOUNS.get(kind, "a valid value")
    if "pattern" in schema:
        description += f" matching `{schema['pattern']}`"
    if kind == "array":
        description += _describe_items(schema.get("items"))
    return description + _describe_bounds(schema, kind)


def _describe_items(items: Any) -> str:
    """Return ` of strings` and the like; nothing if the items have no simple plural."""
    if not isinstance(items, dict):
        return ""
    kind = str(cast("Schema", items).get("type"))
    noun = _NOUNS.get(kind, "a value").partition(" ")[2]
    if not noun or " " in noun:
        return ""
    return f" of {noun}s"


def _describe_bounds(schema: Schema, kind: str) -> str:
    low = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
    high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    unit = {"string": " characters", "array": " items"}.get(kind, "")
    if low is not None and high is not None:
        preposition = "of" if unit else "from"
        return f" {preposition} {low} to {high}{unit}"
    if low is not None:
        if low == 1:
            unit = unit.removesuffix("s")
        return f", at least {low}{unit}"
    if high is not None:
        return f", at most {high}{unit}"
    return ""
