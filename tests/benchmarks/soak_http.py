"""A soak over HTTP: 64 clients of both eras who subscribe, call, listen, hang up and vanish (Linux).

    uv run python tests/benchmarks/soak_http.py --minutes 30

The server asks for tokens, follows files, limits and counts. Every tenth of the time all clients leave for a moment,
and what the server still holds is read: after the first two of these, memory, descriptors, threads, tasks, sessions,
streams and subscriptions must not grow. Exits with 1 if they do.
"""

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path

import anyio
import httpx2

sys.path.insert(0, str(Path(__file__).parents[1]))

from mcp_batteries.testing.wire import MODERN, HttpWire, WireClosed, WireError
from mcp_batteries.transports.http.auth.tokens import create_token
from shared.http_subject import Subject, running

LEGACY = "2025-11-25"
CLIENTS, FILES, PEOPLE = 64, 50, 8
IDLE_SECONDS = 5
"""After which the server forgets a session whose client vanished."""
GAUGES = ("mcp_sessions", "mcp_streams", "mcp_subscriptions", "mcp_tasks")


async def client(url: str, token: str, served: Path, dice: random.Random, until: float, done: Counter[str]) -> None:
    headers = {"authorization": f"Bearer {token}"}
    while time.monotonic() < until:
        revision = dice.choice((LEGACY, MODERN))
        with anyio.move_on_after(until - time.monotonic() if dice.random() < 0.7 else dice.uniform(0.1, 3)) as life:
            # Cancelled in the middle of whatever it does: that is how a client vanishes.
            try:
                async with HttpWire(url, revision=revision, headers=headers) as wire:
                    await wire.open()
                    for _ in range(dice.randrange(4)):
                        await wire.subscribe((served / f"{dice.randrange(FILES)}.txt").as_uri())
                    for _ in range(dice.randrange(5, 40)):
                        name = f"{dice.randrange(FILES)}.txt"
                        tool, arguments = dice.choice(
                            [
                                ("read_text", {"path": name}),
                                ("read_text", {"path": "missing"}),
                                ("list_directory", {"path": "."}),
                                ("search_text", {"pattern": "line 7"}),
                                ("write_file", {"path": name, "content": f"{dice.random()}\n", "overwrite": True}),
                                ("no_such_tool", {}),
                            ]
                        )
                        # Said to the protocol, not to the model.
                        with suppress(WireError) if tool == "no_such_tool" else nullcontext():
                            await wire.call(tool, **arguments)
                        done["calls"] += 1
                    done["notices"] += len(wire.notifications)
            except (WireError, WireClosed, httpx2.TransportError, TimeoutError, ExceptionGroup) as problem:
                done[f"{type(problem).__name__} {problem}"[:80].strip()] += 1
        done["vanished" if life.cancelled_caught else "left"] += 1


async def held(subject: Subject, token: str) -> dict[str, float]:
    """What the server holds while nobody is there."""
    async with httpx2.AsyncClient(trust_env=False) as client:
        where = subject.url.replace("/mcp", "/metrics")
        text = (await client.get(where, headers={"authorization": f"Bearer {token}"})).text
    found = {name: float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1]) for name in GAUGES}  # type: ignore[index]
    process = Path(f"/proc/{subject.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text("ascii").splitlines() if ":" in line)
    found["rss_mb"] = int(status["VmRSS"].split()[0]) / 1024
    found["threads"] = int(status["Threads"])
    found["descriptors"] = len(os.listdir(process / "fd"))
    return found


async def main(minutes: float, seed: int) -> int:
    rounds: list[dict[str, float]] = []
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        served, tokens = Path(scratch) / "served", Path(scratch) / "tokens"
        served.mkdir()
        for number in range(FILES):
            (served / f"{number}.txt").write_text("".join(f"line {line}\n" for line in range(number + 1)), "utf-8")
        people = [create_token(f"person{number} destroy") for number in range(PEOPLE)]
        scraper = create_token("scraper metrics")
        tokens.write_text("\n".join(line for _, line in [*people, scraper]), "utf-8")
        command = [sys.executable, "-m", "mcp_fs", "--transport", "http", "--port", "0", "--metrics"]
        command += ["--auth-file", str(tokens), "--session-seconds", str(IDLE_SECONDS), "--max-parallel", "8"]
        command += ["--audit-file", str(Path(scratch) / "audit"), str(served)]
        async with running(command) as subject:
            for turn in range(10):
                until = time.monotonic() + max(1.0, 6 * minutes - IDLE_SECONDS - 1)
                async with anyio.create_task_group() as tasks:
                    for number in range(CLIENTS):
                        dice = random.Random(f"{seed} {turn} {number}")
                        token = people[number % PEOPLE][0]
                        tasks.start_soon(client, subject.url, token, served, dice, until, done)
                await anyio.sleep(IDLE_SECONDS + 1)
                rounds.append(await held(subject, scraper[0]))
                print({name: round(value, 1) for name, value in rounds[-1].items()}, dict(done), flush=True)
            assert "Traceback" not in subject.said, subject.said[-3000:]
    warm, last = rounds[1], rounds[-1]
    # Memory comes in pages and arenas: a tenth more is noise, a tenth for each hour is not.
    # Threads are a pool with a limit.
    slack = {"rss_mb": warm["rss_mb"] * 0.1 + 4, "threads": 40}
    grown = [name for name in warm if last[name] > warm[name] + slack.get(name, 3)]
    print("grown:", ", ".join(grown) or "nothing")
    return 1 if grown else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(anyio.run(main, given.minutes, given.seed))
