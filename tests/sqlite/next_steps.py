"""The next steps of mcp-sqlite that send a caller round again; see `tests/next_steps.py`."""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

_ENDLESS = "tests/sqlite/test_endless.py"

# A field of what a worker answers.
NO_STEPS = ("again",)

STEPS = (
    Step(
        "Ask for less: a narrower WHERE, an index.",
        "the work grows with what is asked for",
        f"{_ENDLESS}::test_the_limit_answers",
    ),
    Step(
        "Ask for less.",
        "the value is smaller: the process that could not be stopped is replaced",
        f"{_ENDLESS}::test_waiting_for_a_worker_is_a_part_of_the_limit",
    ),
    Step(
        "Try again, fewer at once.",
        "one of the calls is done, or stopped at its limit",
        f"{_ENDLESS}::test_waiting_for_a_worker_is_a_part_of_the_limit",
    ),
    Step(
        "Call again without `cursor`.",
        "always: the first page needs none",
        "tests/sql/test_cursors.py::test_a_listing_of_all_databases_goes_on_page_by_page",
    ),
    Step(
        "Run the query again.",
        "always: its result is kept anew",
        "tests/sqlite/test_pages.py::test_a_cursor_that_is_gone_says_so",
    ),
    Step(
        "Try again in a moment.",
        "whoever writes has committed; for one that keeps its lock the operator has another way, said beside",
        f"{_ENDLESS}::test_a_lock_held_longer_than_the_limit_is_called_a_lock",
    ),
    Step(
        "Try again; if that ends alike, the operator can see with `--check` what is in its way.",
        "the machine has a process left again",
        f"{_ENDLESS}::test_a_worker_that_did_not_start_may_another_time",
    ),
    Step(
        "Whether it was done is not known: look before you try again.",
        "always: a change is there whole or not at all",
        f"{_ENDLESS}::test_whether_a_change_was_made_is_seen_when_its_worker_died",
    ),
)
