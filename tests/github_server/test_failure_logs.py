"""The first cause in the log of a failed job, and calls that wait for it."""

from typing import Any

import anyio
import pytest

from github_server.failed_logs import DECOYS, kinds, made, made_job
from github_server.oracle import Oracle, Seen
from github_server.oracle.server import Reply
from github_server.serving import call, refused, served
from github_server.world import no_workflow_runs, sample
from mcp_github.client.polling import Poller
from mcp_github.requests.runs.failure_causes import find_failed_step
from mcp_github.requests.runs.failure_log_parser import MAX_CAUSE_BYTES, FailedStep, FailureLogParser


def cause_of(log: bytes, piece: int = 4096, step: FailedStep | None = None) -> str:
    cause = FailureLogParser(step)
    for at in range(0, len(log), piece):
        cause.feed(log[at : at + piece])
    return cause.get_cause()


@pytest.mark.share(1, slow=3)
@pytest.mark.parametrize("seed", range(25))
def test_of_many_ways_to_fail_the_cause_is_named(seed: int) -> None:
    assert len(kinds()) >= 170
    missed: list[str] = []
    for kind in kinds():
        log, needed = made(kind, seed)
        said = cause_of(log)
        assert len(said.encode()) <= MAX_CAUSE_BYTES
        if not all(word in said for word in needed):
            missed.append(f"{kind}: {needed} not in {said!r}")
    assert len(missed) <= len(kinds()) * 0.02, "\n".join(missed)


@pytest.mark.share(1, slow=2)
@pytest.mark.parametrize("seed", range(8))
def test_no_decoy_is_taken_for_the_cause(seed: int) -> None:
    """More than two hundred logs, half with lines that look like the cause of a step that failed and are none."""
    wrong: list[str] = []
    count = 0
    for kind in kinds():
        for decoy in (None, list(DECOYS)[(seed + kinds().index(kind)) % len(DECOYS)]):
            log, job, needed = made_job(kind, seed, decoy)
            count += 1
            said = cause_of(log, step=find_failed_step(job))
            if "decoy" in said.lower() or not all(word in said for word in needed):
                wrong.append(f"{kind} with {decoy}: {needed} not in {said!r}")
    assert count >= 200
    assert len(wrong) <= count * 0.02, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)


RUN = {"repo": "octo/app", "run_id": 9}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once."""
    monkeypatch.setattr(Poller.__init__, "__defaults__", (0.01,))


def running(oracle: Oracle, looks: list[dict[str, Any]]) -> None:
    """A run that is found like this, look by look; the last stays."""
    run = sample("actions/get-workflow-run")
    states = iter(looks)
    last: list[dict[str, Any]] = [looks[0]]

    def respond(seen: Seen) -> Reply:
        last[0] = next(states, last[0])
        return Reply(200, {**run, **last[0]})

    oracle.respond("GET", "/repos/octo/app/actions/runs/9", respond)


@pytest.mark.anyio
async def test_one_call_waits_for_a_run_and_says_why_its_jobs_failed(oracle: Oracle, quick: None) -> None:
    going, over = {"status": "in_progress", "conclusion": None}, {"status": "completed", "conclusion": "failure"}
    running(oracle, [going, going, over])
    job = {**sample("actions/get-job-for-workflow-run"), **over}
    jobs = [{**job, "id": number, "name": f"job {number}"} for number in (7, 8)]
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", [*jobs, {**job, "id": 6, "conclusion": "success"}], "jobs")
    log, needed = made("cargo", 1)
    oracle.answer(
        "GET", "/repos/octo/app/actions/jobs/7/logs", status=302, headers={"Location": f"{oracle.url}/_storage/7"}
    )
    oracle.answer("GET", "/_storage/7", raw=log)
    oracle.answer("GET", "/repos/octo/app/actions/jobs/8/logs", {"message": "Not Found"}, status=404)
    told: list[str | None] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with served(oracle, "--toolsets", "actions") as client:
        data = (await client.call_tool("get_run", {**RUN, "wait": 60}, progress_callback=hear)).structured_content[
            "data"
        ]
        assert data["status"] == "completed" and len(oracle.sent("GET", "/runs/9$")) == 3
        first, second = data["causes"]
        assert first["job_id"] == 7 and all(word in first["log"] for word in needed)
        assert second["job_id"] == 8 and "does not find" in second["missing"]
        # Of one that has ended, also without it.
        assert "causes" in (await call(client, "get_run", **RUN))["data"]
        assert "must be 0 to 3000 seconds" in await refused(client, "get_run", **RUN, wait=4000)


@pytest.mark.anyio
async def test_who_waits_too_short_is_told_and_who_cancels_ends_the_looking(oracle: Oracle, quick: None) -> None:
    running(oracle, [{"status": "queued", "conclusion": None}])
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", [], "jobs")
    async with served(oracle, "--toolsets", "actions") as client:
        found = await call(client, "get_run", **RUN, wait=0)
        assert found["note"] == "It is still `queued`: call again to wait on."
        running(oracle, [{"status": "queued", "conclusion": None}, {"status": "completed", "conclusion": "success"}])
        assert (await call(client, "get_run", **RUN, wait=60))["data"]["status"] == "completed"
        running(oracle, [{"status": "queued", "conclusion": None}])
        with anyio.move_on_after(1) as scope:
            await client.call_tool("get_run", {**RUN, "wait": 3000})
        assert scope.cancelled_caught
        await call(client, "get_run", **RUN)
        looks = len(oracle.sent("GET", "/runs/9$"))
        await call(client, "get_run", **RUN)
        assert len(oracle.sent("GET", "/runs/9$")) == looks + 1


@pytest.mark.anyio
async def test_checks_are_waited_for_too(oracle: Oracle, quick: None) -> None:
    check = sample("checks/get")
    looks = 0

    def respond(seen: Seen) -> Reply:
        nonlocal looks
        looks += 1
        state = {"status": "completed", "conclusion": "success"} if looks > 3 else {"status": "queued"}
        found = [] if looks == 1 else [{**check, **state}]
        return Reply(200, {"total_count": len(found), "check_runs": found})

    no_workflow_runs(oracle)
    oracle.respond("GET", "/repos/octo/app/commits/main/check-runs", respond)
    oracle.answer("GET", "/repos/octo/app/commits/main/status", {"state": "success", "statuses": []})
    ask = {"repo": "octo/app", "ref": "main"}
    async with served(oracle) as client:
        assert (await call(client, "list_checks", **ask, wait=60))["rows"][0][1] == "completed"
        assert looks == 4
        looks = -1000
        note = (await call(client, "list_checks", **ask, wait=0))["note"]
        assert note == "Not done: 1 queued. 1 of 1 checks are still going on. Call again to wait on."
        looks = 1
        assert (await call(client, "list_checks", **ask, wait=60))["rows"][0][1] == "completed"


@pytest.mark.anyio
async def test_statuses_are_waited_for_as_checks_are(oracle: Oracle, quick: None) -> None:
    where, looks = "/repos/octo/app/commits/main", 0

    def respond(seen: Seen) -> Reply:
        nonlocal looks
        looks += 1
        states = ["success", "failure" if looks > 2 else "pending"]
        return Reply(200, {"state": states[1], "statuses": [{"context": each, "state": each} for each in states]})

    run = {**sample("checks/get"), "status": "completed", "conclusion": "success"}
    no_workflow_runs(oracle)
    oracle.answer("GET", f"{where}/check-runs", {"total_count": 1, "check_runs": [run]})
    oracle.respond("GET", f"{where}/status", respond)
    async with served(oracle) as client:
        rows = (await call(client, "list_checks", repo="octo/app", ref="main", wait=60))["rows"]
        assert [row[1] for row in rows] == ["failure", "completed", "success"]
        looks = -1000
        note = (await call(client, "list_checks", repo="octo/app", ref="main", wait=0))["note"]
        assert note == "Not done: 1 pending, 2 passed. 1 of 3 checks are still going on. Call again to wait on."


JOBS = "/repos/octo/app/actions/jobs"
BILLING = "The job was not started because recent account payments have failed or your spending limit needs to be "
LINT = {"annotation_level": "failure", "path": "src/a.py", "start_line": 3, "message": "unused import"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("log", "annotations", "words"),
    [
        (None, [{"annotation_level": "failure", "path": ".github", "message": BILLING}], [BILLING]),
        (b"fine\n##[error]Process completed with exit code 1.\n", [LINT], ["src/a.py:3: unused import"]),
        (b"fine\n##[error]Process completed with exit code 1.\n",
         [{**LINT, "annotation_level": "warning"}, {**LINT, "message": "Process completed with exit code 1."}], None),
        (b"fatal: no such thing\n##[error]Process completed with exit code 1.\n", [LINT], None),
    ],
)  # fmt: skip
async def test_what_stands_outside_of_the_log_is_a_cause_too(
    log: bytes | None, annotations: list[dict[str, Any]], words: list[str] | None, oracle: Oracle
) -> None:
    over = {"status": "completed", "conclusion": "failure"}
    running(oracle, [over])
    job = {**sample("actions/get-job-for-workflow-run"), **over, "id": 7, "steps": []}
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", [job], "jobs")
    oracle.answer("GET", f"{JOBS}/7/logs", status=302, headers={"Location": f"{oracle.url}/_storage/7"})
    oracle.answer("GET", "/_storage/7", raw=log or b"", status=200 if log else 404)
    oracle.answer("GET", "/repos/octo/app/check-runs/7/annotations", annotations)
    async with served(oracle, "--toolsets", "actions") as client:
        (cause,) = (await call(client, "get_run", **RUN, wait=0))["data"]["causes"]
        assert cause.get("annotations") == words
        oracle.answer("GET", "/repos/octo/app/check-runs/7/annotations", {"message": "Not Found"}, status=404)
        (cause,) = (await call(client, "get_run", **RUN, wait=0))["data"]["causes"]
        assert cause.get("log") or cause["missing"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"status": "completed", "conclusion": "startup_failure"}, "`.github/workflows/ci.yml` is invalid"),
        ({"status": "completed", "conclusion": "action_required"}, "until a maintainer approves it"),
        ({"status": "waiting", "conclusion": None}, "the environment `staging`, which octocat, Justice League may "
                                                    "approve; the user of this token can; its timer is 30 minutes"),
    ],
)  # fmt: skip
async def test_a_run_that_does_not_go_on_says_why(state: dict[str, Any], words: str, oracle: Oracle) -> None:
    running(oracle, [{**state, "path": ".github/workflows/ci.yml@main"}])
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", [], "jobs")
    async with served(oracle, "--toolsets", "actions") as client:
        assert words in (await call(client, "get_run", **RUN))["note"]
        running(oracle, [{"status": "waiting", "id": 9}])
        oracle.answer("GET", "/repos/octo/app/actions/runs/9/pending_deployments", {"message": "No"}, status=403)
        assert "a rule of an environment" in (await call(client, "get_run", **RUN))["note"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"status": "completed", "conclusion": "skipped"}, "was skipped, so it has no log"),
        ({"status": "completed", "conclusion": "failure", "steps": []}, "before its first step"),
        ({"status": "queued", "conclusion": None}, "is `queued`"),
        ({"status": "completed", "conclusion": "failure"}, "kept for some weeks"),
    ],
)
async def test_a_log_that_is_missing_has_a_reason(state: dict[str, Any], words: str, oracle: Oracle) -> None:
    oracle.answer("GET", f"{JOBS}/7/logs", {"message": "Not Found"}, status=404)
    oracle.answer("GET", f"{JOBS}/7", {**sample("actions/get-job-for-workflow-run"), "id": 7, **state})
    async with served(oracle, "--toolsets", "actions") as client:
        assert words in await refused(client, "read_job_log", repo="octo/app", job_id=7)


def matrix(oracle: Oracle, logs: dict[int, bytes], *, name: str = "", green: int = 0) -> None:
    """A run that failed: a job for each log, and some that succeeded."""
    over = {"status": "completed", "conclusion": "failure"}
    running(oracle, [over])
    job = {**sample("actions/get-job-for-workflow-run"), **over, "steps": []}
    jobs = [{**job, "id": number, "name": name or f"job {number}"} for number in logs]
    jobs += [{**job, "id": 100 + number, "name": "fine", "conclusion": "success"} for number in range(green)]
    oracle.pages("/repos/octo/app/actions/runs/9/jobs", jobs, "jobs")
    for number, log in logs.items():
        where = {"Location": f"{oracle.url}/_storage/{number}"}
        oracle.answer("GET", f"/repos/octo/app/actions/jobs/{number}/logs", status=302, headers=where)
        oracle.answer("GET", f"/_storage/{number}", raw=log)


def failing(line: str, noise: int = 0) -> bytes:
    """The log of a job that ends with a line."""
    lines = ["working " + "x" * 60] * noise + [line, "##[error]Process completed with exit code 1.\n"]
    return "\n".join(lines).encode()


@pytest.mark.anyio
async def test_jobs_that_fail_alike_are_told_once_and_green_ones_counted(oracle: Oracle) -> None:
    # What was compared is a difference.
    old = failing("E   File python3.11/cart.py: assert 1 == 2", 3)
    new = failing("E   File python3.12/cart.py: assert 1 == 2", 4)
    matrix(oracle, {7: old, 8: new, 9: failing("E   File python3.12/cart.py: assert 1 == 3")}, green=4)
    async with served(oracle, "--toolsets", "actions") as client:
        found = await call(client, "get_run", **RUN)
        assert [job[0] for job in found["data"]["jobs"]] == [7, 8, 9]
        assert found["note"] == "Not in `jobs`: 4 success."
        first, other = found["data"]["causes"]
        assert first["job_id"] == 7 and first["same_but_for_numbers"] == [8] and "python3.11" in first["log"]
        assert other["job_id"] == 9 and "same_but_for_numbers" not in other
        logs = await call(client, "read_job_log", **RUN)
        assert "python3.11" in logs and logs.count("python3.12") == 1 and "1 == 3" in logs
        assert "(job 8) of `octo/app`]\nfails as job 7 but for numbers\n" in logs
        # Who asks for lines gets those of each.
        assert "python3.12" in await call(client, "read_job_log", **RUN, pattern="cart.py")
        # A log that is missing is like no other.
        oracle.answer("GET", "/repos/octo/app/actions/jobs/[89]/logs", {"message": "Not Found"}, status=404)
        assert len((await call(client, "get_run", **RUN))["data"]["causes"]) == 3
        # Of a run that is green, or goes on, all jobs are of interest.
        running(oracle, [{"status": "in_progress", "conclusion": None}])
        assert len((await call(client, "get_run", **RUN))["data"]["jobs"]) == 7


@pytest.mark.anyio
@pytest.mark.parametrize("log", [failing("the build ends"), b"all is well\n"], ids=["only the exit code", "nothing"])
async def test_jobs_whose_logs_state_no_cause_are_not_said_to_fail_alike(log: bytes, oracle: Oracle) -> None:
    matrix(oracle, {7: log, 8: log})
    oracle.answer("GET", "/repos/octo/app/check-runs/[78]/annotations", [])
    async with served(oracle, "--toolsets", "actions") as client:
        causes = (await call(client, "get_run", **RUN))["data"]["causes"]
        assert [cause["job_id"] for cause in causes] == [7, 8]
        assert "fails as job" not in await call(client, "read_job_log", **RUN)


@pytest.mark.anyio
async def test_the_name_of_a_job_that_fails_alike_is_whole(oracle: Oracle) -> None:
    log = failing("E   assert 1 == 2")
    matrix(oracle, {7: log, 8: log}, name="test (linux; 3.12)")
    async with served(oracle, "--toolsets", "actions") as client:
        logs = await call(client, "read_job_log", **RUN)
        assert "job `8` (test (linux; 3.12)) of `octo/app`]\nfails as job 7 but for numbers\n" in logs


@pytest.mark.anyio
async def test_of_a_log_that_names_the_cause_an_excerpt_is_enough(oracle: Oracle) -> None:
    matrix(oracle, {7: failing("E   assert 1 == 2", 900)})
    async with served(oracle, "--toolsets", "actions") as client:
        text = await call(client, "read_job_log", **RUN)
        assert "901: E   assert 1 == 2" in text and "890: working" in text and len(text.encode()) < 3500
        assert "truncated, the end from line" in text and "start_line reads from elsewhere" in text
        # Where it names none, the reader has to look for it.
        matrix(oracle, {7: failing("it broke", 900)})
        assert len((await call(client, "read_job_log", **RUN)).encode()) > 9000
