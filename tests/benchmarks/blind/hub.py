"""A small GitHub that remembers: one repository, by REST and by GraphQL, whoever asks.

It knows what tasks on issues, pull requests, releases, branches and runs need, and answers 404 or an error to anything
else, so that nobody takes for done what was not.
"""

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import unquote

from blind.hub_graph import Graph
from blind.hub_state import (
    NOW,
    REPOSITORY,
    USER,
    Branch,
    Issue,
    Release,
    Repository,
    Run,
    Search,
    Unknown,
    change_issue,
    is_bot,
    node_id,
)
from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.world import sample

_HERE = f"/repos/{REPOSITORY}"
_WEB = f"https://github.com/{REPOSITORY}"
_Json = dict[str, Any]


@cache
def _sample(operation: str) -> Any:
    """Return GitHub's example of an answer, of this repository."""
    return json.loads(json.dumps(sample(operation)).replace("octocat/Hello-World", REPOSITORY))


def _user(login: str) -> _Json:
    user = _sample("users/get-by-username")
    kept = ("avatar_url", "gravatar_id", "site_admin", "url", "html_url")
    kind = "Bot" if is_bot(login) else "User"
    return {
        **{name: user[name] for name in kept},
        "login": login,
        "id": _id(login),
        "node_id": f"U_{login}",
        "type": kind,
    }


def _id(text: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(text)) % 10**8


class Hub(Oracle):
    """GitHub with one repository whose state is kept."""

    def __init__(self, repository: Repository) -> None:
        super().__init__()
        self.repository = repository
        self._queries = Graph(repository)
        self._routes = [(verb, re.compile(pattern), handler) for verb, pattern, handler in self._table()]

    def reply(self, seen: Seen) -> Reply:
        """Answer a request, and 404 to what is not known."""
        self.seen.append(seen)
        try:
            if seen.path == "/graphql":
                return Reply(200, self._queries.answer(seen.json["query"], seen.json.get("variables") or {}))
            path = seen.path.removeprefix("/api/v3")
            for verb, pattern, handler in self._routes:
                found = pattern.fullmatch(path)
                if verb == seen.verb and found:
                    return handler(seen, *map(unquote, found.groups()))
        except Unknown as unknown:
            return Reply(422, {"message": str(unknown)})
        except (KeyError, StopIteration):
            pass
        return Reply(404, {"message": "Not Found"})

    def _table(self) -> Sequence[tuple[str, str, Callable[..., Reply]]]:
        issue, pull = rf"{_HERE}/issues/(\d+)", rf"{_HERE}/pulls/(\d+)"
        return [
            ("GET", "/user", self._get_user),
            ("GET", "/rate_limit", self._get_limits),
            ("GET", "/search/issues", self._search),
            ("GET", _HERE, self._get_repository),
            ("GET", f"{_HERE}/issues", self._list_issues),
            ("GET", issue, self._get_issue),
            ("PATCH", issue, self._change_issue),
            ("GET", f"{issue}/comments", self._list_comments),
            ("POST", f"{issue}/comments", self._comment),
            ("GET", f"{issue}/labels", self._list_issue_labels),
            ("POST", f"{issue}/labels", self._label),
            ("PUT", f"{issue}/labels", self._label),
            ("DELETE", f"{issue}/labels/(.+)", self._unlabel),
            ("GET", f"{issue}/(?:timeline|events|reactions|sub_issues)", self._list_nothing),
            ("GET", f"{_HERE}/labels", self._list_labels),
            ("GET", f"{_HERE}/labels/(.+)", self._get_label),
            ("GET", f"{_HERE}/milestones", self._list_milestones),
            ("GET", rf"{_HERE}/milestones/(\d+)", self._get_milestone),
            ("PATCH", rf"{_HERE}/milestones/(\d+)", self._change_milestone),
            ("GET", f"{_HERE}/pulls", self._list_pulls),
            ("GET", pull, self._get_pull),
            ("GET", f"{pull}/reviews", self._list_reviews),
            ("GET", f"{pull}/comments", self._list_nothing),
            ("GET", f"{pull}/commits", self._list_pull_commits),
            ("GET", f"{_HERE}/releases", self._list_releases),
            ("GET", f"{_HERE}/releases/latest", self._get_latest),
            ("GET", f"{_HERE}/releases/tags/(.+)", self._get_tagged),
            ("POST", f"{_HERE}/releases", self._release),
            ("GET", f"{_HERE}/releases/(\\d+)", self._get_release),
            ("PATCH", f"{_HERE}/releases/(\\d+)", self._change_release),
            ("GET", f"{_HERE}/tags", self._list_tags),
            ("GET", f"{_HERE}/branches", self._list_branches),
            ("GET", f"{_HERE}/branches/(.+)", self._get_branch),
            ("GET", f"{_HERE}/rules/branches/.+", self._list_nothing),
            ("GET", f"{_HERE}/git/refs?/heads/(.+)", self._get_ref),
            ("GET", f"{_HERE}/git/matching-refs/heads/?(.*)", self._match_refs),
            ("DELETE", f"{_HERE}/git/refs/heads/(.+)", self._delete_branch),
            ("GET", f"{_HERE}/commits", self._list_commits),
            ("GET", f"{_HERE}/commits/(.+)/check-runs", self._list_checks),
            ("GET", f"{_HERE}/commits/(.+)/check-suites", self._list_no_suites),
            ("GET", f"{_HERE}/commits/(.+)/status", self._get_status),
            ("GET", f"{_HERE}/commits/([^/]+(?:/[^/]+)*)", self._get_commit),
            ("GET", f"{_HERE}/actions/runs", self._list_runs),
            ("GET", rf"{_HERE}/actions/runs/(\d+)(?:/attempts/1)?", self._get_run),
            ("GET", rf"{_HERE}/actions/runs/\d+/artifacts", self._list_no_artifacts),
            ("GET", f"{_HERE}/actions/workflows", self._list_workflows),
            ("GET", f"{_HERE}/actions/workflows/[^/]+", self._get_workflow),
            ("GET", f"{_HERE}/actions/workflows/[^/]+/runs", self._list_runs),
            ("GET", rf"{_HERE}/actions/runs/(\d+)(?:/attempts/1)?/jobs", self._list_jobs),
            ("GET", rf"{_HERE}/actions/runs/(\d+)(?:/attempts/1)?/logs", self._zip_logs),
            ("GET", rf"{_HERE}/actions/jobs/(\d+)", self._get_job),
            ("GET", rf"{_HERE}/actions/jobs/(\d+)/logs", self._send_to_log),
            ("GET", r"/_storage/(\d+)", self._get_log),
            ("GET", rf"{_HERE}/check-runs/(\d+)", self._get_check),
            ("GET", rf"{_HERE}/check-runs/(\d+)/annotations", self._list_nothing),
        ]  # fmt: skip

    def _get_user(self, seen: Seen) -> Reply:
        return Reply(200, {**_sample("users/get-authenticated"), **_user(USER)})

    def _get_limits(self, seen: Seen) -> Reply:
        return Reply(200, _sample("rate-limit/get"))

    def _get_repository(self, seen: Seen) -> Reply:
        return Reply(200, _repository())

    def _list_nothing(self, seen: Seen, *_: str) -> Reply:
        return self._page(seen, [])

    def _page(self, seen: Seen, items: list[Any], inside: str = "") -> Reply:
        size = min(int(seen.query.get("per_page", 30)), 100)
        page = int(seen.query.get("page", 1))
        last = max(1, -(-len(items) // size))
        links: list[str] = []
        for relation, target in (("prev", page - 1), ("next", page + 1), ("last", last), ("first", 1)):
            if 1 <= target <= last and (relation in ("prev", "next") or last > 1):
                query = "&".join(f"{name}={value}".replace(" ", "+") for name, value in
                                 {**seen.query, "page": target}.items())  # fmt: skip
                links.append(f'<{self.url}{seen.target.partition("?")[0]}?{query}>; rel="{relation}"')
        shown = items[(page - 1) * size : page * size]
        data = {"total_count": len(items), "incomplete_results": False, inside: shown} if inside else shown
        return Reply(200, data, {"Link": ", ".join(links)} if links else {})

    # Issues
    def _numbered(self, number: str) -> Issue:
        return self.repository.issues[int(number)]

    def _issue(self, issue: Issue) -> _Json:
        kind = "pull" if issue.pull else "issues"
        shown = {
            **_sample("issues/create"), "number": issue.number, "id": 10_000 + issue.number, "title": issue.title,
            "node_id": node_id(issue), "body": issue.body, "user": _user(issue.author), "state": issue.state,
            "state_reason": issue.reason or None, "labels": self._labels(issue), "comments": len(issue.comments),
            "assignees": [*map(_user, issue.assignees)], "assignee": None,
            "milestone": self._milestone_titled(issue.milestone), "created_at": issue.created, "closed_by": None,
            "updated_at": issue.closed or issue.created, "closed_at": issue.closed or None, "locked": False,
            "html_url": f"{_WEB}/{kind}/{issue.number}", "url": f"{self.url}{_HERE}/issues/{issue.number}",
            "author_association": "NONE",
        }  # fmt: skip
        shown.pop("pull_request", None)
        if issue.pull:
            url = f"{self.url}{_HERE}/pulls/{issue.number}"
            shown["pull_request"] = {
                "url": url,
                "html_url": shown["html_url"],
                "merged_at": issue.pull.merged_at or None,
            }
            shown["draft"] = issue.pull.is_draft
        return shown

    def _get_issue(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._issue(self._numbered(number)))

    def _list_issue_labels(self, seen: Seen, number: str) -> Reply:
        return self._page(seen, self._labels(self._numbered(number)))

    def _list_labels(self, seen: Seen) -> Reply:
        return self._page(seen, [*map(_label, self.repository.labels)])

    def _labels(self, issue: Issue) -> list[_Json]:
        return [_label(name) for name in issue.labels]

    def _ordered(self, seen: Seen, issues: list[Issue], start: str = "desc") -> list[Issue]:
        key: Callable[[Issue], Any] = lambda issue: (issue.created, issue.number)  # noqa: E731
        if seen.query.get("sort") == "comments":
            key = lambda issue: len(issue.comments)  # noqa: E731
        return sorted(issues, key=key, reverse=seen.query.get("direction", start) == "desc")

    def _list_issues(self, seen: Seen) -> Reply:
        query = seen.query
        issues = [
            issue for issue in self.repository.issues.values() if query.get("state", "open") in (issue.state, "all")
        ]
        if names := query.get("labels"):
            wanted = {name.strip().lower() for name in names.split(",")}
            issues = [issue for issue in issues if wanted <= {label.lower() for label in issue.labels}]
        if creator := query.get("creator"):
            issues = [issue for issue in issues if issue.author == creator]
        if assignee := query.get("assignee"):
            issues = [issue for issue in issues if _has(issue.assignees, assignee)]
        if milestone := query.get("milestone"):
            titles = [*self.repository.milestones]
            title = titles[int(milestone) - 1] if milestone.isdigit() else milestone
            issues = [issue for issue in issues if _has([issue.milestone] if issue.milestone else [], title)]
        if since := query.get("since"):
            issues = [issue for issue in issues if (issue.closed or issue.created) >= since]
        return self._page(seen, [*map(self._issue, self._ordered(seen, issues))])

    def _search(self, seen: Seen) -> Reply:
        search = Search(seen.query["q"], self.repository)
        found = search.matches(seen.query.get("sort", ""), seen.query.get("order", "desc"))
        return self._page(seen, [{**self._issue(issue), "score": 1.0} for issue in found], "items")

    def _change_issue(self, seen: Seen, number: str) -> Reply:
        change_issue(self.repository, self._numbered(number), seen.json)
        return Reply(200, self._issue(self._numbered(number)))

    def _list_comments(self, seen: Seen, number: str) -> Reply:
        issue = self._numbered(number)
        shown = [self._shown_comment(issue, place) for place in range(len(issue.comments))]
        return self._page(seen, shown)

    def _shown_comment(self, issue: Issue, place: int) -> _Json:
        author, body = issue.comments[place]
        return {
            **_sample("issues/get-comment"), "id": issue.number * 100 + place, "user": _user(author), "body": body,
            "created_at": issue.created, "updated_at": issue.created,
            "html_url": f"{_WEB}/issues/{issue.number}#issuecomment-{issue.number * 100 + place}",
        }  # fmt: skip

    def _comment(self, seen: Seen, number: str) -> Reply:
        issue = self._numbered(number)
        issue.comments.append((USER, seen.json["body"]))
        return Reply(201, self._shown_comment(issue, len(issue.comments) - 1))

    def _label(self, seen: Seen, number: str) -> Reply:
        issue = self._numbered(number)
        # A bare list is taken, too.
        names: Any = seen.json
        if "labels" in names:
            names = names["labels"]
        kept = issue.labels if seen.verb == "POST" else []
        change_issue(self.repository, issue, {"labels": [*kept, *names]})
        return Reply(200, self._labels(issue))

    def _unlabel(self, seen: Seen, number: str, name: str) -> Reply:
        self._numbered(number).labels.remove(name)
        return Reply(200, self._labels(self._numbered(number)))

    def _get_label(self, seen: Seen, name: str) -> Reply:
        return Reply(200, _label(next(label for label in self.repository.labels if label.lower() == name.lower())))

    # Milestones
    def _milestone_titled(self, title: str) -> _Json | None:
        return self._milestone([*self.repository.milestones].index(title) + 1) if title else None

    def _milestone(self, number: int) -> _Json:
        title = [*self.repository.milestones][number - 1] if number <= len(self.repository.milestones) else None
        if title is None:
            raise KeyError(number)
        states = [issue.state for issue in self.repository.issues.values() if issue.milestone == title]
        return {
            **_sample("issues/get-milestone"), "number": number, "id": number, "node_id": f"MI_{number}",
            "title": title, "state": self.repository.milestones[title], "description": "",
            "open_issues": states.count("open"), "closed_issues": states.count("closed"), "due_on": None,
            "html_url": f"{_WEB}/milestone/{number}",
        }  # fmt: skip

    def _get_milestone(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._milestone(int(number)))

    def _list_milestones(self, seen: Seen) -> Reply:
        shown = [self._milestone(number) for number in range(1, len(self.repository.milestones) + 1)]
        state = seen.query.get("state", "open")
        return self._page(seen, [item for item in shown if state in (item["state"], "all")])

    def _change_milestone(self, seen: Seen, number: str) -> Reply:
        title = self._milestone(int(number))["title"]
        for name, value in seen.json.items():
            if name == "state":
                self.repository.milestones[title] = value
            elif name != "title" or value != title:
                raise Unknown(f"{name} of a milestone can't be changed here.")
        return Reply(200, self._milestone(int(number)))

    # Pull requests
    def _pull_numbered(self, number: str) -> Issue:
        issue = self._numbered(number)
        if issue.pull is None:
            raise KeyError(number)
        return issue

    def _pull(self, issue: Issue) -> _Json:
        assert issue.pull
        pull = issue.pull
        shown = {
            name: value for name, value in self._issue(issue).items() if name not in ("pull_request", "state_reason")
        }
        example = _sample("pulls/get")
        merged = bool(pull.merged_at)
        return {
            **example, **shown, "draft": pull.is_draft, "merged_at": pull.merged_at or None, "merged": merged,
            "merge_commit_sha": pull.sha, "requested_reviewers": [], "requested_teams": [], "auto_merge": None,
            "head": {**example["head"], "ref": pull.head, "sha": pull.sha, "label": f"octo:{pull.head}",
                     "repo": _repository()},
            "base": {**example["base"], "ref": pull.base, "label": f"octo:{pull.base}", "repo": _repository()},
            "mergeable": None if merged else True, "mergeable_state": "clean", "commits": 1, "changed_files": 1,
            "merged_by": _user("ben") if merged else None, "review_comments": 0,
            "html_url": f"{_WEB}/pull/{issue.number}", "url": f"{self.url}{_HERE}/pulls/{issue.number}",
        }  # fmt: skip

    def _get_pull(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._pull(self._pull_numbered(number)))

    def _list_pulls(self, seen: Seen) -> Reply:
        query = seen.query
        pulls = [issue for issue in self.repository.issues.values() if issue.pull]
        pulls = [issue for issue in pulls if query.get("state", "open") in (issue.state, "all")]
        if base := query.get("base"):
            pulls = [issue for issue in pulls if issue.pull and issue.pull.base == base]
        if head := query.get("head"):
            pulls = [issue for issue in pulls if issue.pull and issue.pull.head == head.rpartition(":")[2]]
        # A list tells less of each than is known of one.
        members = _sample("pulls/list")[0].keys()
        rows = [
            {name: value for name, value in self._pull(issue).items() if name in members}
            for issue in self._ordered(seen, pulls)
        ]
        return self._page(seen, rows)

    def _list_reviews(self, seen: Seen, number: str) -> Reply:
        pull = self._pull_numbered(number).pull
        assert pull
        shown = [
            {**_sample("pulls/get-review"), "id": int(number) * 100 + place, "user": _user(review.author),
             "state": review.state, "body": review.body, "commit_id": pull.sha}
            for place, review in enumerate(pull.reviews)
        ]  # fmt: skip
        return self._page(seen, shown)

    def _list_pull_commits(self, seen: Seen, number: str) -> Reply:
        issue = self._pull_numbered(number)
        assert issue.pull
        return self._page(seen, [_commit(issue.pull.sha, issue.title, issue.author, issue.created)])

    # Releases
    def _one_release(self, number: int) -> _Json:
        release = self.repository.releases[number - 1]
        return {
            **_sample("repos/get-release"), "id": number, "tag_name": release.tag, "name": release.name,
            "body": release.body, "draft": release.draft, "prerelease": release.prerelease, "assets": [],
            "target_commitish": release.target, "published_at": release.published or None,
            "created_at": release.published or NOW, "html_url": f"{_WEB}/releases/tag/{release.tag}",
            "url": f"{self.url}{_HERE}/releases/{number}", "author": _user(USER),
            "upload_url": f"{self.url}{_HERE}/releases/{number}/assets{{?name,label}}",
        }  # fmt: skip

    def _get_release(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._one_release(int(number)))

    def _list_releases(self, seen: Seen) -> Reply:
        return self._page(seen, [self._one_release(number) for number in self._newest_releases()])

    def _newest_releases(self) -> list[int]:
        numbers = range(1, len(self.repository.releases) + 1)
        return sorted(numbers, key=lambda number: self.repository.releases[number - 1].published or "9", reverse=True)

    def _get_latest(self, seen: Seen) -> Reply:
        releases = [self._one_release(number) for number in self._newest_releases()]
        return Reply(200, next(item for item in releases if not item["draft"] and not item["prerelease"]))

    def _get_tagged(self, seen: Seen, tag: str) -> Reply:
        releases = [self._one_release(number) for number in self._newest_releases()]
        return Reply(200, next(item for item in releases if item["tag_name"] == tag and not item["draft"]))

    def _release(self, seen: Seen) -> Reply:
        wishes = seen.json
        self.repository.releases.append(Release(wishes["tag_name"], ""))
        return self._save_release(len(self.repository.releases), wishes, 201)

    def _change_release(self, seen: Seen, number: str) -> Reply:
        return self._save_release(int(number), seen.json, 200)

    def _save_release(self, number: int, wishes: Mapping[str, Any], status: int) -> Reply:
        release = self.repository.releases[number - 1]
        if wishes.get("generate_release_notes"):
            raise Unknown("Release notes are not generated here.")
        release.name = wishes.get("name") or release.name
        release.body = wishes.get("body") or release.body
        release.target = wishes.get("target_commitish") or release.target
        release.draft = wishes.get("draft", release.draft)
        release.prerelease = wishes.get("prerelease", release.prerelease)
        release.published = "" if release.draft else release.published or NOW
        return Reply(status, self._one_release(number))

    def _list_tags(self, seen: Seen) -> Reply:
        tags = [release.tag for release in self.repository.releases if not release.draft]
        return self._page(seen, [{**_sample("repos/list-tags")[0], "name": tag} for tag in reversed(tags)])

    # Branches and commits
    def _named(self, name: str) -> Branch:
        return next(branch for branch in self.repository.branches if branch.name == name)

    def _get_branch(self, seen: Seen, name: str) -> Reply:
        return Reply(200, _branch(self._named(name)))

    def _get_ref(self, seen: Seen, name: str) -> Reply:
        return Reply(200, _ref(self._named(name)))

    def _list_branches(self, seen: Seen) -> Reply:
        branches = sorted(self.repository.branches, key=lambda branch: branch.name)
        if protected := seen.query.get("protected"):
            branches = [branch for branch in branches if branch.is_protected == (protected == "true")]
        shown = [{"name": branch.name, "commit": {"sha": branch.sha, "url": f"{self.url}{_HERE}/commits/{branch.sha}"},
                  "protected": branch.is_protected} for branch in branches]  # fmt: skip
        return self._page(seen, shown)

    def _match_refs(self, seen: Seen, prefix: str) -> Reply:
        branches = sorted(self.repository.branches, key=lambda branch: branch.name)
        return self._page(seen, [_ref(branch) for branch in branches if branch.name.startswith(prefix)])

    def _delete_branch(self, seen: Seen, name: str) -> Reply:
        if self._named(name).is_protected:
            return Reply(422, {"message": "Cannot delete this protected branch"})
        self.repository.branches.remove(self._named(name))
        return Reply(204)

    def _list_commits(self, seen: Seen) -> Reply:
        ref = seen.query.get("sha", "main")
        branch = next(item for item in self.repository.branches if ref in (item.name, item.sha))
        return self._page(seen, [_commit(branch.sha, f"Work on {branch.name}", branch.author, branch.committed)])

    def _get_commit(self, seen: Seen, ref: str) -> Reply:
        ref = ref.removeprefix("heads/")
        for branch in self.repository.branches:
            if ref == branch.name or branch.sha.startswith(ref):
                return Reply(200, _commit(branch.sha, f"Work on {branch.name}", branch.author, branch.committed))
        issue = next(item for item in self.repository.issues.values() if item.pull and item.pull.sha.startswith(ref))
        assert issue.pull
        return Reply(200, _commit(issue.pull.sha, issue.title, issue.author, issue.created))

    # Runs
    def _sha(self, ref: str) -> str:
        named = [branch.sha for branch in self.repository.branches if branch.name == ref.removeprefix("heads/")]
        return named[0] if named else ref

    def _ran(self, number: str) -> Run:
        return next(run for run in self.repository.runs if run.number == int(number))

    def _run(self, run: Run) -> _Json:
        url = f"{self.url}{_HERE}/actions/runs/{run.number}"
        return {
            **_sample("actions/get-workflow-run"), "id": run.number, "name": "CI", "status": "completed",
            "display_title": f"Work on {run.branch}", "conclusion": run.conclusion,
            "head_sha": run.sha, "head_branch": run.branch, "run_attempt": 1,
            "path": ".github/workflows/ci.yml", "jobs_url": f"{url}/jobs", "logs_url": f"{url}/logs", "url": url,
            "created_at": run.created, "updated_at": run.created, "run_started_at": run.created,
            "html_url": f"{_WEB}/actions/runs/{run.number}", "event": "pull_request", "pull_requests": [],
            "check_suite_id": run.number, "previous_attempt_url": None,
        }  # fmt: skip

    def _list_workflows(self, seen: Seen) -> Reply:
        return self._page(seen, [_workflow()], "workflows")

    def _get_workflow(self, seen: Seen) -> Reply:
        return Reply(200, _workflow())

    def _list_no_suites(self, seen: Seen, ref: str) -> Reply:
        return self._page(seen, [], "check_suites")

    def _list_no_artifacts(self, seen: Seen) -> Reply:
        return self._page(seen, [], "artifacts")

    def _get_run(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._run(self._ran(number)))

    def _list_runs(self, seen: Seen) -> Reply:
        runs = sorted(self.repository.runs, key=lambda run: run.created, reverse=True)
        for name, attribute in (("head_sha", "sha"), ("branch", "branch")):
            if value := seen.query.get(name):
                runs = [run for run in runs if getattr(run, attribute) == value]
        if status := seen.query.get("status"):
            runs = [run for run in runs if status in (run.conclusion, "completed")]
        return self._page(seen, [*map(self._run, runs)], "workflow_runs")

    def _job(self, run: Run, place: int) -> _Json:
        job, number = run.jobs[place], run.number * 100 + place
        # The minute in which the lines of every log were written.
        step = {"name": "Run tests", "status": "completed", "conclusion": job.conclusion, "number": 1,
                "started_at": "2026-11-20T10:00:00Z", "completed_at": "2026-11-20T10:00:59Z"}  # fmt: skip
        return {
            **_sample("actions/get-job-for-workflow-run"), "id": number, "run_id": run.number, "name": job.name,
            "status": "completed", "conclusion": job.conclusion, "head_sha": run.sha, "run_attempt": 1, "steps": [step],
            "started_at": run.created, "completed_at": run.created, "head_branch": run.branch, "workflow_name": "CI",
            "html_url": f"{_WEB}/actions/runs/{run.number}/job/{number}",
            "check_run_url": f"{self.url}{_HERE}/check-runs/{number}",
            "run_url": f"{self.url}{_HERE}/actions/runs/{run.number}",
        }  # fmt: skip

    def _list_jobs(self, seen: Seen, number: str) -> Reply:
        run = self._ran(number)
        return self._page(seen, [self._job(run, place) for place in range(len(run.jobs))], "jobs")

    def _one_job(self, number: str) -> tuple[Run, int]:
        return self._ran(number[:-2]), int(number[-2:])

    def _get_job(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._job(*self._one_job(number)))

    def _send_to_log(self, seen: Seen, number: str) -> Reply:
        self._one_job(number)
        return Reply(302, headers={"Location": f"{self.url}/_storage/{number}"})

    def _get_log(self, seen: Seen, number: str) -> Reply:
        run, place = self._one_job(number)
        return Reply(200, raw=run.jobs[place].log.encode(), headers={"content-type": "text/plain; charset=utf-8"})

    def _zip_logs(self, seen: Seen, number: str) -> Reply:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for place, job in enumerate(self._ran(number).jobs):
                archive.writestr(f"{place}_{job.name}.txt", job.log)
                archive.writestr(f"{job.name}/1_Run tests.txt", job.log)
        return Reply(200, raw=packed.getvalue(), headers={"content-type": "application/zip"})

    def _check(self, run: Run, place: int) -> _Json:
        job = self._job(run, place)
        example = _sample("checks/get")
        output = {"title": None, "summary": None, "text": None, "annotations_count": 0,
                  "annotations_url": f"{job['check_run_url']}/annotations"}  # fmt: skip
        return {
            **example, "id": job["id"], "name": job["name"], "status": "completed", "conclusion": job["conclusion"],
            "head_sha": run.sha, "details_url": job["html_url"], "html_url": job["html_url"], "output": output,
            "url": job["check_run_url"], "pull_requests": [], "check_suite": {"id": run.number},
            "started_at": run.created, "completed_at": run.created,
            "app": {**example["app"], "slug": "github-actions", "name": "GitHub Actions"},
        }  # fmt: skip

    def _list_checks(self, seen: Seen, ref: str) -> Reply:
        sha = self._sha(ref)
        runs = [run for run in self.repository.runs if run.sha == sha]
        checks = [self._check(run, place) for run in runs for place in range(len(run.jobs))]
        return self._page(seen, checks, "check_runs")

    def _get_check(self, seen: Seen, number: str) -> Reply:
        return Reply(200, self._check(*self._one_job(number)))

    def _get_status(self, seen: Seen, ref: str) -> Reply:
        combined = _sample("repos/get-combined-status-for-ref")
        return Reply(200, {**combined, "state": "pending", "statuses": [], "total_count": 0, "sha": self._sha(ref)})


def _has(values: Sequence[str], wanted: str) -> bool:
    return bool(values) if wanted == "*" else not values if wanted == "none" else wanted in values


def _label(name: str) -> _Json:
    return {**_sample("issues/get-label"), "id": _id(name), "node_id": f"LA_{name}", "name": name, "description": ""}


def _repository() -> _Json:
    owner, name = REPOSITORY.split("/")
    return {
        **_sample("repos/get"), "name": name, "full_name": REPOSITORY, "owner": _user(owner), "default_branch": "main",
        "private": False, "visibility": "public", "permissions": {"admin": True, "push": True, "pull": True},
    }  # fmt: skip


def _workflow() -> _Json:
    return {**_sample("actions/get-workflow"), "name": "CI", "path": ".github/workflows/ci.yml", "state": "active"}


def _ref(branch: Branch) -> _Json:
    commit = {"type": "commit", "sha": branch.sha, "url": ""}
    return {"ref": f"refs/heads/{branch.name}", "node_id": "REF", "url": "", "object": commit}


def _branch(branch: Branch) -> _Json:
    commit = _commit(branch.sha, f"Work on {branch.name}", branch.author, branch.committed)
    return {**_sample("repos/get-branch"), "name": branch.name, "commit": commit, "protected": branch.is_protected}


def _commit(sha: str, subject: str, author: str, when: str) -> _Json:
    example = _sample("repos/get-commit")
    person = {"name": author, "email": f"{author}@shop.example", "date": when}
    commit = {**example["commit"], "message": subject, "author": person, "committer": person}
    return {**example, "sha": sha, "commit": commit, "author": _user(author), "committer": _user(author),
            "html_url": f"{_WEB}/commit/{sha}"}  # fmt: skip
