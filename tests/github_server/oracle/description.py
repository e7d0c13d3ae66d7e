"""GitHub's own REST description, as a judge of requests and a source of example answers."""

import json
import lzma
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from jsonschema import Draft202012Validator

DATA = Path(__file__).parent / "data"
_LONG = {"path", "ref", "basehead", "branch", "tag", "tree_sha", "dir", "base", "head"}
"""Parameters of a path that may hold slashes; the description can't say so."""
_ACCEPTS = ("application/vnd.github", "application/json")


def _hole(name: str) -> str:
    # Without a path, contents are those of the top: GitHub's prose says so, and its description can't.
    return f"(?P<{name}>{'.*' if name == 'path' else '.+' if name in _LONG else '[^/]+'})"


@dataclass(frozen=True)
class Operation:
    """One operation of the description."""

    verb: str
    template: str
    pattern: re.Pattern[str]
    about: dict[str, Any]

    @property
    def parameters(self) -> list[dict[str, Any]]:
        return self.about["parameters"]


@dataclass(frozen=True)
class Verdict:
    """What is said of a request: the operation it is, its path's values, and what is wrong with it."""

    operation: Operation | None
    values: dict[str, str]
    complaints: list[str]


@cache
def _whole() -> dict[str, Any]:
    return json.loads(lzma.decompress((DATA / "rest.json.xz").read_bytes()))


@cache
def operations() -> list[Operation]:
    """All operations, those with the fewest holes in their path first."""
    found: list[Operation] = []
    for template, verbs in _whole()["paths"].items():
        parts = re.split(r"\{(\w+)\}", template)
        pattern = "".join(re.escape(part) if not number % 2 else _hole(part) for number, part in enumerate(parts))
        for verb, about in verbs.items():
            found.append(Operation(verb.upper(), template, re.compile(pattern), about))
    return sorted(found, key=lambda item: (item.template.count("{"), -len(item.template)))


def judged(verb: str, target: str, headers: dict[str, str], body: bytes) -> Verdict:
    """What is wrong with a request."""
    path, _, query = target.partition("?")
    hits = [(item, found) for item in operations() if item.verb == verb and (found := item.pattern.fullmatch(path))]
    if not hits:
        return Verdict(None, {}, [f"no operation {verb} {path}"])
    operation, found = hits[0]
    complaints: list[str] = []
    values = {name: unquote(value) for name, value in found.groupdict().items()}
    for name, value in values.items():
        if value and any(part in (".", "..", "") for part in value.split("/")):
            complaints.append(f"`{name}` of the path is {value!r}")
        complaints += _parameter(operation, "path", name, value)
    asked = parse_qsl(query, keep_blank_values=True)
    for name, value in asked:
        complaints += _parameter(operation, "query", name, value)
    given = {name for name, _ in asked}
    complaints += [
        f"`{item['name']}` is required"
        for item in operation.parameters
        if item["in"] == "query" and item["required"] and item["name"] not in given
    ]
    if not headers.get("accept", "").startswith(_ACCEPTS):
        complaints.append(f"accepts {headers.get('accept')}")
    if not headers.get("user-agent"):
        complaints.append("no user agent")
    if headers.get("x-github-api-version") != "2022-11-28":
        complaints.append(f"version {headers.get('x-github-api-version')}")
    return Verdict(operation, values, complaints + _body(operation, headers, body))


def example(operation: Operation) -> tuple[int, Any]:
    """The status and the answer of an example of `operation`; None without one."""
    answers = operation.about["answers"]
    status = next((item for item in answers if item[0] == "2"), "200")
    return int(status), answers.get(status)


def _parameter(operation: Operation, place: str, name: str, value: str) -> list[str]:
    known = [item for item in operation.parameters if item["in"] == place and item["name"] == name]
    if not known and name == "after" and place == "query":
        # The links in GitHub's own answers have it in many lists whose description lacks it.
        return []
    if not known:
        return [f"there is no `{name}` in the {place}"]
    schema = known[0]["schema"]
    tries: list[Any] = [value, value.split(",")]
    tries += [int(value)] if re.fullmatch(r"-?\d+", value) else []
    tries += {"true": [True], "false": [False]}.get(value, [])
    if not any(_valid(schema, item) for item in tries):
        return [f"`{name}` in the {place} is {value!r}"]
    if name == "per_page" and not 1 <= int(value) <= 100:
        return [f"`per_page` is {value}"]
    return []


def _body(operation: Operation, headers: dict[str, str], body: bytes) -> list[str]:
    wanted = operation.about.get("body")
    if not body:
        return ["the body is missing"] if wanted and wanted["required"] else []
    if wanted is None:
        return ["a body where none is described"]
    if not headers.get("content-type", "").startswith("application/json"):
        return [f"content type {headers.get('content-type')}"]
    try:
        data = json.loads(body)
    except ValueError:
        return ["the body is no JSON"]
    errors = [f"body{''.join(f'.{part}' for part in error.path)}: {error.message[:200]}" for error in
              Draft202012Validator(_rooted(wanted["schema"])).iter_errors(data)]  # fmt: skip
    return errors + _unknown(wanted["schema"], data, "body")


def _valid(schema: Any, value: Any) -> bool:
    return Draft202012Validator(_rooted(schema)).is_valid(value)


def _rooted(schema: Any) -> Any:
    return {**schema, "schemas": _whole()["schemas"]}


def _unknown(schema: Any, value: Any, where: str) -> list[str]:
    """Names in `value` that `schema` does not have: GitHub ignores them, so nobody would notice the mistake."""
    variants = _variants(schema)
    if isinstance(value, list):
        items = [variant["items"] for variant in variants if "items" in variant]
        return [complaint for item in value for one in items[:1] for complaint in _unknown(one, item, f"{where}[]")]
    if not isinstance(value, dict):
        return []
    properties: dict[str, Any] = {}
    for variant in variants:
        if variant.get("additionalProperties"):
            return []
        properties |= variant.get("properties", {})
    if not properties:
        return []
    found = [f"{where} has no `{name}`" for name in value if name not in properties]
    for name, child in value.items():
        if name in properties:
            found += _unknown(properties[name], child, f"{where}.{name}")
    return found


def _variants(schema: Any) -> list[dict[str, Any]]:
    if "$ref" in schema:
        return _variants(_whole()["schemas"][schema["$ref"].rpartition("/")[2]])
    parts = [part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, [])]
    return [schema, *(variant for part in parts for variant in _variants(part))]
