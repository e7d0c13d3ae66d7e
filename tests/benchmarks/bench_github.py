"""mcp-github beside the archived GitHub server of npm, in one run, on one loopback GitHub; prints two tables.

    python tests/benchmarks/bench_github.py [--quick]

The peer is `@modelcontextprotocol/server-github` 2025.4.8, whose address of the API is fixed: its requests are led to
the loopback one from outside, and say which version of the API they mean, which the loopback one insists on. Both are
asked ten common questions over stdio about the same repository: 30 issues, pull requests and commits a page, objects as
large as the examples of GitHub's own description.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from driver import memory  # noqa: E402

from e2e import npm  # noqa: E402
from github_server.oracle import Oracle  # noqa: E402
from github_server.world import SHA, changed, file, issue, sample  # noqa: E402
from mcp_batteries.testing.wire import MODERN, StdioWire, WireError  # noqa: E402
from mcp_github.client.response import API_VERSION  # noqa: E402

PEER = "@modelcontextprotocol/server-github"
PEER_VERSION = "2025.4.8"
REPO, WHERE = {"repo": "octo/app"}, {"owner": "octo", "repo": "app"}
CODE = "".join(f"def function_{number}():\n    return {number}\n" for number in range(150)).encode()

QUESTIONS: dict[str, tuple[tuple[str, dict], tuple[str, dict]]] = {
    "open issues": (("list_issues", REPO), ("list_issues", {**WHERE, "state": "open"})),
    "an issue": (("get_issue", {**REPO, "number": 3}), ("get_issue", {**WHERE, "issue_number": 3})),
    "open pull requests": (("list_pull_requests", REPO), ("list_pull_requests", {**WHERE, "state": "open"})),
    "a pull request": (("get_pull_request", {**REPO, "number": 5}), ("get_pull_request", {**WHERE, "pull_number": 5})),
    "what it changes": (("read_diff", {**REPO, "number": 5}), ("get_pull_request_files", {**WHERE, "pull_number": 5})),
    "its checks": (("list_checks", {**REPO, "number": 5}), ("get_pull_request_status", {**WHERE, "pull_number": 5})),
    "its reviews": (("list_reviews", {**REPO, "number": 5}), ("get_pull_request_reviews", {**WHERE, "pull_number": 5})),
    "last commits": (("list_commits", REPO), ("list_commits", WHERE)),
    "a file of 300 lines": (("read_file", {**REPO, "path": "a.py"}), ("get_file_contents", {**WHERE, "path": "a.py"})),
    "search repositories": (
        ("search_github", {"kind": "repositories", "query": "parser", "limit": 30}),
        ("search_repositories", {"query": "parser"}),
    ),
}


@dataclass(frozen=True)
class Peer:
    name: str
    command: Callable[[Oracle], list[str]]
    which: int
    revision: str
    variables: dict[str, str] = field(default_factory=dict)


def everybody() -> list[Peer]:
    ours = [sys.executable, "-m", "mcp_github", "--cache", "memory"]
    found = [
        Peer("mcp-github", lambda oracle: [*ours, "--api-url", oracle.url], 0, MODERN),
        Peer("mcp-github --write", lambda oracle: [*ours, "--write", "--api-url", oracle.url], 0, MODERN),
    ]
    try:
        program = npm.program(npm.installed(f"{PEER}@{PEER_VERSION}"), PEER)
    except RuntimeError as error:
        click.echo(f"{PEER} is left out: {error}", err=True)
        return found

    def command(oracle: Oracle) -> list[str]:
        leads = (
            "const real=globalThis.fetch;globalThis.fetch=(url,options)=>"
            f"(options.headers['X-GitHub-Api-Version']='{API_VERSION}',"
            f"real(String(url).replace('https://api.github.com','{oracle.url}'),options))"
        )
        return [npm.NODE, "--import", f"data:text/javascript,{leads}", program]

    found.append(Peer(f"{PEER.rpartition('/')[2]} {PEER_VERSION}", command, 1, "2024-11-05"))
    return found


def world(oracle: Oracle) -> Oracle:
    pull, commit, review = sample("pulls/get"), sample("repos/get-commit"), sample("pulls/get-review")
    listed, found = sample("pulls/list")[0], sample("search/repos")["items"][0]
    oracle.pages("/repos/octo/app/issues", [issue(number) for number in range(1, 31)])
    oracle.answer("GET", "/repos/octo/app/issues/3", issue(3))
    oracle.pages("/repos/octo/app/pulls", [{**listed, "number": number} for number in range(1, 31)])
    oracle.answer("GET", "/repos/octo/app/pulls/5", {**pull, "number": 5})
    links = dict.fromkeys(("url", "git_url", "html_url", "download_url"), oracle.url)
    places = {"_links": dict.fromkeys(("git", "self", "html"), oracle.url)}
    whole = {"changes": 40, "blob_url": oracle.url, "raw_url": oracle.url, "contents_url": oracle.url}
    patch = "@@ -1,20 +1,20 @@\n" + "".join(f"-old line {number}\n+new line {number}\n" for number in range(20))
    oracle.answer(
        "GET", "/repos/octo/app/pulls/5/files", [changed(f"src/f{number}.py", patch, **whole) for number in range(10)]
    )
    oracle.pages("/repos/octo/app/pulls/5/reviews", [{**review, "id": number} for number in range(5)])
    oracle.pages("/repos/octo/app/commits", [{**commit, "sha": SHA} for _ in range(30)])
    oracle.answer("GET", "/repos/octo/app/contents/a.py", file("a.py", CODE, **links, **places))
    oracle.pages("/search/repositories", [{**found, "id": number} for number in range(30)], "items")
    return oracle


def size(data: Any) -> int:
    return len(json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode())


@asynccontextmanager
async def started(peer: Peer, oracle: Oracle):
    tokens = {"GITHUB_TOKEN": "ghp_nobodys", "GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_nobodys"}
    async with StdioWire(peer.command(oracle), revision=peer.revision, env={**os.environ, **tokens}) as wire:
        begun = time.perf_counter()
        with anyio.fail_after(60):
            await wire.open()
        yield wire, (time.perf_counter() - begun) * 1000
        wire.process.terminate()


async def measure(peer: Peer, oracle: Oracle, rounds: int) -> tuple[dict[str, float], dict[str, str]]:
    starts: list[float] = []
    for _ in range(rounds):
        async with started(peer, oracle) as (_, ms):
            starts.append(ms)
    answers: dict[str, str] = {}
    async with started(peer, oracle) as (wire, _):
        listed = (await wire.request("tools/list"))["tools"]
        seen = [{key: tool.get(key) for key in ("name", "description", "inputSchema")} for tool in listed]
        figures: dict[str, float] = {
            "cold start, ms": statistics.median(starts), "memory idle, MB": memory(wire.process.pid),
            "tools": len(listed), "tools/list, bytes": size(listed), "of it for the model, bytes": size(seen),
        }  # fmt: skip
        times: list[float] = []
        text = 0
        for question, ways in QUESTIONS.items():
            name, arguments = ways[peer.which]
            call = {"name": name, "arguments": arguments}
            before = len(oracle.seen)
            try:
                answer = await wire.request("tools/call", call)
            except WireError as error:
                answers[question] = f"failed: {error}"
                continue
            requests = len(oracle.seen) - before
            said = sum(len(block.get("text", "").encode()) for block in answer["content"])
            failed = ", failed" if answer.get("isError") else ""
            answers[question] = f"{said:,} B, {requests} request{'s' if requests != 1 else ''}{failed}"
            text += said
            for _ in range(rounds * 3):
                begun = time.perf_counter()
                await wire.request("tools/call", call)
                times.append((time.perf_counter() - begun) * 1000)
        figures |= {
            "ten answers, text bytes": text, "one answer p50, ms": statistics.median(times),
            "memory after, MB": memory(wire.process.pid),
        }  # fmt: skip
    return figures, answers


async def run(rounds: int) -> None:
    found: dict[str, tuple[dict[str, float], dict[str, str]]] = {}
    for peer in everybody():
        with Oracle() as oracle:
            found[peer.name] = await measure(peer, world(oracle), rounds)
            for complaint in oracle.violations:
                click.echo(f"{peer.name} asked what GitHub does not know: {complaint}", err=True)
    console = Console(width=120)
    table = Table("", *found)
    for row in next(iter(found.values()))[0]:
        table.add_row(row, *(f"{figures[row]:,.4g}" if figures[row] < 1000 else f"{figures[row]:,.0f}"
                             for figures, _ in found.values()))  # fmt: skip
    console.print(table)
    table = Table("question", *found)
    for question in QUESTIONS:
        table.add_row(question, *(answers[question] for _, answers in found.values()))
    console.print(table)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer rounds.")
def main(quick: bool) -> None:
    click.echo(f"Python {sys.version.split()[0]}")
    anyio.run(run, 3 if quick else 10)


if __name__ == "__main__":
    main()
