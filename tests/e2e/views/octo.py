"""GitHub on loopback with one repository full of things to look at. Prints its URL, and ends with its input."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply

INSIDER = {"user": {"login": "octocat"}, "author_association": "MEMBER"}
OUTSIDER = {"user": {"login": "passer-by"}, "author_association": "NONE"}
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def issue(number: int) -> dict[str, Any]:
    titles = ["Crash when a folder is empty", "Rows are sorted twice", "Add a dark theme", EVIL]
    return {
        "number": number, "title": titles[number % 4], "state": "open", **(OUTSIDER if number % 3 == 0 else INSIDER),
        "labels": [{"name": "bug"}] if number % 2 else [{"name": EVIL}], "assignees": [], "comments": number % 5,
        "updated_at": "2026-11-02T10:00:00Z", "created_at": "2026-10-01T10:00:00Z", "locked": False,
        "html_url": f"https://github.com/octo/app/issues/{number}",
        "body": f"It happens every time.\n\n1. open\n2. {EVIL}\n\n[click](javascript:alert(3))",
    }  # fmt: skip


def pull(number: int) -> dict[str, Any]:
    return {
        **issue(number), "title": "Sort rows once, not twice", "draft": False, "merged": False, "mergeable": True,
        "mergeable_state": "blocked", "head": {"ref": "sort-once", "sha": "a" * 40, "repo": {"full_name": "octo/app"}},
        "base": {"ref": "main", "sha": "b" * 40}, "commits": 2, "changed_files": 2, "additions": 4, "deletions": 2,
        "html_url": f"https://github.com/octo/app/pull/{number}",
    }  # fmt: skip


def check(name: str, conclusion: str | None) -> dict[str, Any]:
    status = "completed" if conclusion else "in_progress"
    about = {"title": f"{name} of {EVIL}" if conclusion == "failure" else name, "summary": ""}
    return {"id": 1, "name": name, "status": status, "conclusion": conclusion, "app": {"slug": "ci"}, "output": about}


FILES = [
    {
        "filename": "src/rows.py", "status": "modified", "additions": 2, "deletions": 2, "changes": 4,
        "patch": "@@ -1,4 +1,4 @@\n def rows(found):\n-    found.sort()\n-    return sorted(found)\n+    # once\n"
                 "+    return sorted(set(found))\n # end",
    },
    {
        "filename": "page.html", "status": "added", "additions": 2, "deletions": 0, "changes": 2,
        "patch": f"@@ -0,0 +1,2 @@\n+<p>hello</p>\n+{EVIL}",
    },
    {"filename": "logo.png", "status": "modified", "additions": 0, "deletions": 0, "changes": 0},
]  # fmt: skip
THREADS = {
    "repository": {"pullRequest": {"reviewThreads": {
        "totalCount": 1, "pageInfo": {"hasNextPage": False, "endCursor": None},
        "nodes": [{
            "id": "PRRT_1", "path": "src/rows.py", "line": 3, "isResolved": False, "isOutdated": False,
            "comments": {"totalCount": 1, "nodes": [{
                "databaseId": 9, "author": {"login": "passer-by"}, "authorAssociation": "NONE",
                "createdAt": "2026-11-01T09:00:00Z", "body": f"Why a set? {EVIL}",
            }]},
        }],
    }}}
}  # fmt: skip
REVIEW = {
    "id": 5, **INSIDER, "state": "CHANGES_REQUESTED", "submitted_at": "2026-11-01T08:00:00Z", "commit_id": "a" * 40,
    "body": "Close, but see below.", "html_url": "https://github.com/octo/app/pull/7#r5",
}  # fmt: skip


def one_issue(seen: Seen) -> Reply:
    return Reply(200, issue(int(seen.path.rpartition("/")[2])))


with Oracle() as oracle:
    oracle.pages("/repos/octo/app/issues", [issue(number) for number in range(1, 71)])
    oracle.respond("GET", r"/repos/octo/app/issues/\d+", one_issue)
    oracle.pages("/repos/octo/app/pulls", [pull(7), pull(8)])
    oracle.answer("GET", r"/repos/octo/app/pulls/\d+", pull(7))
    checks = [check("lint", "success"), check("tests", "failure"), check("build", None)]
    oracle.pages(r"/repos/octo/app/commits/a+/check-runs", checks, "check_runs")
    oracle.answer("GET", r"/repos/octo/app/commits/a+/status", {"statuses": []})
    oracle.pages(r"/repos/octo/app/pulls/\d+/files", FILES)
    oracle.pages(r"/repos/octo/app/pulls/\d+/reviews", [REVIEW])
    oracle.graphql("Threads", THREADS)
    oracle.answer(
        "GET", "/repos/octo/app/labels", [{"name": name} for name in ("bug", "feature", "good first issue", EVIL)]
    )
    oracle.answer("GET", "/repos/octo/app/assignees", [{"login": name} for name in ("octocat", "hubot", "passer-by")])
    oracle.respond("POST", "/repos/octo/app/issues", lambda seen: Reply(201, {**issue(71), **seen.json, "id": 71}))
    oracle.respond("POST", "/repos/octo/app/pulls", lambda seen: Reply(201, pull(9)))
    oracle.answer("POST", "/repos/octo/app/pulls/9/requested_reviewers", pull(9), status=201)

    print(oracle.url, flush=True)
    sys.stdin.read()
