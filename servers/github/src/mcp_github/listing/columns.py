"""The fields kept of each kind of GitHub object: what people ask about, and nothing that only programs need."""

from __future__ import annotations

from typing import Any, cast

from mcp_github.listing.projections import Getter, Item, Projection, author_of, clip, pick, pluck, same_names, trust_of

__all__ = [
    "BRANCH",
    "CHECK",
    "CODE",
    "COMMENT",
    "COMMIT",
    "COMMIT_HIT",
    "CONTRIBUTOR",
    "ISSUE",
    "LABEL",
    "MILESTONE",
    "PERSON",
    "PULL",
    "RELEASE",
    "REPOSITORY",
    "REVIEW",
    "TAG",
    "TEAM",
    "TOPIC",
    "TREE",
]

_MAX_FRAGMENTS = 3
_MAX_FRAGMENT_CHARACTERS = 400
_PERMISSIONS_BY_WIDTH = ("admin", "maintain", "push", "triage", "pull")
_AUTHOR_COLUMNS: dict[str, Getter] = {"author": author_of, "association": "author_association", "trust": trust_of}


def _subject(item: Item) -> str:
    """Return the first line of a commit's message."""
    return str(pick(item, "commit.message") or "").partition("\n")[0]


def _repo(item: Item) -> Any:
    """Return the `owner/name` of the repository that an issue belongs to."""
    full_name = pick(item, "repository.full_name")
    url = item.get("repository_url")
    if full_name is None and isinstance(url, str):
        return "/".join(url.rsplit("/", 2)[-2:])
    return full_name


ISSUE = Projection(
    {
        "repo": _repo,
        **same_names("number", "title", "state", "state_reason"),
        **_AUTHOR_COLUMNS,
        "labels": pluck("labels"),
        "assignees": pluck("assignees", "login"),
        "milestone": "milestone.title",
        "type": "type.name",
        **same_names("comments", "created_at", "updated_at", "closed_at", "locked"),
        "body": clip("body"),
        "url": "html_url",
        "is_pull_request": lambda item: "pull_request" in item,
        "draft": "draft",
        "sub_issues": "sub_issues_summary.total",
        "sub_issues_done": "sub_issues_summary.completed",
        "reactions": "reactions.total_count",
        "closed_by": "closed_by.login",
        "custom": lambda item: _custom_fields(item),
    },
    ("number", "title", "state", "author", "trust", "labels", "assignees", "comments", "updated_at"),
    ("body", "milestone", "state_reason", "type", "created_at", "closed_at", "url"),
)
COMMENT = Projection(
    {
        "id": "id",
        **_AUTHOR_COLUMNS,
        **same_names("created_at", "updated_at"),
        "body": clip("body"),
        "url": "html_url",
        "reactions": "reactions.total_count",
    },
    ("id", "author", "trust", "created_at", "body"),
)
PULL = Projection(
    {
        **same_names("number", "title"),
        "state": lambda item: _state_of_pull(item),
        "draft": "draft",
        "merged": lambda item: _merged(item),
        **same_names("mergeable", "mergeable_state", "review_decision", "verdicts", "checks", "closes"),
        **_AUTHOR_COLUMNS,
        "head": lambda item: _head(item),
        "head_repo": "head.repo.full_name",
        "head_sha": "head.sha",
        "base": "base.ref",
        "base_sha": "base.sha",
        "labels": pluck("labels"),
        "assignees": pluck("assignees", "login"),
        "reviewers": pluck("requested_reviewers", "login"),
        "teams": pluck("requested_teams", "slug"),
        "milestone": "milestone.title",
        **same_names("created_at", "updated_at", "closed_at", "merged_at"),
        "merged_by": "merged_by.login",
        "auto_merge": "auto_merge.merge_method",
        **same_names("commits", "changed_files", "additions", "deletions", "comments", "review_comments"),
        "body": clip("body"),
        "url": "html_url",
    },
    ("number", "title", "state", "draft", "author", "trust", "head", "base", "labels", "updated_at"),
    (
        "body", "milestone", "merged", "merged_at", "merged_by", "head_sha", "mergeable", "reviewers",
        "review_decision", "verdicts", "checks", "closes", "assignees", "created_at", "closed_at", "url",
    ),
)  # fmt: skip
REPOSITORY = Projection(
    {
        "repo": "full_name",
        **same_names("description", "visibility", "fork", "archived", "default_branch", "language"),
        "topics": "topics",
        "stars": "stargazers_count",
        "forks": "forks_count",
        "open_issues_and_pulls": "open_issues_count",
        "license": "license.spdx_id",
        **same_names("pushed_at", "created_at", "updated_at", "homepage"),
        "size_kb": "size",
        "parent": "parent.full_name",
        "permissions": lambda item: _permission(item),
        "has_issues": "has_issues",
        "has_discussions": "has_discussions",
        "url": "html_url",
    },
    ("repo", "description", "visibility", "language", "stars", "open_issues_and_pulls", "pushed_at"),
)
COMMIT = Projection(
    {
        "sha": "sha",
        "message": clip("commit.message", 300),
        "subject": lambda item: _subject(item),
        "author": "author.login",
        "name": "commit.author.name",
        "date": "commit.author.date",
        "committed_at": "commit.committer.date",
        "verified": "commit.verification.verified",
        "parents": pluck("parents", "sha"),
        "url": "html_url",
    },
    ("sha", "message", "author", "name", "date"),
    ("subject",),
)
COMMIT_HIT = Projection({"repo": "repository.full_name", **COMMIT.getters}, ("repo", *COMMIT.default))
TREE = Projection({**same_names("path", "type", "size", "sha", "mode")}, ("path", "type", "size"))
CODE = Projection(
    {
        "repo": "repository.full_name",
        "path": "path",
        "sha": "sha",
        "url": "html_url",
        "matches": lambda item: _fragments(item),
    },
    ("repo", "path", "matches"),
)

BRANCH = Projection({"name": "name", "sha": "commit.sha", "protected": "protected"}, ("name", "sha", "protected"))
DATED_BRANCH = Projection(
    {
        "name": "name",
        "sha": "target.oid",
        "date": "target.committedDate",
        "author": lambda item: pick(item, "target.author.user.login") or pick(item, "target.author.name"),
        # GraphQL tells only those who administer it.
        "protected": "protected",
    },
    ("name", "sha", "date"),
)
TAG = Projection(
    {
        "name": "name",
        "sha": lambda item: pick(item, "target.target.oid") or pick(item, "target.oid"),
        "message": clip("target.message"),
        "tagged_at": "target.tagger.date",
        "tagger": lambda item: pick(item, "target.tagger.user.login") or pick(item, "target.tagger.name"),
    },
    ("name", "sha"),
)
RELEASE = Projection(
    {
        **same_names("id", "tag_name", "name", "draft", "prerelease", "created_at", "published_at"),
        "author": "author.login",
        "target": "target_commitish",
        "body": clip("body"),
        "assets": pluck("assets"),
        "url": "html_url",
    },
    ("tag_name", "name", "draft", "prerelease", "author", "published_at", "assets"),
)
PERSON = Projection(
    {
        **same_names("login", "type", "name", "bio", "company", "location", "email", "public_repos", "followers"),
        "role": "role_name",
        "url": "html_url",
    },
    ("login", "type", "role", "url"),
)
# Whoever has no account has only the name and address of their commits.
CONTRIBUTOR = Projection(
    {**same_names("login", "name", "email", "type", "contributions"), "url": "html_url"},
    ("login", "name", "contributions"),
)
TEAM = Projection(
    {"org": "organization.login", **same_names("slug", "name", "description", "privacy", "permission")},
    ("org", "slug", "name", "description"),
)
REVIEW = Projection(
    {
        "id": "id",
        **_AUTHOR_COLUMNS,
        "state": "state",
        "submitted_at": "submitted_at",
        "commit": "commit_id",
        "body": clip("body"),
        "url": "html_url",
    },
    ("id", "author", "trust", "state", "submitted_at", "commit", "body"),
)
CHECK = Projection(
    {
        **same_names("name", "status", "conclusion", "started_at", "completed_at"),
        "app": "app.slug",
        "title": clip("output.title", 200),
        "summary": clip("output.summary", 600),
        "details_url": "details_url",
        "job": "id",
    },
    ("name", "status", "conclusion", "app", "title", "job"),
)
LABEL = Projection({**same_names("name", "color", "description")}, ("name", "color", "description"))
MILESTONE = Projection(
    {
        **same_names("number", "title", "state"),
        # GitHub counts pull requests too, whatever it calls them.
        "open": "open_issues",
        "closed": "closed_issues",
        "due_on": "due_on",
        "description": clip("description"),
    },
    ("number", "title", "state", "open", "closed", "due_on"),
)
TOPIC = Projection(
    {**same_names("name", "display_name", "short_description", "featured")}, ("name", "short_description")
)


def _state_of_pull(item: Item) -> Any:
    """Return a pull request's state, `merged` apart from `closed`, as callers ask for it."""
    if _merged(item):
        return "merged"
    return item.get("state")


def _merged(item: Item) -> bool | None:
    """Return whether a pull request was merged; a list has only the time."""
    merged = item.get("merged")
    if merged is None and "merged_at" in item:
        return item["merged_at"] is not None
    return merged


def _head(item: Item) -> str | None:
    """Return the branch that a pull request comes from, as `owner:branch` unless it is of the same repository.

    A fork often has a branch of the same name. Forks of deleted accounts belong to `ghost`.
    """
    branch = pick(item, "head.ref")
    base_repo = pick(item, "base.repo.full_name")
    if branch is None or base_repo is None or pick(item, "head.repo.full_name") == base_repo:
        return branch
    owner = pick(item, "head.user.login") or "ghost"
    return f"{owner}:{branch}"


def _custom_fields(item: Item) -> dict[str, Any] | None:
    """Return the values of the organisation's fields, by the field's name."""
    values: dict[str, Any] = {}
    for field_value in cast("list[Any]", item.get("issue_field_values") or []):
        name = str(field_value.get("issue_field_name") or field_value.get("name"))
        values[name] = pick(field_value, "single_select_option.name") or field_value.get("value")
    return values or None


def _fragments(item: Item) -> list[str]:
    """Return the first places in a file at which a search matches."""
    matches = cast("list[Any]", item.get("text_matches") or [])
    return [str(pick(match, "fragment"))[:_MAX_FRAGMENT_CHARACTERS] for match in matches[:_MAX_FRAGMENTS]]


def _permission(item: Item) -> str | None:
    """Return the widest permission that the user has in a repository."""
    permissions = item.get("permissions")
    if not isinstance(permissions, dict):
        return None
    for name in _PERMISSIONS_BY_WIDTH:
        if permissions.get(name):  # pyright: ignore[reportUnknownMemberType]
            return name
    return "none"
