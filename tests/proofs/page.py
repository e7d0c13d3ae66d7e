"""Write the page of proofs: what each proves, and how its last full run went. `python -m proofs.page` is part of
`just docs`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from proofs.catalog import PROOFS, Proof

__all__ = ["PAGE", "make_page", "record_run"]

PAGE = Path(__file__).parents[2] / "docs" / "development" / "proofs.md"
_RUNS = Path(__file__).parent / "last_runs.json"
_HEAD = """# Proofs

<!-- Made by `python -m proofs.page`. -->

A proof tries thousands of cases, made by a seed, and each is judged by something that is not ours, or by what is
promised. The tests try a few cases of each. In `tests/`, `python -m proofs` lists them, `python -m proofs NAME` makes a
full run, `python -m proofs NAME 20 --seed 7` a small one of other cases, and `--record` writes the run into this page.
A fault comes with what makes it again. Proofs of mcp-git go through repositories of nine kinds (plain, with worktrees,
sparse, shallow, partial, bare, with a submodule, of SHA-256, with a reftable), and `--world shallow` through one; the
last kind needs git 2.45. Proofs of mcp-postgres run on another release with `MCP_TEST_PROGRAMS`, as
`MCP_TEST_PROGRAMS=/usr/lib/postgresql/15/bin python -m proofs postgres-gate 10`.

| proof | what it proves | a full run | the last one that was recorded |
| --- | --- | --- | --- |
"""


class _Run(TypedDict):
    date: str
    count: int
    seed: int
    wrong: int


def record_run(proof: Proof, count: int, seed: int, wrong: int) -> None:
    """Keep a run as the last one of its proof, and make the page again."""
    runs = _read_runs()
    runs[proof.name] = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "count": count, "seed": seed, "wrong": wrong}
    _RUNS.write_text(json.dumps(runs, indent=2, sort_keys=True) + "\n", "utf-8")
    PAGE.write_text(make_page(), "utf-8")


def make_page() -> str:
    """Return the page."""
    runs = _read_runs()
    rows: list[str] = []
    for proof in PROOFS:
        full = f"{proof.full_count:,} {proof.unit}"
        rows.append(f"| `{proof.name}` | {proof.claim} | {full} | {_describe(runs.get(proof.name), proof)} |\n")
    return _HEAD + "".join(rows)


def _describe(run: _Run | None, proof: Proof) -> str:
    if run is None:
        return "none yet"
    return f"{run['date']}: {run['count']:,} {proof.unit}, seed {run['seed']}, {run['wrong']} wrong"


def _read_runs() -> dict[str, _Run]:
    return json.loads(_RUNS.read_text("utf-8"))


if __name__ == "__main__":
    PAGE.write_text(make_page(), "utf-8")
