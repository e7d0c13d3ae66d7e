"""GitHub refuses many things with the same status: each reason is told as what it is, with its own next move."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import EVERYTHING, call, refused, served, text_of
from github_server.world import SHA, branch, issue, sample

O = {"repo": "octo/app"}  # noqa: E741
CORRECT = "Although you appear to have the correct authorization credentials, the `octo` organization has "
MERGE = ("PUT", "/repos/octo/app/pulls/5/merge", "run_merge", {"number": 5, "head_sha": SHA})
COMMENT = ("POST", "/repos/octo/app/issues/3/comments", "create_comment", {"number": 3, "body": "B"})
ISSUE = ("GET", "/repos/octo/app/issues/3", "get_issue", {"number": 3})
RERUN = ("POST", "/repos/octo/app/actions/runs/9/rerun", "edit_run", {"run_id": 9, "action": "rerun"})
CANCEL = ("POST", "/repos/octo/app/actions/runs/9/cancel", "edit_run", {"run_id": 9, "action": "cancel"})

# The request, the status, GitHub's words, what is said, the next move.
CASES: list[tuple[tuple[str, str, str, dict[str, Any]], int, str, str, str]] = [
    (ISSUE, 403, CORRECT + "an IP allow list enabled, and your IP address is not permitted to access this resource.",
     "certain addresses only", "the token is not at fault"),
    (ISSUE, 403, CORRECT + "enabled OAuth App access restrictions, meaning that data access to third-parties is "
     "limited.", "has not approved the app", "An owner can approve it"),
    (ISSUE, 403, "Resource protected by organization SAML enforcement. You must grant your OAuth token access to this "
     "organization.", "single sign-on", "`Configure SSO`"),
    (ISSUE, 403, "`octo` forbids access via a personal access token (classic). Please use a GitHub App, OAuth App, or "
     "a personal access token with fine-grained permissions.", "tokens of this kind", "fine-grained"),
    (ISSUE, 403, "The 'octo' organization forbids access via a fine-grained personal access tokens if the token's "
     "lifetime is greater than 366 days.", "tokens of this kind", "shorter life"),
    (COMMENT, 403, "Unable to create comment because issue is locked.", "is locked", "can unlock it"),
    (COMMENT, 422, "Unable to create comment because issue is locked", "is locked", "can unlock it"),
    (COMMENT, 403, "User is blocked", "has blocked the user", "No other token"),
    (COMMENT, 403, "Interactions on this repository have been restricted to prior contributors only",
     "only certain people", "try again later"),
    (RERUN, 403, "Unable to retry this workflow run because it was created over a month ago", "is too old",
     "`run_workflow`"),
    (RERUN, 403, "This workflow is already running", "can't be run again", "`get_run` with `wait`"),
    (RERUN, 403, "This workflow run cannot be retried", "can't be run again", "`get_run` with `wait`"),
    (CANCEL, 409, "Cannot cancel a workflow run that is completed.", "has ended", "`get_run`"),
    (MERGE, 405, "Merge commits are not allowed on this repository.", "merge commits", "method=squash"),
    (MERGE, 405, "Squash merges are not allowed on this repository.", "squashing", "method=rebase"),
    (MERGE, 405, "Rebase merges are not allowed on this repository.", "rebasing", "method=squash"),
    (MERGE, 405, "This branch must not contain merge commits.", "linear history", "method=squash"),
    (MERGE, 405, "Pull Request is still a draft", "is a draft", "draft=false"),
    (MERGE, 405, "Changes must be made through the merge queue", "merge queue", "when_ready=true"),
    (MERGE, 405, "Repository rule violations found\n\nChanges must be made through the merge queue\n\n", "merge queue",
     "when_ready=true"),
    (MERGE, 405, "Base branch was modified. Review and try the merge again.", "behind its base", "update_branch=true"),
    (MERGE, 409, "Head branch was modified. Review and try the merge again.", "another head", "`read_diff`"),
    (MERGE, 405, "At least 1 approving review is required by reviewers with write access.", "wants a review",
     "`reviewers`"),
    (MERGE, 405, "Waiting on code owner review from octo/core.", "wants a review", "`list_reviews`"),
    (MERGE, 405, "A conversation must be resolved before this pull request can be merged.", "conversations resolved",
     "`edit_thread`"),
    (MERGE, 405, 'Required status check "ci" is expected.', "checks that have not passed", "`list_checks`"),
    (MERGE, 405, "2 of 3 required status checks are failing.", "checks that have not passed", "`list_checks`"),
    (MERGE, 405, "Commits must have valid signatures.", "signed commits", "method=squash"),
    (MERGE, 405, "You're not authorized to push to this branch. Visit https://docs.github.com for more information.",
     "only certain people", "can merge it"),
    (MERGE, 405, "Pull Request is not mergeable", "conflict with the base", "`get_pull_request`"),
    (MERGE, 405, "Repository rule violations found\n\nCannot update this protected ref.", "A rule of the repository",
     "`list_rules`"),
]  # fmt: skip


@pytest.mark.anyio
async def test_each_reason_is_told_as_what_it_is(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "head": {"sha": SHA}, "changed_files": 0})
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", [])
    async with served(oracle, *EVERYTHING) as client:
        for (verb, path, tool, arguments), status, message, reason, fix in CASES:
            oracle.answer(verb, path, {"message": message}, status=status, times=1)
            text = await refused(client, tool, **O, **arguments)
            assert reason in text and fix in text, (message, text)
            # GitHub's own words stand beside ours, and nobody is sent for another token in vain.
            assert message.split("\n")[0].rstrip(".")[:40] in text, text
            assert "The token may not" not in text, text


@pytest.mark.anyio
async def test_what_is_no_such_reason_is_still_the_token(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/issues/3", {"message": "Resource not accessible by integration"}, status=403)
    async with served(oracle) as client:
        assert "The token may not do that" in await refused(client, "get_issue", **O, number=3)


@pytest.mark.anyio
async def test_the_page_that_authorises_a_token_is_named(oracle: Oracle) -> None:
    url = "https://github.com/orgs/octo/sso?authorization_request=AZSCKtL4U8yX"
    headers = {"X-GitHub-SSO": f"required; url={url}"}
    oracle.answer("GET", "/repos/octo/app/issues/3", {"message": "SAML"}, status=403, headers=headers)
    async with served(oracle) as client:
        assert url in await refused(client, "get_issue", **O, number=3)


@pytest.mark.anyio
async def test_organisations_that_are_left_out_are_told(oracle: Oracle) -> None:
    headers = {"X-GitHub-SSO": "partial-results; organizations=21955855,20582480"}
    hits = {"total_count": 1, "incomplete_results": False, "items": [issue(4)]}
    oracle.answer("GET", "/search/issues", hits, headers=headers)
    branch(oracle)
    async with served(oracle) as client:
        for _ in range(2):
            result = await client.call_tool("search_github", {"kind": "issues", "query": "x"})
            for text in (text_of(result), (result.structured_content or {})["note"]):
                assert "2 organisations (id 21955855, 20582480)" in text and "`Configure SSO`" in text
        assert "organisation" not in text_of(await client.call_tool("get_issue", {**O, "number": 3}))


@pytest.mark.anyio
async def test_each_part_that_graphql_leaves_out_counts(oracle: Oracle) -> None:
    saml = "Resource protected by organization SAML enforcement. You must grant your token access."
    errors = [{"type": "FORBIDDEN", "path": ["a", "b", "c", number], "message": saml} for number in range(3)]
    errors.append({"type": "NOT_FOUND", "path": ["a", "b", "c", 4], "message": "Could not resolve to a node"})
    nodes = [{"number": 1, "title": "One", "comments": {"totalCount": 0}}, None, None, None, None]
    page = {"totalCount": 5, "pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": nodes}
    data = {"repository": {"discussions": page}}
    oracle.graphql("Discussions", Reply(200, {"data": data, "errors": errors}))
    async with served(oracle, "--toolsets", "all") as client:
        text = text_of(await client.call_tool("list_discussions", O))
        assert "GitHub leaves out 4 parts" in text and text.count("SAML enforcement") == 1
        assert "Could not resolve" in text and "`Configure SSO`" in text
        data["repository"] = None  # type: ignore[assignment]
        oracle.graphql("Discussions", Reply(200, {"data": data, "errors": errors[:1]}))
        assert "single sign-on" in await refused(client, "list_discussions", **O)
        assert await call(client, "get_me")
