"""Every member: each next step that sends a caller round again is in a table, and a test walks it."""

from importlib import import_module
from pathlib import Path

import pytest

from next_steps import check_table, check_walk, walks

ROOT = Path(__file__).parents[2]
# The folder of a member's tests, by the member's.
TESTS = {
    "filesystem": "filesystem",
    "git": "git_server",
    "github": "github_server",
    "postgres": "postgres",
    "sqlite": "sqlite",
    "weather": "weather",
}


@pytest.mark.parametrize("member", TESTS)
def test_each_next_step_is_in_the_table_with_the_state_in_which_it_helps(member: str) -> None:
    table = import_module(f"{TESTS[member]}.next_steps")
    check_table(ROOT / "servers" / member / "src", table.STEPS, table.NO_STEPS)


@pytest.mark.parametrize("member", TESTS)
def test_each_walk_is_a_test(member: str) -> None:
    for walk in walks(import_module(f"{TESTS[member]}.next_steps").STEPS):
        check_walk(walk)
