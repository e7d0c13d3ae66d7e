"""PyGithub as an independent client of writes: what it sends for a change, our tools send too, field by field."""

from collections.abc import Callable, Generator
from typing import Any

import anyio.to_thread
import pytest
from github import Auth, Github
from github.GitRef import GitRef
from github.Repository import Repository

from github_server.oracle import Oracle, Seen
from github_server.serving import EVERYTHING, TOKEN, call, served
from github_server.test_every_tool import prepared
from github_server.world import SHA, issue, sample
from mcp_github.client.response import API_VERSION

O = {"repo": "octo/app"}  # noqa: E741 - it stands in every line


@pytest.fixture
def github(oracle: Oracle) -> Generator[Github]:
    with Github(
        auth=Auth.Token(TOKEN), base_url=oracle.url, retry=None, api_version=API_VERSION, lazy=True,
        seconds_between_requests=0, seconds_between_writes=0,
    ) as client:  # fmt: skip
        yield client


def _branch(repo: Repository) -> GitRef:
    # The lazy one has the address to read it.
    return GitRef(repo.requester, {}, {"url": f"{repo.url}/git/refs/heads/feature/y"})


def _pull(repo: Repository) -> Any:
    return repo.get_pull(5)


WRITES: list[tuple[str, dict[str, Any], Callable[[Repository], Any]]] = [
    ("create_issue", {"title": "T", "body": "B", "labels": ["bug"], "assignees": ["hubot"]},
     lambda repo: repo.create_issue("T", "B", labels=["bug"], assignees=["hubot"])),
    ("create_issue", {"title": "T"}, lambda repo: repo.create_issue("T")),
    ("edit_issue", {"number": 3, "title": "T", "body": "B", "state": "closed", "state_reason": "not_planned",
                    "labels": ["a", "b"], "assignees": ["hubot"]},
     lambda repo: repo.get_issue(3).edit("T", "B", state="closed", state_reason="not_planned", labels=["a", "b"],
                                         assignees=["hubot"])),
    ("edit_issue", {"number": 3, "milestone": 0}, lambda repo: repo.get_issue(3).edit(milestone=None)),
    ("create_comment", {"number": 3, "body": "B"}, lambda repo: repo.get_issue(3).create_comment("B")),
    ("create_reaction", {"number": 3, "reaction": "rocket"}, lambda repo: repo.get_issue(3).create_reaction("rocket")),
    ("edit_sub_issue", {"number": 3, "sub_issue": 8, "action": "add"}, lambda repo: repo.get_issue(3).add_sub_issue(8)),
    ("edit_sub_issue", {"number": 3, "sub_issue": 8, "action": "remove"},
     lambda repo: repo.get_issue(3).remove_sub_issue(8)),
    ("create_pull_request", {"title": "T", "head": "feature/y", "base": "main", "body": "B", "draft": True},
     lambda repo: repo.create_pull("main", "feature/y", title="T", body="B", draft=True)),
    ("edit_pull_request", {"number": 5, "title": "T", "body": "B", "state": "closed", "base": "next"},
     lambda repo: _pull(repo).edit("T", "B", "closed", "next")),
    ("run_merge", {"number": 5, "head_sha": SHA, "method": "squash", "title": "T", "body": "B"},
     lambda repo: _pull(repo).merge("B", "T", "squash", SHA)),
    ("create_label", {"name": "good first", "color": "00ff00", "description": "D"},
     lambda repo: repo.create_label("good first", "00ff00", "D")),
    ("write_milestone", {"title": "1.0", "state": "open", "description": "D"},
     lambda repo: repo.create_milestone("1.0", "open", "D")),
    ("run_workflow", {"workflow": "ci.yml", "ref": "main", "inputs": {"level": "all"}},
     lambda repo: repo.get_workflow("ci.yml").create_dispatch("main", {"level": "all"})),
    ("create_branch", {"branch": "feature/y", "ref": "main"},
     lambda repo: repo.create_git_ref("refs/heads/feature/y", SHA)),
    ("move_branch", {"branch": "feature/y", "ref": "main", "force": True},
     lambda repo: _branch(repo).edit(SHA, force=True)),
    ("delete_branch", {"branch": "feature/y"}, lambda repo: _branch(repo).delete()),
    ("create_release", {"tag": "v2", "ref": "main", "title": "Two", "body": "B", "draft": True},
     lambda repo: repo.create_git_release("v2", "Two", "B", draft=True, target_commitish="main")),
]  # fmt: skip


def told(seen: Seen) -> tuple[str, str, Any]:
    """What a write says; fields at the default that GitHub gives them say nothing."""
    body = seen.json if seen.body else {}
    # No milestone is written in two ways, and what GitHub takes for granted may be left out; PyGithub does not ask for
    # the run that it starts.
    quiet: Any = {"draft": False, "prerelease": False, "generate_release_notes": False, "force": False,
                  "make_latest": "true", "return_run_details": True}  # fmt: skip
    said = {name: item for name, item in body.items() if name not in quiet or quiet[name] != item}
    return seen.verb, seen.path, {**said, **({"milestone": None} if said.get("milestone") == "" else {})}


@pytest.mark.share(2)
@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments", "theirs"), WRITES, ids=[f"{w[0]}-{n}" for n, w in enumerate(WRITES)])
async def test_a_change_is_sent_as_pygithub_sends_it(
    tool: str, arguments: dict[str, Any], theirs: Callable[[Repository], Any], oracle: Oracle, github: Github
) -> None:
    prepared(oracle)
    here = f"{oracle.url}/repos/octo/app"
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3, url=f"{here}/issues/3"))
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "url": f"{here}/pulls/5",
                                                     "head": {**sample("pulls/get")["head"], "sha": SHA}})  # fmt: skip
    async with served(oracle, *EVERYTHING) as client:
        await call(client, tool, **O, **arguments)
    ours = [told(seen) for seen in oracle.seen if seen.verb != "GET"]
    oracle.seen.clear()
    await anyio.to_thread.run_sync(theirs, github.get_repo("octo/app"))
    assert ours == [told(seen) for seen in oracle.seen if seen.verb != "GET"] and len(ours) == 1
