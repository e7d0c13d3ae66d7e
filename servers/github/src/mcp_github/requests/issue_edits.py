"""Changes of one issue or of many alike, made or only shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.progress import report_progress
from mcp_github.call_context import current_call
from mcp_github.client.api import Api
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.projections import pick, pluck
from mcp_github.models import Done
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.batches import apply_to_each
from mcp_github.requests.name_changes import has_signs, merge_names

__all__ = ["IssueEdit", "describe_issue", "issue_done", "issue_path"]

# Lists of names in which +name adds and -name removes, with what names an object in GitHub's answer.
_NAME_LISTS = {"labels": "name", "assignees": "login"}
_DONE_COLUMNS = ("number", "title", "state", "labels", "assignees", "milestone")
# In other fields, GitHub ignores case.
_TEXTS = frozenset({"title", "body"})
_MAX_SHOWN_CHARACTERS = 60
_SHOWN_BEFORE_DIFFERENCE = 15
_CHANGED = "changed"
_NOT_SHOWN = frozenset({"duplicate_issue_id", "issue_field_values"})


@dataclass(frozen=True)
class IssueEdit:
    """What is to be different, as a request has it; lists of names may have signs.

    Attributes:
        shown: in words, what the request names by numbers of GitHub's own.
    """

    repo: WriteRepo
    changes: Mapping[str, Any]
    shown: Mapping[str, str]

    async def apply(self, api: Api, number: int) -> Done:
        """Change one issue."""
        changes = await self._resolve(api, number)
        path = issue_path(self.repo, number)
        response = await api.write("PATCH", path, describe_issue(self.repo, number), changes, repo=self.repo)
        return issue_done(self.repo, number, f"Changed #{number}.", response.data)

    async def apply_to_all(self, api: Api, numbers: Sequence[int]) -> Done:
        """Change several issues, each as far as GitHub does."""

        async def change(number: int) -> str:
            await self.apply(api, number)
            return _CHANGED

        return self._summarize(await apply_to_each(api, numbers, change, lambda number: f"#{number}"))

    def _summarize(self, results: Mapping[int, str]) -> Done:
        """Return how many were changed, and of those that are not as was asked what became of them."""
        changed_count = sum(result.startswith(_CHANGED) for result in results.values())
        rows = [[number, result] for number, result in results.items() if result != _CHANGED]
        data = None
        if rows:
            data = {"columns": ["number", "result"], "rows": rows}
        return Done(done=f"Changed {changed_count} of {len(results)} issues.", uri=self.repo.uri, data=data)

    async def preview(self, api: Api, numbers: Sequence[int]) -> Done:
        """Say what would be different of each issue; nothing is changed."""
        rows: list[list[Any]] = []
        for number in numbers:
            report_progress(len(rows), len(numbers), f"#{number}")
            current_call().github_seconds = 0.0
            try:
                path, description = issue_path(self.repo, number), describe_issue(self.repo, number)
                issue = (await api.get(path, description, repo=self.repo)).data
            except Problem as problem:
                rows.append([number, None, str(problem)])
                continue
            rows.append([number, issue.get("title"), "; ".join(self._differences(issue)) or "nothing"])
        return Done(
            done="Nothing was changed: this is what would be. Call again with dry_run=false.",
            uri=self.repo.uri,
            data={"columns": ["number", "title", "would_change"], "rows": rows},
        )

    async def _resolve(self, api: Api, number: int) -> dict[str, Any]:
        """Return the changes with all names that there are to be in the place of +name and -name."""
        changes = dict(self.changes)
        if not any(has_signs(changes.get(field)) for field in _NAME_LISTS):
            return changes
        path, description = issue_path(self.repo, number), describe_issue(self.repo, number)
        issue = await api.get(path, description, internal=True)
        for field in _NAME_LISTS:
            if has_signs(changes.get(field)):
                changes[field] = merge_names(_current_names(issue.data, field), changes[field])
        return changes

    def _differences(self, issue: Mapping[str, Any]) -> list[str]:
        """Return what would be different of an issue, each as a few words."""
        differences: list[str] = []
        for field, value in self.changes.items():
            if field in _NAME_LISTS:
                words = _name_difference(_current_names(issue, field), cast("Sequence[str]", value))
            else:
                words = _value_difference(field, _current_value(issue, field), value)
            if words and field not in _NOT_SHOWN:
                differences.append(f"{field}: {words}")
        return differences + [f"{field}: {words}" for field, words in self.shown.items()]


def issue_path(repo: Repo, number: int) -> str:
    return f"{repo.path}/issues/{number}"


def describe_issue(repo: Repo, number: int) -> str:
    return f"issue #{number} of `{repo.full_name}`"


def issue_done(repo: Repo, number: int, sentence: str, issue: Mapping[str, Any]) -> Done:
    """Return the result of a write that GitHub answered with an issue."""
    data = ISSUE.to_record(issue, _DONE_COLUMNS)
    return Done(done=sentence, uri=f"{repo.uri}/issues/{number}", url=issue.get("html_url"), data=data)


def _current_names(issue: Mapping[str, Any], field: str) -> list[str]:
    names = pick({field: issue.get(field) or []}, pluck(field, _NAME_LISTS[field]))
    return [str(name) for name in names]


def _current_value(issue: Mapping[str, Any], field: str) -> Any:
    value = issue.get(field)
    if not isinstance(value, dict):
        return value
    item = cast("dict[str, Any]", value)
    return item.get("number") or item.get("name")


def _name_difference(current: Sequence[str], wished: Sequence[str]) -> str:
    """Return which names would come and go, as +name and -name."""
    after = merge_names(current, wished)
    keys_before = {name.lower() for name in current}
    keys_after = {name.lower() for name in after}
    words = [f"+{name}" for name in after if name.lower() not in keys_before]
    words += [f"-{name}" for name in current if name.lower() not in keys_after]
    return " ".join(words)


def _value_difference(field: str, current: Any, value: Any) -> str:
    """Return a value before and after, of long texts where they differ; empty if it is as it shall be."""
    before, after = str(current or ""), str(value or "")
    if before == after or (field not in _TEXTS and before.lower() == after.lower()):
        return ""
    before, after = " ".join(before.split()), " ".join(after.split())
    if before == after:
        return "other white space"
    start = 0
    if max(len(before), len(after)) > _MAX_SHOWN_CHARACTERS:
        start = max(0, _count_equal(before, after) - _SHOWN_BEFORE_DIFFERENCE)
    return f"{_cut(before, start)} -> {_cut(after, start)}"


def _count_equal(before: str, after: str) -> int:
    """Return with how many equal characters both texts begin."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        count += 1
    return count


def _cut(text: str, start: int) -> str:
    """Return what is shown of `text` from `start` on."""
    if not text:
        return "none"
    shown = text[start : start + _MAX_SHOWN_CHARACTERS]
    if start:
        shown = f"…{shown}"
    if len(text) > start + _MAX_SHOWN_CHARACTERS:
        shown = f"{shown}…"
    return shown
