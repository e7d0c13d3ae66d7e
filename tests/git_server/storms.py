"""A seeded storm of what people do with plain git, and what a subscriber hears of it.

A notice is due where a resource reads otherwise after an act than before. One is for nothing where it does not, unless
the act, such as a rebase, passes through other states. Those that are late came with a regular look, not with an event.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio

from git_server.made import Made
from mcp_batteries.testing.wire import StdioWire
from proofs.tally import Tally

KINDS = ("status", "head", "branches", "log", "diff", "stash")
_UPDATED = "notifications/resources/updated"
_SECONDS = 10.0
_LATE_SECONDS = 1.5


class Actor:
    """Somebody who works in a repository."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance, self.number = chance, 0
        self.made = Made(folder / "app")
        self.made.write(".gitignore", "*.log\n")
        self.made.commit("first", {f"{name}.txt": f"{name}\n" * 5 for name in "abc"})
        self.made.git("clone", "--quiet", "--bare", ".", str(folder / "far.git"))
        self.made.git("remote", "add", "origin", str(folder / "far.git"))
        self.made.git("fetch", "--quiet", "origin")
        self.made.git("clone", "--quiet", str(folder / "far.git"), str(folder / "colleague"))
        self.colleague = Made(folder / "colleague")
        self.beside = folder / "beside"

    def tried(self, *words: str) -> None:
        with suppress(AssertionError):
            self.made.git(*words, GIT_EDITOR=":")

    def act(self) -> tuple[str, bool]:
        """What was done, and whether it passed through states that are neither the first nor the last."""
        self.number += 1
        acts: list[tuple[Callable[[], None], bool]] = [
            (self.edit, False), (self.edit, False), (self.stage, False), (self.commit, True), (self.switch, True),
            (self.detach, True), (self.rebase, True), (self.fetch, False), (self.gc, False), (self.pack_refs, False),
            (self.stash, True), (self.pop, True), (self.worktree, True), (self.rename, True), (self.tag, False),
            (self.follow, False), (self.noise, False), (self.merge, True), (self.reset, True),
        ]  # fmt: skip
        do, several = self.chance.choice(acts)
        do()
        return do.__name__, several

    def edit(self) -> None:
        self.made.write(f"{self.chance.choice('abcd')}.txt", f"{self.number}\n" * self.chance.randrange(1, 6))

    def stage(self) -> None:
        self.tried("add", "--all")

    def commit(self) -> None:
        self.edit()
        self.tried("add", "--all")
        self.tried("commit", "--quiet", "--message", f"number {self.number}")

    def switch(self) -> None:
        self.tried("switch", "--quiet", *self.chance.choice([["main"], ["-"], ["--create", f"b{self.number}"]]))

    def detach(self) -> None:
        self.tried("switch", "--quiet", "--detach", "HEAD~1")

    def rebase(self) -> None:
        self.tried("rebase", "--quiet", "origin/main")
        if self.chance.random() < 0.7:
            self.tried("rebase", "--abort")

    def merge(self) -> None:
        self.tried("merge", "--quiet", "--no-edit", "origin/main")
        self.tried("merge", "--abort")

    def reset(self) -> None:
        self.tried("rebase", "--abort")
        self.tried("reset", "--quiet", "--hard", self.chance.choice(["HEAD", "HEAD~1", "origin/main"]))

    def fetch(self) -> None:
        if self.chance.random() < 0.7:
            self.colleague.commit(f"theirs {self.number}", {"theirs.txt": f"{self.number}\n"})
            self.colleague.git("push", "--quiet", "origin", "HEAD:main")
        self.tried("fetch", "--quiet", "origin")

    def gc(self) -> None:
        self.tried("gc", "--quiet")

    def pack_refs(self) -> None:
        self.tried("pack-refs", "--all")

    def stash(self) -> None:
        self.tried("stash", "push", "--quiet", "--include-untracked")

    def pop(self) -> None:
        self.tried("stash", self.chance.choice(["pop", "drop"]), "--quiet")

    def worktree(self) -> None:
        if self.beside.exists():
            self.tried("worktree", "remove", "--force", str(self.beside))
        else:
            self.tried("worktree", "add", "--quiet", "-b", f"w{self.number}", str(self.beside))

    def rename(self) -> None:
        self.tried("branch", "-m", f"renamed{self.number}")

    def tag(self) -> None:
        self.tried("tag", f"v{self.number}")

    def follow(self) -> None:
        self.tried("branch", *self.chance.choice([["--unset-upstream"], ["--set-upstream-to=origin/main"]]))

    def noise(self) -> None:
        self.made.write("noise.log", f"{self.number}\n")
        self.tried("status")
        self.tried("update-index", "--refresh")


async def storm(folder: Path, acts: int, seed: int) -> tuple[Counter[str], list[str]]:
    """The tally, and what was lost or told for nothing."""
    chance = random.Random(seed)
    actor = Actor(folder, chance)
    tally: Counter[str] = Counter(acts=acts)
    wrong: list[str] = []
    async with StdioWire([sys.executable, "-m", "mcp_git", str(actor.made.path)]) as wire:
        await wire.open()

        async def texts() -> dict[str, str]:
            read = {kind: await wire.request("resources/read", {"uri": f"git://app/{kind}"}) for kind in KINDS}
            return {kind: found["contents"][0]["text"] for kind, found in read.items()}

        def heard() -> Counter[str]:
            found = (item["params"]["uri"] for item in wire.notifications if item["method"] == _UPDATED)
            return Counter(uri.rpartition("/")[2] for uri in found)

        for kind in KINDS:
            await wire.subscribe(f"git://app/{kind}")
        before = await texts()
        for number in range(acts):
            wire.messages.clear()
            what, several = await anyio.to_thread.run_sync(actor.act)
            began = time.monotonic()
            after = await texts()
            due = {kind for kind in KINDS if before[kind] != after[kind]}
            got: Counter[str] = heard()
            wire.messages.clear()
            waits = set(due)
            while waits := waits - got.keys():
                try:
                    for kind in sorted(waits):
                        with anyio.fail_after(max(0.1, _SECONDS - (time.monotonic() - began))):
                            await wire.updated(f"git://app/{kind}")
                        got[kind] += 1
                except (TimeoutError, AssertionError):
                    tally["lost"] += len(waits)
                    wrong.append(f"{seed} {number} {what}: lost {sorted(waits)}")
                    break
            tally["due"] += len(due)
            tally["late"] += bool(due) and time.monotonic() - began > _LATE_SECONDS
            # Whatever was begun before is over once `list_changes` has looked.
            await wire.call("list_changes", uris=["git://app/status"])
            got += heard()
            if idle := {kind for kind in got if kind not in due and not several}:
                tally["for nothing"] += len(idle)
                wrong.append(f"{seed} {number} {what}: for nothing {sorted(idle)}")
            tally["twice"] += sum(count > 1 for kind, count in got.items() if kind in due and not several)
            before = await texts()
    return tally, wrong


async def prove(count: int, seed: int) -> Tally:
    """Follow a repository through so many acts."""
    with tempfile.TemporaryDirectory() as folder:
        tally, wrong = await storm(Path(folder), count, seed)
    return Tally.of(tally, wrong)
