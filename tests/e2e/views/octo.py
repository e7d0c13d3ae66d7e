"""GitHub on loopback with one repository full of things to look at. Prints its URL, and ends with its input.

With `evil` its texts are what a view must not take for markup.
"""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply

INSIDER = {"user": {"login": "octocat"}, "author_association": "MEMBER"}
OUTSIDER = {"user": {"login": "passer-by"}, "author_association": "NONE"}
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>" if "evil" in sys.argv else ""
NOW = datetime.now(UTC)
LABELS = {
    "bug": "d73a4a",
    "feature": "a2eeef",
    "good first issue": "7057ff",
    "performance": "fbca04",
    EVIL or "docs": "0075ca",
}
TITLES = [
    ("Crash when a folder is empty", "bug"),
    ("Rows are sorted twice", "bug"),
    ("Add a dark theme", EVIL or "feature"),
    (EVIL or "Explain how replicas find each other", EVIL or "docs"),
    ("Opening a large file takes seconds", "performance"),
    ("Remember the width of columns", "feature"),
    ("Search does not find umlauts", "good first issue"),
]
BODY = (
    "Sorting is done **twice**: once in place, once for the answer.\n\n"
    "1. open a folder with 10,000 files\n2. sort by `size`\n\n"
    "| files | before | after |\n| --- | --- | --- |\n| 1,000 | 12 ms | 4 ms |\n| 10,000 | 160 ms | 41 ms |\n\n"
    "```python\ndef rows(found):\n    return sorted(found)  # once\n```\n\n"
    "- [x] a test that counts comparisons\n- [ ] a note in the changelog\n\nSee [the measurements](https://example.org/rows)."
)


def ago(**since: int) -> str:
    return f"{NOW - timedelta(**since):%Y-%m-%dT%H:%M:%SZ}"


def issue(number: int) -> dict[str, Any]:
    if EVIL:
        title, label = TITLES[number % 4][0], "bug" if number % 2 else EVIL
    else:
        title, label = TITLES[number % len(TITLES)]
    return {
        "number": number, "title": title, "state": "open", **(OUTSIDER if number % 3 == 0 else INSIDER),
        "labels": [{"name": label}], "assignees": [], "comments": number % 5,
        "updated_at": ago(hours=5 * number), "created_at": ago(days=3, hours=9 * number), "locked": False,
        "html_url": f"https://github.com/octo/app/issues/{number}",
        "body": f"It happens every time.\n\n1. open\n2. {EVIL}\n\n[click](javascript:alert(3))" if EVIL else BODY,
    }  # fmt: skip


def pull(number: int) -> dict[str, Any]:
    return {
        **issue(number), **INSIDER, "title": "Sort rows once, not twice", "draft": False, "merged": False,
        "labels": [{"name": "performance"}, {"name": "bug"}], "updated_at": ago(hours=2),
        "mergeable": True, "mergeable_state": "blocked",
        "head": {"ref": "sort-once", "sha": "a" * 40, "repo": {"full_name": "octo/app"}},
        "base": {"ref": "main", "sha": "b" * 40}, "commits": 2, "changed_files": len(FILES),
        "additions": 4, "deletions": 2,
        "html_url": f"https://github.com/octo/app/pull/{number}",
    }  # fmt: skip


def check(name: str, conclusion: str | None) -> dict[str, Any]:
    status = "completed" if conclusion else "in_progress"
    title = (
        name if conclusion != "failure" else f"{name} of {EVIL}" if EVIL else "2 of 318 failed: test_sort, test_pages"
    )
    about = {"title": title, "summary": ""}
    return {"id": 1, "name": name, "status": status, "conclusion": conclusion, "app": {"slug": "ci"}, "output": about}


FILES = [
    {
        "filename": "src/rows.py", "status": "modified", "additions": 2, "deletions": 2, "changes": 4,
        "patch": "@@ -1,4 +1,4 @@\n def rows(found):\n-    found.sort()\n-    return sorted(found)\n+    # once\n"
                 "+    return sorted(set(found))\n # end",
    },
    {
        "filename": "page.html", "status": "added", "additions": 2, "deletions": 0, "changes": 2,
        "patch": f"@@ -0,0 +1,2 @@\n+<p>hello</p>\n+{EVIL or '<p>world</p>'}",
    },
    {
        "filename": "tests/test_rows.py", "status": "modified", "additions": 3, "deletions": 0, "changes": 3,
        "patch": "@@ -8,2 +8,5 @@\n     assert rows([]) == []\n+\n+def test_rows_are_sorted_once(count):\n"
                 "+    assert count(rows, [3, 1, 2]) <= 3\n # end",
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
                "createdAt": ago(hours=20), "body": f"Why a set? {EVIL or 'Rows may come **twice**, see `load`.'}",
            }]},
        }],
    }}}
}  # fmt: skip
REVIEW = {
    "id": 5, **INSIDER, "state": "CHANGES_REQUESTED", "submitted_at": ago(hours=21), "commit_id": "a" * 40,
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
    oracle.answer("GET", "/repos/octo/app/labels", [{"name": name, "color": color} for name, color in LABELS.items()])
    oracle.answer("GET", "/repos/octo/app/assignees", [{"login": name} for name in ("octocat", "hubot", "passer-by")])
    oracle.respond("POST", "/repos/octo/app/issues", lambda seen: Reply(201, {**issue(71), **seen.json, "id": 71}))
    oracle.respond("POST", "/repos/octo/app/pulls", lambda seen: Reply(201, pull(9)))
    oracle.answer("POST", "/repos/octo/app/pulls/9/requested_reviewers", pull(9), status=201)

    print(oracle.url, flush=True)
    sys.stdin.read()
