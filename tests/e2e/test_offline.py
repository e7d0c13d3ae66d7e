"""The folder for places without a network, installed and used in a network namespace that has no route."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.installing import ROOT, SERVERS, answers, arguments, clean_environment, data
from tools.offline import SYSTEMS, collect, locked

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
ALONE = ["unshare", "--net"]
if sys.platform == "linux" and os.geteuid():
    ALONE.append("--map-root-user")
_can = sys.platform == "linux" and subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0
needs_namespaces = pytest.mark.skipif(not _can, reason="no network namespaces here")


@pytest.mark.weekly
@needs_namespaces
@pytest.mark.anyio
async def test_what_was_collected_is_enough_where_there_is_no_route(wheels: Path, tmp_path: Path) -> None:
    server, folder, home = SERVERS[0], tmp_path / "offline", tmp_path / "home"
    collect([server], wheels, folder, root=ROOT, system="linux", python=PYTHON, engine=None)
    data(tmp_path / "served")

    def alone(*words: str) -> subprocess.CompletedProcess[str]:
        environment = clean_environment() | {"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
        return subprocess.run(
            [*ALONE, *words], cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=300
        )

    connect = "import socket; socket.create_connection(('192.0.2.1', 443), 5)"
    assert "Network is unreachable" in alone(sys.executable, "-c", connect).stderr
    # The commands of its README, on another folder.
    said = (folder / "README.md").read_text("utf-8")
    make, install, show = [line.strip().split() for line in said.splitlines() if line.startswith("    ")]
    for words in (make, install):
        done = alone(*[word.replace("/opt/mcp", str(home)) for word in words])
        assert done.returncode == 0, done.stdout + done.stderr
    done = alone(*[word.replace("/opt/mcp", str(home)) for word in show])
    assert json.loads(done.stdout)["servers"]["fs"]["command"] == str(home / "bin/mcp-fs")
    entry = json.loads((folder / "entries/mcp-fs/vscode.json").read_text("utf-8"))["servers"]["fs"]
    command = entry["command"].replace("/opt/mcp", str(home))
    done = alone(command, "--check", *arguments(server, tmp_path / "served"))
    assert "Everything works." in done.stdout, done.stdout + done.stderr
    await answers([*ALONE, command, *arguments(server, tmp_path / "served")], server)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_requirement_is_for_the_systems_that_its_marker_names(system: str) -> None:
    lines = [
        "pywin32==312 ; sys_platform == 'win32' --hash=sha256:aa",
        "uvloop==1 ; sys_platform != 'win32' and platform_python_implementation != 'PyPy'",
        "tomli==2 ; python_full_version < '3.13'",
        "anyio==4 --hash=sha256:bb",
    ]
    taken = {line.partition("==")[0] for line in lines if SYSTEMS[system].takes(line, "3.13")}
    assert taken == {"anyio", "pywin32" if system == "windows" else "uvloop"}


def test_the_lock_is_read_a_requirement_a_line_with_its_hashes() -> None:
    lines = locked(ROOT, "--package", SERVERS[0].command)
    assert all("==" in line and " --hash=sha256:" in line for line in lines)
