"""The runner of proofs, and its page."""

import random
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from proofs import __main__ as command
from proofs.catalog import PROOFS, Proof
from proofs.page import PAGE, make_page
from proofs.tally import Tally


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(command.main, words)
    return result.exit_code, result.output


def replace_run(monkeypatch: pytest.MonkeyPatch, answer: Callable[[Proof, int, int, str], Tally]) -> None:
    monkeypatch.setattr(command, "run_proof", answer)


def test_the_page_says_what_the_catalog_says() -> None:
    assert PAGE.read_text("utf-8") == make_page(), "make it again: uv run python -m proofs.page, in tests/"


def test_all_proofs_are_listed() -> None:
    code, listed = run()
    assert code == 0
    assert [line.split()[0] for line in listed.splitlines()] == [proof.name for proof in PROOFS]


def test_a_fault_is_shown_and_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_run(monkeypatch, lambda proof, count, seed, world: Tally.of({"cases": count}, [f"case {seed} differs"]))
    assert run("git-twins", "3", "--seed", "7") == (
        1,
        "WRONG case 7 differs\n      3 cases\n1 wrong\n3 acts, seed 7, 0 s\n",
    )


def test_a_full_run_is_what_nobody_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    replace_run(monkeypatch, lambda proof, count, seed, world: Tally.of({"cases": count}, []))
    for proof in random.sample(PROOFS, 3):
        code, said = run(proof.name)
        assert code == 0 and f"{proof.full_count:,} {proof.unit}, seed 1" in said
