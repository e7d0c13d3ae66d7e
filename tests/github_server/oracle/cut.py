"""Makes the cuts of GitHub's own descriptions that the oracle judges by, from the two packages that publish them.

    python tests/github_server/oracle/cut.py

fetches both packages of the versions below from npm and writes `data/rest.json.xz` and `data/graphql.xz`, the same
bytes each time. Kept of the REST description: the operations of the areas below with their parameters, bodies and
status codes, and one example answer each. Kept of the GraphQL schema: everything but prose. Both are MIT licensed, see
`data/LICENSES.md`.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

REST, GRAPHQL = "@octokit/openapi@23.0.2", "@octokit/graphql-schema@15.26.1"
AREAS = {
    "actions", "activity", "agents", "apps", "checks", "code-quality", "code-scanning", "dependabot", "gists", "git",
    "interactions", "issues", "meta", "orgs", "projects", "pulls", "rate-limit", "reactions", "repos", "search",
    "secret-scanning", "security-advisories", "teams", "users",
}  # fmt: skip
DATA = Path(__file__).parent / "data"
AGENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        name: {"type": "string"}
        for name in ("target_repo", "base_branch", "custom_instructions", "custom_agent", "model")
    },
}
"""How Copilot is to work on an issue."""
_PROSE = {"description", "summary", "externalDocs", "title", "example", "examples", "x-github-breaking-changes"}


def fetch(package: str, member: str) -> bytes:
    """The file `member` of the npm `package`."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
            file = archive.extractfile(f"package/{member}")
            assert file is not None
            return file.read()


class Cutter:
    """Walks the description and keeps what judges a request or shapes an answer."""

    def __init__(self, whole: dict[str, Any]) -> None:
        self.whole = whole
        self.schemas: dict[str, Any] = {}

    def cut(self) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        for path, operations in self.whole["paths"].items():
            kept = {
                verb: self.operation(operation)
                for verb, operation in operations.items()
                if isinstance(operation, dict) and operation.get("tags", [""])[0] in AREAS
            }
            if kept:
                paths[path] = kept
        # The schema forbids what its own example `deleteFile` does, and the prose says.
        files = paths["/gists/{gist_id}"]["patch"]["body"]["schema"]["anyOf"][0]["properties"]["files"]
        files["additionalProperties"] = {"anyOf": [files["additionalProperties"], {"type": "null"}]}
        # Only the pages about Copilot have it (changelog of 2025-12-03).
        for path, verb in (("", "patch"), ("/assignees", "post")):
            body = paths[f"/repos/{{owner}}/{{repo}}/issues/{{issue_number}}{path}"][verb]["body"]["schema"]
            body["properties"]["agent_assignment"] = AGENT
        # Only the pages about code scanning have it for repositories too (changelog of 2022-11-24).
        of_organisation = paths["/orgs/{org}/code-scanning/alerts"]["get"]["parameters"]
        of_repository = paths["/repos/{owner}/{repo}/code-scanning/alerts"]["get"]["parameters"]
        of_repository += [item for item in of_organisation if item["name"] == "severity"]
        return {"version": self.whole["info"]["version"], "paths": paths, "schemas": self.schemas}

    def operation(self, operation: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {"id": operation["operationId"], "parameters": []}
        for item in operation.get("parameters", []):
            parameter = self.found(item)
            kept["parameters"].append(
                {
                    "name": parameter["name"],
                    "in": parameter["in"],
                    "required": parameter.get("required", False),
                    "schema": self.schema(parameter["schema"]),
                }
            )
        if "requestBody" in operation:
            body = self.found(operation["requestBody"])
            content = body["content"].get("application/json")
            if content is not None:
                kept["body"] = {"required": body.get("required", False), "schema": self.schema(content["schema"])}
        kept["answers"] = {}
        for status, item in operation.get("responses", {}).items():
            if status[0] in "23":
                kept["answers"][status] = self.answer(self.found(item))
        return kept

    def answer(self, response: dict[str, Any]) -> Any:
        examples: list[Any] = []
        for media in response.get("content", {}).values():
            # Some examples of lists show one item of it.
            listed = self.found(media.get("schema", {})).get("type") == "array"
            for example in media.get("examples", {}).values():
                value = self.whole_value(self.found(example).get("value"))
                examples.append([value] if listed and isinstance(value, dict) else value)
        # Of several, the fullest: others show a media type or a plan.
        return shortened(max(examples, key=lambda value: len(json.dumps(value)), default=None))

    def whole_value(self, value: Any) -> Any:
        """The value of an example, some of which stand elsewhere."""
        if isinstance(value, list):
            return [self.whole_value(item) for item in value]
        if isinstance(value, dict) and "$ref" in value:
            return self.whole_value(self.found(value).get("value"))
        return value

    def found(self, item: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in item:
            _, _, kind, name = item["$ref"].split("/")
            item = self.whole["components"][kind][name]
        return item

    def schema(self, node: Any) -> Any:
        """`node` without prose, its references among `self.schemas`, OpenAPI's `nullable` in words of JSON Schema."""
        if isinstance(node, list):
            return [self.schema(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name not in self.schemas:
                self.schemas[name] = None
                self.schemas[name] = self.schema(self.whole["components"]["schemas"][name])
            return {"$ref": f"#/schemas/{name}"}
        kept: dict[str, Any] = {}
        for key, value in node.items():
            if key == "properties":
                kept[key] = {name: self.schema(child) for name, child in value.items()}
            elif key in ("enum", "default", "required", "const"):
                kept[key] = value
            elif key not in _PROSE and key != "nullable" and not key.startswith("x-"):
                kept[key] = self.schema(value)
        if node.get("nullable"):
            if "enum" in kept and None not in kept["enum"]:
                kept["enum"] = [*kept["enum"], None]
            return {"anyOf": [kept, {"type": "null"}]}
        return kept


def shortened(value: Any) -> Any:
    """`value` with no list longer than two and no text longer than 2,000 characters."""
    if isinstance(value, list):
        return [shortened(item) for item in value[:2]]
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return value[:2000] if isinstance(value, str) else value


def without_prose(schema: str) -> str:
    """The GraphQL schema `schema`, in its own language, without descriptions."""
    from graphql import GraphQLSchema, build_schema, print_schema
    from graphql.utilities import lexicographic_sort_schema

    built: GraphQLSchema = build_schema(schema, assume_valid=True)
    for kind in built.type_map.values():
        kind.description = None
        for field in getattr(kind, "fields", {}).values():
            field.description = None
            for argument in getattr(field, "args", {}).values():
                argument.description = None
        for value in getattr(kind, "values", {}).values():
            value.description = None
    return print_schema(lexicographic_sort_schema(built))


def write(name: str, text: str) -> None:
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    (DATA / name).write_bytes(packed)
    print(f"{name}: {len(text):,} characters in {len(packed):,} bytes")


def main() -> None:
    whole = json.loads(fetch(REST, "generated/api.github.com.json"))
    write("rest.json.xz", json.dumps(Cutter(whole).cut(), separators=(",", ":"), sort_keys=True))
    write("graphql.xz", without_prose(fetch(GRAPHQL, "schema.graphql").decode()))


if __name__ == "__main__":
    sys.exit(main())
