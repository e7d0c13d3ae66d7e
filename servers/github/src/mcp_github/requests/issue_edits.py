"""Changes of one issue or of many alike, made or only shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Problem
from mcp_batteries.progress import report_progress
from mcp_github.call_context import current_call
from mcp_github.client.api import Api, AppliedChanges, partial_success
from mcp_github.listing.columns import ISSUE
from mcp_github.listing.projections import pick, pluck
from mcp_github.models import Done
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.batches import apply_to_each, tabulate_remarkable
from mcp_github.requests.name_changes import NameDifference, compare_names, has_signs

__all__ = ["IssueEdit", "apply_edits", "describe_issue", "issue_done", "issue_path", "preview_edits"]

# Lists of names in which +name adds and -name removes, with what names an object in GitHub's answer.
_NAME_LISTS = {"labels": "name", "assignees": "login"}
_DONE_COLUMNS = ("number", "title", "state", "labels", "assignees", "milestone")
# In other fields, GitHub ignores case.
_TEXTS = frozenset({"title", "body"})
_MAX_SHOWN_CHARACTERS = 60
_SHOWN_BEFORE_DIFFERENCE = 15
_DONE = "done"
# What a field of a request is called in lists.
_CUSTOM = "issue_field_values"
_COLUMNS_OF_FIELDS = {_CUSTOM: "custom"}
_NOT_SHOWN = frozenset({"duplicate_issue_id", _CUSTOM})


@dataclass(frozen=True)
class IssueEdit:
    """What is to be different of an issue, as a request has it; lists of names may have signs.

    Attributes:
        words: what the request names by numbers of GitHub's own, as people call it, by field.
        comment: what is said beneath the issue before it is changed.
    """

    repo: WriteRepo
    changes: Mapping[str, Any]
    words: Mapping[str, str]
    comment: str | None = None

    async def apply(self, api: Api, number: int) -> Done:
        """Change one issue."""
        issue = await self.send(api, number)
        columns = dict.fromkeys([*_DONE_COLUMNS, *self.changed_columns])
        data = ISSUE.to_record(issue, list(columns))
        uri = f"{self.repo.uri}/issues/{number}"
        return Done(done=f"{_verb_of([self])} #{number}.", uri=uri, url=issue.get("html_url"), data=data)

    async def send(self, api: Api, number: int) -> Mapping[str, Any]:
        """Comment on an issue, then change it; return what GitHub's answer says of it."""
        if not self.changes:
            return {"number": number, "html_url": await self._add_comment(api, number)}
        if self.comment is None:
            return await self._change(api, number)
        await self._add_comment(api, number)
        with partial_success(f"#{number} has the comment", "Call again without `add_comment`."):
            return await self._change(api, number)

    async def _change(self, api: Api, number: int) -> Mapping[str, Any]:
        """Change one issue, lists of names first: whoever hears that it is closed sees those that it is to have."""
        path, description = issue_path(self.repo, number), describe_issue(self.repo, number)
        values = dict(self.changes)
        signed_lists = {field: values.pop(field) for field in _NAME_LISTS if has_signs(self.changes.get(field))}
        custom: list[dict[str, Any]] = values.pop(_CUSTOM, [])
        issue: Mapping[str, Any] = {}
        if signed_lists or custom:
            issue = (await api.get(path, description, internal=True)).data
        applied = AppliedChanges(number)
        for field, names in signed_lists.items():
            difference = compare_names(_current_names(issue, field), names)
            with applied.step(field):
                issue = {**issue, **await self._change_names(api, number, field, difference)}
        if custom:
            with applied.step("custom"):
                issue = {**issue, _CUSTOM: await self._change_custom(api, number, custom, issue.get(_CUSTOM) or [])}
        if not values:
            return issue
        with applied.step("values"):
            response = await api.write("PATCH", path, description, values, repo=self.repo)
        return response.data

    async def _change_names(self, api: Api, number: int, field: str, difference: NameDifference) -> Mapping[str, Any]:
        """Add names to a list of an issue and take others off it; return the list as GitHub answers it.

        A whole list would undo what others, such as a bot that reads the comment, have changed in it meanwhile.
        """
        path, description = f"{issue_path(self.repo, number)}/{field}", describe_issue(self.repo, number)
        answer: Any = None
        if difference.added:
            answer = (await api.write("POST", path, description, {field: difference.added}, repo=self.repo)).data
        for removal_path, body in _list_removals(api, path, field, difference.removed):
            answer = (await api.write("DELETE", removal_path, description, body, repo=self.repo)).data
        match answer:
            case list():
                return {field: answer}
            case dict():
                return {field: answer[field]}
            case _:
                return {}

    async def _change_custom(
        self, api: Api, number: int, wished: Sequence[dict[str, Any]], current: Sequence[Mapping[str, Any]]
    ) -> Any:
        """Set values of custom fields and clear others; return those that GitHub answers with.

        As values of the issue itself they would be all that it has: GitHub drops those of other fields.
        """
        path, description = f"{issue_path(self.repo, number)}/issue-field-values", describe_issue(self.repo, number)
        present_ids: set[Any] = {each.get("issue_field_id") for each in current}
        cleared_ids = [each["field_id"] for each in wished if _is_cleared(each)]
        for field_id in cleared_ids:
            if field_id in present_ids:
                await api.write("DELETE", f"{path}/{int(field_id)}", description, repo=self.repo)
        given = [each for each in wished if not _is_cleared(each)]
        if not given:
            # An empty list would clear all of them.
            return [each for each in current if each.get("issue_field_id") not in cleared_ids]
        return (await api.write("POST", path, description, {_CUSTOM: given}, repo=self.repo)).data

    async def _add_comment(self, api: Api, number: int) -> str | None:
        """Comment on an issue; return the comment's address."""
        path = f"{issue_path(self.repo, number)}/comments"
        description = describe_issue(self.repo, number)
        response = await api.write("POST", path, description, {"body": self.comment}, repo=self.repo)
        return response.data.get("html_url")

    @property
    def changed_columns(self) -> list[str]:
        """The columns of an issue that show what was changed, but for texts, which the caller has."""
        names = [_COLUMNS_OF_FIELDS.get(name, name) for name in self.changes]
        return [name for name in names if name in ISSUE.getters and name not in _TEXTS]

    def list_differences(self, issue: Mapping[str, Any]) -> list[str]:
        """Return what would be different of an issue, each as a few words."""
        differences: list[str] = []
        for field, value in self.changes.items():
            if field in _NOT_SHOWN:
                continue
            words = self._describe_difference(issue, field, value)
            if words:
                differences.append(f"{field}: {words}")
        differences += [f"{field}: {words}" for field, words in self.words.items() if field not in self.changes]
        if self.comment is not None:
            differences.append(f"comment: {_cut(self.comment, 0)}")
        return differences

    def _describe_difference(self, issue: Mapping[str, Any], field: str, value: Any) -> str:
        """Return how a field would differ; empty if it is as it shall be."""
        if field in _NAME_LISTS:
            return _describe_names(_current_names(issue, field), cast("Sequence[str]", value))
        if field == "milestone":
            if pick(issue, "milestone.number") == value:
                return ""
            return f"{pick(issue, 'milestone.title') or 'none'} -> {self.words[field]}"
        return _value_difference(field, _current_value(issue, field), value)


async def apply_edits(api: Api, repo: WriteRepo, edits: Mapping[int, IssueEdit]) -> Done:
    """Change several issues, each as far as GitHub does; name only those of which there is more to say."""

    async def change(number: int) -> str:
        await edits[number].send(api, number)
        return _DONE

    results = await apply_to_each(api, list(edits), change, lambda number: f"#{number}")
    done_count = sum(result.startswith(_DONE) for result in results.values())
    return Done(
        done=f"{_verb_of(edits.values())} {done_count} of {len(results)} issues.",
        uri=repo.uri,
        data=tabulate_remarkable("number", results, _DONE) or None,
    )


async def preview_edits(api: Api, repo: WriteRepo, edits: Mapping[int, IssueEdit]) -> Done:
    """Say what would be different of each issue; nothing is changed."""
    rows: list[list[Any]] = []
    for number, edit in edits.items():
        report_progress(len(rows), len(edits), f"#{number}")
        current_call().github_seconds = 0.0
        try:
            issue = (await api.get(issue_path(repo, number), describe_issue(repo, number), repo=repo)).data
        except Problem as problem:
            rows.append([number, None, str(problem)])
            continue
        rows.append([number, issue.get("title"), "; ".join(edit.list_differences(issue)) or "nothing"])
    return Done(
        done="Nothing was changed: this is what would be. Call again with dry_run=false.",
        uri=repo.uri,
        data={"columns": ["number", "title", "would_change"], "rows": rows},
    )


def _verb_of(edits: Collection[IssueEdit]) -> str:
    """Return what edits do, as the first word of a sentence."""
    if all(edit.comment is None for edit in edits):
        return "Changed"
    if not any(edit.changes for edit in edits):
        return "Commented on"
    return "Changed and commented on"


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
    return cast("dict[str, Any]", value).get("name")


def _list_removals(api: Api, path: str, field: str, names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return path and body of the requests that take names off a list of an issue; GitHub takes labels one by one."""
    if field == "labels":
        return [(f"{path}/{api.policy.label(name).path}", None) for name in names]
    if not names:
        return []
    return [(path, {field: names})]


def _is_cleared(value: Mapping[str, Any]) -> bool:
    return value["value"] in (None, "")


def _describe_names(current: Sequence[str], wished: Sequence[str]) -> str:
    """Return which names would come and go, as +name and -name."""
    difference = compare_names(current, wished)
    return " ".join([*(f"+{name}" for name in difference.added), *(f"-{name}" for name in difference.removed)])


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
    excerpt = text[start : start + _MAX_SHOWN_CHARACTERS]
    if start:
        excerpt = f"…{excerpt}"
    if len(text) > start + _MAX_SHOWN_CHARACTERS:
        excerpt = f"{excerpt}…"
    return excerpt
