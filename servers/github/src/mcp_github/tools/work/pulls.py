"""Pull requests: reading, opening, changing and merging them; and their reviews and checks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, quote
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import FreeText, default, trusted
from mcp_github.client.api import Api, ApiResponse, AppliedChanges, partial_success
from mcp_github.client.polling import MAX_WAIT_SECONDS
from mcp_github.listing.columns import PULL, REVIEW
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, join_notes
from mcp_github.listing.projections import Item, clip, clip_note, pick
from mcp_github.models import Done, Listing, Record
from mcp_github.number_forms import Number, OptionalNumber, leave_out_zero
from mcp_github.policy import Head, HeadFilter, NodeId, Policy, Ref, Repo, ReviewComment, WriteRepo
from mcp_github.requests.branches import changed_names
from mcp_github.requests.checks import CheckFilter, CheckState, list_checks_of_commit, list_checks_of_pull
from mcp_github.requests.graphql_queries import DRAFT, READY
from mcp_github.requests.issue_filters import LabelFilter, note_missing_labels, resolve_milestone_filter
from mcp_github.requests.merge_when_ready import merge_when_ready
from mcp_github.requests.name_changes import compare_names, resolve_names
from mcp_github.requests.pull_facts import GRAPHQL_COLUMNS, add_pull_facts, add_pull_links
from mcp_github.requests.pulls_as_issues import PullsAsIssues
from mcp_github.requests.review import reviews, threads
from mcp_github.requests.review.reviews import NewReview, ReviewAction, Verdict
from mcp_github.tools import views
from mcp_github.tools.arguments import (
    Cursor,
    Fields,
    Limit,
    MergeRepoName,
    NameList,
    Names,
    OptionalBody,
    OptionalRefName,
    OptionalTitle,
    RepoName,
    Title,
    Waiting,
    WriteRepoName,
    choosing,
    choosing_as,
    drop_unset,
    one_of,
    refuse_beside,
)
from mcp_github.tools.drafts import draft_result
from mcp_github.tools.work.issue_values import MilestoneName

__all__ = [
    "create_pull_request", "create_review", "edit_pull_request", "edit_review", "edit_thread", "get_pull_request",
    "list_checks", "list_pull_requests", "list_reviews", "run_merge",
]  # fmt: skip

PullState = Literal["open", "closed", "merged", "all"]
MergeMethod = Literal["merge", "squash", "rebase"]

# Who is asked where Copilot is; as one who was asked it is called `Copilot`.
COPILOT_REVIEWER = "copilot-pull-request-reviewer[bot]"

_MAX_BODY_CHARACTERS = 8000
_MAX_CHECKS = 1000
_SORTS_OF_ISSUES = (None, "created", "updated")
# What the caller of a new one did not say.
_NEW_COLUMNS = ("number", "head_sha")
_DONE_COLUMNS = ("number", "title", "state", "draft", "head", "head_sha", "base")


def _check_sha(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{7,64}", text):
        raise ValueError("must be 7 or more digits of a sha")
    return text


def _check_count(count: int) -> int:
    if not 1 <= count <= _MAX_CHECKS:
        raise ValueError(f"must be 1 to {_MAX_CHECKS}")
    return count


_SORT = AfterValidator(one_of("created", "updated", "popularity", "long-running"))
OptionalBase = Annotated[Ref | None, trusted(Policy.ref), Field(description="Branch")]
LineComments = Annotated[list[ReviewComment], trusted(Policy.review_comments), Field(description="On lines")]


@tool("List pull requests", toolset="pull_requests", open_world=True, view=views.ISSUES)
async def list_pull_requests(
    api: Api,
    *,
    repo: RepoName,
    state: PullState = "open",
    head: Annotated[
        HeadFilter | None, trusted(Policy.head_filter), Field(description="Of a fork owner:branch, in rows too")
    ] = None,
    base: OptionalBase = None,
    labels: Annotated[NameList, Field(description='All of these, or ["none"]')] = None,
    milestone: Annotated[MilestoneName, Field(description="Exact title, or none")] = None,
    commit: Annotated[Ref | None, trusted(Policy.ref), Field(description="Those it is of")] = None,
    sort: Annotated[FreeText | None, _SORT, Field(description="created, updated, popularity ...")] = None,
    order: Literal["asc", "desc"] | None = None,
    fields: Annotated[Fields, choosing(PULL)] = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List a repository's pull requests by state, branch or label, newest first, or those of a `commit`.

    `verdicts`: the last of each person or bot, comments aside: `ben approved`, `changes_requested`; `dismissed` if
    revoked. `closes`, by text or by hand, merged too: `["#7", "open", TITLE]`. By author, words, merge date:
    `search_github`.
    """
    label_filter = LabelFilter(labels or [])
    if commit is not None:
        refuse_beside("`commit`", head=head, base=base, labels=labels, milestone=milestone, sort=sort, order=order)
        if state != "open":
            raise Invalid("Pull requests of a commit are listed in all states.", "Leave `state` out.")
        query = _query_pulls_of_commit(api, repo, commit)
    elif labels or milestone:
        refuse_beside("`labels` and `milestone`", head=head)
        if sort not in _SORTS_OF_ISSUES:
            raise Invalid(f"By labels or milestone GitHub does not sort by {sort}.", "Leave `sort` out.")
        params = _params_of_state(state) | {"sort": sort, "direction": order}
        params["milestone"] = await resolve_milestone_filter(api, repo, milestone)
        merged_only = state == "merged"
        add_facts = partial(add_pull_facts, api)
        query = PullsAsIssues(repo, label_filter, params, merged_only, base, add_facts).to_query()
    else:
        params = _params_of_state(state) | {"sort": sort, "direction": order or _default_order(sort)}
        if head is not None:
            params["head"] = head.text_for(repo)
        if base is not None:
            params["base"] = base.name
        query = _query_pulls(api, repo, params, merged_only=state == "merged")
    page = await fetch_page(api, query, PageOptions(fields, limit, cursor))
    return await note_missing_labels(api, repo, page, label_filter)


@tool("Get a pull request", toolset="pull_requests", open_world=True, view=views.PULL)
async def get_pull_request(
    api: Api, *, repo: RepoName, number: Number, fields: Annotated[Fields, choosing_as("list_pull_requests")] = None
) -> Record:
    """Get a pull request: text, branches, reviewers, what it closes, whether it can be merged or is queued.

    `mergeable` is null while GitHub works it out. Changes: `read_diff`.
    """
    response = await _fetch(api, repo, number)
    columns = [name for name in PULL.getters if name not in GRAPHQL_COLUMNS]
    pull: Mapping[str, Any] = response.data
    if fields:
        columns = PULL.choose_columns(fields)
        (completed_pull,) = await add_pull_facts(api, [pull], columns)
        pull = completed_pull or pull
    data = PULL.to_record(pull, columns)
    if data.get("body") and len(columns) > 1:
        data["body"] = pick(pull, clip("body", _MAX_BODY_CHARACTERS))
    note = clip_note(data.values())
    if not fields and not api.is_for_resources:
        note = join_notes(note, await add_pull_links(api, data, repo, number))
    return Record(uri=f"{repo.uri}/pulls/{number}", note=note, removed=response.removed or None, data=data)


@tool("List reviews", toolset="pull_requests", open_world=True)
async def list_reviews(
    api: Api,
    *,
    repo: RepoName,
    number: Number,
    kind: Literal["reviews", "threads"] = "reviews",
    unresolved: bool = False,
    thread: Annotated[NodeId | None, trusted(Policy.node), Field(description="All its comments")] = None,
    order: Literal["asc", "desc"] = "asc",
    fields: Annotated[Fields, choosing(REVIEW, "reviews")] = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List a pull request's reviews, or the threads of comments on its lines (kind=threads).

    Threads come with lines (side LEFT is the old file), state and comments; `order` is of a `thread`'s. General
    comments: `list_comments`.
    """
    if thread is not None:
        refuse_beside("`thread`", unresolved=unresolved)
        return await threads.list_thread(api, repo, number, thread, order=order, limit=limit, cursor=cursor)
    if order == "desc":
        raise Invalid("`order` is that of the comments of one thread.", "Pass `thread`.")
    # Reviews are neither resolved nor open.
    if kind == "threads" or unresolved:
        return await threads.list_threads(api, repo, number, unresolved_only=unresolved, cursor=cursor)
    description = f"the reviews of #{number} of `{repo.full_name}`"
    query = ListQuery(f"{_path(repo, number)}/reviews", description, REVIEW, repo=repo)
    return await fetch_page(api, query, PageOptions(fields, limit, cursor))


@tool("List checks", toolset="pull_requests", open_world=True, seconds=MAX_WAIT_SECONDS + 120)
async def list_checks(
    api: Api,
    *,
    repo: RepoName,
    number: OptionalNumber = None,
    ref: OptionalRefName = None,
    state: CheckState | None = None,
    name: Annotated[FreeText | None, Field(description="Part of it")] = None,
    wait: Waiting = None,
    limit: Annotated[int, BeforeValidator(leave_out_zero), AfterValidator(_check_count)] = 200,
    cursor: Cursor = None,
) -> Listing:
    """List the CI checks of a pull request (`number`) or commit (`ref`), failures first, and whether all is green.

    Columns: name, status, conclusion, app, title, job. `note` counts all, with required ones that are missing; `wait`:
    until none runs. Why one failed: `get_run`.
    """
    options = PageOptions(limit=limit, cursor=cursor)
    wishes = CheckFilter(state, name)
    if number is not None:
        refuse_beside("`number`", ref=ref)
        return await list_checks_of_pull(api, repo, number, wishes, options, wait)
    if ref is None:
        raise Invalid("One of `number` and `ref` has to be given.")
    return await list_checks_of_commit(api, repo, ref, wishes, options, wait)


@tool("Create a pull request", toolset="pull_requests", effect="write", open_world=True, view=views.DRAFT)
async def create_pull_request(
    api: Api,
    *,
    repo: WriteRepoName,
    title: Title,
    head: Annotated[Head, trusted(Policy.head), Field(description="Branch, or owner:branch of a fork")],
    base: Annotated[Ref, trusted(Policy.ref), Field(description="Branch to go into")],
    body: OptionalBody = None,
    draft: bool = False,
    reviewers: Annotated[NameList, Field(description="Logins, org/team, copilot")] = None,
    dry_run: DryRun = False,
) -> Done:
    """Open a pull request of `head` into `base`; fails without new commits. To commit: `write_files`."""
    pull = drop_unset(title=title, head=head.label, head_repo=head.repo, base=base.name, body=body, draft=draft)
    await _require_served_head(api, repo, head)
    resolved_reviewers = await resolve_names(api, reviewers, _resolve_reviewer)
    if dry_run:
        return await draft_result(api.taint, repo, "pull request", pull | drop_unset(reviewers=reviewers))
    description = f"pull request from {quote(head.label)} in `{repo.full_name}`"
    try:
        response = await api.write("POST", f"{repo.path}/pulls", description, pull, repo=repo)
    except Conflict as problem:
        raise await _name_existing_pull(api, repo, head, base, problem) from problem
    number = int(response.data["number"])
    if resolved_reviewers:
        with partial_success(
            f"Pull request #{number} is created", f"Ask others to review #{number} with `edit_pull_request`."
        ):
            await _send_reviewers(api, "POST", repo, number, resolved_reviewers)
    return _done(repo, number, f"Created pull request #{number}.", response.data, _NEW_COLUMNS)


@tool(
    "Change a pull request", toolset="pull_requests", effect="destroy", open_world=True, also=("update_pull_request",)
)  # fmt: skip
async def edit_pull_request(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    title: OptionalTitle = None,
    body: OptionalBody = None,
    state: Literal["open", "closed"] | None = None,
    base: OptionalBase = None,
    draft: bool | None = None,
    reviewers: Names = None,
    update_branch: Annotated[bool, Field(description="Merge its base into it")] = False,
) -> Done:
    """Change a pull request's text, state, base or reviewers. Labels: `edit_issue`."""
    changes = drop_unset(title=title, body=body, state=state)
    if base is not None:
        changes["base"] = base.name
    resolved_reviewers = await resolve_names(api, reviewers, _resolve_reviewer)
    if not changes and draft is None and resolved_reviewers is None and not update_branch:
        raise Invalid("Nothing was given to change.", "Pass what is to be different.")
    pull = (await _fetch(api, repo, number, internal=True)).data
    if update_branch:
        _require_served_source(api, pull, number)
    applied = AppliedChanges(number)
    if changes:
        response = await api.write("PATCH", _path(repo, number), _describe(repo, number), changes, repo=repo)
        pull = response.data
        applied.names += [f"`{name}`" for name in changes]
    if resolved_reviewers is not None:
        with applied.step("reviewers"):
            await _change_reviewers(api, repo, number, pull, resolved_reviewers)
    if draft is not None and draft != pull.get("draft"):
        with applied.step("draft"):
            await _set_draft(api, repo, number, pull, draft=draft)
    if update_branch:
        with applied.step("branch"):
            await _update_branch(api, repo, number, pull)
    return _done(repo, number, f"Changed pull request #{number}.", pull)


@tool("Review", toolset="pull_requests", effect="write", open_world=True)
async def create_review(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    event: Annotated[Verdict | None, Field(description="Verdict")] = None,
    body: OptionalBody = None,
    comments: LineComments = default([]),
    commit: Annotated[Ref | None, trusted(Policy.ref), Field(description="Head as reviewed")] = None,
    review_id: Annotated[OptionalNumber, Field(description="Pending one to add to")] = None,
) -> Done:
    """Review a pull request: comments on lines and a verdict (`event`; pending without).

    A general comment: `create_comment`.
    """
    review = NewReview(event, body, comments, commit)
    if review_id is not None:
        return await reviews.add_to_review(api, repo, number, review_id, review)
    return await reviews.send_review(api, repo, number, review)


@tool("Finish a review", toolset="pull_requests", effect="destroy", open_world=True)
async def edit_review(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    review_id: Number,
    action: ReviewAction,
    event: Annotated[Verdict | None, Field(description="For submit")] = None,
    body: OptionalBody = None,
) -> Done:
    """Submit or delete a pending review, or dismiss a submitted one (`body` says why). Ids: `list_reviews`."""
    return await reviews.finish_review(api, repo, number, review_id, action=action, verdict=event, body=body)


@tool("Resolve a thread", toolset="pull_requests", effect="write", idempotent=True, open_world=True)
async def edit_thread(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    thread: Annotated[NodeId, trusted(Policy.node), Field(description="From `list_reviews`")],
    resolved: bool = True,
) -> Done:
    """Resolve or reopen a review's thread. To reply: `create_comment`."""
    return await threads.set_resolved(api, repo, number, thread, resolved=resolved)


@tool(
    "Merge a pull request", toolset="pull_requests", gate="merge", effect="destroy", open_world=True,
    also=("merge_pull_request",),
)  # fmt: skip
async def run_merge(
    api: Api,
    *,
    repo: MergeRepoName,
    number: Number,
    head_sha: Annotated[FreeText, AfterValidator(_check_sha), Field(description="Head you looked at")],
    method: MergeMethod = "merge",
    title: OptionalTitle = None,
    body: OptionalBody = None,
    when_ready: Annotated[bool, Field(description="By merge queue or auto-merge")] = False,
) -> Done:
    """Merge a pull request, only if its head is still `head_sha`.

    Can it be merged: `get_pull_request`.
    """
    if method == "rebase":
        # GitHub ignores them without a word.
        refuse_beside("method=rebase: the commits keep their messages", title=title, body=body)
    description = _describe(repo, number)
    pull = (await _fetch(api, repo, number, internal=True)).data
    current_sha = pick(pull, "head.sha")
    if not str(current_sha).startswith(head_sha):
        raise Conflict(f"The head of {description} is `{current_sha}`, not {quote(head_sha)}.", "Look at what changed.")
    if api.policy.guards_workflows:
        await _refuse_workflows(api, repo, number, int(pull.get("changed_files") or 0))
    if when_ready:
        return await merge_when_ready(api, repo, number, pull, method=method, title=title, body=body)
    payload = {"sha": current_sha, "merge_method": method, **drop_unset(commit_title=title, commit_message=body)}
    response = await api.write("PUT", f"{_path(repo, number)}/merge", description, payload, repo=repo)
    if not response.data.get("merged"):
        reason = quote(str(response.data.get("message")))
        raise Conflict(f"GitHub did not merge {description}: {reason}.")
    return Done(
        done=f"Merged pull request #{number}.", uri=f"{repo.uri}/pulls/{number}", data={"commit": response.data["sha"]}
    )


def _params_of_state(state: PullState) -> dict[str, Any]:
    """Return how GitHub is asked for pull requests in a state: for it, those that were merged are closed."""
    if state == "merged":
        return {"state": "closed"}
    return {"state": state}


def _default_order(sort: str | None) -> Literal["desc"] | None:
    """Return the order to ask GitHub for if the caller names none; None for its default.

    By default the pull requests that were updated last, or have the most comments, come last.
    """
    if sort in (None, "created", "long-running"):
        return None
    return "desc"


def _query_pulls(api: Api, repo: Repo, params: Mapping[str, Any], *, merged_only: bool) -> ListQuery:
    """Return the list of a repository's pull requests."""
    exclude = None
    if merged_only:
        exclude = _exclude_unmerged
    return ListQuery(
        f"{repo.path}/pulls", f"the pull requests of `{repo.full_name}`", PULL, params=params, repo=repo,
        exclude=exclude, complete=partial(add_pull_facts, api),
    )  # fmt: skip


def _query_pulls_of_commit(api: Api, repo: Repo, commit: Ref) -> ListQuery:
    """Return the list of the pull requests that brought a commit, or that have it."""
    path = f"{repo.path}/commits/{commit.path}/pulls"
    description = f"the pull requests of {quote(commit.name)} in `{repo.full_name}`"
    return ListQuery(path, description, PULL, repo=repo, complete=partial(add_pull_facts, api))


def _exclude_unmerged(item: Item) -> str | None:
    if item.get("merged_at"):
        return None
    return "closed without a merge"


async def _resolve_reviewer(api: Api, name: str) -> str:
    """Return the login or team that GitHub knows for `name`."""
    reviewer = await api.resolve_login(name)
    api.policy.require_logins(reviewer.split("/", 1))
    if reviewer.lower() == "copilot":
        return COPILOT_REVIEWER
    return reviewer


async def _require_served_head(api: Api, repo: Repo, head: Head) -> None:
    """Return unless the fork that GitHub takes for the owner's is not served: it may have any name.

    Raises:
        Refused: none of those that may be meant is in the network of `repo`.
    """
    candidates = head.candidates_for(repo)
    if candidates is None:
        return
    network = await _find_network(api, repo)
    for candidate in candidates:
        if network is not None and await _find_network(api, candidate) == network:
            return
    raise Refused(
        f"The fork of `{repo.full_name}` that {quote(head.label)} names is not served here.",
        f"Served are: {api.policy.allow_list_text}.",
    )


async def _fetch(api: Api, repo: Repo, number: int, *, internal: bool = False) -> ApiResponse:
    hint = f"If #{number} is an issue, use `get_issue`."
    return await api.get(_path(repo, number), _describe(repo, number), repo=repo, internal=internal, hint=hint)


async def _find_network(api: Api, repo: Repo) -> str | None:
    """Return the name of the repository that the network of `repo` comes from; None if `repo` does not exist."""
    try:
        response = await api.get(repo.path, f"repository `{repo.full_name}`", internal=True)
    except NotFound:
        return None
    return str(pick(response.data, "source.full_name") or pick(response.data, "full_name")).lower()


def _require_served_source(api: Api, pull: Mapping[str, Any], number: int) -> None:
    """Raise `Refused` if the branch of the pull request, which would be changed, is of what is not served."""
    source = pick(pull, "head.repo.full_name")
    if source:
        api.policy.require_served(str(source), f"branch of #{number}")


async def _change_reviewers(
    api: Api, repo: WriteRepo, number: int, pull: Mapping[str, Any], reviewers: Sequence[str]
) -> None:
    """Ask those of `reviewers` who are not asked yet, and no longer those who are not among them."""
    difference = compare_names(_requested_reviewers(repo, pull), reviewers)
    await _send_reviewers(api, "POST", repo, number, difference.added)
    await _send_reviewers(api, "DELETE", repo, number, difference.removed)


async def _send_reviewers(
    api: Api, method: Literal["POST", "DELETE"], repo: WriteRepo, number: int, names: Sequence[str]
) -> None:
    """Ask people and teams to review, or no longer."""
    if not names:
        return
    people: list[str] = []
    teams: list[str] = []
    for name in names:
        _, slash, team = name.partition("/")
        if slash:
            teams.append(team)
        else:
            people.append(name)
    body: dict[str, list[str]] = {}
    # GitHub wants people named when it shall ask somebody no longer, though there are none.
    if people or method == "DELETE":
        body["reviewers"] = people
    if teams:
        body["team_reviewers"] = teams
    path = f"{_path(repo, number)}/requested_reviewers"
    await api.write(method, path, f"the reviewers of #{number} of `{repo.full_name}`", body, repo=repo)


async def _set_draft(api: Api, repo: WriteRepo, number: int, pull: Mapping[str, Any], *, draft: bool) -> None:
    query = READY
    if draft:
        query = DRAFT
    variables = {"input": {"pullRequestId": pull["node_id"]}}
    await api.graphql(query, variables, _describe(repo, number), repo=repo, writes=True, expects={"isDraft": draft})


async def _update_branch(api: Api, repo: WriteRepo, number: int, pull: Mapping[str, Any]) -> None:
    body = {"expected_head_sha": pick(pull, "head.sha")}
    path = f"{_path(repo, number)}/update-branch"
    await api.write("PUT", path, _describe(repo, number), body, repo=repo)


async def _refuse_workflows(api: Api, repo: Repo, number: int, changed_count: int) -> None:
    """Raise `Refused` if one of the changed files is one that Actions would run, or GitHub does not list all."""
    description = _describe(repo, number)
    params: dict[str, Any] = {"per_page": 100}
    listed_count = 0
    while True:
        response = await api.get(f"{_path(repo, number)}/files", description, params, internal=True)
        api.policy.require_mergeable(changed_names(response.data))
        listed_count += len(response.data)
        if not response.next_page:
            break
        params |= response.next_page
    api.policy.require_all_listed(listed_count, changed_count, description)


async def _name_existing_pull(api: Api, repo: WriteRepo, head: Head, base: Ref, problem: Conflict) -> Conflict:
    """Return `problem` with the number of the pull request that stands in the way, if one does."""
    if "exists already" not in problem.failure:
        return problem
    label = head.label
    if ":" not in label:
        label = f"{repo.owner}:{label}"
    params = {"head": label, "base": base.name, "state": "open"}
    try:
        pulls = await api.get(f"{repo.path}/pulls", "the pull requests there are", params, internal=True)
    except Problem:
        return problem
    for pull in pulls.data:
        fix = f"Change it with `edit_pull_request`: {pull.get('html_url')}"
        return Conflict(f"{problem.failure} It is #{pull['number']}.", fix, status=problem.status)
    return problem


def _done(
    repo: Repo, number: int, sentence: str, pull: Mapping[str, Any], columns: Sequence[str] = _DONE_COLUMNS
) -> Done:
    data = PULL.to_record(pull, columns)
    return Done(done=sentence, uri=f"{repo.uri}/pulls/{number}", url=pull.get("html_url"), data=data)


def _requested_reviewers(repo: Repo, pull: Mapping[str, Any]) -> list[str]:
    """Return who is asked to review, as callers name them: teams with their organisation, Copilot as it is asked."""
    people = cast("list[dict[str, Any]]", pull.get("requested_reviewers") or [])
    teams = cast("list[dict[str, Any]]", pull.get("requested_teams") or [])
    names: list[str] = []
    for person in people:
        login = str(person["login"])
        if login.lower() == "copilot":
            login = COPILOT_REVIEWER
        names.append(login)
    return names + [f"{repo.owner}/{team['slug']}" for team in teams]


def _path(repo: Repo, number: int) -> str:
    return f"{repo.path}/pulls/{number}"


def _describe(repo: Repo, number: int) -> str:
    return f"pull request #{number} of `{repo.full_name}`"
