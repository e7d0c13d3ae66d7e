"""From a write to the notice of it at the client, by era and number of subscriptions."""

import json
import random
import time
from pathlib import Path

import data
from driver import LEGACY, MODERN, Failed, Server
from peers import Peer
from rows import Row, Run, noted

_UPDATED = b"notifications/resources/updated"
# Long enough for what a server sends late about one write not to be taken for the notice of the next.
_PAUSE = 0.15


def notices(run: Run, many: list[int]) -> list[Row]:
    """Rows for each era and number; peers without subscriptions have no part in it."""
    found: list[Row] = []
    for revision, era in ((LEGACY, "legacy"), (MODERN, "modern")):
        for count in many:
            row = Row(f"write to notice, {count:,} followed, {era}, p50", "ms")
            armed = Row("  following them all", "ms")
            cpu = Row("  processor time a write", "ms")
            files = data.watched(run.root, count)
            for peer in run.peers:
                if peer.uri is None:
                    continue
                with noted(peer, [row]):
                    _measure(peer, run, revision, files, row, armed, cpu)
            found += [row, row.high(), armed, cpu]
    return found


def _measure(peer: Peer, run: Run, revision: str, files: list[Path], row: Row, armed: Row, cpu: Row) -> None:
    assert peer.uri is not None
    chance = random.Random(2)
    writes = max(20, run.rounds * 10)
    with Server(peer.command(data.Data(run.root).watched), revision) as server:
        server.open()
        begun = time.perf_counter()
        follow(server, revision, [peer.uri(file) for file in files])
        armed.add(peer.name, (time.perf_counter() - begun) * 1000)
        quiet(server, 1.0)
        used = 0.0
        for number in range(writes + 3):
            file = files[chance.randrange(len(files))]
            before, begun = server.cpu(), time.perf_counter()
            file.write_text(str(number), "ascii")
            while True:
                line = server.line(5)
                if _UPDATED in line and json.loads(line)["params"]["uri"] == peer.uri(file):
                    break
            spent = (time.perf_counter() - begun) * 1000
            quiet(server, _PAUSE + chance.random() * 0.05)
            if number >= 3:  # The first ones warm up.
                row.add(peer.name, spent)
                used += server.cpu() - before
        cpu.add(peer.name, used * 1000 / writes)


def follow(server: Server, revision: str, uris: list[str]) -> None:
    if revision >= MODERN:
        wanted = {"notifications": {"resourceSubscriptions": uris}}
        server.send(server.message("subscriptions/listen", wanted)[1])
        answer = server.line()
        if b"notifications/subscriptions/acknowledged" not in answer:
            raise Failed(json.loads(answer)["error"]["message"])
        return
    # Servers may cap what is in flight.
    for begin in range(0, len(uris), 500):
        some = uris[begin : begin + 500]
        server.send(b"".join(server.message("resources/subscribe", {"uri": uri})[1] for uri in some))
        for _ in some:
            answer = server.line()
            if b'"error"' in answer:
                raise Failed(json.loads(answer)["error"]["message"])


def quiet(server: Server, seconds: float) -> None:
    """Let that much time pass, dropping what arrives."""
    until = time.perf_counter() + seconds
    while (left := until - time.perf_counter()) > 0:
        try:
            server.line(left)
        except Failed as exc:
            if str(exc) != "silent":
                raise
