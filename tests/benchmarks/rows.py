"""What is measured: each function gives the rows of one subject, its rounds interleaved over the peers."""

import json
import subprocess
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import data
from driver import Failed, Server, middle, pipelined, sequential
from peers import Peer, ripgrep

_READ_PARAMS = {"capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


@dataclass(frozen=True)
class Run:
    """What a run is given.

    Attributes:
        rounds: how often everybody takes a turn.
        calls: in one turn.
        root: of what is generated.
        large: megabytes of the big file.
    """

    peers: Sequence[Peer]
    rounds: int
    calls: int
    root: Path
    large: int = 500

    def able(self, work: str) -> list[Peer]:
        return [peer for peer in self.peers if work in peer.calls]


@dataclass
class Row:
    """One line of the table: samples by peer, shown as what lies at `share` of them.

    Attributes:
        more: whether more is better.
        failures: by peer, why there is no number.
    """

    label: str
    unit: str
    share: float = 0.5
    more: bool = False
    samples: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    failures: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, name: str, *values: float) -> None:
        self.samples.setdefault(name, []).extend(values)

    def value(self, name: str) -> float | str | None:
        if name in self.failures:
            return self.failures[name]
        return middle(self.samples[name], self.share) if name in self.samples else None

    def high(self) -> "Row":
        """The same samples' 99th percentile."""
        return replace(self, label=self.label.replace("p50", "p99"), share=0.99)


@contextmanager
def noted(peer: Peer, rows: Sequence[Row]) -> Generator[None]:
    """A failure within stands in `rows` instead of a figure."""
    try:
        yield
    except Failed as exc:
        for row in rows:
            row.failures[peer.name] = str(exc)


def interleaved(
    run: Run,
    peers: Sequence[Peer],
    rows: Sequence[Row],
    folder: Path,
    turn: Callable[[Peer, Server], None],
    *,
    rehearse: bool = True,
) -> list[Row]:
    """Every peer serves `folder` all the while; `turn` is taken by one after the other, round after round.

    Who fails is out, and the reason stands in each of `rows`. What the first round adds is forgotten if it is to
    `rehearse`.
    """
    with ExitStack() as stack:
        servers: list[tuple[Peer, Server]] = []
        for peer in peers:
            server = stack.enter_context(Server(peer.command(folder)))
            servers.append((peer, server))
            with noted(peer, rows):
                server.open()
        for number in range(run.rounds + 1):
            for peer, server in servers:
                if peer.name not in rows[0].failures:
                    with noted(peer, rows):
                        turn(peer, server)
            if number == 0 and rehearse:
                for row in rows:
                    row.samples.clear()
    return list(rows)


def start(run: Run) -> list[Row]:
    """Spawn to the first reply, the tools, the memory then, the way out."""
    first, cpu = Row("cold start to the first reply", "ms"), Row("  processor time until then", "ms")
    listed, memory = Row("cold start to the list of tools", "ms"), Row("idle memory (RSS)", "MiB")
    gone = Row("end of input to exit", "ms")
    measured = [first, cpu, listed, memory, gone]
    folder = data.small(run.root).small
    for _ in range(max(run.rounds, 3)):
        for peer in run.peers:
            with noted(peer, measured), Server(peer.command(folder)) as server:
                server.ask("initialize", {"protocolVersion": server.revision, **_READ_PARAMS})
                first.add(peer.name, (time.perf_counter() - server.started) * 1000)
                cpu.add(peer.name, server.cpu() * 1000)
                server.send(server.message("notifications/initialized", notice=True)[1])
                server.ask("tools/list")
                listed.add(peer.name, (time.perf_counter() - server.started) * 1000)
                time.sleep(0.3)
                memory.add(peer.name, server.memory()[0])
                gone.add(peer.name, server.end() * 1000)
    return measured


def lists(run: Run) -> list[Row]:
    """What the tools cost in a model's context."""
    count, wire = Row("tools", ""), Row("tools/list on the wire", "B")
    visible = Row("  name, description, input schema", "B")
    for peer in run.peers:
        with noted(peer, [count, wire, visible]), Server(peer.command(data.small(run.root).small)) as server:
            server.open()
            result, size = server.ask("tools/list")
            shown = [[tool["name"], tool.get("description", ""), tool["inputSchema"]] for tool in result["tools"]]
            count.add(peer.name, len(shown))
            wire.add(peer.name, size)
            visible.add(peer.name, sum(len("".join(map(_compact, parts)).encode()) for parts in shown))
    return [count, wire, visible]


def _compact(part: object) -> str:
    return part if isinstance(part, str) else json.dumps(part, separators=(",", ":"), ensure_ascii=False)


def calls(run: Run) -> list[Row]:
    """The protocol alone, one file's information, 1 KB read, written and edited."""
    small = data.small(run.root).small
    texts = [data.lines_of(1_000), data.lines_of(1_000).upper()]
    words = [("alpha", "omega"), ("omega", "alpha")]
    kinds: dict[str, Callable[[Peer, Server, int], bytes]] = {
        "ping": lambda _, server, __: server.message("ping")[1],
        "trivial": lambda peer, server, _: server.call_line(*peer.calls["trivial"](small / "1k.txt")),
        "read": lambda peer, server, _: server.call_line(*peer.calls["read"](small / "1k.txt")),
        "write": lambda peer, server, n: server.call_line(
            *peer.calls["write"](small / f"{peer.name}.txt", texts[n % 2])
        ),
        "edit": lambda peer, server, n: server.call_line(
            *peer.calls["edit"](small / f"{peer.name}-edited.txt", *words[n % 2])
        ),
    }
    for peer in run.peers:
        (small / f"{peer.name}-edited.txt").write_bytes((small / "edited.txt").read_bytes())
    labels = {"trivial": "information on a file (stock: echo)", "read": "read 1 KB", "write": "write 1 KB"}
    found: list[Row] = []
    for kind, line in kinds.items():
        label = labels.get(kind, kind)
        quick, cpu = Row(f"{label}, p50", "ms"), Row("  processor time a call", "ms")
        # An even number, so that edits end as they began.
        count = run.calls // (4 if kind in ("write", "edit") else 1) // 2 * 2

        def turn(peer: Peer, server: Server, line=line, count=count, quick=quick, cpu=cpu) -> None:
            lines = [line(peer, server, number) for number in range(count)]
            begun = server.cpu()
            quick.add(peer.name, *sequential(server, lines))
            cpu.add(peer.name, (server.cpu() - begun) * 1000 / count)

        peers = run.peers if kind == "ping" else run.able(kind)
        interleaved(run, peers, [quick, cpu], small, turn)
        found += [quick, quick.high(), cpu]
    return found


def throughput(run: Run) -> list[Row]:
    """With 64 requests under way."""
    small = data.small(run.root).small
    found: list[Row] = []
    for kind, label in (("trivial", "information"), ("read", "reads of 1 KB")):
        row = Row(f"{label}, 64 in flight", "/s", more=True)

        def turn(peer: Peer, server: Server, kind=kind, row=row) -> None:
            lines = [server.call_line(*peer.calls[kind](small / "1k.txt")) for _ in range(run.calls * 3)]
            row.add(peer.name, pipelined(server, lines, 64))

        found += interleaved(run, run.able(kind), [row], small, turn)
    return found


def large_reads(run: Run) -> list[Row]:
    """Whole files of 1 MB and 10 MB in one answer."""
    small = data.small(run.root).small
    found: list[Row] = []
    for name, label in (("1m.txt", "read 1 MB"), ("10m.txt", "read 10 MB")):
        row, size = Row(f"{label}, p50", "ms"), Row("  bytes on the wire", "B")

        def turn(peer: Peer, server: Server, name=name, row=row, size=size) -> None:
            file = small / name
            line = server.call_line(*peer.calls["whole"](file))
            begun = time.perf_counter()
            server.send(line)
            answer = server.line()
            row.add(peer.name, (time.perf_counter() - begun) * 1000)
            size.add(peer.name, len(answer) + 1)
            if len(answer) < file.stat().st_size:
                raise Failed(f"only {len(answer):,} B: {answer.decode(errors='replace')}")

        found += interleaved(run, run.able("whole"), [row, size], small, turn)
    return found


def searches(run: Run) -> list[Row]:
    """Names, contents and shape of 50,000 files; ripgrep as a process beside them."""
    data.tree(run.root)
    folder = data.Data(run.root).tree
    found: list[Row] = []
    grep = ripgrep()
    # By kind of work: its row, its arguments, and the same for ripgrep.
    kinds: list[tuple[str, str, list[str], list[str]]] = [
        ("names", "find 50 names among 50,000", [], ["--files", "-g", "special*.cfg"]),
        ("contents", "find 50 needles among 50,000", ["needle_[0-9]+"], ["-n", "needle_[0-9]+"]),
        ("contents", "first page of what most of 50,000 hold", ["[a-z]*ab[a-z]*"], ["-n", "[a-z]*ab[a-z]*"]),
        ("tree", "tree of 50,000", [], []),
    ]
    for kind, label, arguments, flags in kinds:
        row, cpu, size = Row(f"{label}, p50", "ms"), Row("  processor time", "ms"), Row("  bytes of the answer", "B")
        hits = Row("  hits in the answer", "")

        def turn(
            peer: Peer, server: Server, kind=kind, arguments=arguments, row=row, cpu=cpu, size=size, hits=hits
        ) -> None:
            used, begun = server.cpu(), time.perf_counter()
            result, answer = server.ask(
                "tools/call", dict(zip(("name", "arguments"), peer.calls[kind](folder, *arguments), strict=True))
            )
            row.add(peer.name, (time.perf_counter() - begun) * 1000)
            cpu.add(peer.name, (server.cpu() - used) * 1000)
            size.add(peer.name, answer)
            text = "".join(block.get("text", "") for block in result["content"])
            hits.add(peer.name, text.count("special") if kind == "names" else text.count("lies needle_"))

        few = replace(run, rounds=max(2, run.rounds // 3))
        interleaved(few, run.able(kind), [row, cpu, size, hits], folder, turn)
        if grep and flags:
            for _ in range(few.rounds):
                begun = time.perf_counter()
                done = subprocess.run(
                    [grep, "--no-config", "--no-require-git", *flags], cwd=folder, capture_output=True
                )
                row.add("ripgrep", (time.perf_counter() - begun) * 1000)
                hits.add("ripgrep", done.stdout.count(b"\n"))
        found += [row, cpu, size] + ([hits] if "find" in label else [])
    return found


def ends(run: Run) -> list[Row]:
    """The first and last lines of a big file, and of one that is a single line; the memory that takes."""
    folder = data.large(run.root, run.large).large
    found: list[Row] = []
    for kind, name, label in (
        ("head", "long.txt", f"first 10 lines of {run.large} MB"),
        ("tail", "long.txt", f"last 10 lines of {run.large} MB"),
        ("head", "line.txt", "first 10 lines of one line of 20 MB"),
    ):
        row, growth = Row(f"{label}, p50", "ms"), Row("  growth of peak memory", "MiB", share=1.0)

        def turn(peer: Peer, server: Server, kind=kind, name=name, row=row, growth=growth) -> None:
            server.reset_peak()
            before = server.memory()[0]
            begun = time.perf_counter()
            call = peer.calls[kind](folder / name)
            server.ask("tools/call", dict(zip(("name", "arguments"), call, strict=True)))
            row.add(peer.name, (time.perf_counter() - begun) * 1000)
            growth.add(peer.name, server.memory()[1] - before)

        # Memory grows in the very first call, if at all.
        found += interleaved(run, run.able(kind), [row, growth], folder, turn, rehearse=False)
    return found
