"""What the repository of a task on GitHub holds, how it is searched, and how its issues change."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

REPOSITORY = "octo/shop"
USER = "ada"
NOW = "2026-11-28T12:00:00Z"


@dataclass
class Review:
    """One review; `state` is like `APPROVED`."""

    author: str
    state: str
    body: str = ""


@dataclass
class Pull:
    """What a pull request has beside an issue; `merged_at` is empty if it is not merged."""

    head: str
    sha: str
    base: str = "main"
    is_draft: bool = False
    merged_at: str = ""
    reviews: list[Review] = field(default_factory=list[Review])


@dataclass
class Issue:
    """An issue or a pull request; `comments` are authors and texts."""

    number: int
    title: str
    author: str
    created: str
    body: str = ""
    closed: str = ""
    reason: str = ""
    labels: list[str] = field(default_factory=list[str])
    assignees: list[str] = field(default_factory=list[str])
    milestone: str = ""
    comments: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    pull: Pull | None = None

    @property
    def state(self) -> str:
        return "closed" if self.closed else "open"


@dataclass
class Release:
    """A release or a draft of one."""

    tag: str
    name: str
    body: str = ""
    published: str = ""
    target: str = "main"
    draft: bool = False
    prerelease: bool = False


@dataclass
class Branch:
    """A branch with its last commit."""

    name: str
    sha: str
    committed: str
    author: str
    is_protected: bool = False


@dataclass
class Job:
    """A job of a run, with its log."""

    name: str
    conclusion: str
    log: str = ""


@dataclass
class Run:
    """A run of the workflow for one commit."""

    number: int
    branch: str
    sha: str
    jobs: list[Job]
    created: str

    @property
    def conclusion(self) -> str:
        return "failure" if any(job.conclusion == "failure" for job in self.jobs) else "success"


@dataclass
class Repository:
    """All that the repository has; milestones are states by title, in the order of their numbers."""

    issues: dict[int, Issue] = field(default_factory=dict[int, Issue])
    labels: list[str] = field(default_factory=list[str])
    milestones: dict[str, str] = field(default_factory=dict[str, str])
    releases: list[Release] = field(default_factory=list[Release])
    branches: list[Branch] = field(default_factory=list[Branch])
    runs: list[Run] = field(default_factory=list[Run])

    def state(self) -> dict[str, str]:
        """Return by name what everything is, as far as a task may change it."""
        state: dict[str, str] = {}
        for issue in self.issues.values():
            entry = {**asdict(issue), "closed": bool(issue.closed), "labels": sorted(issue.labels)}
            state[f"#{issue.number}"] = json.dumps(entry, sort_keys=True)
        state["labels"] = " ".join(sorted(self.labels))
        state |= {f"milestone {title}": text for title, text in self.milestones.items()}
        for release in self.releases:
            body = [line.strip() for line in release.body.splitlines() if line.strip()]
            state[f"release {release.tag}"] = json.dumps({**asdict(release), "body": body, "published": ""})
        return state | {f"branch {branch.name}": branch.sha for branch in self.branches}


class Unknown(Exception):
    """Raised for what this GitHub does not know."""


def is_bot(login: str) -> bool:
    """Return whether a login is that of an app."""
    return login.endswith("[bot]")


class Search:
    """GitHub's language for searching issues, as much of it as is usual."""

    def __init__(self, query: str, repository: Repository) -> None:
        self._issues = list(repository.issues.values())
        self._tests: list[Callable[[Issue], bool]] = []
        self._order = "created-desc"
        try:
            # What gh looks for stands in parentheses.
            words = shlex.split(query.replace("(", " ").replace(")", " "))
        except ValueError as error:
            raise Unknown(str(error)) from None
        for word in words:
            self._read(word)

    def _read(self, word: str) -> None:
        name, colon, value = word.partition(":")
        if word in ("AND", "OR", "NOT"):
            raise Unknown(f"{word} is not known in a search here.")
        if name == "sort" and colon:
            self._order = value
            return
        if not colon or not re.fullmatch(r"-?[a-z-]+", name):
            text = word.lower()
            self._tests.append(lambda issue: text in f"{issue.title}\n{issue.body}".lower())
            return
        test = self._qualifier(name.removeprefix("-"), value)
        self._tests.append((lambda issue: not test(issue)) if name.startswith("-") else test)

    def _qualifier(self, name: str, value: str) -> Callable[[Issue], bool]:
        match name:
            case "repo":
                return lambda issue: value.lower() == REPOSITORY
            case "org" | "user":
                return lambda issue: value.lower() == REPOSITORY.partition("/")[0]
            case "is" | "type" | "state":
                return _kind(value)
            case "in" | "archived":
                return lambda issue: True
            case "draft":
                return lambda issue: bool(issue.pull and issue.pull.is_draft) == (value == "true")
            case "label":
                names = {label.strip('"').lower() for label in value.split(",")}
                return lambda issue: any(label.lower() in names for label in issue.labels)
            case "no":
                return lambda issue: not getattr(issue, {"label": "labels", "assignee": "assignees"}.get(value, value))
            case "author":
                return lambda issue: issue.author.lower().removesuffix("[bot]") == _login(value)
            case "assignee":
                return lambda issue: _login(value) in issue.assignees
            case "milestone":
                return lambda issue: issue.milestone == value.strip('"')
            case "base" | "head":
                return lambda issue: issue.pull is not None and getattr(issue.pull, name) == value
            case "review":
                return lambda issue: issue.pull is not None and decision_of(issue.pull) == value.lower()
            case "reviewed-by":
                return lambda issue: (
                    issue.pull is not None and _login(value) in {review.author.lower() for review in issue.pull.reviews}
                )
            case "commenter":
                return lambda issue: _login(value) in {author.lower() for author, _ in issue.comments}
            case "comments":
                return lambda issue: _is_between(len(issue.comments), value, int)
            case "created" | "closed" | "updated":
                attribute = "created" if name == "updated" else name
                return lambda issue: _is_between(getattr(issue, attribute), value, str)
            case "merged":
                return lambda issue: issue.pull is not None and _is_between(issue.pull.merged_at, value, str)
            case _:
                raise Unknown(f"The search qualifier {name}: is not known here.")

    def matches(self, order: str = "", direction: str = "desc") -> list[Issue]:
        """Return the issues that match, newest first unless the query says otherwise."""
        found = [issue for issue in self._issues if all(test(issue) for test in self._tests)]
        if order == "comments" or self._order.startswith("comments"):
            found.sort(key=lambda issue: len(issue.comments))
        else:
            found.sort(key=lambda issue: (issue.created, issue.number))
        if not (self._order.endswith("-asc") or direction == "asc"):
            found.reverse()
        return found


def _login(value: str) -> str:
    return USER if value == "@me" else value.lower().removeprefix("app/").removesuffix("[bot]")


def _kind(value: str) -> Callable[[Issue], bool]:
    match value.lower():
        case "issue":
            return lambda issue: issue.pull is None
        case "pr" | "pull-request":
            return lambda issue: issue.pull is not None
        case "open" | "closed" as state:
            return lambda issue: issue.state == state
        case "merged":
            return lambda issue: bool(issue.pull and issue.pull.merged_at)
        case "unmerged":
            return lambda issue: bool(issue.pull and not issue.pull.merged_at)
        case "draft":
            return lambda issue: bool(issue.pull and issue.pull.is_draft)
        case "public":
            return lambda issue: True
        case _:
            raise Unknown(f"is:{value} is not known here.")


def decision_of(pull: Pull) -> str:
    """Return whether reviews approved a pull request, asked for changes, or decided nothing, in search's words."""
    states = {review.author: review.state for review in pull.reviews if review.state != "COMMENTED"}
    if not states:
        return "none"
    return "changes_requested" if "CHANGES_REQUESTED" in states.values() else "approved"


def _is_between(actual: Any, value: str, kind: type) -> bool:
    if actual == "":
        return False
    low, dots, high = value.partition("..")
    if dots:
        return (low == "*" or _day(actual, low) >= kind(low)) and (high == "*" or _day(actual, high) <= kind(high))
    sign, bound = re.fullmatch(r"(>=|<=|>|<)?(.+)", value).groups()  # type: ignore[union-attr]
    left, right = _day(actual, bound), kind(bound)
    return {">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right, None: left == right}[sign]


def _day(actual: Any, bound: str) -> Any:
    """Return a time as exactly as its bound is given."""
    return actual[: len(bound)] if isinstance(actual, str) else actual


def change_issue(repository: Repository, issue: Issue, wishes: Mapping[str, Any]) -> None:
    """Change an issue as REST's words say.

    Raises:
        Unknown: a label, a milestone or a word is not known.
    """
    for name, value in wishes.items():
        match name:
            case "state":
                issue.closed = NOW if value == "closed" else ""
                issue.reason = wishes.get("state_reason") or ("completed" if value == "closed" else "")
            case "state_reason":
                if value not in ("completed", "not_planned", "duplicate", "reopened", None):
                    raise Unknown(f"The reason {value} is not known.")
            case "labels":
                names = dict.fromkeys(label if isinstance(label, str) else label["name"] for label in value)
                if unknown := names.keys() - {*repository.labels}:
                    raise Unknown(f"There is no label {min(unknown)}.")
                issue.labels = [*names]
            case "milestone":
                issue.milestone = [*repository.milestones][int(value) - 1] if value else ""
            case "assignees":
                issue.assignees = value
            case "title" | "body":
                setattr(issue, name, value)
            case _:
                raise Unknown(f"{name} of an issue can't be changed here.")


def node_id(issue: Issue) -> str:
    """Return an issue's id in GraphQL."""
    return f"{'PR' if issue.pull else 'I'}_{issue.number}"
