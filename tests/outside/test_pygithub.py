"""PyGithub as an independent client: its typed objects read from the same oracle, and agree with our answers."""

from collections.abc import Callable, Generator
from typing import Any

import anyio.to_thread
import pytest
from github import Auth, Github
from github.Repository import Repository
from mcp import Client

from github_server.oracle import Oracle
from github_server.serving import TOKEN, call, served
from github_server.world import comment, issue, sample
from mcp_github.client.response import API_VERSION

O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line


@pytest.fixture
def theirs(oracle: Oracle) -> Generator[Repository]:
    with Github(
        auth=Auth.Token(TOKEN), base_url=oracle.url, retry=None, api_version=API_VERSION, per_page=30, lazy=True,
        seconds_between_requests=0, seconds_between_writes=0,
    ) as client:  # fmt: skip
        yield client.get_repo("octo/app")


async def rows(client: Client, tool: str, fields: str, **arguments: Any) -> list[list[Any]]:
    """All pages of a list."""
    found, cursor = list[list[Any]](), None
    while True:
        page = await call(client, tool, **O, **arguments, fields=fields, **({"cursor": cursor} if cursor else {}))
        found += page["rows"]
        if not (cursor := page.get("cursor")):
            return found


LISTS: list[tuple[str, dict[str, Any], str, Callable[[Repository], Any], Callable[[Any], list[Any]]]] = [
    ("list_issues", {}, "number,title,state,author,labels,assignees,comments,locked,url",
     lambda repo: repo.get_issues(state="open"),
     lambda one: [one.number, one.title, one.state, one.user.login, [label.name for label in one.labels],
                  [person.login for person in one.assignees], one.comments, one.locked, one.html_url]),
    ("list_pull_requests", {}, "number,title,state,draft,author,head,head_sha,base,labels,reviewers,url",
     lambda repo: repo.get_pulls(state="open"),
     lambda one: [one.number, one.title, one.state, one.draft, one.user.login, one.head.ref, one.head.sha, one.base.ref,
                  [label.name for label in one.labels], [person.login for person in one.requested_reviewers],
                  one.html_url]),
    ("list_comments", {"number": 3}, "id,author,body,url",
     lambda repo: repo.get_issue(3).get_comments(),
     lambda one: [one.id, one.user.login, one.body, one.html_url]),
    ("list_commits", {}, "sha,message,name,url",
     lambda repo: repo.get_commits(),
     lambda one: [one.sha, one.commit.message, one.commit.author.name, one.html_url]),
    ("list_refs", {}, "name,sha,protected",
     lambda repo: repo.get_branches(),
     lambda one: [one.name, one.commit.sha, one.protected]),
    ("list_releases", {}, "id,tag_name,name,draft,prerelease,author,target,url",
     lambda repo: repo.get_releases(),
     lambda one: [one.id, one.tag_name, one.name, one.draft, one.prerelease, one.author.login, one.target_commitish,
                  one.html_url]),
]  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments", "fields", "listed", "row"), LISTS, ids=[item[0] for item in LISTS])
async def test_lists_agree_field_by_field(
    tool: str, arguments: dict[str, Any], fields: str, listed: Callable[[Repository], Any],
    row: Callable[[Any], list[Any]], oracle: Oracle, theirs: Repository,
) -> None:  # fmt: skip
    numbers = range(1, 71)
    # GitHub's example is open and merged at once.
    pull = {**sample("pulls/list")[0], "merged_at": None}
    commit, release = sample("repos/get-commit"), sample("repos/get-release")
    branch = sample("repos/list-branches")[0]
    oracle.pages("/repos/octo/app/issues", [issue(n) for n in numbers])
    oracle.pages("/repos/octo/app/pulls", [{**pull, "number": n, "title": f"Pull {n}"} for n in numbers])
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3, url=f"{oracle.url}/repos/octo/app/issues/3"))
    oracle.pages("/repos/octo/app/issues/3/comments", [comment(n) for n in numbers])
    oracle.pages("/repos/octo/app/commits", [{**commit, "sha": f"{n:040x}"} for n in numbers])
    oracle.pages("/repos/octo/app/branches", [{**branch, "name": f"b{n}", "protected": n % 2 == 0} for n in numbers])
    oracle.pages("/repos/octo/app/releases", [{**release, "id": n, "tag_name": f"v{n}"} for n in numbers])
    async with served(oracle) as client:
        ours = await rows(client, tool, fields, **arguments)
    assert len(ours) == 70
    assert ours == await anyio.to_thread.run_sync(lambda: [row(one) for one in listed(theirs)])
