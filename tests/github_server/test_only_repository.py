"""A server of one repository, whose calls need not name it."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, call, refused, served
from github_server.world import issue

HERE = "/repos/octo/app"
ONE = (*EVERYTHING, "--repos", "octo/app")
# What makes or deletes a repository, or copies one, names it.
_NAMED = {"copy_repository", "create_repository", "delete_repository"}


async def tools_that_require_repo(oracle: Oracle, *arguments: str) -> set[str]:
    """The names of tools that are not called without a repository."""
    names: set[str] = set()
    cursor = None
    async with served(oracle, *arguments) as client:
        while True:
            page = await client.list_tools(cursor=cursor)
            names |= {tool.name for tool in page.tools if "repo" in tool.input_schema.get("required", ())}
            cursor = page.next_cursor
            if not cursor:
                return names


@pytest.mark.anyio
async def test_of_the_only_repository_the_name_can_be_left_out(oracle: Oracle) -> None:
    oracle.answer("GET", f"{HERE}/issues/7", issue(7, title="Broken"))
    oracle.answer("PATCH", f"{HERE}/issues/7", issue(7, title="Mended"))
    async with served(oracle, *ONE) as client:
        assert "`repo` can be left out" in str(client.instructions)
        for named in ({}, {"repo": "octo/app"}, {"Repo": "octo/app"}, {"repo": None}, {"repo": ""}, {"Repo": "null"}):
            assert (await call(client, "get_issue", number=7, **named))["data"]["title"] == "Broken"
        done = await call(client, "edit_issue", number=7, title="Mended")
        assert done["uri"] == "github://octo/app/issues/7"
        script = "print(JSON.parse(get_issue({number: 7})).data.title)"
        assert "Broken" in await call(client, "call_tools", script=script)
    assert await tools_that_require_repo(oracle, *ONE) == _NAMED


@pytest.mark.anyio
async def test_another_name_is_not_taken_for_the_only_repository(oracle: Oracle) -> None:
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"repo": "octo/other"}, "not served here"), ({"repository": "octo/other"}, "no argument `repository`"),
        ({"number": "https://github.com/octo/other/issues/7"}, "octo/other"),
    ]  # fmt: skip
    async with served(oracle, *ONE) as client:
        for arguments, words in mistakes:
            assert words in await refused(client, "get_issue", **{"number": 7, **arguments})
        for name in sorted(_NAMED):
            assert "`repo` is required" in await refused(client, name)
    assert oracle.seen == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    "arguments",
    [(), ("--repos", "octo/*"), ("--repos", "octo/app", "--repos", "octo/web"), ("--repos", "octo/app,octo/*")],
    ids=["all", "owner", "two", "both"],
)
async def test_where_others_are_served_a_name_is_required(arguments: tuple[str, ...], oracle: Oracle) -> None:
    async with served(oracle, *arguments) as client:
        assert "left out" not in str(client.instructions)
        assert "`repo` is required" in await refused(client, "get_issue", number=7)
    assert "get_issue" in await tools_that_require_repo(oracle, *arguments)


@pytest.mark.anyio
async def test_a_proxy_that_decides_by_headers_sees_the_name_of_the_only_repository(oracle: Oracle) -> None:
    one = ("--repos", "octo/app", "--param-headers", "--transport", "http")
    assert "get_issue" in await tools_that_require_repo(oracle, *one)
    async with served(oracle, *one) as client:
        assert "left out" not in str(client.instructions)
