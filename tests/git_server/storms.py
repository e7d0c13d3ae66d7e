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
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from git_server.made import Made
from git_server.states import WORLDS, writable_worlds
from mcp_batteries.testing.wire import StdioWire
from proofs.tally import Tally

KINDS = ("status", "head", "branches", "log", "diff", "stash")
_UPDATED = "notifications/resources/updated"
_SECONDS = 10.0
_LATE_SECONDS = 1.5


class Actor:
    """Somebody who works in a repository of a world."""

    def __init__(self, folder: Path, chance: random.Random, world: str) -> None:
        self.chance, self.number = chance, 0
        first = Made(folder / "first", *WORLDS[world].words)
        first.write(".gitignore", "*.log\n")
        for number in range(3):
            first.commit(
                f"number {number}", {f"{name}.txt": f"{name}\n" * (5 + number) for name in ("a", "b", "d/c", "x/y")}
            )
        far = folder / "far.git"
        first.git("clone", "--quiet", "--bare", ".", str(far))
        Made(far).git("config", "uploadpack.allowFilter", "true")
        self.made = _clone(folder, far, world)
        self.made.git("config", "user.name", "Grace Hopper")
        self.made.git("config", "user.email", "grace@example.org")
        first.git("clone", "--quiet", str(far), str(folder / "colleague"))
        self.colleague = Made(folder / "colleague")
        self.beside = folder / "beside"

    def tried(self, *words: str) -> None:
        with suppress(AssertionError):
            self.made.git(*words, GIT_EDITOR=":")

    def act(self) -> tuple[str, bool]:
        """What was done, and whether it passed through states that are neither the first nor the last."""
        self.number += 1
        acts: list[tuple[Callable[[], None], bool]] = [
            (self.edit, False), (self.edit, False), (self.inside, False), (self.stage, False),
            (self.commit, True), (self.switch, True),
            (self.detach, True), (self.rebase, True), (self.fetch, False), (self.gc, False), (self.pack_refs, False),
            (self.stash, True), (self.pop, True), (self.worktree, True), (self.rename, True), (self.tag, False),
            (self.follow, False), (self.noise, False), (self.merge, True), (self.reset, True),
        ]  # fmt: skip
        do, several = self.chance.choice(acts)
        do()
        return do.__name__, several

    def edit(self) -> None:
        name = self.chance.choice(["a", "b", "d/c", "x/y", "new"])
        self.made.write(f"{name}.txt", f"{self.number}\n" * self.chance.randrange(1, 6))

    def inside(self) -> None:
        """Work in a submodule, where there is one."""
        path = self.made.path / "library"
        if (path / ".git").exists():
            Made(path).commit(f"inside {self.number}", {"in.txt": f"{self.number}\n"})

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


def _clone(folder: Path, far: Path, world: str) -> Made:
    """The repository in which somebody works, from the one that they share."""
    options = {"shallow": ["--depth=2"], "partial": ["--filter=blob:none"]}.get(world, [])
    main = folder / ("main" if world == "worktrees" else "app")
    Made(far).git("clone", "--quiet", *_ref_format(world), *options, f"file://{far}", str(main))
    made = Made(main)
    if world == "worktrees":
        made.git("worktree", "add", "--quiet", "-b", "linked", str(folder / "app"))
        made = Made(folder / "app")
    if world == "sparse":
        made.git("sparse-checkout", "set", "--cone", "d")
    if world == "submodule":
        made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"file://{far}", "library")
        made.git("commit", "--quiet", "--message", "a library")
    return made


def _ref_format(world: str) -> Sequence[str]:
    return [word for word in WORLDS[world].words if word.startswith("--ref-format")]


async def storm(folder: Path, acts: int, seed: int, world: str) -> tuple[Counter[str], list[str]]:
    """The tally, and what was lost or told for nothing."""
    chance = random.Random(seed)
    actor = Actor(folder, chance, world)
    tally: Counter[str] = Counter({"acts": acts, f"acts in the world `{world}`": acts})
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
                    wrong.append(f"{world} {seed} {number} {what}: lost {sorted(waits)}")
                    break
            tally["due"] += len(due)
            tally["late"] += bool(due) and time.monotonic() - began > _LATE_SECONDS
            # Whatever was begun before is over once `list_changes` has looked.
            await wire.call("list_changes", uris=["git://app/status"])
            got += heard()
            if idle := {kind for kind in got if kind not in due and not several}:
                tally["for nothing"] += len(idle)
                wrong.append(f"{world} {seed} {number} {what}: for nothing {sorted(idle)}")
            tally["twice"] += sum(count > 1 for kind, count in got.items() if kind in due and not several)
            before = await texts()
    return tally, wrong


async def prove(count: int, seed: int, worlds: Sequence[str] = ()) -> Tally:
    """Follow one repository of each world through its part of so many acts."""
    worlds = worlds or writable_worlds()
    tally, wrong = Counter[str](), list[str]()
    for number, world in enumerate(worlds):
        acts = (count + len(worlds) - 1 - number) // len(worlds)
        with tempfile.TemporaryDirectory() as folder:
            counts, faults = await storm(Path(folder), acts, seed, world)
        tally += counts
        wrong += faults
    return Tally.of(tally, wrong)
