"""Run a proof, or list them all: `python -m proofs [NAME [COUNT]]`."""

from __future__ import annotations

import os
import sys
import time

import click

# For servers that start beside whatever else runs for so long; read as the wires are imported.
os.environ.setdefault("MCP_TEST_SECONDS", "120")

from proofs.catalog import PROOFS, run_proof
from proofs.page import record_run

_BY_NAME = {proof.name: proof for proof in PROOFS}


@click.command(help=__doc__)
@click.argument("name", required=False, type=click.Choice([*_BY_NAME]), metavar="[NAME]")
@click.argument("count", required=False, type=click.IntRange(min=1))
@click.option("--seed", type=int, default=1, help="Which cases are drawn.")
@click.option(
    "--world", default="", help="In which world, of a proof of mcp-git: sparse, shallow, partial, reftable, ..."
)
@click.option("--record", is_flag=True, help="Write this run into the page of proofs.")
def main(name: str | None, count: int | None, seed: int, world: str, record: bool) -> None:
    if name is None:
        for proof in PROOFS:
            click.echo(f"{proof.name:17} {proof.full_count:7,} {proof.unit:24} {proof.claim}")
        return
    proof = _BY_NAME[name]
    count = count or proof.full_count
    begun = time.monotonic()
    tally = run_proof(proof, count, seed, world)
    is_wrong = tally.report()
    click.echo(f"{count:,} {proof.unit}, seed {seed}, {time.monotonic() - begun:.0f} s")
    if record:
        record_run(proof, count, seed, len(tally.wrong))
    sys.exit(is_wrong)


if __name__ == "__main__":
    main()
