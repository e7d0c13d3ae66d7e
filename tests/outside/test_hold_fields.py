"""The command that holds what we read against GitHub's description notices a name that is nowhere in it."""

import json
from typing import Any

import pytest

from github_server.oracle.cut import REST, fetch
from github_server.test_every_tool import CALLS
from outside.hold_fields import Schemas, deprecated_operations, judge_requests, read_fields, unknown_fields

DESCRIPTION: dict[str, Any] = {
    "paths": {"/issues/{number}": {"get": {"responses": {
        "200": {"content": {"application/json": {"schema": {"allOf": [{"$ref": "#/components/schemas/issue"}]}}}},
        "404": {"content": {"application/json": {"schema": {"properties": {"message": {}}}}}},
    }}}},
    "components": {"schemas": {
        "issue": {"properties": {"title": {}, "user": {"$ref": "#/components/schemas/user"}}},
        "user": {"properties": {"login": {}, "best_friend": {"anyOf": [{"$ref": "#/components/schemas/user"}]}}},
    }},
}  # fmt: skip


def test_a_name_that_no_answer_has_is_found() -> None:
    read = {"GET /issues/{number}": {"title", "login", "best_friend", "message", "logn"}}
    assert unknown_fields(read, Schemas(DESCRIPTION)) == ["GET /issues/{number}: logn", "GET /issues/{number}: message"]


@pytest.mark.anyio
async def test_what_tools_look_up_is_noted() -> None:
    read = await read_fields([("get_issue", {"repo": "octo/app", "number": 3})])
    names = read["GET /repos/{owner}/{repo}/issues/{issue_number}"]
    assert {"title", "labels", "login", "issue_field_values", "sub_issues_summary"} <= names


@pytest.mark.anyio
async def test_what_requests_are_wrong_and_what_is_given_up_is_found() -> None:
    operations, wrong = await judge_requests([("get_issue", {"repo": "octo/app", "number": 3})])
    assert "GET /repos/{owner}/{repo}/issues/{issue_number}" in operations and wrong == []
    old = {"paths": {"/a": {"get": {"deprecated": True}}, "/b": {"get": {}}}}
    assert deprecated_operations(["GET /a", "GET /b", "GET /c"], old) == ["GET /a", "GET /c"]


@pytest.mark.weekly
@pytest.mark.process
@pytest.mark.anyio
async def test_every_request_and_every_field_that_is_read_is_described() -> None:
    """The whole description comes from npm."""
    description = json.loads(fetch(REST, "generated/api.github.com.json"))
    operations, wrong = await judge_requests(CALLS)
    assert wrong == [] and deprecated_operations(operations, description) == [] and len(operations) >= 150
    read = await read_fields(CALLS)
    assert unknown_fields(read, Schemas(description)) == []
    assert sum(map(len, read.values())) > 700
