"""The conversation of an issue or pull request: its newest comments, and its timeline of who did what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_github.client.api import Api
from mcp_github.listing.columns import COMMENT
from mcp_github.listing.pages import ListQuery, PageOptions, count_fitting_rows, fetch_page, join_notes
from mcp_github.listing.projections import Item, Projection, clip_note_of_rows, pick
from mcp_github.models import Listing
from mcp_github.policy import Repo

__all__ = ["list_newest_comments", "list_timeline"]

_PAGE_ROWS = 100
_EVENT_GETTERS = ("label.name", "assignee.login", "requested_reviewer.login", "requested_team.slug", "milestone.title")


class _Comments(NamedTuple):
    """Comments, and how many invisible characters were taken out of them."""

    items: Sequence[dict[str, Any]]
    removed: int


def _subject_of(event: Item) -> str | None:
    """Return what an event is about: a label, a person, another issue or pull request, a commit or a new title."""
    for getter in _EVENT_GETTERS:
        value = pick(event, getter)
        if value:
            return str(value)
    issue = cast("Mapping[str, Any]", pick(event, "source.issue") or {})
    if issue:
        return _describe_source(issue)
    if event.get("rename"):
        return f"{pick(event, 'rename.from')} -> {pick(event, 'rename.to')}"
    return cast("str | None", event.get("commit_id") or event.get("sha") or event.get("state"))


def _describe_source(issue: Mapping[str, Any]) -> str:
    """Return where an issue or pull request is that refers to another, with its state and title."""
    kind = "pull request" if "pull_request" in issue else "issue"
    repo = pick(issue, "repository.full_name") or "/".join(str(issue.get("repository_url")).rsplit("/", 2)[-2:])
    state = issue.get("state")
    if pick(issue, "pull_request.merged_at"):
        state = "merged"
    return f"{kind} {repo}#{issue.get('number')} ({state}): {issue.get('title')}"


def _actor_of(event: Item) -> str | None:
    return pick(event, "actor.login") or pick(event, "user.login") or pick(event, "author.name")


def _time_of(event: Item) -> str | None:
    return event.get("created_at") or event.get("submitted_at") or pick(event, "committer.date")


_TIMELINE = Projection(
    {"event": "event", "actor": _actor_of, "at": _time_of, "subject": _subject_of, "id": "id"},
    ("event", "actor", "at", "subject"),
)


async def list_timeline(api: Api, repo: Repo, number: int, options: PageOptions) -> Listing:
    """Return who labelled, assigned, requested, referenced, renamed or closed an issue, oldest first."""
    description = f"the timeline of #{number} of `{repo.full_name}`"

    def select(items: Any) -> Any:
        return [item for item in items if _is_source_served(api, item)]

    query = ListQuery(f"{repo.path}/issues/{number}/timeline", description, _TIMELINE, repo=repo, select=select)
    return await fetch_page(api, query, options)


async def list_newest_comments(api: Api, repo: Repo, number: int, options: PageOptions) -> Listing:
    """Return a page of comments, the newest first; GitHub lists the oldest first, so pages are read from the end."""
    description = f"#{number} of `{repo.full_name}`"
    path = f"{repo.path}/issues/{number}"
    scope = [path, "newest"]
    if options.cursor is None:
        total = end = await _count_comments(api, path, description)
    else:
        total, end = Cursor.decode("newest", options.cursor, scope)
    start = max(0, end - options.limit)
    # Comments that came after the first page was read stand behind `end`, and are in nobody's way.
    comments = await _fetch_comments(api, repo, path, description, start, end)
    columns = COMMENT.choose_columns(options.fields)
    rows = [COMMENT.to_row(comment, columns) for comment in reversed(comments.items)]
    rows = rows[: count_fitting_rows(rows, DEFAULT_PAGE_BYTES)]
    end -= len(rows)
    cursor = remaining = None
    if rows and end > 0:
        cursor = Cursor.encode("newest", [total, end], scope)
        remaining = f"{end} more."
    note = join_notes(clip_note_of_rows(columns, rows), remaining)
    return Listing(cursor=cursor, note=note, total=total, removed=comments.removed or None, columns=columns, rows=rows)


async def _fetch_comments(api: Api, repo: Repo, path: str, description: str, start: int, end: int) -> _Comments:
    """Return the comments from `start` to before `end`, counted from 0, from those of GitHub's pages that have them."""
    first_page = start // _PAGE_ROWS + 1
    last_page = (max(end, 1) - 1) // _PAGE_ROWS + 1
    items: list[dict[str, Any]] = []
    removed = 0
    for page in range(first_page, last_page + 1):
        params = {"per_page": _PAGE_ROWS, "page": page}
        response = await api.get(f"{path}/comments", description, params, repo=repo)
        items += response.data
        removed += response.removed
    items_before = (first_page - 1) * _PAGE_ROWS
    return _Comments(items[start - items_before : end - items_before], removed)


async def _count_comments(api: Api, path: str, description: str) -> int:
    """Return how many there are, which the number of pages of one comment tells."""
    response = await api.get(f"{path}/comments", description, {"per_page": 1}, internal=True)
    return response.page_count or len(response.data)


def _is_source_served(api: Api, event: Item) -> bool:
    """Return whether the issue that an event refers to is of a repository that is served."""
    source = pick(event, "source.issue.repository.full_name")
    return not source or bool(api.policy.only_served([event], key=lambda item: str(source)))
