"""mcp-git beside plain `git` and two other servers, on a history made by `git fast-import`; prints medians.

    python tests/benchmarks/bench_git.py [--commits 100000] [--rounds 7]

Everybody is asked in turns, so that a busy machine is as busy for all. The second table is of everyday tasks: how many
calls and bytes of answers they take by tools, and how many commands and bytes in a shell.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from git_server.made import GIT, Made  # noqa: E402
from mcp_batteries.testing.wire import StdioWire  # noqa: E402

FILES = 200
Call = tuple[str, dict[str, Any]]

# What, plain git, our call.
WORK: list[tuple[str, list[str], Call]] = [
    ("log, 50", ["log", "-50", "--format=%h %cs %an %s"], ("list_commits", {})),
    ("log of a path, 20", ["log", "-20", "--format=%h %s", "--", "d08/f008.txt"],
     ("list_commits", {"path": "d08/f008.txt", "limit": 20})),
    ("blame", ["blame", "--porcelain", "d13/f013.txt"], ("get_blame", {"path": "d13/f013.txt"})),
    ("status", ["status", "--porcelain=v2", "--branch"], ("get_status", {})),
    ("diff of a commit", ["show", "HEAD~100"], ("read_diff", {"rev": "HEAD~100"})),
]  # fmt: skip

# How another is started, the argument that names the repository, and its calls.
NODE = ["env", "MCP_TRANSPORT_TYPE=stdio", "MCP_LOG_LEVEL=error", "npx", "--yes", "--quiet"]
PEERS: dict[str, tuple[list[str], str, dict[str, Call]]] = {
    "mcp-server-git": (
        ["uvx", "--quiet", "mcp-server-git"], "repo_path",
        {"log, 50": ("git_log", {"max_count": 50}), "status": ("git_status", {}),
         "diff of a commit": ("git_show", {"revision": "HEAD~100"})},
    ),
    "@cyanheads/git-mcp-server": (
        [*NODE, "@cyanheads/git-mcp-server"], "path",
        {"log, 50": ("git_log", {"maxCount": 50}), "status": ("git_status", {}),
         "blame": ("git_blame", {"filePath": "d13/f013.txt"}),
         "diff of a commit": ("git_show", {"object": "HEAD~100"})},
    ),
}  # fmt: skip

# A question, what answers it in a shell, the calls that answer it.
TASKS: list[tuple[str, list[list[str]], list[tuple[str, dict[str, Any]]]]] = [
    ("What is not committed?", [["status"], ["diff", "HEAD"]], [("read_diff", {})]),
    ("Where am I?", [["status"], ["log", "-1"]], [("get_status", {})]),
    ("What came last?", [["log", "-20"]], [("list_commits", {"limit": 20})]),
    ("What did this commit do?", [["show", "--stat", "-p", "HEAD~100"]], [("read_diff", {"rev": "HEAD~100"})]),
    ("Who changed this line, and why?", [["blame", "-L5,5", "d13/f013.txt"], ["show", "HEAD~13"]],
     [("get_blame", {"path": "d13/f013.txt", "start_line": 5, "end_line": 5}), ("read_diff", {"rev": "HEAD~13"})]),
    ("When did this text come?", [["log", "-Schanged in 4242", "--oneline"]],
     [("list_commits", {"text": "changed in 4242"})]),
    ("What differs between branches?", [["log", "--oneline", "topic..main"], ["diff", "--stat", "topic...main"]],
     [("list_commits", {"rev": "topic..main"}), ("read_diff", {"rev": "topic...main", "files_only": True})]),
    ("Which branches are there?", [["branch", "-avv"]], [("list_refs", {})]),
    ("How was this file before?", [["show", "HEAD~5000:d13/f013.txt"]],
     [("read_file", {"path": "d13/f013.txt", "rev": "HEAD~5000"})]),
    ("Where does this word stand?", [["grep", "-n", "changed in 99", "HEAD"]],
     [("search_text", {"pattern": "changed in 99"})]),
    ("Where was I yesterday?", [["reflog"]], [("list_refs", {"kind": "reflog", "limit": 20})]),
    ("What is in this folder?", [["ls-tree", "-l", "HEAD", "d13/"]], [("list_files", {"path": "d13"})]),
]  # fmt: skip


def history(commits: int) -> Generator[bytes]:
    """A stream for fast-import: one small change of one of the files in each commit."""
    lines = [[f"file {file} line {line}\n" for line in range(60)] for file in range(FILES)]
    for number in range(commits):
        file = number % FILES
        lines[file][(number // FILES) % 60] = f"file {file} changed in {number}\n"
        body, subject = "".join(lines[file]).encode(), f"Change number {number} of the file {file}\n".encode()
        who = f"Ada Lovelace <ada@example.org> {1_600_000_000 + 60 * number} +0000"
        yield f"commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata {len(subject)}\n".encode() + subject
        yield f"M 100644 inline d{file % 20:02}/f{file:03}.txt\ndata {len(body)}\n".encode() + body + b"\n"


def made(folder: Path, commits: int) -> Path:
    """A repository with that many commits, a branch, and ten files that differ."""
    repository = Made(folder)
    with subprocess.Popen([GIT, "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE) as importing:
        assert importing.stdin is not None
        importing.stdin.writelines(history(commits))
        importing.stdin.close()
    assert importing.returncode == 0
    repository.git("reset", "--quiet", "--hard")
    repository.git("branch", "topic", "HEAD~30")
    for number in range(10):
        repository.write(f"d{number:02}/f{number:03}.txt", "changed\n")
    return folder


async def asked(wire: StdioWire, call: Call) -> tuple[float, int]:
    """Milliseconds of a call, and the bytes of its answer."""
    begun = time.perf_counter()
    answer = await wire.request("tools/call", {"name": call[0], "arguments": call[1]}, seconds=120)
    took = (time.perf_counter() - begun) * 1000
    assert not answer.get("isError"), answer
    return took, sum(len(block.get("text", "").encode()) for block in answer["content"])


def plain(folder: Path, words: Sequence[str]) -> tuple[float, int]:
    begun = time.perf_counter()
    done = subprocess.run([GIT, *words], cwd=folder, capture_output=True, check=True)
    return (time.perf_counter() - begun) * 1000, len(done.stdout)


async def measured(folder: Path, rounds: int) -> None:
    script = str(Path(sys.executable).parent / "mcp-git")
    console = Console(width=120)
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(StdioWire([script, str(folder)]))
        others = {name: await stack.enter_async_context(StdioWire(command)) for name, (command, _, _) in PEERS.items()}
        for wire in (ours, *others.values()):
            await wire.open()
        await asked(ours, ("get_status", {}))
        before = _memory(ours)
        table = Table("median ms (bytes)", "git", "mcp-git", "of git", *PEERS)
        for what, words, call in WORK:
            times: dict[str, list[tuple[float, int]]] = {name: [] for name in ("git", "ours", *PEERS)}
            for _ in range(rounds):
                times["git"].append(plain(folder, words))
                times["ours"].append(await asked(ours, call))
                for name, (_, repository, calls) in PEERS.items():
                    if what in calls:
                        tool, arguments = calls[what]
                        times[name].append(await asked(others[name], (tool, {repository: str(folder), **arguments})))
            shown = {
                name: f"{median(took for took, _ in found):.1f} ({found[-1][1]:,})" if found else "-"
                for name, found in times.items()
            }
            ratio = median(took for took, _ in times["ours"]) / median(took for took, _ in times["git"])
            table.add_row(what, shown["git"], shown["ours"], f"{ratio:.2f}", *(shown[name] for name in PEERS))
        for name, wire in {"mcp-git": ours, **others}.items():
            listed = await wire.request("tools/list")
            size = len(json.dumps(listed, separators=(",", ":")))
            console.print(f"{name}: {len(listed['tools'])} tools in {size:,} bytes")
        console.print(table)
        console.print(f"memory {before} MB, behind it {_memory(ours)} MB")
        table = Table("task", "commands", "bytes in a shell", "calls", "bytes by tools")
        for what, commands, calls in TASKS:
            shell = sum([plain(folder, words)[1] for words in commands])
            tools = sum([(await asked(ours, call))[1] for call in calls])
            table.add_row(what, str(len(commands)), f"{shell:,}", str(len(calls)), f"{tools:,}")
        console.print(table)


def _memory(wire: StdioWire) -> int:
    status = Path(f"/proc/{wire.process.pid}/status").read_text("utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


@click.command()
@click.option("--commits", default=100_000)
@click.option("--rounds", default=7)
def main(commits: int, rounds: int) -> None:
    """Measure."""
    with tempfile.TemporaryDirectory() as temporary:
        anyio.run(measured, made(Path(temporary) / "big", commits), rounds)


if __name__ == "__main__":
    main()
