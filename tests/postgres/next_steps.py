"""The next steps of mcp-postgres that send a caller round again; see `tests/next_steps.py`."""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

_CHAOS = "tests/postgres/test_chaos.py"
_GROWS = "what it needs grows with what is asked for"

# What the operator is told of a file and of a role, and what a model reads beside an answer.
NO_STEPS = (
    "mend the password; its file is read again at each connect",
    "read again from row {} on: what changed meanwhile, or has no ORDER BY a key, may be missing or twice",
    "; it did not read {} before: REVOKE SELECT ON ... FROM {} takes a table away again",
)

STEPS = (
    Step(
        "Take them away or drop the role, then try again: `--print-role-sql` shows how.",
        "a person at this machine has done it",
        "",
    ),
    Step(
        "Ask for less, or see with `explain_query` what takes so long.",
        _GROWS,
        f"{_CHAOS}::test_what_the_server_runs_out_of_is_said",
    ),
    Step(
        "Try again, with less at once. The operator can set `hot_standby_feedback`, or serve the primary.",
        "the standby has replayed what was in its way; a shorter query is in nobody's way",
        "tests/outside/test_reports_postgres.py::test_a_query_that_a_standby_stopped_is_not_said_to_wait_for_others",
    ),
    Step("Ask for less.", _GROWS, f"{_CHAOS}::test_what_the_server_runs_out_of_is_said"),
    Step(
        "Ask for less; if that ends alike, the operator can free disk space.",
        "the disk has room for a smaller sort; else the operator has made room",
        f"{_CHAOS}::test_what_the_server_runs_out_of_is_said",
    ),
    Step(
        "Call again without `cursor`.",
        "always: the first page needs none",
        "tests/sql/test_cursors.py::test_a_listing_of_all_databases_goes_on_page_by_page",
    ),
    Step(
        "Run the query again.",
        "always: its result is kept anew",
        "tests/sql/test_cursors.py::test_a_query_is_run_again_for_a_result_that_is_gone",
    ),
    Step(
        "Send `SET ...; SELECT ...`.",
        "always: the setting holds for the statements behind it",
        "tests/postgres/test_call_settings.py::test_a_setting_alone_is_sent_with_what_it_is_for",
    ),
    Step(
        "Call again; if that ends alike, leave this statement: it may be what ends the connection.",
        "somebody else ended the connection: the next call gets another one",
        f"{_CHAOS}::test_a_backend_killed_in_the_middle_is_said_and_over",
    ),
    Step(
        "Try again later; if that ends alike, the operator can check host and port, and start PostgreSQL there.",
        "PostgreSQL runs there again; else it is for the operator, who is told what to look at",
        "tests/postgres/test_addresses.py::test_a_list_of_databases_that_are_all_down_fails",
    ),
    Step(
        "Try again later: the server connects as soon as that works.",
        "the database, or the way to it, works again; what time does not mend is for the operator",
        f"{_CHAOS}::test_a_cut_network_is_said_and_over",
    ),
    Step(
        "Try again a little later.",
        "whoever holds the lock, who is named, has ended the transaction",
        "tests/postgres/test_locks.py::test_an_error_names_the_table_and_who_holds_it",
    ),
    Step(
        "Look whether it is there before you call again.",
        "always: a change is there whole or not at all",
        f"{_CHAOS}::test_what_a_commit_without_an_answer_did_is_seen",
    ),
)
