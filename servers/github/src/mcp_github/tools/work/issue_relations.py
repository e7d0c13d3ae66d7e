"""Relations of issues: dependencies, duplicates, and work for Copilot."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import Field

from mcp_batteries.errors import Invalid
from mcp_batteries.server.declaration.decorators import tool
from mcp_batteries.server.declaration.trusted import trusted
from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.pages import ListQuery, PageOptions, fetch_page, keep_served
from mcp_github.listing.projections import Item
from mcp_github.models import Done, Listing
from mcp_github.number_forms import Number, OptionalNumber
from mcp_github.policy import Policy, Repo
from mcp_github.tools.arguments import Limit, OptionalBody, OptionalRefName, OptionalTitle, RepoName, WriteRepoName

__all__ = ["COPILOT_AGENT", "edit_dependency", "find_duplicates", "run_copilot"]

DependencyAction = Literal["add", "remove"]

COPILOT_AGENT = "copilot-swe-agent[bot]"

# Words that are searched for, as many as GitHub joins by OR.
_MAX_SEARCH_WORDS = 6
_MIN_LIKENESS = 0.25
_MAX_COMPARED_ISSUES = 50
_COMPARED_FIELDS = ("number", "title", "state", "author", "trust")
_TITLE_WEIGHT = 4
_BODY_WEIGHT = 1
_MAX_BODY_CHARACTERS = 4000
_MAX_WORD_CHARACTERS = 40
_WORD = re.compile(r"[^\W_][\w.'-]*[^\W_]|[^\W_]")
# Words that are in so many issues that they say nothing of one.
_COMMON_TEXT = """
a an and are as at be but by can cannot could did do does doesn't for from get has have how i if in into is isn't it its
me my no not of on only or our please should so some that the their then there these they this to too was we were what
when where which while who why will with won't would you your issue bug error problem feature request
"""
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())


@dataclass(frozen=True)
class _Likeness:
    """How much an issue is like another, from 0 to 1, and the row that shows it."""

    value: float
    row: Sequence[Any]


@tool("Set what an issue waits for", toolset="planning", effect="write", idempotent=True, open_world=True)
async def edit_dependency(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    blocked_by: Number,
    action: DependencyAction = "add",
    other_repo: Annotated[Repo | None, trusted(Policy.repo), Field(description="If elsewhere")] = None,
) -> Done:
    """Mark an issue as blocked by another, or no longer.

    `get_issue` shows both directions. Parts of an issue: `edit_sub_issue`.
    """
    other = other_repo or repo
    description = f"issue #{blocked_by} of `{other.full_name}`"
    issue = await api.get(f"{other.path}/issues/{blocked_by}", description, internal=True)
    issue_id = int(issue.data["id"])
    path = f"{repo.path}/issues/{number}/dependencies/blocked_by"
    if action == "add":
        await api.write("POST", path, description, {"issue_id": issue_id}, repo=repo)
        verb = "waits"
    else:
        await api.write("DELETE", f"{path}/{issue_id}", description, repo=repo)
        verb = "no longer waits"
    return Done(done=f"#{number} {verb} for {other.full_name}#{blocked_by}.", uri=f"{repo.uri}/issues/{number}")


@tool("Find duplicates", toolset="planning", open_world=True)
async def find_duplicates(
    api: Api,
    *,
    repo: RepoName,
    number: OptionalNumber = None,
    title: OptionalTitle = None,
    body: OptionalBody = None,
    limit: Limit = 10,
) -> Listing:
    """Find issues that may say the same as issue `number`, or as one with this title and body would.

    Compares words, of closed ones too. Your own words: `search_github`.
    """
    if (number is None) == (title is None):
        raise Invalid("One of `number` and `title` has to be given.")
    issue: Item = {"title": title, "body": body}
    if number is not None:
        description = f"issue #{number} of `{repo.full_name}`"
        issue = (await api.get(f"{repo.path}/issues/{number}", description, internal=True)).data
    return await _find_like(api, repo, _weigh_words(issue), excluded=number, limit=limit)


@tool("Hand to Copilot", toolset="planning", effect="write", open_world=True)
async def run_copilot(
    api: Api,
    *,
    repo: WriteRepoName,
    number: Number,
    base: OptionalRefName = None,
    instructions: Annotated[OptionalBody, Field(description="Beside what the issue says")] = None,
) -> Done:
    """Have GitHub's Copilot work on an issue: it starts from the branch `base` and opens a pull request."""
    assignment = {"target_repo": repo.full_name}
    if base is not None:
        assignment["base_branch"] = base.name
    if instructions is not None:
        assignment["custom_instructions"] = instructions
    body = {"assignees": [COPILOT_AGENT], "agent_assignment": assignment}
    description = f"issue #{number} of `{repo.full_name}`"
    response = await api.write("POST", f"{repo.path}/issues/{number}/assignees", description, body, repo=repo)
    assignees = cast("list[Mapping[str, Any]]", response.data.get("assignees") or [])
    if not any("copilot" in str(assignee.get("login")).lower() for assignee in assignees):
        # GitHub leaves out, without a word, whom an issue can't be assigned to.
        raise Invalid(
            f"GitHub did not assign Copilot to #{number} of `{repo.full_name}`.",
            "Its owner has to turn the coding agent on, and the token has to be a user's.",
        )
    return Done(
        done=f"Copilot works on #{number}; a pull request appears in a moment.",
        uri=f"{repo.uri}/issues/{number}",
        url=response.data.get("html_url"),
    )


async def _find_like(api: Api, repo: Repo, weights: Counter[str], *, excluded: int | None, limit: int) -> Listing:
    words = [word for word, _ in weights.most_common(_MAX_SEARCH_WORDS)]
    if not words:
        raise Invalid("There is no word in it that could be searched for.", "Pass a `title` that says more.")
    likeness_by_number: dict[int, float] = {}

    def select(items: Sequence[Item]) -> Sequence[Item]:
        for item in items:
            likeness_by_number[int(item["number"])] = _compare(weights, _weigh_words(item))
        return keep_served(api, items, repo_getter=lambda item: repo.full_name)

    any_word = " OR ".join(f'"{word}"' for word in words)
    search = api.policy.restrict_query(any_word, repo, bound=False, has_logic=True)
    query = ListQuery(
        "/search/issues",
        f"issues like {words[0]}",
        ISSUE,
        params={"q": f"{search} is:issue", "advanced_search": True},
        find_list=lambda data: data.get("items", []),
        select=select,
    )
    hits = await fetch_page(api, query, PageOptions(_COMPARED_FIELDS, _MAX_COMPARED_ISSUES))
    likenesses: list[_Likeness] = []
    for row in hits.rows:
        hit_number, *_ = row
        value = round(likeness_by_number[hit_number], 2)
        if hit_number != excluded and value >= _MIN_LIKENESS:
            likenesses.append(_Likeness(value, row))
    likenesses.sort(key=lambda likeness: -likeness.value)
    return Listing(
        note="`likeness` compares words, from 0 to 1: read both before you call one a duplicate.",
        removed=hits.removed,
        columns=["likeness", *hits.columns],
        rows=[[likeness.value, *likeness.row] for likeness in likenesses[:limit]],
    )


def _weigh_words(issue: Item) -> Counter[str]:
    """Return how much each word says of an issue: more in its title, and twice is less than two times as much as
    once."""
    title = str(issue.get("title") or "")
    body = str(issue.get("body") or "")[:_MAX_BODY_CHARACTERS]
    counts = Counter[str]()
    for text, weight in ((title, _TITLE_WEIGHT), (body, _BODY_WEIGHT)):
        for word in _WORD.findall(text.casefold()):
            if word not in _COMMON_WORDS and len(word) < _MAX_WORD_CHARACTERS:
                counts[word] += weight
    return Counter({word: round(100 * (1 + math.log(count))) for word, count in counts.items()})


def _compare(one: Counter[str], other: Counter[str]) -> float:
    """Return the cosine of the angle between the two vectors of weights: 1 for the same words, 0 for none in common."""
    product = sum(weight * other[word] for word, weight in one.items())
    lengths = _length(one) * _length(other)
    if not lengths:
        return 0.0
    return product / lengths


def _length(weights: Counter[str]) -> float:
    return math.sqrt(sum(weight * weight for weight in weights.values()))
