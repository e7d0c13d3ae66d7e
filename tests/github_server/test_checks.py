"""Whether a commit is green: counts of all checks, failures first, and the required ones that nobody reported."""

from typing import Any

import pytest

from github_server.oracle import Oracle
from github_server.serving import call, refused, served
from github_server.world import SHA, no_workflow_runs, sample

O = {"repo": "octo/app"}  # noqa: E741
HERE = "/repos/octo/app"


def run(number: int, outcome: str = "success", **more: Any) -> dict[str, Any]:
    """A check run with this conclusion, or this status if it has none."""
    is_over = outcome not in ("queued", "in_progress")
    state = {"status": "completed" if is_over else outcome, "conclusion": outcome if is_over else None}
    return {**sample("checks/get"), "id": number, "name": f"test ({number})", "output": {}, **state, **more}


def prepared(oracle: Oracle, runs: list[dict[str, Any]], statuses: dict[str, str], required: list[str]) -> None:
    """A pull request 5 into `main`, whose rules require checks of these names."""
    pull = {**sample("pulls/get"), "number": 5, "head": {"sha": SHA}, "base": {"ref": "main"}}
    oracle.answer("GET", f"{HERE}/pulls/5", pull)
    no_workflow_runs(oracle)
    oracle.pages(f"{HERE}/commits/(?:{SHA}|main)/check-runs", runs, "check_runs")
    listed = [{"context": name, "state": state, "description": None} for name, state in statuses.items()]
    oracle.answer("GET", f"{HERE}/commits/(?:{SHA}|main)/status", {"state": "success", "statuses": listed})
    checks = {"enforcement_level": "everyone", "contexts": required[:1], "checks": []}
    oracle.answer("GET", f"{HERE}/branches/main", {"name": "main", "protection": {"required_status_checks": checks}})
    rule = {"required_status_checks": [{"context": name} for name in required[1:]]}
    rules = [{"type": "deletion"}, {"type": "required_status_checks", "parameters": rule}]
    oracle.answer("GET", f"{HERE}/rules/branches/main", rules)


# What there is, what is required, and what is said of it.
CASES: list[tuple[list[str], dict[str, str], list[str], str]] = [
    (["success", "success"], {}, [], "Green: 2 passed."),
    (["success", "skipped", "neutral"], {"ci": "success"}, ["ci"], "Green: 1 neutral, 1 skipped, 2 passed."),
    (["success", "failure"], {}, [], "Not green: 1 failed, 1 passed."),
    (["success"], {"ci": "error"}, [], "Not green: 1 failed, 1 passed."),
    (["success"], {"ci": "pending"}, [], "Not done: 1 pending, 1 passed."),
    (["success", "in_progress", "queued"], {}, [], "Not done: 1 in_progress, 1 queued, 1 passed."),
    (["timed_out", "cancelled", "queued"], {}, [], "Not green: 1 cancelled, 1 timed_out, 1 queued."),
    (["startup_failure", "action_required"], {}, [], "Not green: 1 action_required, 1 startup_failure."),
    (["success"], {}, ["test (1)", "deploy", "lint"], "Not done: 1 passed, 2 required not reported: `deploy`, `lint`."),
    ([], {}, [], "There are no checks."),
    ([], {}, ["ci"], "Not done: 1 required not reported: `ci`."),
]  # fmt: skip


@pytest.mark.anyio
async def test_one_call_says_whether_it_is_green(oracle: Oracle) -> None:
    async with served(oracle) as client:
        for outcomes, statuses, required, said in CASES:
            prepared(oracle, [run(number, of) for number, of in enumerate(outcomes, 1)], statuses, required)
            assert (await call(client, "list_checks", **O, number=5)).get("note") == said


@pytest.mark.anyio
async def test_of_many_checks_those_that_failed_come_first_in_one_call(oracle: Oracle) -> None:
    runs = [run(number, {77: "failure", 120: "queued"}.get(number, "success")) for number in range(1, 124)]
    prepared(oracle, runs, {}, ["test (1)", "release"])
    async with served(oracle) as client:
        found = await call(client, "list_checks", **O, number=5)
        assert found["note"] == "Not green: 1 failed, 1 queued, 121 passed, 1 required not reported: `release`."
        assert [row[0] for row in found["rows"][:3]] == ["test (77)", "test (120)", "test (1)"]
        assert len(found["rows"]) == 123 and "cursor" not in found
        assert [row[0] for row in (await call(client, "list_checks", **O, ref="main", state="failed"))["rows"]] == [
            "test (77)"
        ]
        found = await call(client, "list_checks", **O, ref="main", name="TEST (12")
        assert len(found["rows"]) == 5 and found["note"].startswith("Not green: 1 failed")
        assert found["rows"][0][0] == "test (120)"


@pytest.mark.anyio
async def test_pages_of_checks_have_all_once(oracle: Oracle) -> None:
    prepared(oracle, [run(number, title="x" * 50) for number in range(1, 301)], {"ci": "success"}, [])
    async with served(oracle) as client:
        ask: dict[str, Any] = {**O, "ref": "main"}
        names: list[str] = []
        while True:
            found = await call(client, "list_checks", **ask)
            names += [row[0] for row in found["rows"]]
            if "cursor" not in found:
                break
            ask["cursor"] = found["cursor"]
        assert len(names) == len(set(names)) == 301
        assert "not issued" in await refused(client, "list_checks", **{**ask, "state": "failed"})
        assert "1 to 1000" in await refused(client, "list_checks", **O, ref="main", limit=-1)


@pytest.mark.anyio
async def test_checks_of_one_name_are_told_apart(oracle: Oracle) -> None:
    twice = [
        run(1, name="build", check_suite={"id": 11}, started_at="2026-01-02T00:00:00Z"),
        run(2, "failure", name="build", check_suite={"id": 12}, started_at="2026-01-02T00:05:00Z"),
    ]
    prepared(oracle, twice, {}, [])
    runs = [
        {**sample("actions/get-workflow-run"), "check_suite_id": 11, "name": "CI", "event": "push", "run_attempt": 1},
        {**sample("actions/get-workflow-run"), "check_suite_id": 12, "name": "CI", "event": "pull_request",
         "run_attempt": 3},
    ]  # fmt: skip
    oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 2, "workflow_runs": runs})
    async with served(oracle) as client:
        found = await call(client, "list_checks", **O, number=5)
        assert found["columns"][-4:] == ["workflow", "event", "attempt", "started_at"]
        assert [row[-4:] for row in found["rows"]] == [
            ["CI", "pull_request", 3, "2026-01-02T00:05:00Z"], ["CI", "push", 1, "2026-01-02T00:00:00Z"],
        ]  # fmt: skip
        oracle.answer("GET", f"{HERE}/actions/runs", {"message": "Not Found"}, status=404)
        found = await call(client, "list_checks", **O, number=5)
        assert [row[-1] for row in found["rows"]] == ["2026-01-02T00:05:00Z", "2026-01-02T00:00:00Z"]


@pytest.mark.anyio
@pytest.mark.parametrize("status", [403, 404])
async def test_statuses_are_shown_where_checks_are_hidden(status: int, oracle: Oracle) -> None:
    prepared(oracle, [], {"ci": "failure"}, ["other"])
    no = {"message": "Not Found"}
    for path in (f"{HERE}/commits/.*/check-runs", f"{HERE}/actions/runs"):
        oracle.answer("GET", path, no, status=status)
    async with served(oracle) as client:
        found = await call(client, "list_checks", **O, number=5)
        assert found["note"].startswith("Not green: 1 failed.") and "Neither check runs" in found["note"]
        # What is required can't be told from names of runs, and isn't.
        assert "required" not in found["note"]
        oracle.answer("GET", f"{HERE}/branches/main", no, status=status)
        prepared(oracle, [run(1)], {}, ["test (1)"])
        oracle.answer("GET", f"{HERE}/rules/branches/main", no, status=status)
        assert "is not known here" in (await call(client, "list_checks", **O, number=5))["note"]


@pytest.mark.anyio
async def test_a_workflow_that_has_no_name_has_its_file_s(oracle: Oracle) -> None:
    prepared(oracle, [], {}, [])
    oracle.answer("GET", f"{HERE}/commits/.*/check-runs", {"message": "Not Found"}, status=403)
    broken = sample("actions/list-workflow-runs-for-repo")["workflow_runs"][0]
    broken |= {"name": None, "path": ".github/workflows/ci.yml", "status": "completed", "conclusion": "failure"}
    oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 1, "workflow_runs": [broken]})
    async with served(oracle) as client:
        found = await call(client, "list_checks", **O, number=5, name="ci")
    assert [row[0] for row in found["rows"]] == [".github/workflows/ci.yml"]


@pytest.mark.anyio
@pytest.mark.parametrize("event", ["workflow_dispatch", "repository_dispatch", "dynamic", "issue_comment"])
async def test_a_run_with_another_input_does_not_replace_one(event: str, oracle: Oracle) -> None:
    checks = [
        run(1, "failure", name="deploy", check_suite={"id": 11}, started_at="2026-01-02T00:00:00Z"),
        run(2, name="deploy", check_suite={"id": 12}, started_at="2026-01-02T00:05:00Z"),
    ]
    prepared(oracle, checks, {}, [])
    workflow = {**sample("actions/get-workflow-run"), "event": event, "status": "completed"}
    runs = [{**workflow, "id": suite, "check_suite_id": suite, "conclusion": conclusion}
            for suite, conclusion in ((12, "success"), (11, "failure"))]  # fmt: skip
    oracle.answer("GET", f"{HERE}/actions/runs", {"total_count": 2, "workflow_runs": runs})
    async with served(oracle) as client:
        assert (await call(client, "list_checks", **O, number=5))["note"] == "Not green: 1 failed, 1 passed."
