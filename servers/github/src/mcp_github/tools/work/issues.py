"""Issues and their sub-issues, and comments; a pull request's conversation is that of an issue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable
from mcp_batteries.server.declaration.decorators import OtherName, tool
from mcp_batteries.server.declaration.fields import DryRun
from mcp_batteries.server.declaration.trusted import FreeText, trusted
from mcp_github.client.api import Api, partial_success
from mcp_github.listing.columns import COMMENT, ISSUE, LABEL, MILESTONE, PERSON
from mcp_github.listing.pages import ListQuery, PageOptions, count_fitting_rows, fetch_page, join_notes
from mcp_github.listing.projections import Item, Projection, clip, clip_note, clip_note_of_rows, pick, pluck
from mcp_github.models import Done, Listing, Record
from mcp_github.number_forms import Comment, Number, OptionalComment, OptionalNumber, is_on_lines
from mcp_github.policy import NodeId, Policy, Repo, WriteRepo
from mcp_github.requests.batches import MAX_BATCH_SECONDS
from mcp_github.requests.conversation import list_newest_comments, list_timeline
from mcp_github.requests.issue_edits import apply_edits, describe_issue, issue_done, issue_path, preview_edits
from mcp_github.requests.issue_filters import LabelFilter, note_missing_labels, resolve_milestone_filter
from mcp_github.requests.milestones import NO_MILESTONE
from mcp_github.requests.name_changes import resolve_names
from mcp_github.requests.related_issues import to_related_row
from mcp_github.requests.review.threads import reply_in_thread
from mcp_github.tools import views
from mcp_github.tools.arguments import (
    Body,
    ChangedSince,
    CommentText,
    Cursor,
    DeleteRepoName,
    Fields,
    Limit,
    Login,
    NameList,
    Names,
    OptionalBody,
    OptionalDryRun,
    OptionalTitle,
    RepoName,
    Title,
    WriteRepoName,
    choosing,
    choosing_as,
    drop_unset,
    one_of,
    refuse_beside,
)
from mcp_github.tools.drafts import draft_result
from mcp_github.tools.work.issue_values import (
    Custom,
    IssueState,
    IssueType,
    IssueValues,
    MilestoneName,
    StateReason,
    ValuesByNumber,
    build_edits,
    resolve_assignee,
    resolve_custom_fields,
    resolve_milestone,
)

__all__ = [
    "create_comment", "create_issue", "create_reaction", "delete_comment", "edit_comment", "edit_issue",
    "edit_sub_issue", "get_issue", "list_comments", "list_issue_options", "list_issues",
]  # fmt: skip

IssueOption = Literal["labels", "milestones", "assignees", "types", "custom"]
ListedState = Literal["open", "closed", "all"]
SubIssueAction = Literal["add", "remove", "first", "after"]

_DEFAULT_LIMIT = 30
_MAX_BODY_CHARACTERS = 8000
_MAX_QUOTED_NAME_CHARACTERS = 60
_MAX_EDITED = 100
_TYPE = Projection({"name": "name", "description": "description"}, ("name", "description"))
_CUSTOM_FIELD = Projection(
    {"name": "name", "kind": "data_type", "choices": pluck("options")}, ("name", "kind", "choices")
)
_LOGIN = Projection(PERSON.getters, ("login",))


def _split_numbers(value: object) -> object:
    """Return the one text, which callers may send alone, as the list of what its commas and spaces divide."""
    match value:
        case [str(text)]:
            return text.replace(",", " ").split()
        case _:
            return value


def _check_numbers(numbers: list[int] | None) -> list[int] | None:
    if numbers is not None and len(numbers) > _MAX_EDITED:
        raise ValueError(f"must have at most {_MAX_EDITED} numbers")
    return numbers


_SORT = AfterValidator(one_of("created", "updated", "comments"))
ManyNumbers = Annotated[list[Number] | None, BeforeValidator(_split_numbers), AfterValidator(_check_numbers)]
MoreNumbers = Annotated[ManyNumbers, Field(description="Up to 100, alike")]
Review = Annotated[bool, Field(description="One on lines of code")]


class _Target(NamedTuple):
    """What a request is about: its path, and its description for messages."""

    path: str
    description: str


@tool("List issues", toolset="issues", open_world=True, view=views.ISSUES)
async def list_issues(
    api: Api,
    *,
    repo: RepoName,
    numbers: Annotated[ManyNumbers, Field(description="Only these")] = None,
    state: Annotated[ListedState | None, Field(description="Default open, with numbers all")] = None,
    labels: Annotated[NameList, Field(description='All of these, or ["none"]')] = None,
    assignee: Annotated[FreeText | None, Field(description="Login, none, or * for any")] = None,
    creator: Login = None,
    milestone: Annotated[MilestoneName, Field(description="Exact title, or none")] = None,
    type: IssueType = None,  # noqa: A002 - the word GitHub uses
    custom: Custom = None,
    since: ChangedSince = None,
    sort: Annotated[FreeText | None, _SORT, Field(description="created, updated, comments")] = None,
    order: Literal["asc", "desc"] | None = None,
    fields: Annotated[Fields, choosing(ISSUE)] = None,
    limit: Limit = _DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Listing:
    """List a repository's issues by state, label or person, without pull requests, newest first.

    By words: `search_github`.
    """
    if numbers:
        refuse_beside(
            "`numbers`", labels=labels, assignee=assignee, creator=creator, milestone=milestone, type=type,
            custom=custom, since=since, sort=sort, order=order, cursor=cursor,
        )  # fmt: skip
        if limit < min(len(numbers), _DEFAULT_LIMIT):
            raise Invalid(f"`numbers` has {len(numbers)}, more than `limit`.", "Leave `limit` out.")
        return await _list_by_number(api, repo, numbers, state or "all", fields)
    params: dict[str, Any] = {
        "state": state or "open", "assignee": await _resolve_login(api, assignee),
        "creator": await _resolve_login(api, creator),
        "milestone": await resolve_milestone_filter(api, repo, milestone), "type": type, "since": since, "sort": sort,
        "direction": order,
    }  # fmt: skip
    if custom:
        values = await resolve_custom_fields(api, repo, custom)
        params["issue_field_values"] = ",".join(f"{value.slug}:{value.value}" for value in values)
    label_filter = LabelFilter(labels or [])
    params["labels"] = label_filter.param

    def exclude(item: Item) -> str | None:
        if "pull_request" in item:
            return "pull requests"
        return label_filter.exclude(item)

    query = ListQuery(
        f"{repo.path}/issues", f"the issues of `{repo.full_name}`", ISSUE, params=params, repo=repo, exclude=exclude,
    )  # fmt: skip
    page = await fetch_page(api, query, PageOptions(fields, limit, cursor))
    return await note_missing_labels(api, repo, page, label_filter)


@tool("Get an issue", toolset="issues", open_world=True)
async def get_issue(
    api: Api, *, repo: RepoName, number: Number, fields: Annotated[Fields, choosing_as("list_issues")] = None
) -> Record:
    """Get an issue: text, state, labels, parent, sub-issues and what it waits for.

    Comments: `list_comments`.
    """
    hint = "`list_issues` and `list_pull_requests` have the numbers there are."
    response = await api.get(issue_path(repo, number), describe_issue(repo, number), repo=repo, hint=hint)
    issue = response.data
    columns = fields or [name for name in ISSUE.getters if name not in ("repo", "draft", "is_pull_request")]
    data = ISSUE.to_record(issue, columns)
    if data.get("body") and len(columns) > 1:
        data["body"] = pick(issue, clip("body", _MAX_BODY_CHARACTERS))
    missing_note = None
    if not fields:
        missing_note = await _add_relations(api, data, repo, number, issue)
    parent_url = issue.get("parent_issue_url")
    if parent_url:
        data["parent"] = _name_of_url(str(parent_url))
    note = clip_note(data.values())
    if "pull_request" in issue:
        note = "This is a pull request: use get_pull_request."
    note = join_notes(note, missing_note)
    return Record(uri=f"{repo.uri}/issues/{number}", note=note, removed=response.removed or None, data=data)


@tool(
    "List choices for issues", toolset=("issues", "labels"), open_world=True,
    also=(OtherName("list_labels", {"kind": "labels"}), OtherName("list_milestones", {"kind": "milestones"})),
)  # fmt: skip
async def list_issue_options(
    api: Api, *, repo: RepoName, kind: IssueOption, limit: Limit = 50, cursor: Cursor = None
) -> Listing:
    """List the values an issue of `repo` can have, by `kind`: labels, milestones, assignees, types, custom fields.

    Of labels name, color, description; of milestones (open and closed) number, title, state, open, closed, due_on;
    of assignees login. The others: in organisations only. Issues with one: `list_issues`.
    """
    params: dict[str, Any] = {}
    match kind:
        case "types":
            return await _list_of_organisation(api, repo, kind, "issue-types", _TYPE)
        case "custom":
            return await _list_of_organisation(api, repo, kind, "issue-fields", _CUSTOM_FIELD)
        case "labels":
            projection = LABEL
        case "milestones":
            projection = MILESTONE
            # Closed ones are mostly complete, so most that are open come first.
            params = {"state": "all", "sort": "completeness"}
        case "assignees":
            projection = _LOGIN
    description = f"the {kind} of `{repo.full_name}`"
    query = ListQuery(f"{repo.path}/{kind}", description, projection, params=params, repo=repo)
    return await fetch_page(api, query, PageOptions(limit=limit, cursor=cursor))


@tool("List comments", toolset=("issues", "pull_requests"), open_world=True)
async def list_comments(
    api: Api,
    *,
    repo: RepoName,
    number: Number,
    kind: Literal["comments", "timeline"] = "comments",
    order: Literal["asc", "desc"] = "asc",
    since: ChangedSince = None,
    fields: Annotated[Fields, choosing(COMMENT, "comments")] = None,
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Listing:
    """List comments of an issue or pull request, or its timeline: who labelled, linked, closed it (`kind`).

    On lines of code: `list_reviews` with kind=threads.
    """
    options = PageOptions(fields, limit, cursor)
    if kind == "timeline":
        refuse_beside("kind=timeline", since=since, order=order if order == "desc" else None)
        return await list_timeline(api, repo, number, options)
    if order == "desc":
        refuse_beside("order=desc", since=since)
        return await list_newest_comments(api, repo, number, options)
    target = _conversation(repo, number)
    query = ListQuery(f"{target.path}/comments", target.description, COMMENT, params={"since": since}, repo=repo)
    return await fetch_page(api, query, options)


@tool("Create an issue", toolset="issues", effect="write", open_world=True, view=views.DRAFT)
async def create_issue(
    api: Api,
    *,
    repo: WriteRepoName,
    title: Title,
    body: OptionalBody = None,
    labels: Annotated[NameList, Field(description="Names")] = None,
    assignees: Annotated[NameList, Field(description="Logins, or copilot")] = None,
    milestone: Annotated[MilestoneName, Field(description="Title")] = None,
    type: IssueType = None,  # noqa: A002
    parent: OptionalNumber = None,
    dry_run: DryRun = False,
) -> Done:
    """Create an issue (under `parent`); labels need push rights. Later: `edit_issue`."""
    people = await resolve_names(api, assignees, resolve_assignee)
    resolved_milestone = await resolve_milestone(api, repo, milestone) or NO_MILESTONE
    issue = drop_unset(
        title=title, body=body, labels=labels, assignees=people, milestone=resolved_milestone.number, type=type
    )  # fmt: skip
    if dry_run:
        return await draft_result(api.taint, repo, "issue", issue | drop_unset(parent=parent))
    description = f"the issues of `{repo.full_name}`"
    response = await api.write("POST", f"{repo.path}/issues", description, issue, repo=repo)
    number = int(response.data["number"])
    done = issue_done(repo, number, f"Created issue #{number}.", response.data)
    if parent is not None:
        with partial_success(f"Issue #{number} is created", f"`edit_sub_issue` puts #{number} under another."):
            await _add_sub_issue(api, repo, parent, int(response.data["id"]), number)
    return done


@tool(
    "Change an issue", toolset="issues", effect="destroy", open_world=True, seconds=MAX_BATCH_SECONDS,
    also=("update_issue",),
)  # fmt: skip
async def edit_issue(
    api: Api,
    *,
    repo: WriteRepoName,
    number: OptionalNumber = None,
    numbers: MoreNumbers = None,
    each: ValuesByNumber = None,
    title: OptionalTitle = None,
    body: OptionalBody = None,
    state: IssueState | None = None,
    state_reason: StateReason | None = None,
    labels: Names = None,
    assignees: Names = None,
    milestone: Annotated[MilestoneName, Field(description="Title; none removes it")] = None,
    type: IssueType = None,  # noqa: A002
    custom: Custom = None,
    duplicate_of: Annotated[OptionalNumber, Field(description="Closes `number` as one of this")] = None,
    add_comment: CommentText = None,
    dry_run: OptionalDryRun = None,
) -> Done:
    """Change an issue or several; a pull request's labels, assignees, milestone (else `edit_pull_request`).

    `add_comment` comes first; new labels are made. Several are only shown unless dry_run=false.
    """
    is_batch = bool(numbers or each)
    if is_batch and (title is not None or body is not None):
        raise Invalid("`title` and `body` are those of one issue.", "Give them in `each`, by its number.")
    values = IssueValues.model_construct(
        title=title, body=body, state=state, state_reason=state_reason, labels=labels, assignees=assignees,
        milestone=milestone, type=type, custom=custom, duplicate_of=duplicate_of, add_comment=add_comment,
    )  # fmt: skip
    all_numbers: list[int] = [*(numbers or [])]
    if number is not None:
        all_numbers.insert(0, number)
    edits = await build_edits(api, repo, all_numbers, values, each or {})
    if not edits:
        raise Invalid("One of `number`, `numbers` and `each` has to be given.")
    if dry_run:
        return await preview_edits(api, repo, edits)
    if is_batch:
        return await apply_edits(api, repo, edits)
    ((only_number, edit),) = edits.items()
    return await edit.apply(api, only_number)


@tool("Arrange sub-issues", toolset="issues", effect="write", open_world=True)
async def edit_sub_issue(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    sub_issue: Number,
    action: SubIssueAction,
    sub_repo: Annotated[WriteRepo | None, trusted(Policy.write_repo), Field(description="If elsewhere")] = None,
    after: OptionalNumber = None,
) -> Done:
    """Add or remove a sub-issue of `number`, or put it first or `after` another.

    New ones: `create_issue`.
    """
    child = sub_repo or repo
    description = describe_issue(child, sub_issue)
    issue = await api.get(issue_path(child, sub_issue), description, internal=True)
    child_id = int(issue.data["id"])
    match action:
        case "add":
            await _add_sub_issue(api, repo, number, child_id, sub_issue)
        case "remove":
            path = f"{issue_path(repo, number)}/sub_issue"
            await api.write("DELETE", path, description, {"sub_issue_id": child_id}, repo=repo)
        case "first" | "after":
            neighbour = await _find_neighbour(api, repo, number, action, after, child_id)
            path = f"{issue_path(repo, number)}/sub_issues/priority"
            await api.write("PATCH", path, description, {"sub_issue_id": child_id, **neighbour}, repo=repo)
    return Done(done=f"Sub-issues of #{number}: {action} #{sub_issue}.", uri=f"{repo.uri}/issues/{number}")


@tool(
    "Comment", toolset=("issues", "pull_requests"), effect="write", open_world=True, also=("add_issue_comment",)
)  # fmt: skip
async def create_comment(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    body: Body,
    thread: Annotated[NodeId | None, trusted(Policy.node), Field(description="From `list_reviews`, to reply")] = None,
) -> Done:
    """Comment on an issue or pull request, which notifies people. New ones on lines: `create_review`."""
    if thread is not None:
        return await reply_in_thread(api, repo, number, thread, body)
    target = _conversation(repo, number)
    response = await api.write("POST", f"{target.path}/comments", target.description, {"body": body}, repo=repo)
    comment = response.data
    return Done(done=f"Commented on #{number}.", url=comment.get("html_url"), data={"comment": comment["id"]})


@tool("Change a comment", toolset=("issues", "pull_requests"), effect="destroy", open_world=True)
async def edit_comment(api: Api, *, repo: WriteRepoName, comment: Comment, body: Body, review: Review = False) -> Done:
    """Replace a comment's whole text, if you may change it.

    New: `create_comment`.
    """
    target = _comment(repo, comment, review)
    response = await api.write("PATCH", target.path, target.description, {"body": body}, repo=repo)
    return Done(done=f"Changed comment {comment}.", url=response.data.get("html_url"))


@tool("React", toolset=("issues", "pull_requests"), effect="write", idempotent=True, open_world=True)
async def create_reaction(
    api: Api,
    *,
    repo: WriteRepoName,
    reaction: Literal["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"],
    number: OptionalNumber = None,
    comment: OptionalComment = None,
    review: Review = False,
) -> Done:
    """React to an issue, pull request (`number`) or `comment`. In words: `create_comment`."""
    if number is not None and comment is None:
        target = _conversation(repo, number)
    elif comment is not None and number is None:
        target = _comment(repo, comment, review)
    else:
        raise Invalid("One of `number` and `comment` has to be given.")
    await api.write("POST", f"{target.path}/reactions", target.description, {"content": reaction}, repo=repo)
    return Done(done=f"Reacted with {reaction}.")


@tool("Delete a comment", toolset=("issues", "pull_requests"), gate="delete", effect="destroy", open_world=True)
async def delete_comment(api: Api, *, repo: DeleteRepoName, comment: Comment, review: Review = False) -> Done:
    """Delete a comment, or one on lines (`review`), for good. Reword: `edit_comment`."""
    target = _comment(repo, comment, review)
    await api.write("DELETE", target.path, target.description, repo=repo)
    return Done(done=f"Deleted comment {comment}.")


async def _list_by_number(
    api: Api, repo: Repo, numbers: Sequence[int], state: ListedState, fields: Sequence[str] | None
) -> Listing:
    """Return those of these issues that are in this state, as many as fit, and what became of the others."""
    columns = ISSUE.choose_columns(fields)
    rows: list[list[Any]] = []
    notes: list[str] = []
    removed = 0
    for number in dict.fromkeys(numbers):
        try:
            response = await api.get(issue_path(repo, number), describe_issue(repo, number), repo=repo)
        except NotFound as problem:
            notes.append(problem.failure)
            continue
        except Unavailable as problem:
            if not rows:
                raise
            notes.append(f"{problem.failure} #{number} and those behind it are not here.")
            break
        if state not in ("all", response.data["state"]):
            notes.append(f"#{number} is {response.data['state']}.")
            continue
        rows.append(ISSUE.to_row(response.data, columns))
        if "pull_request" in response.data:
            notes.append(f"#{number} is a pull request.")
        removed += response.removed
        fitting = count_fitting_rows(rows, DEFAULT_PAGE_BYTES)
        if fitting < len(rows):
            rows = rows[:fitting]
            notes.append(f"There is no room for #{number} and those behind it.")
            break
    cut_note = clip_note_of_rows(columns, rows)
    return Listing(note=join_notes(*notes, cut_note), removed=removed or None, columns=columns, rows=rows)


async def _resolve_login(api: Api, name: str | None) -> str | None:
    if not name:
        return name
    return await api.resolve_login(name)


async def _add_relations(
    api: Api, data: dict[str, Any], repo: Repo, number: int, issue: Mapping[str, Any]
) -> str | None:
    """Add the sub-issues of an issue, and those that it waits for or that wait for it, to its `data`.

    Returns:
        which of them are missing; None if none is.
    """
    hidden: list[str] = []
    notes: list[str] = []
    relations = {
        "sub_issue_list": ("sub_issues_summary.total", "sub_issues"),
        "blocked_by": ("issue_dependencies_summary.total_blocked_by", "dependencies/blocked_by"),
        "blocking": ("issue_dependencies_summary.total_blocking", "dependencies/blocking"),
    }
    for column, (count, path) in relations.items():
        if not pick(issue, count):
            continue
        try:
            related = await api.get(
                f"{issue_path(repo, number)}/{path}", describe_issue(repo, number), {"per_page": 50}, repo=repo
            )
        except (NotFound, Refused):
            hidden.append(column)
            continue
        data[column] = [to_related_row(api, item, repo.full_name) for item in related.data if item]
        if related.next_page:
            notes.append(f"`{column}` has the first {len(data[column])} of {pick(issue, count)}.")
    if hidden:
        names = " and ".join(f"`{column}`" for column in hidden)
        notes.append(f"This token is not shown {names}, which there are.")
    return join_notes(*notes)


async def _list_of_organisation(api: Api, repo: Repo, kind: IssueOption, path: str, projection: Projection) -> Listing:
    """Return all that an organisation defines of a kind: GitHub does not part it in pages."""
    description = f"the {kind} of `{repo.full_name}`"
    response = await api.get(f"/orgs/{repo.account}/{path}", description, repo=repo)
    columns = projection.choose_columns(None)
    rows = [projection.to_row(item, columns) for item in response.data if item]
    return Listing(total=len(rows), removed=response.removed or None, columns=columns, rows=rows)


async def _find_neighbour(
    api: Api, repo: Repo, number: int, action: Literal["first", "after"], after: int | None, child_id: int
) -> dict[str, int]:
    """Return the sub-issue beside which another is to stand, as GitHub wants it named."""
    description = f"the sub-issues of #{number} of `{repo.full_name}`"
    path = f"{issue_path(repo, number)}/sub_issues"
    response = await api.get(path, description, {"per_page": 100}, internal=True)
    others = [item for item in response.data if item["id"] != child_id]
    if action == "first":
        if not others:
            raise Invalid(f"#{number} has no other sub-issue.")
        return {"before_id": int(others[0]["id"])}
    for item in others:
        if item["number"] == after:
            return {"after_id": int(item["id"])}
    raise NotFound(f"#{number} has no sub-issue with the number `{after}`.", "Pass one of them as `after`.")


async def _add_sub_issue(api: Api, repo: WriteRepo, parent: int, child_id: int, number: int) -> None:
    description = f"#{number} under #{parent} of `{repo.full_name}`"
    path = f"{issue_path(repo, parent)}/sub_issues"
    await api.write("POST", path, description, {"sub_issue_id": child_id}, repo=repo)


def _conversation(repo: Repo, number: int) -> _Target:
    return _Target(issue_path(repo, number), f"#{number} of `{repo.full_name}`")


def _comment(repo: Repo, comment: int, review: bool) -> _Target:
    """Return the target for a comment: one on lines of code is a pull request's."""
    kind = "issues"
    if is_on_lines(comment, review):
        kind = "pulls"
    return _Target(f"{repo.path}/{kind}/comments/{comment}", f"comment `{comment}` in `{repo.full_name}`")


def _name_of_url(url: str) -> str:
    """Return `owner/name#1` for the API's address of an issue."""
    *_, owner, name, _, number = url.split("/")
    return f"{owner}/{name}#{number}"
