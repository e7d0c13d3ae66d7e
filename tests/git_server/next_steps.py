"""The next steps of mcp-git that send a caller round again; see `tests/next_steps.py`."""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

# Descriptions of arguments, and how the difference of a merge is headed.
NO_STEPS = (
    "Take it out of the index again.",
    "To pop or apply: stage again what was staged.",
    "merge of {}; shown against the first",
)

STEPS = (
    Step("The operator can start the server again.", "a person at this machine has done it", ""),
    Step(
        "Call again without `cursor`.",
        "always: the first page needs none, and its cursor leads through what is there now",
        "tests/git_server/test_reads.py::test_pages_are_of_what_the_first_one_was_of",
    ),
    Step(
        "Call again when it is done.",
        "the other git has ended: the lock is its own; one that a crash left is told by its age",
        "tests/git_server/test_small_facts.py::test_a_lock_tells_its_age_and_owner",
    ),
    Step(
        "`run_fetch`, look at what came, then push again.",
        "always: what the remote has is known after the fetch",
        "tests/git_server/test_remotes.py::test_a_branch_goes_out_and_what_came_meanwhile_comes_in",
    ),
    Step(
        "Call again later.",
        "the host of the remote, or the way to it, works again; what time does not mend has its own sentence",
        "tests/git_server/test_remotes.py::"
        "test_a_remote_that_is_back_is_fetched_and_what_another_time_does_not_mend_is_not_for_later",
    ),
)
