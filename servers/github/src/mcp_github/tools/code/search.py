"""One tool for everything that GitHub can search, restricted to what is served."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.server.declaration.decorators import OtherName, tool
from mcp_batteries.server.declaration.trusted import FreeText
from mcp_github.client.api import Api
from mcp_github.client.http import JSON_TYPE
from mcp_github.listing.columns import CODE, COMMIT_HIT, ISSUE, PERSON, PULL, REPOSITORY, TOPIC
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, join_notes, keep_served
from mcp_github.listing.projections import Item, Projection, pick
from mcp_github.models import Listing
from mcp_github.policy import Repo
from mcp_github.requests.pull_facts import add_pull_facts
from mcp_github.tools.arguments import Cursor, Fields, Limit, OptionalRepoName, choosing

__all__ = ["search_github"]

SearchKind = Literal["repositories", "code", "commits", "issues", "pull_requests", "users", "orgs", "topics"]

_TEXT_MATCH_TYPE = "application/vnd.github.text-match+json"
# Where a query says itself which of the two kinds of an index it wants.
_KIND_OF_ISSUE = re.compile(r"\b(?:is|type):(?:issue|pr|pull-request)\b", re.IGNORECASE)
_KIND_OF_ACCOUNT = re.compile(r"\btype:(?:user|org)\b", re.IGNORECASE)


# What is no qualifier of any index is a word that somebody pasted, such as `std::vector` or `TypeError:`.
_QUOTED = re.compile(r'"[^"]*"|`[^`]*`')
_QUALIFIER = re.compile(r"(?<!\S)-?([\w.-]+):(?=\S)")
# An issue has one of each.
_SINGLE_QUALIFIER = re.compile(r"(?<!\S)(repo|user|org|author):\S+", re.IGNORECASE)
_QUALIFIERS = re.compile(
    r"advanced|archived|assignee|author|author-date|author-email|author-name|base|blocked|blocking|closed|"
    r"comments|commenter|commits|committer|committer-date|committer-email|committer-name|content|created|draft|"
    r"enterprise|extension|filename|followers|fork|forks|fullname|good-first-issues|has|hash|head|"
    r"help-wanted-issues|id|in|interactions|involves|is|label|language|license|linked|location|locked|"
    r"memberships|merge|mentions|merged|milestone|mirror|name|no|org|parent|parent-issue|path|pr|project|"
    r"pushed|reactions|reason|repo|repositories|repos|review|review-requested|reviewed-by|sha|size|sort|"
    r"sponsorable|stars|state|status|sub-issue|symbol|team|team-review-requested|template|topic|topics|tree|"
    r"type|updated|user|user-review-requested|visibility|featured|curated|"
    r"(?:props|field)\.[\w.-]+",
    re.IGNORECASE,
)


def _is_merged(item: Item) -> bool | None:
    if "pull_request" not in item:
        return None
    return pick(item, "pull_request.merged_at") is not None


def _state(item: Item) -> str | None:
    """Return the state of a hit as other lists have it: `merged` is apart from `closed`."""
    if _is_merged(item):
        return "merged"
    return item.get("state")


_ISSUE_HIT = Projection(
    {
        **PULL.getters,
        **ISSUE.getters,
        "state": _state,
        "merged_at": "pull_request.merged_at",
        "merged": _is_merged,
    },
    ("repo", *ISSUE.default),
)


@dataclass(frozen=True)
class _Index:
    """What GitHub searches for one kind.

    Attributes:
        name: in the path.
        qualifier: restricts an index of two kinds to the one, unless the query chooses by itself.
        sorts: what GitHub sorts hits by; it ignores anything else.
        private_getter: finds whether a hit's repository is private; None where hits belong to no repository.
        reach: what of a repository the index leaves out.
    """

    name: str
    projection: Projection
    sorts: tuple[str, ...] = ()
    private_getter: str | None = "repository.private"
    reach: str = ""
    qualifier: str = ""
    own_qualifier: re.Pattern[str] | None = None

    @property
    def is_of_repositories(self) -> bool:
        return self.private_getter is not None

    @property
    def has_logic(self) -> bool:
        """Whether it knows `OR` and brackets."""
        return self.name == "issues"

    def parse_sort(self, sort: str | None, order: str | None) -> str | None:
        """Return what GitHub sorts hits by; None for the best first.

        Raises:
            Invalid: it knows no such order, and would list the best first without a word.
        """
        if sort is None:
            if order == "asc":
                raise Invalid("`order` is that of `sort`: without it the best come first.", "Pass `sort` too.")
            return None
        if sort.lower() not in self.sorts:
            choices = ", ".join(f"`{choice}`" for choice in self.sorts) or "nothing"
            raise Invalid(f"GitHub does not sort these by {quote(sort)}.", f"It sorts them by {choices}.")
        return sort.lower()

    def restrict(self, api: Api, query: str, repo: Repo | None) -> str:
        """Return `query` restricted to what is served, with the qualifier of the kind.

        Two that exclude each other would find nothing.
        """
        restricted = api.policy.restrict_query(query, repo, bound=self.is_of_repositories, has_logic=self.has_logic)
        if self.own_qualifier is None or self.own_qualifier.search(query):
            return restricted
        return f"{restricted} {self.qualifier}"


# A search of what belongs to somebody reads like a list of it, without forks.
_OWNER_QUALIFIER = re.compile(r"(?<!\S)(?:user|org|owner|repo):\S", re.IGNORECASE)
_FORK_QUALIFIER = re.compile(r"\bfork:", re.IGNORECASE)
# https://docs.github.com/search-github/searching-on-github/searching-code#considerations-for-code-search
_REACH_OF_CODE = (
    "GitHub searches the default branch only, files below 384 KB, repositories with changes or hits of the last year, "
    "and no fork with fewer stars than what it was forked from: `list_files` and `read_file` see the rest."
)
_REACH_OF_COMMITS = "GitHub searches the default branch only, and no forks: `list_commits` sees the rest."
_SORTS_OF_REPOSITORIES = ("stars", "forks", "help-wanted-issues", "updated")
_SORTS_OF_COMMITS = ("author-date", "committer-date")
_SORTS_OF_ISSUES = (
    "comments", "reactions", "reactions-+1", "reactions--1", "reactions-smile", "reactions-thinking_face",
    "reactions-heart", "reactions-tada", "interactions", "created", "updated",
)  # fmt: skip
_SORTS_OF_ACCOUNTS = ("followers", "repositories", "joined")
_INDEXES: Mapping[SearchKind, _Index] = {
    "repositories": _Index("repositories", REPOSITORY, _SORTS_OF_REPOSITORIES, private_getter="private"),
    "code": _Index("code", CODE, reach=_REACH_OF_CODE),
    "commits": _Index("commits", COMMIT_HIT, _SORTS_OF_COMMITS, reach=_REACH_OF_COMMITS),
    "issues": _Index("issues", _ISSUE_HIT, _SORTS_OF_ISSUES, qualifier="is:issue", own_qualifier=_KIND_OF_ISSUE),
    "pull_requests": _Index("issues", _ISSUE_HIT, _SORTS_OF_ISSUES, qualifier="is:pr", own_qualifier=_KIND_OF_ISSUE),
    "users": _Index(
        "users", PERSON, _SORTS_OF_ACCOUNTS, private_getter=None, qualifier="type:user", own_qualifier=_KIND_OF_ACCOUNT
    ),
    "orgs": _Index(
        "users", PERSON, _SORTS_OF_ACCOUNTS, private_getter=None, qualifier="type:org", own_qualifier=_KIND_OF_ACCOUNT
    ),
    "topics": _Index("topics", TOPIC, private_getter=None),
}


@tool(
    "Search GitHub", toolset=("repos", "issues", "pull_requests", "search"), open_world=True,
    also=tuple(OtherName(f"search_{kind}", {"kind": kind}) for kind in _INDEXES),
)  # fmt: skip
async def search_github(
    api: Api,
    *,
    kind: SearchKind,
    query: Annotated[FreeText, Field(description="Words, qualifiers as is:open")],
    repo: OptionalRepoName = None,
    sort: Annotated[FreeText | None, Field(description="stars, updated, comments ...")] = None,
    order: Literal["asc", "desc"] | None = None,
    fields: Annotated[Fields, choosing(_ISSUE_HIT, "issues")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Listing:
    """Search GitHub, or one `repo`, for repositories, code, commits, issues, people or topics (`kind`), best first.

    Few searches a minute. A repository's issues: `list_issues`.
    """
    index = _INDEXES[kind]
    sort = index.parse_sort(sort, order)
    restricted = index.restrict(api, query, repo)

    def select(items: Sequence[Item]) -> Sequence[Item]:
        if not index.is_of_repositories:
            return items
        return keep_served(
            api, items, repo_getter=index.projection.getters["repo"], private_getter=index.private_getter
        )

    accept = JSON_TYPE
    if kind == "code":
        accept = _TEXT_MATCH_TYPE
    list_query = ListQuery(
        f"/search/{index.name}",
        f"the search {quote(restricted)}",
        index.projection,
        # Servers that do not know it ignore it; others need it, or have it anyway.
        params={"q": restricted, "sort": sort, "order": order, "advanced_search": index.has_logic or None},
        find_list=lambda data: data.get("items", []),
        select=select,
        complete=partial(add_pull_facts, api),
        accept=accept,
    )
    page = await fetch_page(api, list_query, PageOptions(fields, limit, cursor))
    note = join_notes(page.note, _other_kind_note(kind, query))
    if kind == "repositories" and cursor is None:
        note = join_notes(note, _fork_note(restricted))
    if not page.rows and cursor is None:
        note = join_notes(note, _unknown_qualifier_note(query), index.reach)
        await _note_new_name(api, repo)
        if index.has_logic and not api.policy.allow_list:
            note = join_notes(note, _excluding_note(restricted))
    return page.model_copy(update={"note": note})


async def _note_new_name(api: Api, repo: Repo | None) -> None:
    """Have the client told if a repository has another name by now: GitHub's search finds nothing by the old one."""
    if repo is None:
        return
    # That nothing was found stays true if this is not answered.
    with suppress(Problem):
        await api.get(repo.path, f"repository `{repo.full_name}`", repo=repo, internal=True)


def _fork_note(query: str) -> str | None:
    """Return that the repositories of an owner come without forks, if a query asks for them so."""
    if _FORK_QUALIFIER.search(query) or not _OWNER_QUALIFIER.search(query):
        return None
    return "Forks are not among these: `fork:true` in the query adds them."


def _unknown_qualifier_note(query: str) -> str | None:
    """Return which words GitHub took for qualifiers that there are not, and found nothing by; None if it took none."""
    words = [match[1] for match in _QUALIFIER.finditer(_QUOTED.sub("", query))]
    unknown = [word for word in dict.fromkeys(words) if not _QUALIFIERS.fullmatch(word)]
    if not unknown:
        return None
    names = ", ".join(quote(f"{word}:") for word in unknown)
    return f"GitHub takes {names} for a qualifier: put words with a colon in quotation marks to search for them."


def _excluding_note(query: str) -> str | None:
    """Return which qualifiers of a query that found nothing can't hold at once; None if all can."""
    if " OR " in query:
        return None
    values: dict[str, dict[str, str]] = {}
    for match in _SINGLE_QUALIFIER.finditer(_QUOTED.sub("", query)):
        values.setdefault(match[1].lower(), {})[match[0].lower()] = match[0]
    for qualifiers in values.values():
        if len(qualifiers) > 1:
            either = f"({' OR '.join(qualifiers.values())})"
            return f"Nothing can be of all of these at once: for either, write {quote(either)}."
    return None


def _other_kind_note(kind: SearchKind, query: str) -> str | None:
    """Return that the query itself asks for another kind than `kind`, if it does: then that counts."""
    match = _KIND_OF_ISSUE.search(query)
    if match is None or kind not in ("issues", "pull_requests"):
        return None
    is_for_issues = match[0].lower().endswith("issue")
    if is_for_issues == (kind == "issues"):
        return None
    return f"The query says `{match[0]}`, which counts more than kind={kind}."
