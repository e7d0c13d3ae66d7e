"""Logs of failed jobs as many tools write them, made anew for each seed, between what else stands in a log.

`data/failures.txt` has the lines of each failure behind a line with its name and what any answer has to name;
`data/noise.txt` what surrounds them, which speaks of errors too: tests of errors that pass, warnings, retries that
helped. What stands in angle brackets is another word or number each time, so that no rule knows an example by heart.
"""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

__all__ = ["DECOYS", "kinds", "made", "made_job"]

_DATA = Path(__file__).parent / "data"
_HOLE = re.compile(r"<(word|snake|kebab|phrase|camel|big|n)(\d)>")
_WORDS = ["order", "invoice", "parser", "session", "cache", "widget", "router", "ledger", "basket", "import", "token"]
_JOINED = {"snake": "_", "kebab": "-", "phrase": " "}
_AFTER = [
    "Post job cleanup.", "[command]/usr/bin/git version", "git version 2.51.0", "Cleaning up orphan processes",
    "##[warning]No files were found with the provided path: report.xml. No artifacts will be uploaded.",
    "Error: failed to upload coverage, which is no reason to fail", "Temporarily overriding HOME for git",
]  # fmt: skip
_SUDDEN = ("timeout", "runner")
"""Failures after which no step says that it failed."""


@cache
def _failures() -> dict[str, tuple[list[str], list[str]]]:
    found: dict[str, tuple[list[str], list[str]]] = {}
    for part in (_DATA / "failures.txt").read_text("utf-8").split("\n@@ "):
        head, _, lines = part.removeprefix("@@ ").rstrip("\n").partition("\n")
        name, _, needed = head.partition(" @@ ")
        found[name] = (lines.split("\n"), needed.split(" | "))
    return found


def kinds() -> list[str]:
    """The names of the ways to fail."""
    return list(_failures())


def made(kind: str, seed: int) -> tuple[bytes, list[str]]:
    """A whole log of a job that failed in this way, and what an answer has to name."""
    rng = random.Random(f"{kind} {seed}")
    words: dict[str, str] = {}
    lines, needed = _failures()[kind]
    noise = (_DATA / "noise.txt").read_text("utf-8").splitlines()
    before = [_filled(rng.choice(noise), {}, rng) for _ in range(rng.randrange(20, 400))]
    failure = [_filled(line, words, rng) for line in lines]
    ended = [] if kind in _SUDDEN else [f"##[error]Process completed with exit code {rng.choice([1, 2, 101])}."]
    after = [rng.choice(_AFTER) for _ in range(rng.randrange(2, 12))]
    coloured = rng.random() < 0.5
    text = "".join(
        f"2026-01-01T00:{rng.randrange(60):02}:00.1234567Z {_shown(line, coloured)}\r\n"
        for line in [*before, *failure, *ended, *after]
    )
    return ("\ufeff" + text).encode(), [_filled(word, words, rng) for word in needed]


_HEADER = ["##[group]Run <kebab1> --<word2>", "shell: /usr/bin/bash -e {0}", "##[endgroup]"]
_EXIT = "##[error]Process completed with exit code 1."
DECOYS: dict[str, tuple[str, list[str]]] = {
    "allowed": ("before", [
        "E       assert 41 == 42", "FAILED tests/test_decoy.py::test_decoy - assert 41 == 42", _EXIT,
    ]),
    "allowed_action": ("before", ["##[error]Input required and not supplied: decoy"]),
    "caught": ("within", [
        "Traceback (most recent call last):", '  File "/src/decoy.py", line 3, in connect',
        "DecoyError: nothing answers yet", "trying again", "connected",
    ]),
    "service": ("within", [
        "decoy-db | FATAL:  role \"decoy\" does not exist", "curl: (7) Failed to connect to decoy: Connection refused",
        "decoy is ready",
    ]),
    "always": ("after", ["decoy.go:3:1: undefined: decoy", _EXIT]),
}  # fmt: skip
"""What looks like the cause and is none: of a step that may fail, or of the one that failed, which went on."""


def made_job(kind: str, seed: int, decoy: str | None) -> tuple[bytes, dict[str, object], list[str]]:
    """A log in the order in which it was written, the job with its steps, and what an answer has to name.

    Steps follow each other within a second as often as not.
    """
    rng = random.Random(f"{kind} {seed} {decoy}")
    words: dict[str, str] = {}
    lines, needed = _failures()[kind]
    noise = [line for line in (_DATA / "noise.txt").read_text("utf-8").splitlines() if "[group]" not in line]
    where, trap = DECOYS.get(decoy or "", ("", []))

    def quiet() -> list[str]:
        return [_filled(rng.choice(noise), {}, rng) for _ in range(rng.randrange(3, 60))]

    def header() -> list[str]:
        return [_filled(line, {}, rng) for line in _HEADER]

    failure = [_filled(line, words, rng) for line in lines]
    ended = [] if kind in _SUDDEN or kind.startswith("action_") else [_EXIT]
    within = trap if where == "within" else []
    steps = [
        ("success", [*header(), *quiet()]),
        ("success", [*header(), *quiet(), *(trap if where == "before" else [])]),
        ("failure", [*header(), *quiet(), *within, *quiet(), *failure, *ended]),
        ("success", [*header(), *quiet(), *(trap if where == "after" else [])]),
    ]
    second, text, told = 0, "", list[dict[str, object]]()
    for number, (conclusion, written) in enumerate(steps, 1):
        start = second
        for line in written:
            text += f"{_time(second)}.{rng.randrange(10**7):07}Z {line}\r\n"
            second += rng.random() < 0.02
        step = {"number": number, "name": f"Step {number}", "status": "completed", "conclusion": conclusion}
        told.append({**step, "started_at": f"{_time(start)}Z", "completed_at": f"{_time(second)}Z"})
        second += rng.random() < 0.5
    job: dict[str, object] = {"id": 7, "name": "build", "status": "completed", "conclusion": "failure", "steps": told}
    return text.encode(), job, [_filled(word, words, rng) for word in needed]


def _time(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def _filled(line: str, words: dict[str, str], rng: random.Random) -> str:
    """`line` with its holes filled, the same ones alike."""

    def fill(hole: re.Match[str]) -> str:
        if hole[0] not in words:
            words[hole[0]] = _word(hole[1], rng)
        return words[hole[0]]

    return _HOLE.sub(fill, line)


def _word(kind: str, rng: random.Random) -> str:
    one, other = rng.choice(_WORDS), rng.choice(_WORDS)
    if kind in _JOINED:
        return f"{one}{_JOINED[kind]}{other}{rng.randrange(10, 99)}"
    return {
        "word": one, "camel": one.title() + other.title(), "n": str(rng.randrange(3, 400)),
        "big": str(rng.randrange(500, 999)),
    }[kind]  # fmt: skip


def _shown(line: str, coloured: bool) -> str:
    return f"\x1b[36;1m{line}\x1b[0m" if coloured and not line.startswith("##[") else line
