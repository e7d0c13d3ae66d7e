"""The hub by GraphQL: GitHub's own schema over the repository's state.

A field that the state does not know is null, empty or its type's plainest value; a mutation that it does not know
fails.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from graphql import (
    GraphQLEnumType,
    GraphQLError,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    OperationType,
    execute_sync,  # pyright: ignore[reportUnknownVariableType]
    parse,
)

from blind.hub_state import (
    NOW,
    REPOSITORY,
    USER,
    Branch,
    Issue,
    Pull,
    Release,
    Repository,
    Review,
    Run,
    Search,
    Unknown,
    change_issue,
    decision_of,
    is_bot,
    node_id,
)
from github_server.oracle.graph import schema

_Node = dict[str, Any]
_WEB = f"https://github.com/{REPOSITORY}"
_PLAIN = {"Int": 0, "Float": 0.0, "Boolean": False, "DateTime": "2026-01-01T00:00:00Z", "URI": _WEB}

# GitHub's words before the number of an issue that a merge closes.
_CLOSING = re.compile(r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):? #(\d+)\b", re.IGNORECASE)


class Graph:
    """Answers queries of one repository."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def answer(self, query: str, variables: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a query as GitHub would send it."""
        try:
            document = parse(query)
        except GraphQLError as error:
            return {"errors": [{"message": error.message}]}
        result: Any = execute_sync(
            schema(), document, root_value=self._root(), variable_values=dict(variables), field_resolver=_resolve,
            type_resolver=_type,
        )  # fmt: skip
        answer: dict[str, Any] = {"data": result.data}
        if result.errors:
            kinds = {"type": "NOT_FOUND"}
            answer["errors"] = [{"message": error.message, "path": error.path, **kinds} for error in result.errors]
        return answer

    def _root(self) -> _Node:
        return {
            "repository": self._find_repository, "search": self._search, "node": self._node,
            "nodes": self._nodes, "viewer": _actor(USER), "user": _actor,
            "rateLimit": {"remaining": 4999, "limit": 5000, "cost": 1, "resetAt": "2100-01-01T00:00:00Z"},
            "addLabelsToLabelable": self._add_labels, "removeLabelsFromLabelable": self._remove_labels,
            "closeIssue": self._close, "updateIssue": self._update, "updatePullRequest": self._update,
            "addComment": self._comment,
        }  # fmt: skip

    def _find_repository(self, owner: str, name: str, **_: Any) -> _Node:
        if f"{owner}/{name}".lower() != REPOSITORY:
            raise GraphQLError(f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return self._shown_repository()

    def _shown_repository(self) -> _Node:
        owner, name = REPOSITORY.split("/")
        main = next((branch for branch in self._repository.branches if branch.name == "main"), None)
        return {
            "id": "R_1", "name": name, "nameWithOwner": REPOSITORY, "owner": _actor(owner), "url": _WEB,
            "hasIssuesEnabled": True, "defaultBranchRef": self._ref(main) if main else {"name": "main"},
            "viewerPermission": "ADMIN", "issues": self._issues, "pullRequests": self._pulls, "issue": self._one,
            "pullRequest": self._one, "issueOrPullRequest": self._one, "isPrivate": False, "visibility": "PUBLIC",
            "labels": _listing([*map(_label, self._repository.labels)]),
            "label": self._label,
            "milestones": self._milestones, "milestone": self._milestone,
            "releases": _listing(self._releases()),
            "release": self._release_tagged,
            "latestRelease": next((item for item in self._releases() if item["isLatest"]), None),
            "refs": self._refs, "ref": self._one_ref, "object": self._object, "mergeCommitAllowed": True,
            "assignableUsers": _listing([_actor(login) for login in (USER, "ben", "chen")]),
        }  # fmt: skip

    # Issues and pull requests
    def _node(self, id: str) -> _Node | None:  # noqa: A002
        kind, _, number = id.partition("_")
        if kind in ("I", "PR") and number.isdigit():
            return self._one(int(number))
        if kind == "R":
            return {"__typename": "Repository", **self._shown_repository()}
        return self._milestone(int(number)) if kind == "MI" else None

    def _nodes(self, ids: Sequence[str]) -> list[_Node | None]:
        return [self._node(item) for item in ids]

    def _issue_of(self, identity: str) -> Issue:
        return self._repository.issues[int(identity.partition("_")[2])]

    def _one(self, number: int) -> _Node:
        if number not in self._repository.issues:
            raise GraphQLError(f"Could not resolve to an issue or pull request with the number of {number}.")
        return self._shown(self._repository.issues[number])

    def _shown(self, issue: Issue) -> _Node:
        shown: _Node = {
            "__typename": "Issue", "id": node_id(issue), "number": issue.number, "title": issue.title,
            "body": issue.body, "bodyText": issue.body, "databaseId": 10_000 + issue.number,
            "state": issue.state.upper(), "author": _actor(issue.author),
            "stateReason": issue.reason.upper() or None, "createdAt": issue.created, "closed": bool(issue.closed),
            "updatedAt": issue.closed or issue.created, "closedAt": issue.closed or None,
            "repository": self._repository_name, "labels": _listing([*map(_label, issue.labels)]),
            "assignees": _listing([*map(_actor, issue.assignees)]),
            "comments": _listing(_comments(issue)), "url": f"{_WEB}/issues/{issue.number}",
            "milestone": self._milestone_titled(issue.milestone) if issue.milestone else None,
        }  # fmt: skip
        if issue.pull is None:
            return shown
        pull = issue.pull
        commit = self._commit(pull.sha, issue.title, issue.author, issue.created)
        people = {review.author: review for review in pull.reviews}
        opinions = {review.author: review for review in pull.reviews if review.state != "COMMENTED"}
        return {
            **shown, "__typename": "PullRequest", "baseRefName": pull.base, "headRefName": pull.head, "url":
            f"{_WEB}/pull/{issue.number}", "headRefOid": pull.sha, "isDraft": pull.is_draft, "stateReason": None,
            "merged": bool(pull.merged_at), "mergedAt": pull.merged_at or None, "mergeable": "MERGEABLE",
            "state": "MERGED" if pull.merged_at else issue.state.upper(), "reviewDecision": _decision(pull),
            "mergedBy": _actor("ben") if pull.merged_at else None, "headRepository": self._repository_name,
            "headRepositoryOwner": _actor("octo"), "changedFiles": 1, "additions": 3, "deletions": 1,
            "reviews": _listing([*map(_review, pull.reviews)]),
            "latestReviews": _listing([*map(_review, people.values())]),
            "latestOpinionatedReviews": _listing([*map(_review, opinions.values())]),
            "commits": _listing([{"commit": commit}]),
            "statusCheckRollup": commit["statusCheckRollup"], "mergeStateStatus": "CLEAN",
            "mergeCommit": commit if pull.merged_at else None, "baseRepository": self._repository_name,
            "closingIssuesReferences": _listing([self._shown(closed) for closed in self._closed_by(issue)]),
        }  # fmt: skip

    def _closed_by(self, issue: Issue) -> list[Issue]:
        """Return the issues, open or closed, that a pull request into the default branch says it closes."""
        if issue.pull is None or issue.pull.base != "main":
            return []
        numbers = dict.fromkeys(int(number) for number in _CLOSING.findall(issue.body))
        issues = [self._repository.issues[number] for number in numbers if number in self._repository.issues]
        return [closed for closed in issues if closed.pull is None]

    @property
    def _repository_name(self) -> _Node:
        owner, name = REPOSITORY.split("/")
        return {"name": name, "nameWithOwner": REPOSITORY, "owner": _actor(owner), "id": "R_1"}

    def _chosen(self, issues: Sequence[Issue], **wishes: Any) -> _Node:
        filters: _Node = wishes.get("filterBy") or {}
        states = wishes.get("states") or filters.get("states")
        labels = wishes.get("labels") or filters.get("labels")
        shown = [self._shown(issue) for issue in issues]
        if states:
            shown = [node for node in shown if node["state"] in states]
        if labels:
            names = {label.lower() for label in labels}
            kept = {issue.number for issue in issues if names & {label.lower() for label in issue.labels}}
            shown = [node for node in shown if node["number"] in kept]
        for name in ("baseRefName", "headRefName"):
            if wishes.get(name):
                shown = [node for node in shown if node[name] == wishes[name]]
        if author := filters.get("createdBy"):
            shown = [node for node in shown if node["author"]["login"] == author]
        if milestone := filters.get("milestoneNumber") or filters.get("milestone"):
            title = [*self._repository.milestones][int(milestone) - 1] if str(milestone).isdigit() else milestone
            shown = [node for node in shown if node["milestone"] and node["milestone"]["title"] == title]
        if assignee := filters.get("assignee"):
            kept = {issue.number for issue in issues if assignee in issue.assignees}
            shown = [node for node in shown if node["number"] in kept]
        order: _Node = wishes.get("orderBy") or {"direction": "ASC"}
        shown.sort(key=lambda node: (node["createdAt"], node["number"]), reverse=order["direction"] == "DESC")
        return _connection(shown, wishes)

    def _issues(self, **wishes: Any) -> _Node:
        return self._chosen([issue for issue in self._repository.issues.values() if not issue.pull], **wishes)

    def _pulls(self, **wishes: Any) -> _Node:
        return self._chosen([issue for issue in self._repository.issues.values() if issue.pull], **wishes)

    def _search(self, query: str, **wishes: Any) -> _Node:
        try:
            found = Search(query, self._repository).matches()
        except Unknown as unknown:
            raise GraphQLError(str(unknown)) from None
        return {**_connection([*map(self._shown, found)], wishes), "issueCount": len(found)}

    # What is beside them
    def _milestone_titled(self, title: str) -> _Node:
        return self._milestone([*self._repository.milestones].index(title) + 1)

    def _milestone(self, number: int) -> _Node:
        title = [*self._repository.milestones][number - 1]
        return {
            "__typename": "Milestone", "id": f"MI_{number}", "number": number, "title": title, "dueOn": None,
            "state": self._repository.milestones[title].upper(), "url": f"{_WEB}/milestone/{number}",
        }  # fmt: skip

    def _milestones(self, **wishes: Any) -> _Node:
        shown = [self._milestone(number + 1) for number in range(len(self._repository.milestones))]
        states, text = wishes.get("states"), (wishes.get("query") or "").lower()
        shown = [item for item in shown if (not states or item["state"] in states) and text in item["title"].lower()]
        return _connection(shown, wishes)

    def _releases(self) -> list[_Node]:
        numbered = sorted(
            enumerate(self._repository.releases, 1), key=lambda item: item[1].published or "9", reverse=True
        )
        published = [number for number, release in numbered if not release.draft and not release.prerelease]
        return [_release(number, release, is_latest=number in published[:1]) for number, release in numbered]

    def _release_tagged(self, tagName: str) -> _Node | None:
        return next((item for item in self._releases() if item["tagName"] == tagName), None)

    def _label(self, name: str) -> _Node | None:
        return _label(name) if name in self._repository.labels else None

    def _refs(self, refPrefix: str = "", query: str | None = None, **wishes: Any) -> _Node:
        if refPrefix != "refs/heads/":
            tags = [release for release in self._repository.releases if not release.draft]
            return _connection([{"name": release.tag, "prefix": "refs/tags/"} for release in tags], wishes)
        branches = sorted(self._repository.branches, key=lambda branch: branch.name)
        return _connection([self._ref(branch) for branch in branches if (query or "") in branch.name], wishes)

    def _one_ref(self, qualifiedName: str) -> _Node | None:
        name = qualifiedName.removeprefix("refs/heads/")
        return next((self._ref(branch) for branch in self._repository.branches if branch.name == name), None)

    def _ref(self, branch: Branch) -> _Node:
        pulls = [issue for issue in self._repository.issues.values() if issue.pull and issue.pull.head == branch.name]
        commit = self._commit(branch.sha, f"Work on {branch.name}", branch.author, branch.committed)
        return {
            "id": f"REF_{branch.name}", "name": branch.name, "prefix": "refs/heads/", "target": commit,
            "associatedPullRequests": partial(self._chosen, pulls),
            "branchProtectionRule": {"pattern": branch.name} if branch.is_protected else None,
        }  # fmt: skip

    def _object(self, expression: str = "", oid: str = "") -> _Node | None:
        for branch in self._repository.branches:
            if expression.removeprefix("refs/heads/") == branch.name or branch.sha in (oid, expression):
                return self._commit(branch.sha, f"Work on {branch.name}", branch.author, branch.committed)
        return None

    def _commit(self, sha: str, subject: str, author: str, when: str) -> _Node:
        person = {"name": author, "email": f"{author}@shop.example", "date": when, "user": _actor(author)}
        runs = [run for run in self._repository.runs if run.sha == sha]
        return {
            "__typename": "Commit", "oid": sha, "abbreviatedOid": sha[:7], "message": subject,
            "messageHeadline": subject, "messageBody": "", "committedDate": when, "authoredDate": when,
            "author": person, "committer": person,
            "authors": _listing([person]), "statusCheckRollup": _rollup(runs),
        }  # fmt: skip

    # Changes
    def _changed(self, issue: Issue, wishes: Mapping[str, Any]) -> None:
        try:
            change_issue(self._repository, issue, wishes)
        except Unknown as unknown:
            raise GraphQLError(str(unknown)) from None

    def _add_labels(self, input: _Node) -> _Node:  # noqa: A002
        issue = self._issue_of(input["labelableId"])
        self._changed(issue, {"labels": [*issue.labels, *_names(input["labelIds"])]})
        return {"labelable": self._shown(issue)}

    def _remove_labels(self, input: _Node) -> _Node:  # noqa: A002
        issue = self._issue_of(input["labelableId"])
        gone = _names(input["labelIds"])
        self._changed(issue, {"labels": [label for label in issue.labels if label not in gone]})
        return {"labelable": self._shown(issue)}

    def _close(self, input: _Node) -> _Node:  # noqa: A002
        issue = self._issue_of(input["issueId"])
        reason = (input.get("stateReason") or "COMPLETED").lower()
        self._changed(issue, {"state": "closed", "state_reason": reason})
        return {"issue": self._shown(issue)}

    def _update(self, input: _Node) -> _Node:  # noqa: A002
        issue = self._issue_of(input.get("id") or input["pullRequestId"])
        wishes: _Node = {name: input[name] for name in ("title", "body") if name in input}
        if "milestoneId" in input:
            milestone = input["milestoneId"]
            wishes["milestone"] = milestone.removeprefix("MI_") if milestone else None
        if "labelIds" in input:
            wishes["labels"] = _names(input["labelIds"])
        if "state" in input:
            wishes["state"] = input["state"].lower()
        ignored = {"id", "pullRequestId", "title", "body", "milestoneId", "labelIds", "state", "clientMutationId"}
        if unknown := input.keys() - ignored:
            raise GraphQLError(f"{min(unknown)} can't be changed here.")
        self._changed(issue, wishes)
        return {"issue": self._shown(issue), "pullRequest": self._shown(issue)}

    def _comment(self, input: _Node) -> _Node:  # noqa: A002
        issue = self._issue_of(input["subjectId"])
        issue.comments.append((USER, input["body"]))
        return {"commentEdge": {"node": _comments(issue)[-1]}, "subject": self._shown(issue)}


def _actor(login: str, **_: Any) -> _Node:
    kind = "Bot" if is_bot(login) else "User"
    return {
        "__typename": kind,
        "id": f"U_{login}",
        "login": login.removesuffix("[bot]"),
        "url": f"https://github.com/{login}",
    }


def _label(name: str) -> _Node:
    return {"id": f"LA_{name}", "name": name, "color": "ededed", "description": ""}


def _names(identities: Sequence[str]) -> list[str]:
    return [identity.removeprefix("LA_") for identity in identities]


def _comments(issue: Issue) -> list[_Node]:
    return [
        {"__typename": "IssueComment", "id": f"IC_{issue.number}_{place}", "author": _actor(author), "body": body,
         "createdAt": issue.created, "url": f"{_WEB}/issues/{issue.number}#issuecomment-{issue.number * 100 + place}"}
        for place, (author, body) in enumerate(issue.comments)
    ]  # fmt: skip


def _decision(pull: Pull) -> str | None:
    decision = decision_of(pull)
    return None if decision == "none" else decision.upper()


def _review(review: Review) -> _Node:
    return {"author": _actor(review.author), "state": review.state, "body": review.body,
            "submittedAt": "2026-11-01T00:00:00Z"}  # fmt: skip


def _release(number: int, release: Release, *, is_latest: bool) -> _Node:
    return {
        "id": f"RE_{number}", "databaseId": number, "tagName": release.tag, "name": release.name,
        "isDraft": release.draft, "isPrerelease": release.prerelease,
        "isLatest": is_latest, "publishedAt": release.published or None, "description": release.body,
        "createdAt": release.published or NOW, "url": f"{_WEB}/releases/tag/{release.tag}",
    }  # fmt: skip


def _rollup(runs: Sequence[Run]) -> _Node | None:
    if not runs:
        return None
    checks = [
        {"__typename": "CheckRun", "id": f"CR_{run.number * 100 + place}", "databaseId": run.number * 100 + place,
         "name": job.name, "status": "COMPLETED", "conclusion": job.conclusion.upper(), "startedAt": run.created,
         "completedAt": run.created, "detailsUrl": f"{_WEB}/actions/runs/{run.number}/job/{run.number * 100 + place}",
         "checkSuite": {"workflowRun": {"event": "pull_request", "workflow": {"name": "CI"}}}}
        for run in runs for place, job in enumerate(run.jobs)
    ]  # fmt: skip
    failed = any(run.conclusion == "failure" for run in runs)
    state = "FAILURE" if failed else "SUCCESS"
    return {"state": state, "contexts": _listing(checks)}


def _listing(nodes: Sequence[_Node]) -> Callable[..., _Node]:
    """Return a field that pages through nodes as its arguments say."""

    def page(**wishes: Any) -> _Node:
        return _connection(nodes, wishes)

    return page


def _connection(nodes: Sequence[_Node], wishes: Mapping[str, Any]) -> _Node:
    """Return the page of nodes that `first`, `last`, `after` and `before` ask for."""
    start, end = 0, len(nodes)
    if after := wishes.get("after"):
        start = int(after)
    if before := wishes.get("before"):
        end = int(before) - 1
    if (first := wishes.get("first")) is not None:
        end = min(end, start + first)
    if (last := wishes.get("last")) is not None:
        start = max(start, end - last)
    page = {
        "hasNextPage": end < len(nodes),
        "hasPreviousPage": start > 0,
        "endCursor": str(end),
        "startCursor": str(start + 1),
    }
    shown = list(nodes[start:end])
    edges = [{"node": node, "cursor": str(start + place + 1)} for place, node in enumerate(shown)]
    return {"nodes": shown, "edges": edges, "totalCount": len(nodes), "pageInfo": page}


def _resolve(source: Any, info: Any, **arguments: Any) -> Any:
    if isinstance(source, dict) and info.field_name in source:
        value = cast(_Node, source)[info.field_name]
        return value(**arguments) if callable(value) else value
    if info.operation.operation is OperationType.MUTATION and len(info.path.as_list()) == 1:
        raise GraphQLError(f"The mutation {info.field_name} is not known here.")
    return _plain(info.return_type)


def _plain(kind: Any) -> Any:
    """Return the plainest value of a type: null, nothing, or what must be there."""
    match kind:
        case GraphQLObjectType() if kind.name.endswith("Connection"):
            return _connection([], {})
        case GraphQLNonNull():
            return _required(cast(Any, kind).of_type)
        case _:
            return None


def _required(kind: Any) -> Any:
    match kind:
        case GraphQLList():
            return []
        case GraphQLEnumType():
            return next(iter(kind.values.values())).value
        case GraphQLScalarType():
            return _PLAIN.get(kind.name, "")
        case GraphQLObjectType() if kind.name.endswith("Connection"):
            return _connection([], {})
        case _:
            return {}


def _type(value: Any, info: Any, kind: Any) -> str:
    if isinstance(value, dict) and "__typename" in value:
        return value["__typename"]  # pyright: ignore[reportUnknownVariableType]
    possible = schema().get_possible_types(kind)
    return next((item.name for item in possible if item.name == "User"), possible[0].name)
