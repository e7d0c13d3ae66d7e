"""The next steps of mcp-fs that send a caller round again; see `tests/next_steps.py`."""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

_EDIT = "tests/filesystem/test_edit.py"

NO_STEPS = ()

STEPS = (
    Step(
        "Call without `step` for the list.",
        "always: the list has the steps that are there",
        "tests/filesystem/test_undo.py::test_what_came_back_by_other_means_is_no_step_any_more",
    ),
    Step(
        "Close it there, then try again.",
        "the other program has closed the file",
        "tests/filesystem/test_windows.py::test_a_change_of_a_file_that_another_program_holds_says_so",
    ),
    Step(
        "Nothing there is like it; read the file again.",
        "always: the edit then quotes what is there",
        f"{_EDIT}::test_nothing_alike_is_said_so",
    ),
    Step(
        "Read it again, then make the patch anew.",
        "always: the patch then removes what is there",
        f"{_EDIT}::test_a_patch_that_deletes_removes_all_that_is_there",
    ),
    Step(
        "Read it again, then repeat the change.",
        "nobody changes it meanwhile another time",
        f"{_EDIT}::test_what_others_did_meanwhile_is_not_lost",
    ),
    Step(
        "Read it again, then repeat the edit.",
        "always: the hash is that of what was read",
        f"{_EDIT}::test_another_hash_is_a_conflict_that_names_it",
    ),
    Step(
        "Try again in a moment.",
        "other calls have closed their files, or whoever moved the entry is done",
        "tests/filesystem/test_handles.py::test_a_file_is_opened_when_others_are_closed",
    ),
    Step(
        "Try again when it has finished; nothing was changed.",
        "the other program has given its lock back",
        "tests/filesystem/test_writers.py::test_a_file_locked_by_another_program_is_told",
    ),
    Step(
        "documents not searched within {} s: search again, or fewer",
        "always: fewer take less time, and the text of those that were searched is kept",
        "tests/filesystem/test_documents.py::test_documents_that_took_too_long_are_searched_fewer_at_once",
    ),
)
