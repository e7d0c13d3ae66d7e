"""The next steps of mcp-github that send a caller round again; see `tests/next_steps.py`."""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

_HERE = "tests/github_server/"
_FAULTS = f"{_HERE}test_faults.py"
_WALKS = f"{_HERE}test_next_steps.py"
_WRITING = f"{_HERE}test_writing.py"
_LOGIN = f"{_HERE}test_login.py"
_WAITS = f"{_HERE}test_failure_logs.py"
_ANSWERS = "GitHub answers again: nothing is kept of a failure, or of an answer that can't be read"

NO_STEPS = ()

STEPS = (
    Step("Ask for less at once.", "the answer is smaller", f"{_FAULTS}::test_an_answer_without_end_is_cut_off"),
    Step(
        "Ask for less, with a smaller `limit`.",
        "GitHub's work grows with what is asked for",
        f"{_WALKS}::test_less_is_not_too_much",
    ),
    Step(
        "Ask them before you try again.",
        "always: another code is given",
        f"{_LOGIN}::test_a_login_that_comes_to_nothing_begins_anew",
    ),
    Step(
        "Call again for another code.",
        "always: another code is given",
        f"{_LOGIN}::test_a_login_that_comes_to_nothing_begins_anew",
    ),
    Step(
        "{}; then call again.",
        "the person has entered the code",
        f"{_LOGIN}::test_where_no_page_can_be_shown_the_text_says_the_code",
    ),
    Step(
        "Send one of yours as the bearer token.",
        "always: GitHub is asked with it",
        f"{_HERE}test_callers.py::test_what_one_token_reads_no_other_sees",
    ),
    Step(
        "Call again once that is mended.",
        "what GitHub named is changed: the branch is there and gets the commit",
        f"{_WALKS}::test_a_commit_on_a_branch_that_is_made_is_made_when_it_can_be",
    ),
    Step(
        "Call again with `answer` alone.",
        "what GitHub named is changed: the text is not sent twice",
        f"{_WALKS}::test_an_answer_is_marked_alone_when_the_text_is_changed",
    ),
    Step(
        "Call again with `{}`, its name by now.",
        "always",
        f"{_HERE}test_next_moves.py::test_a_renamed_repository_is_named_on_writes",
    ),
    Step(
        "It is #{} of `{}` by now: call again with both, if that one is meant.",
        "always",
        "tests/outside/test_reports_github.py::test_a_write_to_a_moved_issue_names_its_new_number",
    ),
    Step(
        "Call again with the others alone.",
        "what GitHub named is changed: the first file is there",
        f"{_WRITING}::test_what_an_empty_repository_got_already_is_told_with_a_failure",
    ),
    Step(
        "Call again with what is left.",
        "what GitHub named is changed, or left out",
        f"{_WRITING}::test_what_was_made_before_a_failure_is_told",
    ),
    Step(
        "It is still `{}`: call again to wait on.",
        "the run ends meanwhile",
        f"{_WAITS}::test_who_waits_too_short_is_told_and_who_cancels_ends_the_looking",
    ),
    Step("{} Call again to wait on.", "the checks end meanwhile", f"{_WAITS}::test_checks_are_waited_for_too"),
    Step(
        "It may have been done all the same: look before you try again.",
        "always: a look shows whether it was done",
        f"{_FAULTS}::test_a_write_whose_answer_is_no_json_may_have_been_done",
    ),
    Step(
        "Nothing was changed: this is what would be. Call again with dry_run=false.",
        "always",
        f"{_HERE}test_several_issues.py::test_the_first_call_only_shows_what_would_change",
    ),
    Step(
        "Call again without `add_comment`.",
        "what GitHub refused is mended: the comment is not made twice",
        f"{_HERE}test_several_issues.py::test_a_change_that_fails_after_its_comment_is_made_without_another",
    ),
    Step(
        "Nothing was posted: move or drop these, and call again.",
        "always: the others are where GitHub takes them",
        f"{_HERE}test_review_places.py::test_the_comment_outside_of_the_difference_is_named",
    ),
    Step(
        "Nothing was sent. The {} would be in `{}` for {} to read. Where the host shows a form the user can change "
        "and send it; else call again without `dry_run`.",
        "always",
        f"{_WRITING}::test_a_draft_is_shown_with_its_readers_and_nothing_is_sent",
    ),
    Step(
        "Read what it holds now, then call again.",
        "nobody changes it meanwhile another time",
        f"{_WALKS}::test_a_file_that_changed_is_read_and_written",
    ),
    Step(
        "Read it with `read_file`, then call again with that `sha`.",
        "always: the sha is that of what was read",
        f"{_WALKS}::test_a_file_that_changed_is_read_and_written",
    ),
    Step(
        "Read the files with `read_file`, then call again.",
        "nobody moves the branch meanwhile another time",
        f"{_WRITING}::test_without_graphql_the_same_commit_is_made_of_objects",
    ),
    Step(
        "Try again in 3 s.",
        "GitHub has worked it out",
        f"{_WALKS}::test_what_github_is_working_on_is_there_later",
    ),
    Step(
        "Try again in a moment, or ask for it in another way.",
        _ANSWERS,
        f"{_WALKS}::test_an_answer_of_another_shape_is_not_kept",
    ),
    Step(
        "Try again in a moment, or ask for less; the operator can raise --timeout.",
        "always for less: each call has the whole time",
        f"{_FAULTS}::test_a_call_has_one_time_for_all_its_requests",
    ),
    Step(
        "Try again in a moment; if that ends alike, the operator can check network, proxy and --api-url.",
        "GitHub is there again; else it is for the operator, who is told what to look at",
        f"{_FAULTS}::test_nobody_there",
    ),
    Step("Try again in a moment.", _ANSWERS, f"{_FAULTS}::test_what_is_no_json_is_said"),
    Step(
        "Try again in {} s.",
        "always: the limit is over then",
        f"{_FAULTS}::test_a_write_waits_for_a_limit_and_for_nothing_else",
    ),
    Step("Try again {}.", _ANSWERS, f"{_FAULTS}::test_when_to_come_back_is_said"),
    Step("Try again later.", "the job has ended", f"{_HERE}test_logs.py::test_a_log_that_is_not_there_says_why"),
)
