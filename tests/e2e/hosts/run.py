"""Real hosts, headless: each gets each server by the entry of our documents, must list its tools and call one.

    uv run python tests/e2e/hosts/run.py [--host codex] [--server mcp-fs]

Programs come from npm at the versions below. Each runs with an empty home folder, a cleared environment and, for all it
knows, no network but loopback, where a stand-in answers as its model. It needs a minute per host; it is no part of
`pytest`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[3]))

from e2e import npm
from e2e.hosts.model import StandIn
from e2e.installing import ROOT, SERVERS, data
from tools.members import INSTALLED, Member

SECONDS = 150
PROMPT = "Call the tool."


@dataclass(frozen=True)
class Scene:
    """An empty home and project of one host, with the entry for one server."""

    home: Path
    project: Path
    entry: str
    port: int
    tool: str
    name: str

    def write(self, path: str, text: str) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def merged(self, path: str, more: dict[str, Any]) -> None:
        """The entry with what the host needs to find its model."""
        self.write(path, json.dumps(json.loads(self.entry) | more))


@dataclass(frozen=True)
class Host:
    """A program from npm.

    Attributes:
        package: with its version.
        prepare: writes the configuration, returns the words after the program and its environment.
        binary: the program's path below `node_modules`; None for the package's own script, run by Node.
    """

    package: str
    prepare: Callable[[Scene], tuple[list[str], dict[str, str]]]
    binary: str | None = None


def claude_code(scene: Scene) -> tuple[list[str], dict[str, str]]:
    scene.write("mcp.json", scene.entry)
    words = ["-p", PROMPT, "--mcp-config", str(scene.home / "mcp.json"), "--strict-mcp-config"]
    words += ["--allowedTools", f"mcp__{scene.name}__{scene.tool}"]
    return words, {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{scene.port}",
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "MCP_CONNECTION_NONBLOCKING": "false",
    }


def codex(scene: Scene) -> tuple[list[str], dict[str, str]]:
    provider = f'name = "stand-in"\nbase_url = "http://127.0.0.1:{scene.port}/v1"\nwire_api = "responses"\n'
    top = 'model = "stand-in"\nmodel_provider = "stand-in"\n'
    table = f"{scene.entry}required = true\n\n[model_providers.stand-in]\n{provider}"
    scene.write(".codex/config.toml", f"{top}\n{table}")
    return ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT], {
        "CODEX_HOME": str(scene.home / ".codex")
    }


def copilot(scene: Scene) -> tuple[list[str], dict[str, str]]:
    scene.write(".copilot/mcp-config.json", scene.entry)
    return ["-p", PROMPT, "--allow-all-tools", "--disable-builtin-mcps"], {
        "COPILOT_PROVIDER_BASE_URL": f"http://127.0.0.1:{scene.port}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "stand-in",
        "COPILOT_OFFLINE": "true",
    }


def gemini(scene: Scene) -> tuple[list[str], dict[str, str]]:
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    more = {"security": security, "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
    scene.merged(".gemini/settings.json", more)
    return ["-p", PROMPT, "--yolo", "--skip-trust", "--model", "gemini-2.5-flash"], {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{scene.port}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def opencode(scene: Scene) -> tuple[list[str], dict[str, str]]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"http://127.0.0.1:{scene.port}/v1", "apiKey": "none"},
        "models": {"m": {"name": "m", "tool_call": True}},
    }
    more = {"provider": {"stand-in": provider}, "autoupdate": False, "share": "disabled"}
    scene.merged(".config/opencode/opencode.json", more)
    return ["run", "--model", "stand-in/m", PROMPT], {"OPENCODE_DISABLE_MODELS_FETCH": "1"}


HOSTS = {
    "claude-code": Host("@anthropic-ai/claude-code@2.1.330", claude_code, "@anthropic-ai/claude-code-linux-x64/claude"),
    "codex": Host("@openai/codex@0.169.0", codex),
    "copilot-cli": Host("@github/copilot@1.0.102", copilot),
    "gemini-cli": Host("@google/gemini-cli@0.61.0", gemini),
    "opencode": Host("opencode-ai@1.18.33", opencode, "opencode-linux-x64/bin/opencode"),
}


def documented(host: str, server: Member, folder: Path) -> str:
    """The entry for the installed server from the host's page, for this environment and `folder`."""
    page = (ROOT / f"docs/hosts/{host}.md").read_text("utf-8")
    found = re.search(rf"### {server.command}: installed\n\n```\w+\n(.*?)```", page, re.DOTALL)
    assert found, f"docs/hosts/{host}.md has no entry for {server.command}"
    text = found[1].replace(INSTALLED, str(Path(sys.executable).parent))
    for asked in server.plain:
        real = {"directory": folder, "file": folder / "app.db"}.get(asked.kind, asked.example)
        text = text.replace(json.dumps(asked.example), json.dumps(str(real)))
    return text


def first_tool(server: Member) -> str:
    """A tool that reads and needs no argument."""
    seen = json.loads((ROOT / f"tests/snapshots/{server.command}.json").read_text("utf-8"))
    return next(
        tool["name"]
        for tool in seen["tools"]
        if tool["annotations"]["readOnlyHint"] and not tool["inputSchema"].get("required")
    )


def tried(name: str, host: Host, server: Member, scratch: Path) -> str:
    """What came of it, in a line.

    Raises:
        AssertionError: the tools were not offered, or the call had no answer.
    """
    home, project, folder = scratch / "home", scratch / "project", scratch / "served"
    home.mkdir()
    project.mkdir()
    data(folder)
    installed = npm.installed(host.package)
    tool = first_tool(server)
    with StandIn(tool) as model:
        scene = Scene(home, project, documented(name, server, folder), model.port, tool, server.name)
        words, environment = host.prepare(scene)
        if host.binary:
            program = [str(installed / "node_modules" / host.binary)]
        else:
            program = [npm.NODE, npm.program(installed, host.package.rpartition("@")[0])]
        everywhere = {
            "HOME": str(home),
            "PATH": f"{Path(npm.NODE).parent}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            # Whatever else it would call goes to a closed port.
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:9"),
            "NO_PROXY": "127.0.0.1,localhost",
        }
        # What the entry hands on, as the person would have it.
        everywhere |= {asked.variable: asked.example for asked in server.variables if asked.variable}
        started = time.perf_counter()
        with (scratch / "log").open("wb") as log:
            process = subprocess.Popen(
                [*program, *words],
                cwd=project,
                env=everywhere | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
        seconds = time.perf_counter() - started
        said = (scratch / "log").read_text("utf-8", "replace")
        told = f"among {sorted(model.offered)}; asked: {model.requests}; it said:\n{said}"
        assert model.called, f"{tool} was not offered {told}"
        # One that could not be helped, such as a database that is not there, may be kept from the model.
        reported = f"'{tool}' reported an error" in said
        assert reported or (model.answer and model.answer.strip()), f"no answer of {model.called} {told}"
        first = " ".join((model.answer or "an error").split())[:70]
        count = len([offered for offered in model.offered if server.name in offered])
        return f"{count} tools offered, {model.called} called in {seconds:.1f} s: {first}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--host", action="append", choices=HOSTS)
    parser.add_argument("--server", action="append")
    asked = parser.parse_args()
    failed = 0
    for name, host in HOSTS.items():
        for server in SERVERS:
            if (asked.host and name not in asked.host) or (asked.server and server.command not in asked.server):
                continue
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
                try:
                    outcome = tried(name, host, server, Path(scratch))
                except AssertionError as problem:
                    failed += 1
                    outcome = f"FAILED: {problem}"
            print(f"{name} {host.package.rpartition('@')[2]} + {server.command}: {outcome}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
