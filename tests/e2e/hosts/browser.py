"""Hosts that are pages, in Chromium: the Inspector, and VS Code through code-server.

    uv run python tests/e2e/hosts/browser.py inspector [--pictures FOLDER]
    CODE_SERVER=/path/to/node_modules/code-server uv run python tests/e2e/hosts/browser.py vscode

`CHROMIUM` names the browser, by default /usr/bin/chromium. code-server has to be installed with its native parts
(`npm install code-server@4.139.1`; Debian: build-essential libkrb5-dev), which takes minutes, so this takes one that is
there. Everything listens on loopback, in an empty home.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[3]))

from e2e import npm
from e2e.hosts.run import documented, first_tool
from e2e.installing import ROOT, SERVERS, data
from tools.members import Member

INSPECTOR = "@modelcontextprotocol/inspector"
PACKAGES = (f"{INSPECTOR}@2.12.0", "playwright-core@1.65.1")
PAGES = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{Path(npm.NODE).parent}:/usr/bin:/bin", "LANG": "C.UTF-8", **more}


@contextmanager
def started(words: list[str], until: str, env: dict[str, str], log: Path) -> Iterator[str]:
    """A program in the background, once its output matches `until`; what it has said by then."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        for _ in range(600):
            said = log.read_text("utf-8", "replace")
            if re.search(until, said):
                break
            if process.poll() is not None:
                raise AssertionError(f"{words[0]} ended:\n{said}")
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        else:
            raise AssertionError(f"{words[0]} did not get ready:\n{said}")
        yield said
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 15)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)


def page(script: str, task: dict[str, Any], home: Path) -> str:
    """Run a script of this folder in the browser; what it found out."""
    folder = npm.installed(*PACKAGES)
    task |= {"chromium": os.environ.get("CHROMIUM", "/usr/bin/chromium")}
    command = [npm.NODE, str(PAGES / script), str(folder / "node_modules/playwright-core/index.mjs"), json.dumps(task)]
    done = subprocess.run(command, env=environment(home), capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def inspector(server: Member, scratch: Path, pictures: str) -> str:
    """The Inspector's page lists the server's tools and calls one."""
    folder = npm.installed(*PACKAGES)
    (scratch / "mcp.json").write_text(documented("claude-desktop", server, scratch / "served"), "utf-8")
    port = free_port()
    words = [npm.NODE, npm.program(folder, INSPECTOR, "mcp-inspector"), "--web", "--config", str(scratch / "mcp.json")]
    env = environment(
        scratch / "home",
        CLIENT_PORT=str(port),
        MCP_SANDBOX_PORT=str(free_port()),
        MCP_AUTO_OPEN_ENABLED="false",
        MCP_INSPECTOR_SECRET_STORE="memory",
    )
    with started(words, rf"http://\S+:{port}\S*", env, scratch / "log") as said:
        found = re.search(rf"http://\S+:{port}\S*", said)
        assert found
        seen = json.loads((ROOT / f"tests/snapshots/{server.command}.json").read_text("utf-8"))
        [title] = [tool["title"] for tool in seen["tools"] if tool["name"] == first_tool(server)]
        picture = pictures and f"{pictures}/inspector-{server.name}.png"
        task = {"url": found[0], "title": title, "picture": picture}
        return page("inspector.mjs", task, scratch / "home")


def vscode(server: Member, scratch: Path, pictures: str) -> str:
    """VS Code starts the server as its mcp.json says, asks, shows its tools, opens a resource, and sees it change."""
    home, project = scratch / "home", scratch / "served"
    code_server = Path(os.environ["CODE_SERVER"])
    (project / ".vscode").mkdir()
    entry = json.loads(documented("vscode", server, project))
    (project / ".vscode/mcp.json").write_text(json.dumps(entry, indent=2), "utf-8")
    real = {"directory": str(project), "file": str(project / "app.db")}
    answers = {asked.name: real.get(asked.kind, asked.example) for asked in server.plain}
    answers |= {str(asked.variable): asked.example if asked.required else "" for asked in server.variables}
    asks = [
        {
            "description": item["description"],
            "secret": item.get("password", False),
            "value": answers[item["id"]],
            "variable": item["id"] if item["id"] in {asked.variable for asked in server.variables} else "",
        }
        for item in entry.get("inputs", [])
    ]
    settings = {
        "security.workspace.trust.enabled": False,
        "telemetry.telemetryLevel": "off",
        "workbench.startupEditor": "none",
        "chat.mcp.autostart": "never",
        "update.mode": "none",
    }
    user = home / "data/User"
    user.mkdir(parents=True)
    (user / "settings.json").write_text(json.dumps(settings), "utf-8")
    port = free_port()
    words = [npm.NODE, str(code_server / "out/node/entry.js"), "--auth", "none", "--bind-addr", f"127.0.0.1:{port}"]
    words += ["--disable-telemetry", "--disable-update-check", "--user-data-dir", str(home / "data"), str(project)]
    with started(words, r"HTTP server listening", environment(home), scratch / "log"):
        task = {
            "url": f"http://127.0.0.1:{port}/?folder={project}",
            "file": str(project / "notes.txt"),
            "resource": "notes.txt" if server.command == "mcp-fs" else "",
            "folder": "Folder served",
            "command": server.command,
            "asked": asks,
            "picture": pictures and f"{pictures}/vscode-{server.name}.png",
        }
        return page("vscode.mjs", task, home)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("host", choices=["inspector", "vscode"])
    parser.add_argument("--server", action="append")
    parser.add_argument("--pictures", default="", help="a folder for screenshots")
    asked = parser.parse_args()
    failed = 0
    for server in SERVERS:
        if asked.server and server.command not in asked.server:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
            scratch = Path(temporary)
            (scratch / "home").mkdir()
            data(scratch / "served")
            try:
                outcome = {"inspector": inspector, "vscode": vscode}[asked.host](server, scratch, asked.pictures)
            except (AssertionError, subprocess.TimeoutExpired) as problem:
                failed += 1
                outcome = f"FAILED: {problem}"
        print(f"{asked.host} + {server.command}: {outcome}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
