"""Every server with the frameworks that agents are written in, from PyPI: their tools list, convert and call.

A registry that can't be reached fails these tests.
"""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract.cases import CASES
from e2e.installing import UV, clean_environment
from thinning import some

FRAMEWORKS = {
    "openai_agents": ["openai-agents==0.24.0"],
    "langchain_adapters": ["langchain-mcp-adapters==0.3.2"],
}
# Their arguments have keys of the caller's, which no strict schema allows.
TAKE_A_MAP = (
    "copy_file", "move_file", "replace_text", "write_gist", "write_properties", "explain_query", "call_tools",
)  # fmt: skip
DRIVERS = Path(__file__).parent / "clients"


@pytest.mark.slow
@pytest.mark.share(1)
@pytest.mark.anyio
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("package", some(CASES, "mcp_fs"))
async def test_an_agent_sees_and_calls_the_tools(package: str, framework: str, tmp_path: Path) -> None:
    case = await anyio.to_thread.run_sync(CASES[package], tmp_path)
    tool, arguments = case.read
    report = await report_of(framework, {"command": case.command, "tool": tool, "arguments": dict(arguments)})
    assert tool in report["tools"]
    assert not report["failed"] and report["text"]
    if framework == "openai_agents":
        # A model is not held to a schema that the framework can't make strict.
        loose = set(report["tools"]) - set(report["strict"])
        assert {name for name in loose if not name.endswith(TAKE_A_MAP)} == set()


async def report_of(framework: str, task: dict[str, Any]) -> dict[str, Any]:
    """Return what the driver of a framework reports."""
    wanted = [word for requirement in FRAMEWORKS[framework] for word in ("--with", requirement)]
    command = [UV, "run", "--quiet", "--no-project", "--isolated", *wanted, "python", DRIVERS / f"{framework}.py"]
    with anyio.fail_after(240):
        done = await anyio.run_process(
            [*map(str, command), json.dumps(task)], check=False, env=clean_environment(), cwd=DRIVERS
        )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]
    return json.loads(done.stdout.decode().splitlines()[-1])
