"""The official conformance suite over HTTP: every server passes each scenario that asks for nothing else.

The other scenarios ask for tools, resources and prompts of the suite's own and can't pass there, but whatever the
server says in them too is held against the revision's JSON schema. `diagnostic` has all of those, and passes in full.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from contract.cases import CASES
from e2e import npm
from e2e.serving import listening
from shared.http_subject import running
from thinning import some

SUITE = "@modelcontextprotocol/conformance"
VERSION = "0.2.0-alpha.12"

COMMON = {"tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection"}
SCENARIOS = {
    "2025-11-25": {
        *COMMON,
        "server-initialize",
        "server-session-lifecycle",
        "ping",
    },
    "2026-07-28": {
        *COMMON,
        "server-stateless",
        "caching",
        "sep-2164-resource-not-found",
        "http-header-validation",
        "input-required-result-unsupported-methods",
    },
}
# These checks of `server-stateless` call tools that only a diagnostic server has.
NEED_A_FIXTURE = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-server-sends-prompts-list-changed-on-subscription",
    "sep-2575-server-sends-tools-list-changed-on-subscription",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
ON_THE_WIRE = "wire-schema-valid"
DIAGNOSTIC = [
    sys.executable,
    str(Path(__file__).parents[1] / "e2e" / "diagnostic"),
    "--transport",
    "http",
    "--port",
    "0",
]


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(("revision", "scored"), [("2025-11-25", 30), ("2026-07-28", 37)])
async def test_everything_the_suite_asks_of_a_server(revision: str, scored: int, tmp_path: Path) -> None:
    """In full, on a server that has what the suite asks for; its own count of what is required decides."""
    async with running(DIAGNOSTIC) as subject:
        command = [npm.NODE, npm.program(npm.installed(f"{SUITE}@{VERSION}"), SUITE), "server", "--url", subject.url]
        with anyio.fail_after(240):
            said = await anyio.run_process(
                [*command, "--requirements", revision, "-o", str(tmp_path / "out")],
                check=False,
                stderr=subprocess.STDOUT,
                env=npm.environment(),
            )
    lines = said.stdout.decode().partition("=== SUMMARY ===")[2]
    total, unscored = lines.partition("Not scored")[::2]
    passed = {line.split()[1].rstrip(":") for line in total.splitlines() if line.startswith("✓")}
    failed = {line.split()[1].rstrip(":") for line in total.splitlines() if line.startswith("✗")}
    extra = {line.split()[1] for line in unscored.splitlines() if line.strip()[:1] in ("✓", "✗")}
    assert said.returncode == 0, lines
    assert failed <= extra, lines
    assert len(passed - extra) == scored, lines
    # Of what does not count: tasks, an extension that is not offered, and a history of events, which is not kept.
    assert not [name for name in failed if not name.startswith("tasks-") and name != "server-sse-polling"]


@dataclass(frozen=True)
class Run:
    """What the suite said of one server in one revision, and the checks it left in `folder`."""

    said: str
    folder: Path

    @property
    def checks(self) -> dict[str, list[tuple[str, str, str]]]:
        """Scenario, with the time it was run, to its checks."""
        return {folder.name: outcomes(folder / "checks.json") for folder in self.folder.iterdir()}


@pytest.fixture(scope="module")
async def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Run]:
    """Every server that is asked for in every revision, some of them at once: the suite mostly waits."""
    items = [item for item in request.session.items if item.path == request.path]
    packages = {item.callspec.params.get("package") for item in items if hasattr(item, "callspec")}
    done: dict[tuple[str, str], Run] = {}
    suite = npm.program(npm.installed(f"{SUITE}@{VERSION}"), SUITE)
    places = anyio.CapacityLimiter(3)

    async def judge(package: str) -> None:
        scratch = tmp_path_factory.mktemp(package)
        async with places:
            case = await anyio.to_thread.run_sync(CASES[package], scratch)
            async with listening(package, *case.arguments) as (_, url):
                for revision in SCENARIOS:
                    out = scratch / revision
                    command = [npm.NODE, suite, "server", "--url", url, "--suite", "all"]
                    # Its exit status also counts what needs a fixture.
                    with anyio.fail_after(240):
                        said = await anyio.run_process(
                            [*command, "--spec-version", revision, "-o", str(out)],
                            check=False,
                            stderr=subprocess.STDOUT,
                            env=npm.environment(),
                        )
                    done[package, revision] = Run(said.stdout.decode(), out)

    async with anyio.create_task_group() as tasks:
        for package in packages & CASES.keys():
            tasks.start_soon(judge, package)
    return done


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("revision", SCENARIOS)
@pytest.mark.parametrize("package", some(CASES, "mcp_fs"))
async def test_conformance(package: str, revision: str, runs: dict[tuple[str, str], Run]) -> None:
    run = runs[package, revision]
    checks = run.checks
    # A folder is named `server-SCENARIO-TIME`.
    ours = {name: checks[folder] for name in SCENARIOS[revision] for folder in checks if f"server-{name}-2" in folder}
    assert ours.keys() == SCENARIOS[revision], run.said

    assert all(found for found in ours.values())
    failed = [(name, *check) for name, found in ours.items() for check in found if check[1] not in ("SUCCESS", "INFO")]
    assert [item for item in failed if item[1] not in NEED_A_FIXTURE] == []
    malformed = [(name, *check) for name, found in checks.items() for check in found if check[0] == ON_THE_WIRE]
    assert [item for item in malformed if item[2] != "SUCCESS"] == []
    assert malformed


def outcomes(file: Path) -> list[tuple[str, str, str]]:
    """(id, status, message) of each check."""
    checks = json.loads(file.read_text("utf-8"))
    return [(check["id"], check["status"], check.get("errorMessage", "")) for check in checks]
