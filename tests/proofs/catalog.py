"""All proofs, by the name that the command line takes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, cast

import anyio

from proofs.tally import Tally

__all__ = ["PROOFS", "Proof", "run_proof"]

_PERCENT = "percent of all cases"


@dataclass(frozen=True)
class Proof:
    """One proof.

    Attributes:
        name: as it is called on the command line.
        claim: what it proves, in one sentence.
        module: the module whose `prove(count, seed)` tries the cases; where `unit` is percent, `prove(share, seed)`.
        unit: what is counted.
        full_count: how many make a full run.
    """

    name: str
    claim: str
    module: str
    unit: str
    full_count: int

    @property
    def is_share(self) -> bool:
        """Whether a share of a fixed number of cases is tried."""
        return self.unit == _PERCENT


PROOFS = (
    Proof(
        "files-answers",
        "Random questions about random trees have the answers that rg, find, cat and git give.",
        "filesystem.differential",
        "questions",
        10_000,
    ),
    Proof(
        "files-crashes",
        "Whatever fails at whichever operation of a change, all is as before or as asked, and can be taken back.",
        "filesystem.crashes",
        _PERCENT,
        100,
    ),
    Proof(
        "files-storms",
        "A subscriber reads the last state of a file after changes that overflowed the kernel's queue.",
        "filesystem.storms",
        "storms",
        1000,
    ),
    Proof(
        "files-documents",
        "Real documents read as pdfplumber, openpyxl, xlrd, python-docx, python-pptx, odfdo and extract-msg read them.",
        "outside.documents.prove",
        "documents",
        1000,
    ),
    Proof(
        "git-answers",
        "Every reading tool and resource says of random repositories what plain git says.",
        "git_server.differential",
        "repositories",
        300,
    ),
    Proof(
        "git-twins",
        "Writing tools leave what plain git leaves in a twin, and the undo that they name leads back.",
        "git_server.twins",
        "acts",
        200,
    ),
    Proof(
        "git-storms",
        "What people do with plain git is told to a subscriber, once, and nothing else is.",
        "git_server.storms",
        "acts",
        300,
    ),
    Proof(
        "sqlite-changes",
        "A change is what SQLite makes of it, a dry run changes nothing, and the way back leads back.",
        "sqlite.prove_changes",
        "statements",
        3000,
    ),
    Proof(
        "sqlite-visible",
        "With `--only` and `--mask` no form of a statement shows a hidden row or a masked value.",
        "sqlite.prove_visible_schema",
        _PERCENT,
        100,
    ),
    Proof(
        "postgres-changes",
        "A change is what PostgreSQL makes of it, a dry run changes nothing, and the way back leads back.",
        "postgres.prove_changes",
        "statements",
        1000,
    ),
    Proof(
        "postgres-gate",
        "No code of another role runs through reading, in whatever carrier, place, way in and role.",
        "postgres.prove_gate",
        _PERCENT,
        100,
    ),
    Proof(
        "postgres-visible",
        "With `--only` and `--mask` no answer shows a hidden row or a masked value.",
        "postgres.prove_part",
        _PERCENT,
        100,
    ),
    Proof(
        "imports",
        "CSV and JSON of every oddity come in as Python reads them, and go out and in again unchanged.",
        "sql.prove_imports",
        "files",
        2000,
    ),
    Proof(
        "weather-faults",
        "`get_alerts` never says that there are none where the service has not just said so.",
        "weather.faults",
        "faults",
        10_000,
    ),
    Proof(
        "weather-hours",
        "Rows, sums, days, pictures and sources agree on weather of which every quarter of an hour is known.",
        "weather.hours",
        "places and moments",
        3000,
    ),
    Proof(
        "weather-places",
        "Places by GeoNames' names in 19 languages, as people write them, are found or asked for, never another.",
        "weather.place_spellings",
        "spellings",
        1900,
    ),
    Proof(
        "weather-garbled",
        "No garbled part of an answer of the service reads as a failure of the server.",
        "weather.garbled",
        "answers",
        3000,
    ),
    Proof(
        "replicas",
        "Within two seconds of the last fault every follower has heard, or was told to look again.",
        "simulation.run",
        "worlds",
        100_000,
    ),
    Proof(
        "restarts",
        "Rolling restarts behind nginx and haproxy, with each bus, lose no call and no notice.",
        "e2e.restarts",
        "restarts",
        100,
    ),
    Proof(
        "messages",
        "Whatever a client sends, a server answers by the protocol, leaks nothing and goes on.",
        "e2e.fuzz",
        "minutes for each member",
        10,
    ),
)


def run_proof(proof: Proof, count: int, seed: int, world: str = "") -> Tally:
    """Try so many cases, drawn by a seed, in one of the worlds that `git_server.states` has or in all."""
    prove = cast("Callable[..., Tally | Awaitable[Tally]]", import_module(proof.module).prove)
    amount = count / 100 if proof.is_share else count
    worlds = {"worlds": [world]} if world else {}
    if inspect.iscoroutinefunction(prove):
        return anyio.run(cast("Callable[[], Awaitable[Any]]", partial(prove, amount, seed, **worlds)))
    return cast("Tally", prove(amount, seed, **worlds))
