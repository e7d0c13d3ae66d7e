"""Issues and their comments; a pull request's conversation is that of an issue."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, NotFound, quote
from mcp_github.client.api import Api, after
from mcp_github.listing.columns import COMMENT, ISSUE, LABEL, MILESTONE, PERSON
from mcp_github.listing.pages import Row, Shape, clipped, cut_note, listing, names, pick, shown
from mcp_github.models import Done, Listing, Record
from mcp_github.policy import Repo, WriteRepo
from mcp_github.requests.graphql_queries import NODE_PLACE, REPLY

__all__ = ["Issues", "Options", "SubIssue", "check_thread", "merged"]

Options = Literal["labels", "milestones", "assignees", "types", "custom"]
SubIssue = Literal["add", "remove", "first", "after"]

_BODY = 8000
_TYPE = Shape({"name": "name", "description": "description"}, ("name", "description"))
_CUSTOM = Shape({"name": "name", "kind": "data_type", "choices": names("options")}, ("name", "kind", "choices"))
_LOGIN = Shape(PERSON.getters, ("login",))


@dataclass(frozen=True)
class Issues:
    api: Api

    async def list(
        self, repo: Repo, params: dict[str, Any], *, labels: Sequence[str] = (),
        custom: Mapping[str, Any] | None = None, fields: Sequence[str] | None, limit: int, cursor: str | None,
    ) -> Listing:  # fmt: skip
        """Issues, without the pull requests GitHub puts among them.

        Args:
            labels: all of which they have.
            custom: values of the organisation's fields, all of which they have.
        """
        if custom:
            values = await self._values(repo, custom)
            params["issue_field_values"] = ",".join(f"{item['slug']}:{item['value']}" for item in values)
        # GitHub divides what it is asked for at commas, and a label may have one.
        params["labels"] = ",".join(label for label in labels if "," not in label) or None
        wanted = {label.lower() for label in labels if "," in label}

        def asked_for(items: Sequence[Row]) -> Sequence[Row]:
            found = [item for item in items if "pull_request" not in item]
            return [item for item in found if wanted <= {name.lower() for name in pick(item, names("labels")) or ()}]

        return await listing(
            self.api, f"{repo.path}/issues", f"the issues of `{repo.full}`", ISSUE, params=params, repo=repo,
            fields=fields, limit=limit, cursor=cursor, keep=asked_for,
        )  # fmt: skip

    async def get(self, repo: Repo, number: int, fields: Sequence[str] | None) -> Record:
        """One issue, with its parent, sub-issues and dependencies where it has some."""
        where, what = f"{repo.path}/issues/{number}", f"issue #{number} of `{repo.full}`"
        hint = "`list_issues` and `list_pull_requests` have the numbers there are."
        found = await self.api.get(where, what, repo=repo, hint=hint)
        wanted = fields or [name for name in ISSUE.getters if name not in ("repo", "draft", "is_pull_request")]
        data = ISSUE.record(found.data, wanted)
        if data.get("body") and len(wanted) > 1:
            data["body"] = pick(found.data, clipped("body", _BODY))
        if pick(found.data, "sub_issues_summary.total") and not fields:
            subs = await self.api.get(f"{where}/sub_issues", what, {"per_page": 50}, repo=repo)
            data["sub_issue_list"] = [self._child(item, repo) for item in subs.data if item]
        for kind in ("blocked_by", "blocking"):
            if pick(found.data, f"issue_dependencies_summary.total_{kind}") and not fields:
                others = await self.api.get(f"{where}/dependencies/{kind}", what, {"per_page": 50}, repo=repo)
                data[kind] = [self._child(item, repo) for item in others.data if item]
        if url := found.data.get("parent_issue_url"):
            parts = str(url).split("/")
            data["parent"] = f"{parts[-4]}/{parts[-3]}#{parts[-1]}"
        note = cut_note("body", data.values())
        note = "This is a pull request: use get_pull_request." if "pull_request" in found.data else note
        return Record(uri=f"{repo.uri}/issues/{number}", note=note, removed=found.removed or None, data=data)

    def _child(self, item: dict[str, Any], repo: Repo) -> list[str]:
        full = str(pick(item, ISSUE.getters["repo"]) or repo.full)
        name = f"#{item['number']}" if full.lower() == repo.key else f"{full}#{item['number']}"
        if shown(self.api, [item], key=lambda item: full):
            return [name, item["state"], item["title"]]
        return [name, "not served here"]

    async def comments(
        self,
        repo: Repo,
        number: int,
        *,
        since: str | None,
        fields: Sequence[str] | None,
        limit: int,
        cursor: str | None,
    ) -> Listing:
        """What was said under an issue or a pull request, oldest first."""
        return await listing(
            self.api, f"{repo.path}/issues/{number}/comments", f"#{number} of `{repo.full}`", COMMENT,
            params={"since": since}, repo=repo, fields=fields, limit=limit, cursor=cursor,
        )  # fmt: skip

    async def options(self, repo: Repo, kind: Options, *, limit: int, cursor: str | None) -> Listing:
        """What an issue of this repository can be given."""
        what = f"the {kind} of `{repo.full}`"
        path, shape = f"{repo.path}/{kind}", _LOGIN
        if kind in ("types", "custom"):
            # Those of the organisation.
            place, shape = ("issue-types", _TYPE) if kind == "types" else ("issue-fields", _CUSTOM)
            found = await self.api.get(f"/orgs/{repo.account}/{place}", what, repo=repo)
            columns = shape.choose(None)
            rows = [shape.row(item, columns) for item in found.data if item]
            return Listing(removed=found.removed or None, columns=columns, rows=rows)
        if kind != "assignees":
            shape = LABEL if kind == "labels" else MILESTONE
        return await listing(self.api, path, what, shape, repo=repo, limit=limit, cursor=cursor)

    async def create(self, repo: WriteRepo, body: dict[str, Any], *, parent: int | None) -> Done:
        what = f"the issues of `{repo.full}`"
        made = await self.api.write("POST", f"{repo.path}/issues", what, body, repo=repo)
        number = int(made.data["number"])
        done = self._done(repo, number, f"Created issue #{number}.", made.data)
        if parent is not None:
            with after(f"Issue #{number} is created", f"`edit_sub_issue` puts #{number} under another."):
                await self._sub(repo, parent, int(made.data["id"]), number)
        return done

    async def edit(
        self, repo: WriteRepo, number: int, changes: dict[str, Any], *, custom: Mapping[str, Any] | None,
        duplicate_of: int | None,
    ) -> Done:  # fmt: skip
        """Change what `changes` names; lists of `+name` and `-name` add and remove, others replace."""
        where, what = f"{repo.path}/issues/{number}", f"issue #{number} of `{repo.full}`"
        if custom:
            values = await self._values(repo, custom)
            changes["issue_field_values"] = [{key: item[key] for key in ("field_id", "value")} for item in values]
        if duplicate_of is not None:
            of = f"issue #{duplicate_of} of `{repo.full}`"
            first = await self.api.get(f"{repo.path}/issues/{duplicate_of}", of, quiet=True)
            changes |= {"state": "closed", "state_reason": "duplicate", "duplicate_issue_id": int(first.data["id"])}
        if any(_relative(changes.get(name)) for name in ("labels", "assignees")):
            now = await self.api.get(where, what, quiet=True)
            for name, key in (("labels", "name"), ("assignees", "login")):
                if _relative(changes.get(name)):
                    found = cast("list[Any]", now.data.get(name) or [])
                    have = [item if isinstance(item, str) else str(item[key]) for item in found]
                    changes[name] = merged(have, changes[name])
        if not changes:
            raise Invalid("Nothing was given to change.", "Pass what is to be different.")
        made = await self.api.write("PATCH", where, what, changes, repo=repo)
        return self._done(repo, number, f"Changed #{number}.", made.data)

    async def _values(self, repo: Repo, custom: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
        what = f"the custom fields of `{repo.owner}`"
        listed = await self.api.get(f"/orgs/{repo.account}/issue-fields", what, quiet=True)
        known = {str(field["name"]).lower(): field for field in listed.data}
        values: list[dict[str, Any]] = []
        for name, value in custom.items():
            if (field := known.get(name.lower())) is None:
                there = ", ".join(quote(str(field["name"]), 60) for field in listed.data) or "none"
                raise NotFound(f"`{repo.owner}` has no custom field {quote(name)}.", f"There are: {there}.")
            # The name in a filter is the field's, written as in an address.
            slug = str(field.get("slug") or re.sub(r"\W+", "-", str(field["name"]).lower()).strip("-"))
            values.append({"field_id": int(field["id"]), "value": value, "slug": slug})
        return values

    async def comment(self, repo: WriteRepo, number: int, body: str, thread: str | None) -> Done:
        """Say something under an issue or pull request, or in a thread of a review."""
        what = f"#{number} of `{repo.full}`"
        if thread is not None:
            await check_thread(self.api, repo, number, thread)
            given = {"pullRequestReviewThreadId": thread, "body": body}
            made = await self.api.graphql(REPLY, {"input": given}, what, repo=repo, writes=True)
            comment = made.data["addPullRequestReviewThreadReply"]["comment"]
            return Done(done=f"Replied in #{number}.", url=comment["url"], data={"comment": comment["databaseId"]})
        made = await self.api.write("POST", f"{repo.path}/issues/{number}/comments", what, {"body": body}, repo=repo)
        return Done(done=f"Commented on #{number}.", url=made.data.get("html_url"), data={"comment": made.data["id"]})

    async def edit_comment(self, repo: WriteRepo, comment: int, body: str, *, review: bool) -> Done:
        path, what = self._comment(repo, comment, review=review)
        made = await self.api.write("PATCH", path, what, {"body": body}, repo=repo)
        return Done(done=f"Changed comment {comment}.", url=made.data.get("html_url"))

    async def delete_comment(self, repo: WriteRepo, comment: int, *, review: bool) -> Done:
        path, what = self._comment(repo, comment, review=review)
        await self.api.write("DELETE", path, what, repo=repo)
        return Done(done=f"Deleted comment {comment}.")

    async def react(
        self, repo: WriteRepo, reaction: str, *, number: int | None, comment: int | None, review: bool
    ) -> Done:
        if (number is None) == (comment is None):
            raise Invalid("One of `number` and `comment` has to be given.")
        path, what = f"{repo.path}/issues/{number}", f"#{number} of `{repo.full}`"
        if comment is not None:
            path, what = self._comment(repo, comment, review=review)
        await self.api.write("POST", f"{path}/reactions", what, {"content": reaction}, repo=repo)
        return Done(done=f"Reacted with {reaction}.")

    async def edit_sub_issue(
        self, repo: WriteRepo, number: int, child: Repo, child_number: int, action: SubIssue, after: int | None
    ) -> Done:
        """Put an issue under another, take it away, or move it in the order."""
        what = f"issue #{child_number} of `{child.full}`"
        found = await self.api.get(f"{child.path}/issues/{child_number}", what, quiet=True)
        identity, where = int(found.data["id"]), f"{repo.path}/issues/{number}"
        if action == "add":
            await self._sub(repo, number, identity, child_number)
        elif action == "remove":
            await self.api.write("DELETE", f"{where}/sub_issue", what, {"sub_issue_id": identity}, repo=repo)
        else:
            body = {"sub_issue_id": identity, **await self._neighbour(repo, number, action, after, identity)}
            await self.api.write("PATCH", f"{where}/sub_issues/priority", what, body, repo=repo)
        return Done(done=f"Sub-issues of #{number}: {action} #{child_number}.", uri=f"{repo.uri}/issues/{number}")

    async def _neighbour(
        self, repo: Repo, number: int, action: SubIssue, after: int | None, identity: int
    ) -> dict[str, int]:
        what = f"the sub-issues of #{number} of `{repo.full}`"
        subs = await self.api.get(f"{repo.path}/issues/{number}/sub_issues", what, {"per_page": 100}, quiet=True)
        others = [item for item in subs.data if item["id"] != identity]
        if action == "first":
            if not others:
                raise Invalid(f"#{number} has no other sub-issue.")
            return {"before_id": int(others[0]["id"])}
        for item in others:
            if item["number"] == after:
                return {"after_id": int(item["id"])}
        raise NotFound(f"#{number} has no sub-issue with the number `{after}`.", "Pass one of them as `after`.")

    async def _sub(self, repo: WriteRepo, parent: int, identity: int, number: int) -> None:
        where, what = f"{repo.path}/issues/{parent}/sub_issues", f"#{number} under #{parent} of `{repo.full}`"
        await self.api.write("POST", where, what, {"sub_issue_id": identity}, repo=repo)

    @staticmethod
    def _comment(repo: Repo, comment: int, *, review: bool) -> tuple[str, str]:
        place = "pulls" if review else "issues"
        return f"{repo.path}/{place}/comments/{comment}", f"comment `{comment}` in `{repo.full}`"

    @staticmethod
    def _done(repo: Repo, number: int, done: str, data: dict[str, Any]) -> Done:
        about = ISSUE.record(data, ("number", "title", "state", "labels", "assignees", "milestone"))
        return Done(done=done, uri=f"{repo.uri}/issues/{number}", url=data.get("html_url"), data=about)


async def check_thread(api: Api, repo: Repo, number: int, thread: str) -> None:
    """Raise `NotFound` unless `thread` is one of that pull request's: an opaque id could be of any repository."""
    found = await api.graphql(NODE_PLACE, {"id": thread}, f"the thread {quote(thread)}", quiet=True)
    node: dict[str, Any] = found.data.get("node") or {}
    place = str(pick(node, "repository.nameWithOwner") or "").lower()
    if place != repo.key or pick(node, "pullRequest.number") != number:
        raise NotFound(
            f"#{number} of `{repo.full}` has no thread {quote(thread)}.", "`list_reviews` with kind=threads shows them."
        )


def merged(now: Sequence[str], changes: Sequence[str]) -> Sequence[str]:
    """`now` after `changes`: `+name` adds, `-name` removes, plain names replace everything."""
    if not _relative(changes):
        return changes
    if not all(item[:1] in "+-" for item in changes):
        raise Invalid(
            "Names with and without a sign are mixed.", "Write +name and -name, or all the names there are to be."
        )
    gone = {item[1:].lower() for item in changes if item[0] == "-"}
    kept = [item for item in now if item.lower() not in gone]
    have = {item.lower() for item in kept}
    return kept + [item[1:] for item in changes if item[0] == "+" and item[1:].lower() not in have]


def _relative(names: Sequence[str] | None) -> bool:
    return bool(names) and any(item[:1] in ("+", "-") for item in names or ())
