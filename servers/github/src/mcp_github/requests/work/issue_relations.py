"""Relations of issues: dependencies, duplicates, and work for Copilot."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid
from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.pages import Row, listing, shown
from mcp_github.models import Done, Listing
from mcp_github.policy import Ref, Repo, WriteRepo

__all__ = ["COPILOT", "Dependency", "Planning"]

COPILOT = "copilot-swe-agent[bot]"
Dependency = Literal["add", "remove"]

_WORDS, _LEAST, _COMPARED = 6, 0.25, 50
"""Words that are searched for, as many as GitHub joins by OR; likeness that is shown; issues that are compared."""
_EVERYWHERE = """
a an and are as at be but by can cannot could did do does doesn't for from get has have how i if in into is isn't it its
me my no not of on only or our please should so some that the their then there these they this to too was we were what
when where which while who why will with won't would you your issue bug error problem feature request
"""
_COMMON = frozenset(_EVERYWHERE.split())
_WORD = re.compile(r"[^\W_][\w.'-]*[^\W_]|[^\W_]")


@dataclass(frozen=True)
class Planning:
    api: Api

    async def depend(
        self, repo: WriteRepo, number: int, other: Repo, blocked_by: int, action: Dependency
    ) -> Done:  # fmt: skip
        """Have an issue wait for another, or no longer."""
        what = f"issue #{blocked_by} of `{other.full}`"
        found = await self.api.get(f"{other.path}/issues/{blocked_by}", what, quiet=True)
        where, identity = f"{repo.path}/issues/{number}/dependencies/blocked_by", int(found.data["id"])
        if action == "add":
            await self.api.write("POST", where, what, {"issue_id": identity}, repo=repo)
        else:
            await self.api.write("DELETE", f"{where}/{identity}", what, repo=repo)
        verb = "waits" if action == "add" else "no longer waits"
        return Done(done=f"#{number} {verb} for {other.full}#{blocked_by}.", uri=f"{repo.uri}/issues/{number}")

    async def alike(
        self, repo: Repo, number: int | None, title: str, body: str, *, limit: int
    ) -> Listing:  # fmt: skip
        """Issues of the repository that may be about the same, the likeliest first."""
        if number is not None:
            what = f"issue #{number} of `{repo.full}`"
            found = (await self.api.get(f"{repo.path}/issues/{number}", what, quiet=True)).data
            title, body = str(found.get("title") or ""), str(found.get("body") or "")
        wanted = _weights(title, body)
        words = [word for word, _ in wanted.most_common(_WORDS)]
        if not words:
            raise Invalid("There is no word in it that could be searched for.", "Pass a `title` that says more.")
        query = self.api.policy.search(" OR ".join(f'"{word}"' for word in words), None, bound=False)
        texts: dict[int, tuple[float, str]] = {}

        def keep(items: Sequence[Row]) -> Sequence[Row]:
            for item in items:
                words = _weights(str(item.get("title") or ""), str(item.get("body") or ""))
                texts[int(item["number"])] = _likeness(wanted, words), str(item.get("title"))
            return shown(self.api, items, key=lambda item: repo.full)

        listed = await listing(
            self.api, "/search/issues", f"issues like {words[0]}", ISSUE,
            params={"q": f"repo:{repo.full} is:issue {query}"}, fields=("number", "title", "state", "author", "trust"),
            limit=_COMPARED, inside=lambda data: data.get("items", []), keep=keep,
        )  # fmt: skip
        rows = [[round(texts[row[0]][0], 2), *row] for row in listed.rows if row[0] != number]
        rows = sorted((row for row in rows if row[0] >= _LEAST), key=lambda row: -row[0])[:limit]
        return Listing(
            note="`likeness` compares words, from 0 to 1: read both before you call one a duplicate.",
            removed=listed.removed, columns=["likeness", *listed.columns], rows=rows,
        )  # fmt: skip

    async def assign_copilot(self, repo: WriteRepo, number: int, base: Ref | None, instructions: str | None) -> Done:
        """Have Copilot work on an issue, from the branch `base`."""
        given = {"target_repo": repo.full, "base_branch": base and base.name, "custom_instructions": instructions}
        body: dict[str, Any] = {
            "assignees": [COPILOT],
            "agent_assignment": {name: value for name, value in given.items() if value is not None},
        }
        what = f"issue #{number} of `{repo.full}`"
        made = await self.api.write("POST", f"{repo.path}/issues/{number}/assignees", what, body, repo=repo)
        people = [str(one.get("login")) for one in cast("list[Mapping[str, Any]]", made.data.get("assignees") or [])]
        if not any("copilot" in name.lower() for name in people):
            # GitHub leaves out, without a word, whom an issue can't be assigned to.
            raise Invalid(
                f"GitHub did not assign Copilot to #{number} of `{repo.full}`.",
                "Its owner has to turn the coding agent on, and the token has to be a user's.",
            )
        done = f"Copilot works on #{number}; a pull request appears in a moment."
        return Done(done=done, uri=f"{repo.uri}/issues/{number}", url=made.data.get("html_url"))


def _weights(title: str, body: str) -> Counter[str]:
    """How much each word says of an issue: more in its title, and twice is less than two times as much as once."""
    found: Counter[str] = Counter()
    for text, weight in ((title, 4), (body[:4000], 1)):
        for word in _WORD.findall(text.casefold()):
            if word not in _COMMON and len(word) < 40:
                found[word] += weight
    return Counter({word: round(100 * (1 + math.log(count))) for word, count in found.items()})


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    product = sum(weight * other[word] for word, weight in one.items())
    lengths = math.prod(math.sqrt(sum(weight * weight for weight in words.values())) for words in (one, other))
    return product / lengths if lengths else 0.0
