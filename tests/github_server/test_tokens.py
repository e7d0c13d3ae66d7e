"""What the lists of tools cost on the wire, in bytes; four are about one token."""

import pytest

from github_server.oracle import Oracle
from github_server.serving import EVERYTHING, refused, served

READING, WRITING, ALL = 18_550, 31_350, 65_600


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "most"), [((), READING), (("--write",), WRITING), (EVERYTHING, ALL)], ids=["read", "write", "all"]
)
async def test_the_list_of_tools_stays_small(arguments: tuple[str, ...], most: int, oracle: Oracle) -> None:
    tools, cursor, size = [], None, 0
    async with served(oracle, *arguments) as client:
        while True:
            page = await client.list_tools(cursor=cursor)
            # As the server writes it: compact, and text as UTF-8.
            size += len(page.model_dump_json(by_alias=True, exclude_none=True).encode())
            tools += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
    assert size <= most, size
    assert len(set(tools)) == len(tools) > 15


@pytest.mark.anyio
async def test_what_is_no_longer_published_is_still_checked(oracle: Oracle) -> None:
    async with served(oracle, *EVERYTHING) as client:
        for arguments, words in [
            ({"number": 0}, "`number`: must be 1 or more"),
            ({"number": 1, "limit": 1001}, "`limit`: must be an integer from 1 to 1000"),
            ({"number": 1, "limit": -1}, "`limit`: must be an integer from 1 to 1000"),
        ]:
            assert words in await refused(client, "list_comments", repo="octo/app", **arguments)
        long = {"title": "x" * 1001, "body": "x" * 65_537}
        said = await refused(client, "create_issue", repo="octo/app", **long)
        assert "`title`: must have at most 1000 characters" in said
        assert "`body`: must have at most 65536 characters" in said
        commit = {"repo": "octo/app", "branch": "main"}
        said = await refused(client, "write_files", **commit, message="", files=[])
        assert "`message`: must have 1 to 10000" in said and "`files`: must be an array of 1 to 100" in said
    assert oracle.seen == []
