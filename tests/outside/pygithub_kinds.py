"""Kinds of answers: which tool shows them, and which attribute of PyGithub's object each field is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from github.Artifact import Artifact
from github.AuthenticatedUser import AuthenticatedUser
from github.CheckRun import CheckRun
from github.CodeScanAlert import CodeScanAlert
from github.Commit import Commit
from github.ContentFile import ContentFile
from github.DependabotAlert import DependabotAlert
from github.Gist import Gist
from github.GitRelease import GitRelease
from github.GlobalAdvisory import GlobalAdvisory
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Label import Label
from github.Milestone import Milestone
from github.NamedUser import NamedUser
from github.Notification import Notification
from github.PullRequest import PullRequest
from github.PullRequestReview import PullRequestReview
from github.Repository import Repository
from github.RepositoryAdvisory import RepositoryAdvisory
from github.SecretScanAlert import SecretScanAlert
from github.Tag import Tag
from github.Team import Team
from github.Topic import Topic
from github.Workflow import Workflow
from github.WorkflowJob import WorkflowJob
from github.WorkflowRun import WorkflowRun

from mcp_github.safety.scrub import scrub

__all__ = ["COMMITTED", "KINDS", "Kind", "R", "different", "of"]

Path = str
"""Attributes of PyGithub's object with dots between; one that ends in `[]` is a list."""


@dataclass(frozen=True)
class Kind:
    """A kind of answer, and what of it is which attribute of PyGithub's object.

    Attributes:
        template: of the requests, as GitHub's description writes it.
        arguments: of the tool, by the values of the path.
        inside: where the list is in the answer; None for one object.
        keeps: which objects of a list are shown.
    """

    template: str
    tool: str
    arguments: Callable[[Mapping[str, str]], dict[str, Any]]
    made: type[Any]
    columns: Mapping[str, Path | Callable[[Any], Any]]
    inside: str | None = None
    listed: bool = True
    keeps: Callable[[Any], bool] = lambda one: True
    takes_fields: bool = True


def same(*columns: str) -> dict[str, Path]:
    return dict(zip(columns, columns, strict=True))


def of(values: Mapping[str, str]) -> dict[str, Any]:
    return {"repo": f"{values['owner']}/{values['repo']}"}


def numbered(name: str, argument: str = "number") -> Callable[[Mapping[str, str]], dict[str, Any]]:
    return lambda values: {**of(values), argument: int(values[name])}


def assets(one: Any) -> list[dict[str, Any]]:
    """What we show of the files of a release, without what is not set."""
    shown = [
        (item["name"], item["size"], item["download_count"], item.get("digest")) for item in one.raw_data["assets"]
    ]
    names = ("name", "bytes", "downloads", "digest")
    rows = [dict(zip(names, values, strict=True)) for values in shown]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def assignees(one: Any) -> list[str]:
    # Where GitHub named but one, which was long ago, it makes a list of it.
    return [person.login for person in one.assignees] if "assignees" in one.raw_data else []


def held(one: Any) -> str | None:
    """The most that one may do."""
    order = ("admin", "maintain", "push", "triage", "pull")
    may = one.permissions
    return None if may is None else next((name for name in order if getattr(may, name)), "none")


def is_merged(one: Any) -> bool:
    """Whether a pull request was merged; a list tells of it by its time alone."""
    return one.raw_data.get("merged", one.raw_data.get("merged_at") is not None)


def head_of(one: Any) -> str:
    """The branch, behind its owner where that is of a fork; those of accounts that are gone belong to `ghost`."""
    head = one.head
    base_name = one.base.repo and one.base.repo.full_name
    head_name = head.repo and head.repo.full_name
    if base_name is None or head_name == base_name:
        return head.ref
    return f"{head.user.login if head.user else 'ghost'}:{head.ref}"


WHO = {"author": "user.login"}
ISSUE = {
    **same("number", "title", "state", "state_reason", "comments", "created_at", "updated_at", "closed_at", "locked"),
    **WHO, "body": "body", "url": "html_url", "labels": "labels[].name", "assignees": lambda one: assignees(one),
    "milestone": "milestone.title", "closed_by": "closed_by.login", "type": "type.name", "draft": "draft",
    "reactions": lambda one: (one.reactions or {}).get("total_count"), "association": "raw_data.author_association",
}  # fmt: skip
PULL = {
    "merged": lambda one: is_merged(one), "state": lambda one: "merged" if is_merged(one) else one.state,
    **same("number", "title", "draft", "mergeable", "mergeable_state", "created_at", "updated_at",
           "closed_at", "merged_at", "commits", "changed_files", "additions", "deletions", "comments",
           "review_comments", "body"),
    **WHO, "head": lambda one: head_of(one), "head_repo": "head.repo.full_name", "head_sha": "head.sha",
    "base": "base.ref", "base_sha": "base.sha", "labels": "labels[].name", "assignees": lambda one: assignees(one),
    "reviewers": "requested_reviewers[].login", "teams": "requested_teams[].slug", "milestone": "milestone.title",
    "merged_by": "merged_by.login", "url": "html_url", "association": "raw_data.author_association",
    "auto_merge": lambda one: (one.raw_data.get("auto_merge") or {}).get("merge_method"),
}  # fmt: skip
REPOSITORY = {
    **same("description", "visibility", "fork", "archived", "default_branch", "language", "topics", "pushed_at",
           "created_at", "updated_at", "homepage", "has_issues", "has_discussions"),
    "repo": lambda one: one.raw_data.get("full_name"), "stars": "stargazers_count", "forks": "forks_count",
    "open_issues_and_pulls": "open_issues_count",
    "license": "license.spdx_id", "parent": "parent.full_name", "url": "html_url",
    "permissions": lambda one: held(one),
}  # fmt: skip
COMMIT = {
    "sha": "sha", "message": "commit.message", "author": "author.login", "name": "commit.author.name",
    "date": "commit.author.date", "verified": "commit.verification.verified", "parents": "parents[].sha",
    "url": "html_url",
}  # fmt: skip
RELEASE = {
    **same("tag_name", "draft", "prerelease", "created_at", "published_at", "body"), "name": "name",
    "author": "author.login", "target": "target_commitish", "assets": "assets[].name", "url": "html_url",
}  # fmt: skip
# One alone tells more of its files.
ONE_RELEASE = {**RELEASE, "assets": lambda one: assets(one)}
RUN = {
    "run_id": "id", **same("name", "event", "status", "conclusion", "run_number", "run_attempt", "created_at"),
    "title": "display_title", "branch": "head_branch", "sha": "head_sha", "actor": "actor.login", "workflow": "path",
    "updated_at": "updated_at", "url": "html_url",
}  # fmt: skip
PERSON = {
    **same("login", "type", "name", "bio", "company", "location", "email", "public_repos", "followers"),
    "url": "html_url", "role": "role_name",
}  # fmt: skip
GIST = {
    **same("id", "description", "public", "comments", "created_at", "updated_at"), "owner": "owner.login",
    "files": lambda one: list(one.files), "url": "html_url",
}  # fmt: skip
CODE_ALERT = {
    **same("number", "state", "created_at", "updated_at"), "url": "html_url", "rule": "rule.id",
    "severity": "rule.security_severity_level", "level": "rule.severity", "about": "rule.description",
    "tool": "tool.name", "ref": "most_recent_instance.ref", "path": "most_recent_instance.location.path",
    "line": "most_recent_instance.location.start_line", "dismissed": "dismissed_reason",
    "message": lambda one: one.most_recent_instance.message["text"],
}  # fmt: skip
SECRET_ALERT = {
    **same("number", "state", "created_at", "updated_at", "validity", "resolution", "publicly_leaked"),
    "url": "html_url", "kind": "secret_type_display_name", "bypassed": "push_protection_bypassed",
}  # fmt: skip
DEPENDABOT_ALERT = {
    **same("number", "state", "created_at", "updated_at"), "url": "html_url",
    "severity": "security_advisory.severity", "package": "dependency.package.name",
    "ecosystem": "dependency.package.ecosystem", "manifest": "dependency.manifest_path",
    "vulnerable": "security_vulnerability.vulnerable_version_range", "ghsa": "security_advisory.ghsa_id",
    "cve": "security_advisory.cve_id", "summary": "security_advisory.summary", "dismissed": "dismissed_reason",
}  # fmt: skip
ADVISORY = {
    "ghsa": "ghsa_id", "cve": "cve_id", **same("severity", "summary", "published_at", "withdrawn_at"),
    "score": lambda one: one.cvss and one.cvss.score and float(one.cvss.score),
    "cwes": "cwes[].cwe_id", "url": "html_url", "details": "description",
}  # fmt: skip
R = "/repos/{owner}/{repo}"
KINDS = [
    Kind(f"{R}/issues", "list_issues", of, Issue, ISSUE, keeps=lambda one: "pull_request" not in one.raw_data),
    Kind(f"{R}/issues/{{issue_number}}", "get_issue", numbered("issue_number"), Issue, ISSUE, listed=False),
    Kind(f"{R}/issues/{{issue_number}}/comments", "list_comments", numbered("issue_number"), IssueComment,
         {**same("id", "created_at", "updated_at", "body"), **WHO, "url": "html_url",
          "reactions": lambda one: (one.reactions or {}).get("total_count"),
          "association": "raw_data.author_association"}),
    Kind(f"{R}/pulls", "list_pull_requests", of, PullRequest, PULL),
    Kind(f"{R}/pulls/{{pull_number}}", "get_pull_request", numbered("pull_number"), PullRequest, PULL, listed=False),
    Kind(f"{R}/pulls/{{pull_number}}/reviews", "list_reviews", numbered("pull_number"), PullRequestReview,
         {**same("id", "state", "submitted_at", "body"), **WHO, "commit": "commit_id", "url": "html_url",
          "association": "raw_data.author_association"}),
    Kind(f"{R}/pulls/{{pull_number}}/commits", "list_commits", numbered("pull_number"), Commit, COMMIT),
    Kind(R, "get_repository", of, Repository, REPOSITORY, listed=False),
    Kind(f"{R}/commits", "list_commits", of, Commit, COMMIT),
    Kind(f"{R}/tags", "list_refs", lambda values: {**of(values), "kind": "tags"}, Tag,
         {"name": "name", "sha": "commit.sha"}),
    Kind(f"{R}/labels", "list_issue_options", lambda values: {**of(values), "kind": "labels"}, Label,
         same("name", "color", "description"), takes_fields=False),
    Kind(f"{R}/milestones", "list_issue_options", lambda values: {**of(values), "kind": "milestones"}, Milestone,
         {**same("number", "title", "state", "due_on"), "open": "open_issues", "closed": "closed_issues"},
         takes_fields=False),
    Kind(f"{R}/assignees", "list_issue_options", lambda values: {**of(values), "kind": "assignees"}, NamedUser,
         same("login"), takes_fields=False),
    Kind(f"{R}/collaborators", "list_people", of, NamedUser, PERSON),
    Kind(f"{R}/contributors", "list_people", lambda values: {**of(values), "kind": "contributors"}, NamedUser,
         {**same("login", "name", "email", "type", "contributions"), "url": "html_url"}),
    Kind(f"{R}/releases", "list_releases", of, GitRelease, {**RELEASE, "id": "id"}),
    Kind(f"{R}/releases/latest", "get_release", of, GitRelease, ONE_RELEASE, listed=False, takes_fields=False),
    Kind(f"{R}/releases/tags/{{tag}}", "get_release", lambda values: {**of(values), "tag": values["tag"]}, GitRelease,
         ONE_RELEASE, listed=False, takes_fields=False),
    Kind(f"{R}/actions/runs", "list_actions", of, WorkflowRun, RUN, inside="workflow_runs"),
    Kind(f"{R}/actions/runs/{{run_id}}", "get_run", numbered("run_id", "run_id"), WorkflowRun, RUN, listed=False,
         takes_fields=False),
    Kind(f"{R}/actions/workflows", "list_actions", lambda values: {**of(values), "kind": "workflows"}, Workflow,
         {**same("id", "name", "path", "state"), "url": "html_url"}, inside="workflows"),
    Kind(f"{R}/actions/workflows/{{workflow_id}}/runs", "list_actions",
         lambda values: {**of(values), "workflow": values["workflow_id"]}, WorkflowRun, RUN, inside="workflow_runs"),
    Kind(f"{R}/actions/runs/{{run_id}}/jobs", "list_actions",
         lambda values: {**numbered("run_id", "run_id")(values), "kind": "jobs"}, WorkflowJob,
         {"job_id": "id", **same("name", "status", "conclusion", "started_at", "completed_at"), "url": "html_url",
          "failed_steps": lambda one: [f"{step.number} {step.name}" for step in one.steps
                                       if step.conclusion == "failure"]}, inside="jobs"),
    Kind(f"{R}/actions/artifacts", "list_actions", lambda values: {**of(values), "kind": "artifacts"}, Artifact,
         {**same("id", "name", "expired", "created_at", "expires_at"), "bytes": "size_in_bytes",
          "run_id": "workflow_run.id", "branch": "workflow_run.head_branch"}, inside="artifacts"),
    Kind(f"{R}/actions/runs/{{run_id}}/artifacts", "list_actions",
         lambda values: {**numbered("run_id", "run_id")(values), "kind": "artifacts"}, Artifact,
         {**same("id", "name", "expired"), "bytes": "size_in_bytes"}, inside="artifacts"),
    Kind("/user/teams", "list_people", lambda values: {}, Team,
         {"org": "organization.login", **same("slug", "name", "description", "privacy", "permission")}),
    Kind("/orgs/{org}/members", "list_people", dict, NamedUser, PERSON),
    Kind("/notifications", "list_notifications", lambda values: {}, Notification,
         {**same("id", "reason", "unread", "updated_at"), "repo": "repository.full_name", "kind": "subject.type",
          "title": "subject.title"}),
    Kind(f"{R}/notifications", "list_notifications", of, Notification,
         {**same("id", "reason", "unread", "updated_at"), "repo": "repository.full_name", "kind": "subject.type",
          "title": "subject.title"}),
    Kind("/gists", "list_gists", lambda values: {}, Gist, GIST),
    Kind("/users/{username}/gists", "list_gists", lambda values: {"user": values["username"]}, Gist, GIST),
    Kind("/gists/{gist_id}", "get_gist", lambda values: {"gist": values["gist_id"]}, Gist, GIST, listed=False,
         takes_fields=False),
    Kind("/user/starred", "list_stars", lambda values: {}, Repository, {**REPOSITORY, "size_kb": "size"}),
    Kind("/users/{username}/starred", "list_stars", lambda values: {"user": values["username"]}, Repository,
         REPOSITORY),
    Kind("/user", "get_me", lambda values: {}, AuthenticatedUser,
         same("login", "name", "company", "location", "bio"), listed=False, takes_fields=False),
    Kind("/search/repositories", "search_github", lambda values: {"kind": "repositories", "query": "x"}, Repository,
         REPOSITORY, inside="items"),
    Kind("/search/issues", "search_github", lambda values: {"kind": "issues", "query": "x"}, Issue, ISSUE,
         inside="items"),
    Kind("/search/users", "search_github", lambda values: {"kind": "users", "query": "x"}, NamedUser, PERSON,
         inside="items"),
    Kind("/search/topics", "search_github", lambda values: {"kind": "topics", "query": "x"}, Topic,
         same("name", "display_name", "short_description", "featured"), inside="items"),
    Kind("/search/commits", "search_github", lambda values: {"kind": "commits", "query": "x"}, Commit, COMMIT,
         inside="items"),
    Kind("/search/code", "search_github", lambda values: {"kind": "code", "query": "x"}, ContentFile,
         {"repo": "repository.full_name", **same("path", "sha"), "url": "html_url"}, inside="items"),
    Kind(f"{R}/code-scanning/alerts", "list_alerts", lambda values: {**of(values), "kind": "code_scanning"},
         CodeScanAlert, CODE_ALERT),
    Kind(f"{R}/code-scanning/alerts/{{alert_number}}", "get_alert",
         lambda values: {**numbered("alert_number")(values), "kind": "code_scanning"}, CodeScanAlert, CODE_ALERT,
         listed=False, takes_fields=False),
    Kind(f"{R}/secret-scanning/alerts", "list_alerts", lambda values: {**of(values), "kind": "secret_scanning"},
         SecretScanAlert, SECRET_ALERT),
    Kind(f"{R}/secret-scanning/alerts/{{alert_number}}", "get_alert",
         lambda values: {**numbered("alert_number")(values), "kind": "secret_scanning"}, SecretScanAlert,
         SECRET_ALERT, listed=False, takes_fields=False),
    Kind(f"{R}/dependabot/alerts", "list_alerts", lambda values: {**of(values), "kind": "dependabot"},
         DependabotAlert, DEPENDABOT_ALERT),
    Kind(f"{R}/dependabot/alerts/{{alert_number}}", "get_alert",
         lambda values: {**numbered("alert_number")(values), "kind": "dependabot"}, DependabotAlert,
         DEPENDABOT_ALERT, listed=False, takes_fields=False),
    Kind("/advisories", "list_advisories", lambda values: {}, GlobalAdvisory, ADVISORY),
    Kind(f"{R}/security-advisories", "list_advisories", of, RepositoryAdvisory, {**ADVISORY, "state": "state"}),
    Kind(f"{R}/commits/{{ref}}/check-runs", "list_checks", lambda values: {**of(values), "ref": values["ref"]},
         CheckRun, {**same("name", "status", "conclusion"), "app": "app.slug", "job": "id",
                    "title": "output.title"}, inside="check_runs", takes_fields=False),
]  # fmt: skip


COMMITTED = Kind(f"{R}/commits/{{ref}}", "get_commit", of, Commit, COMMIT, listed=False)


def different(kind: Kind, name: str, shown: Mapping[str, Any], one: Any) -> list[str]:
    pairs = [(column, shown.get(column), read(one, path)) for column, path in kind.columns.items()]
    return [f"{name}: {column}: {our!r} {their!r}" for column, our, their in pairs if not alike(our, their)]


def read(one: Any, path: Path | Callable[[Any], Any]) -> Any:
    if callable(path):
        return path(one)
    for number, name in enumerate(parts := path.split(".")):
        if one is None:
            return None
        if name.endswith("[]"):
            rest = ".".join(parts[number + 1 :])
            return [read(item, rest) for item in getattr(one, name[:-2]) or []]
        one = one.get(name) if isinstance(one, dict) else getattr(one, name)
    return one


def alike(ours: Any, their: Any) -> bool:
    if isinstance(their, datetime):
        return isinstance(ours, str) and datetime.fromisoformat(ours) == their
    if ours is None or their is None:
        return not ours and not their
    if isinstance(ours, str) and isinstance(their, str):
        kept, cut, _ = ours.partition("… [")
        clean = scrub(their)[0]
        return clean.startswith(kept) if cut else ours == clean
    return ours == their
