"""Objects as GitHub sends them, to be changed by tests."""

import base64
from typing import Any

from github_server.oracle import Oracle
from github_server.oracle.description import example, operations

SHA = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
OTHER_SHA = "0123456789abcdef0123456789abcdef01234567"


def sample(operation: str) -> Any:
    """The description's example answer of the operation called `operation`."""
    return example(next(item for item in operations() if item.about["id"] == operation))[1]


def issue(number: int, **more: Any) -> dict[str, Any]:
    made = {**sample("issues/create"), "number": number, "title": f"Issue {number}", "comments": 0, **more}
    if "pull_request" not in more:
        made.pop("pull_request", None)
    return made


def comment(number: int, **more: Any) -> dict[str, Any]:
    return {**sample("issues/get-comment"), "id": number, "body": f"comment {number}", **more}


def file(path: str, content: bytes, sha: str = SHA, **more: Any) -> dict[str, Any]:
    return {
        "type": "file", "path": path, "name": path.rpartition("/")[2], "sha": sha, "size": len(content),
        "encoding": "base64", "content": base64.b64encode(content).decode(), **more,
    }  # fmt: skip


def changed(name: str, patch: str | None = "@@ -1 +1 @@\n-a\n+b", **more: Any) -> dict[str, Any]:
    made = {"filename": name, "status": "modified", "additions": 1, "deletions": 1, "sha": SHA, **more}
    return made if patch is None else {**made, "patch": patch}


def not_found(oracle: Oracle, verb: str, path: str) -> None:
    oracle.answer(verb, path, {"message": "Not Found"}, status=404)


def branch(oracle: Oracle, name: str = "main", sha: str = SHA, repo: str = "octo/app") -> None:
    ref = {"ref": f"refs/heads/{name}", "object": {"type": "commit", "sha": sha}}
    oracle.answer("GET", f"/repos/{repo}/git/ref/heads/{name}", ref)


def no_workflow_runs(oracle: Oracle, repo: str = "octo/app") -> None:
    """No run of Actions for any commit."""
    oracle.answer("GET", f"/repos/{repo}/actions/runs", {"total_count": 0, "workflow_runs": []})
