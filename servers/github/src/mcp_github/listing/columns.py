"""The fields kept of each kind of GitHub object: what people ask about, and nothing that only programs need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp_github.listing.pages import Shape, author, clipped, names, pick, plain, trust

__all__ = [
    "BRANCH", "CHECK", "CODE", "COMMENT", "COMMIT", "COMMIT_HIT", "ISSUE", "LABEL", "MILESTONE", "PERSON",
    "PULL", "RELEASE", "REPOSITORY", "REVIEW", "TAG", "TEAM", "TOPIC", "TREE",
]  # fmt: skip

_WHO = {"author": author, "association": "author_association", "trust": trust}


def _repo(item: Mapping[str, Any]) -> Any:
    full = pick(item, "repository.full_name")
    if full is None and isinstance(url := item.get("repository_url"), str):
        return "/".join(url.rsplit("/", 2)[-2:])
    return full


ISSUE = Shape(
    {
        "repo": _repo, **plain("number", "title", "state", "state_reason"), **_WHO, "labels": names("labels"),
        "assignees": names("assignees", "login"), "milestone": "milestone.title", "type": "type.name",
        **plain("comments", "created_at", "updated_at", "closed_at", "locked"), "body": clipped("body"),
        "url": "html_url", "is_pull_request": lambda item: "pull_request" in item, "draft": "draft",
        "sub_issues": "sub_issues_summary.total", "sub_issues_done": "sub_issues_summary.completed",
        "reactions": "reactions.total_count", "closed_by": "closed_by.login", "custom": lambda item: _custom(item),
    },
    ("number", "title", "state", "author", "trust", "labels", "assignees", "comments", "updated_at"),
)  # fmt: skip
COMMENT = Shape(
    {"id": "id", **_WHO, **plain("created_at", "updated_at"), "body": clipped("body"), "url": "html_url",
     "reactions": "reactions.total_count"},
    ("id", "author", "association", "trust", "created_at", "body"),
)  # fmt: skip
PULL = Shape(
    {
        **plain("number", "title", "state", "draft"), "merged": lambda item: _merged(item),
        **plain("mergeable", "mergeable_state"), **_WHO,
        "head": "head.ref", "head_repo": "head.repo.full_name", "head_sha": "head.sha", "base": "base.ref",
        "base_sha": "base.sha", "labels": names("labels"), "assignees": names("assignees", "login"),
        "reviewers": names("requested_reviewers", "login"), "teams": names("requested_teams", "slug"),
        "milestone": "milestone.title", **plain("created_at", "updated_at", "closed_at", "merged_at"),
        "merged_by": "merged_by.login", "auto_merge": "auto_merge.merge_method",
        **plain("commits", "changed_files", "additions", "deletions", "comments", "review_comments"),
        "body": clipped("body"), "url": "html_url",
    },
    ("number", "title", "state", "draft", "author", "trust", "head", "base", "labels", "updated_at"),
)  # fmt: skip
REPOSITORY = Shape(
    {
        "repo": "full_name", **plain("description", "visibility", "fork", "archived", "default_branch", "language"),
        "topics": "topics", "stars": "stargazers_count", "forks": "forks_count", "open_issues": "open_issues_count",
        "license": "license.spdx_id", **plain("pushed_at", "created_at", "updated_at", "homepage"),
        "size_kb": "size", "parent": "parent.full_name", "permissions": lambda item: _permissions(item),
        "has_issues": "has_issues", "has_discussions": "has_discussions", "url": "html_url",
    },
    ("repo", "description", "visibility", "language", "stars", "open_issues", "pushed_at"),
)  # fmt: skip
COMMIT = Shape(
    {
        "sha": "sha",
        "message": clipped("commit.message", 300),
        "author": "author.login",
        "name": "commit.author.name",
        "date": "commit.author.date",
        "verified": "commit.verification.verified",
        "parents": names("parents", "sha"),
        "url": "html_url",
    },
    ("sha", "message", "author", "name", "date"),
)
COMMIT_HIT = Shape({"repo": "repository.full_name", **COMMIT.getters}, ("repo", *COMMIT.default))
TREE = Shape({**plain("path", "type", "size", "sha", "mode")}, ("path", "type", "size"))
CODE = Shape(
    {"repo": "repository.full_name", "path": "path", "sha": "sha", "url": "html_url",
     "matches": lambda item: _fragments(item)},
    ("repo", "path", "matches"),
)  # fmt: skip
BRANCH = Shape({"name": "name", "sha": "commit.sha", "protected": "protected"}, ("name", "sha", "protected"))
TAG = Shape(
    {
        "name": "name", "sha": lambda item: pick(item, "target.target.oid") or pick(item, "target.oid"),
        "message": clipped("target.message"), "tagged_at": "target.tagger.date",
        "tagger": lambda item: pick(item, "target.tagger.user.login") or pick(item, "target.tagger.name"),
    },
    ("name", "sha"),
)  # fmt: skip
RELEASE = Shape(
    {
        **plain("id", "tag_name", "name", "draft", "prerelease", "created_at", "published_at"),
        "author": "author.login", "target": "target_commitish", "body": clipped("body"),
        "assets": names("assets"), "url": "html_url",
    },
    ("tag_name", "name", "draft", "prerelease", "author", "published_at", "assets"),
)  # fmt: skip
PERSON = Shape(
    {**plain("login", "type", "name", "bio", "company", "location", "email", "public_repos", "followers"),
     "role": "role_name", "url": "html_url"},
    ("login", "type", "role", "url"),
)  # fmt: skip
TEAM = Shape(
    {"org": "organization.login", **plain("slug", "name", "description", "privacy", "permission")},
    ("org", "slug", "name", "description"),
)
REVIEW = Shape(
    {"id": "id", **_WHO, "state": "state", "submitted_at": "submitted_at", "commit": "commit_id",
     "body": clipped("body"), "url": "html_url"},
    ("id", "author", "association", "trust", "state", "submitted_at", "commit", "body"),
)  # fmt: skip
CHECK = Shape(
    {**plain("name", "status", "conclusion", "started_at", "completed_at"), "app": "app.slug",
     "title": clipped("output.title", 200), "summary": clipped("output.summary", 600), "details_url": "details_url",
     "job": "id"},
    ("name", "status", "conclusion", "app", "title", "job"),
)  # fmt: skip
LABEL = Shape({**plain("name", "color", "description")}, ("name", "color", "description"))
MILESTONE = Shape(
    {
        **plain("number", "title", "state", "open_issues", "closed_issues", "due_on"),
        "description": clipped("description"),
    },
    ("number", "title", "state", "open_issues", "closed_issues", "due_on"),
)
TOPIC = Shape({**plain("name", "display_name", "short_description", "featured")}, ("name", "short_description"))


def _merged(item: Mapping[str, Any]) -> bool | None:
    """Whether a pull request was merged; a list tells only when."""
    merged, at = item.get("merged"), "merged_at" in item
    return merged if merged is not None or not at else item["merged_at"] is not None


def _custom(item: Mapping[str, Any]) -> Any:
    values = cast("list[Any]", item.get("issue_field_values") or [])
    return {
        str(one.get("issue_field_name") or one.get("name")): pick(one, "single_select_option.name") or one.get("value")
        for one in values
    } or None


def _fragments(item: Mapping[str, Any]) -> list[str]:
    found = cast("list[Any]", item.get("text_matches") or [])
    return [str(pick(one, "fragment"))[:400] for one in found[:3]]


def _permissions(item: Mapping[str, Any]) -> Any:
    held = item.get("permissions")
    if not isinstance(held, dict):
        return None
    order = ("admin", "maintain", "push", "triage", "pull")
    return next((name for name in order if held.get(name)), "none")  # pyright: ignore
