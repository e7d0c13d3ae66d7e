"""GitHub refuses many things with the same status: each reason is told as what it is, with its own next move."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.oracle.server import Reply
from github_server.serving import EVERYTHING, call, refused, served, text_of
from github_server.world import SHA, branch, issue, sample
from mcp_github.client.refusals import find_refusal, known_refusals

O = {"repo": "octo/app"}  # noqa: E741
MERGE = ("PUT", "/repos/octo/app/pulls/5/merge", "run_merge", {"number": 5, "head_sha": SHA})
COMMENT = ("POST", "/repos/octo/app/issues/3/comments", "create_comment", {"number": 3, "body": "B"})
SEARCH = ("GET", "/search/issues", "search_github", {"kind": "issues", "query": "a"})
ISSUE = ("GET", "/repos/octo/app/issues/3", "get_issue", {"number": 3})
RERUN = ("POST", "/repos/octo/app/actions/runs/9/rerun", "edit_run", {"run_id": 9, "action": "rerun"})
REVIEW = ("POST", "/repos/octo/app/pulls/5/reviews", "create_review", {"number": 5, "event": "APPROVE"})
REVIEWERS = ("POST", "/repos/octo/app/pulls/5/requested_reviewers", "edit_pull_request",
             {"number": 5, "reviewers": ["ada"]})  # fmt: skip
OPEN = ("POST", "/repos/octo/app/pulls", "create_pull_request", {"title": "T", "head": "topic", "base": "main"})
UPDATE = ("PUT", "/repos/octo/app/pulls/5/update-branch", "edit_pull_request", {"number": 5, "update_branch": True})
CANCEL = ("POST", "/repos/octo/app/actions/runs/9/cancel", "edit_run", {"run_id": 9, "action": "cancel"})

# The request, the status, GitHub's words, what is said, the next move.
CASES: list[tuple[tuple[str, str, str, dict[str, Any]], int, str, str, str]] = [
    (ISSUE, 403, "IP allow list enabled", "certain addresses only", "the token is not at fault"),
    (ISSUE, 403, "OAuth App access", "has not approved the app", "An owner can approve it"),
    (ISSUE, 403, "SAML", "single sign-on", "`Configure SSO`"),
    (ISSUE, 403, "token (classic)", "tokens of this kind", "fine-grained"),
    (ISSUE, 403, "lifetime", "tokens of this kind", "shorter life"),
    (COMMENT, 403, "Unable to create comment because issue is locked.", "is locked", "can unlock it"),
    (COMMENT, 422, "Unable to create comment because issue is locked.", "is locked", "can unlock it"),
    (COMMENT, 403, "archived so is read-only and unable to create", "is archived", "can unarchive it"),
    (COMMENT, 403, "User is blocked", "has blocked the user", "No other token"),
    (COMMENT, 403, "prior contributors only", "only certain people", "try again later"),
    (COMMENT, 403, "email address", "verified email", "can verify one"),
    (SEARCH, 422, "More than five AND", "more than five operators", "name one `repo`"),
    (COMMENT, 422, "too quickly", "slower than that", "Wait a minute"),
    (REVIEW, 422, "approve your own", "own approval does not count", "event=COMMENT"),
    (REVIEW, 422, "not permitted to approve", "may not approve", "Somebody else"),
    (REVIEW, 422, "one pending review", "a pending review", "`review_id`"),
    (REVIEWERS, 422, "requested from pull request author", "of their own", "Leave the author out"),
    (OPEN, 422, "already exists", "exists already", "`edit_pull_request`"),
    (OPEN, 422, "No commits between", "would be empty", "`write_files`"),
    (RERUN, 403, "Unable to retry this workflow run", "is too old", "`run_workflow`"),
    (RERUN, 403, "This workflow is already running", "still running", "`get_run` with `wait`"),
    (RERUN, 403, "This workflow run cannot be retried", "no job of it ever started", "a new commit does"),
    (CANCEL, 409, "Cannot cancel a workflow run that is completed.", "has ended", "`get_run`"),
    (CANCEL, 409, "has not been queued yet", "was never started", "does no harm"),
    (MERGE, 405, "Merge commits are not allowed", "merge commits", "method=squash"),
    (MERGE, 405, "Merge is not an allowed", "merge commits", "method=squash"),
    (MERGE, 405, "Squash merges are not allowed", "squashing", "method=rebase"),
    (MERGE, 405, "Rebase merges are not allowed", "rebasing", "method=squash"),
    (MERGE, 405, "This branch can't be rebased", "can't be rebased", "method=squash"),
    (MERGE, 405, "This branch must not contain merge commits.", "linear history", "method=squash"),
    (MERGE, 405, "Pull Request is still a draft", "is a draft", "draft=false"),
    (MERGE, 405, "Pull Request is in the merge queue.", "in the merge queue already", "`get_pull_request`"),
    (MERGE, 405, "Changes must be made through the merge queue", "merge queue", "when_ready=true"),
    (MERGE, 405, "found\n\nChanges must be made through the merge queue", "merge queue", "when_ready=true"),
    (MERGE, 405, "Base branch was modified. Review and try the merge again.", "another commit", "`run_merge` again"),
    (MERGE, 409, "Head branch was modified. Review and try the merge again.", "another head", "`read_diff`"),
    (MERGE, 405, "At least 1 approving review", "wants a review", "`reviewers`"),
    (MERGE, 405, "Waiting on code owner review", "wants a review", "`list_reviews`"),
    (MERGE, 405, "A conversation must be resolved", "conversations resolved", "`edit_thread`"),
    (MERGE, 405, "Required status check", "checks that have not passed", "`list_checks`"),
    (MERGE, 405, "2 of 3 required status checks", "checks that have not passed", "`list_checks`"),
    (MERGE, 405, "Commits must have valid signatures.", "signed commits", "method=squash"),
    (MERGE, 405, "You're not authorized to push to this branch.", "only certain people", "can do it"),
    (MERGE, 405, "Pull Request is not mergeable", "conflict with the base", "`get_pull_request`"),
    (MERGE, 405, "Cannot update this protected ref.", "A rule of the repository", "`list_rules`"),
    (UPDATE, 422, "There are no new commits on the base branch.", "has all commits", "`mergeable`"),
    (UPDATE, 422, "merge conflict between base and head", "conflict with the base", "resolve"),
    (UPDATE, 422, "expected head sha", "another head", "`read_diff`"),
]  # fmt: skip


def test_words_are_github_s_own_and_say_where_they_are_from() -> None:
    for refusal in known_refusals():
        for words, page in refusal.examples:
            assert find_refusal(words) is refusal, words
            assert page.startswith(("https://docs.github.com/", "https://github.com/")), page
    said = [words for refusal in known_refusals() for words, _ in refusal.examples]
    assert len(said) == len(set(said))


@pytest.mark.anyio
async def test_each_reason_is_told_as_what_it_is(oracle: Oracle) -> None:
    pull = {**sample("pulls/get"), "head": {"sha": SHA}, "changed_files": 0, "requested_reviewers": []}
    oracle.answer("GET", "/repos/octo/app/pulls/5", pull)
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", [])
    whole = [words for refusal in known_refusals() for words, _ in refusal.examples]
    async with served(oracle, *EVERYTHING) as client:
        for (verb, path, tool, arguments), status, part, reason, fix in CASES:
            message = next(words for words in whole if part in words)
            oracle.answer(verb, path, {"message": message}, status=status, times=1)
            text = await refused(client, tool, **O, **arguments)
            assert reason in text and fix in text, (message, text)
            # GitHub's own words stand beside ours, and nobody is sent for another token in vain.
            assert message.split("\n")[0].rstrip(".")[:40] in text, text
            assert "The token may not" not in text, text


@pytest.mark.anyio
async def test_what_auto_merge_needs_not_wait_for_is_told(oracle: Oracle) -> None:
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**sample("pulls/get"), "head": {"sha": SHA}, "changed_files": 0})
    oracle.answer("GET", "/repos/octo/app/pulls/5/files", [])
    oracle.graphql("MergeState", {"repository": {"pullRequest": {"isMergeQueueEnabled": False}}})
    async with served(oracle, *EVERYTHING) as client:
        for message in ("Pull request is in unstable status", "Protected branch rules not configured for this branch"):
            errors = [{"type": "UNPROCESSABLE", "path": ["enablePullRequestAutoMerge"], "message": message}]
            oracle.graphql("AutoMerge", Reply(200, {"data": {"enablePullRequestAutoMerge": None}, "errors": errors}))
            text = await refused(client, "run_merge", **O, number=5, head_sha=SHA, when_ready=True)
            assert "without when_ready" in text and message in text


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
