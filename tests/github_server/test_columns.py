"""The columns that descriptions name are those of answers, so that a script can be written before the first look."""

import json
import re
from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served
from github_server.world import issue, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"
# The tools whose `fields` name columns, each with what shows objects of the kind that is named.
LISTS: dict[str, dict[str, Any]] = {
    "search_github": {**O, "kind": "issues", "query": "crash"},
    "list_files": O,
    "list_commits": O,
    "list_refs": O,
    "list_issues": O,
    "list_comments": {**O, "number": 3},
    "list_pull_requests": O,
    "list_reviews": {**O, "number": 5},
    "list_releases": O,
    "list_actions": O,
}
_COLUMNS = re.compile(r"Columns(?: of \w+)?, by default ([\w,]+)(?:; also ([\w,]+))?")


@pytest.mark.anyio
async def test_the_columns_of_a_description_are_those_of_answers(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/contents/", {"type": "dir", "entries": [{"path": "a.py", "type": "file"}]})
    oracle.pages(f"{HERE}/pulls", [{**sample("pulls/list")[0], "node_id": "PR_5"}])
    oracle.graphql("PullFacts", {"nodes": [{"__typename": "PullRequest", "id": "PR_5"}]})
    async with served(oracle, *EVERYTHING) as client:
        described: dict[str, list[str]] = {}
        for tool in (await client.list_tools()).tools:
            text = tool.input_schema["properties"].get("fields", {}).get("description", "")
            if match := _COLUMNS.fullmatch(text):
                default, others = (names.split(",") if names else [] for names in match.groups())
                shown = await call(client, tool.name, **LISTS[tool.name])
                assert shown["columns"] == default, tool.name
                described[tool.name] = [*default, *others]
        assert described.keys() == LISTS.keys()
        for name, columns in described.items():
            found = await call(client, name, **LISTS[name], fields=",".join(reversed(columns)))
            assert found["columns"] == columns[::-1], name
            assert "Not told in a list" not in found.get("note", ""), (name, found["note"])


@pytest.mark.anyio
async def test_one_object_has_the_fields_of_its_list(oracle: Oracle) -> None:
    async with served(oracle) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, number in (("get_issue", 3), ("get_pull_request", 5)):
            text = tools[name].input_schema["properties"]["fields"]["description"]
            list_name = text.removeprefix("Those of `").removesuffix("`")
            names = tools[list_name].input_schema["properties"]["fields"]["description"]
            match = _COLUMNS.fullmatch(names)
            assert match is not None
            default = match[1].split(",")
            found = await call(client, name, **O, number=number, fields=default)
            assert found["data"].keys() <= set(default) and found["data"]["number"]


@pytest.mark.anyio
async def test_what_other_descriptions_name_is_there(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/commits/main/status", {"state": "success", "statuses": []})
    changed = {"filename": "a.py", "status": "modified", "additions": 2, "deletions": 1}
    oracle.answer("GET", f"{HERE}/commits/main", {**sample("repos/get-commit"), "files": [changed]})
    async with served(oracle) as client:
        tools = {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}
        found = await call(client, "list_checks", **O, ref="main")
        assert f"Columns: {', '.join(found['columns'])}." in tools["list_checks"]
        for kind, words in (("labels", "labels"), ("milestones", "milestones (open and closed)"), ("assignees",) * 2):
            found = await call(client, "list_issue_options", **O, kind=kind)
            assert f"f {words} {', '.join(found['columns'])}" in tools["list_issue_options"]
        assert oracle.sent("GET", "/milestones")[-1].query["state"] == "all"
        found = await call(client, "get_commit", **O, ref="main")
        assert f"`{found['data']['files'][0]}`" in tools["get_commit"]
        found = await call(client, "get_repository", **O)
        assert all(name in found["data"] for name in ("description", "default_branch", "visibility", "permissions"))


@pytest.mark.anyio
async def test_the_instructions_say_what_form_answers_have(oracle: Oracle) -> None:
    oracle.pages(f"{HERE}/issues", [issue(number) for number in (3, 4)])
    async with served(oracle) as client:
        text = client.instructions or ""
        first = await call(client, "list_issues", **O, limit=1)
        last = await call(client, "list_issues", **O)
        one = await call(client, "get_issue", **O, number=3)
    named = set(re.findall("`([a-z]+)`", text))
    assert named == {"trust", "columns", "rows", "cursor", "total", "limit", "data"}
    assert first.keys() >= {"columns", "rows", "cursor"} and "total" not in first
    assert last.keys() >= {"columns", "rows", "total"} and "cursor" not in last
    assert one["data"]["number"] == 3 and "trust" in last["columns"]


@pytest.mark.anyio
async def test_the_instructions_say_what_cells_are(oracle: Oracle) -> None:
    milestone = {**sample("issues/get-milestone"), "title": "2.4.1"}
    long = issue(3, body="b" * 9000, milestone=milestone, labels=[{"name": "bug"}], assignees=[{"login": "ada"}])
    oracle.pages(f"{HERE}/issues", [long])
    oracle.answer("GET", f"{HERE}/issues/3", long)
    async with served(oracle) as client:
        text = client.instructions or ""
        found = await call(client, "list_issues", **O, fields="labels,assignees,milestone,state,created_at,body")
        labels, assignees, title, state, created_at, body = found["rows"][0]
        whole = await call(client, "list_issues", **O, fields="body", limit=1000)
        one = await call(client, "get_issue", **O, number=3)
        script = "return list_issues.all({repo: 'octo/app', fields: 'number,body'})[0].body.length"
        in_script = (await call(client, "call_tools", script=script)).splitlines()[-1]
        assert "must be an integer from 1 to 1000" in await refused(client, "list_issues", **O, limit=1001)
    assert "`limit` is at most 1000" in text
    assert "lists of texts, a milestone is its title, times are UTC, states lower case" in text
    assert (labels, assignees, title, state) == (["bug"], ["ada"], "2.4.1", "open") and created_at.endswith("Z")
    assert "above 1500 characters (of one object 8000) ends in `[N more characters]`, unless it is the only" in text
    assert in_script == "9000"
    assert (body.count("b"), one["data"]["body"].count("b"), whole["rows"]) == (1500, 8000, [["b" * 9000]])


@pytest.mark.anyio
async def test_a_script_gets_no_address_to_follow_and_empty_lists(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/3", issue(3, assignees=[]))
    async with served(oracle) as client:
        one = await call(client, "get_issue", **O, number=3)
        script = "const {uri, data} = JSON.parse(get_issue({repo: 'octo/app', number: 3})); return [uri ?? 0, data.url]"
        empty = "return JSON.parse(get_issue({repo: 'octo/app', number: 3})).data.assignees.length"
        length = await call(client, "call_tools", script=empty)
        in_script = json.loads(await call(client, "call_tools", script=script))
    assert one["uri"] == "github://octo/app/issues/3"
    assert in_script == [0, one["data"]["url"]]
    assert length == "0\n" and "assignees" not in one["data"]
