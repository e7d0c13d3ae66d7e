"""Each next step of the common package that sends a caller round again, the state in which it helps, and its walk.

`test_next_steps` walks them: after the advised call the caller is further than before. A walk with a slash is a test
elsewhere.
"""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

# Not said to a caller: a line of the log, what a setting does, and what a model reads beside an answer.
NO_STEPS = (
    "the bus is back; subscribers are told to look again",
    ", and older ones that are forgotten: read again what you follow",
)
_PERSON = "a person at this machine has done it; a program reads --check instead"

STEPS = (
    Step("See who may write it, then try again.", _PERSON, ""),
    Step("Mend the file, then try again.", _PERSON, ""),
    Step("Save the file as UTF-8, then try again.", _PERSON, ""),
    Step("Close the host, then try again.", _PERSON, ""),
    Step("Mend the file, then try again, or edit it by hand: --print-config {} prints the entry.", _PERSON, ""),
    Step("Change into the folder of the project, then try again.", _PERSON, ""),
    Step("{}; a server may be using it: close its hosts, then try again.", _PERSON, ""),
    Step(
        "Ask for less: a smaller folder, a narrower filter. If that takes as long, leave it: what is read does not "
        "answer.",
        "the work grows with what is asked for",
        "test_less_work_is_done_in_time",
    ),
    Step(
        "Call again without `cursor` to start from the first page.",
        "always: the first page needs none",
        "test_a_list_begins_anew_without_the_cursor_that_was_refused",
    ),
    Step(
        "Try again in a moment.",
        "another process of ours has finished: it holds the lock only while it writes",
        "test_a_lock_is_free_when_its_process_has_written",
    ),
    Step(
        "Try again in {} s.",
        "the time is over: it is counted from what was spent, or told by the service",
        "test_who_waits_as_long_as_told_is_let_in",
    ),
    Step(
        "Ask them what they want instead.",
        "the user agrees to another call",
        "test_another_call_is_asked_about_anew",
    ),
    Step(
        "Ask for less at once. If that takes as long, what it waits for does not answer: leave it.",
        "the tool's time grows with what is asked for",
        "test_less_is_answered_in_time",
    ),
    Step(
        "It may be done in part: look at what it was to change before you call again.",
        "always: reading shows how far the change went",
        "test_a_look_shows_how_far_a_change_went",
    ),
    Step(
        "Call without it to begin to follow.",
        "always: a call without `since` begins",
        "tests/filesystem/test_list_changes.py::test_each_change_is_told_once_with_its_lines",
    ),
    Step("It came before the handshake. Send `initialize` first.", "always", "tests/shared/test_eras.py"),
    Step(
        "Pass the `cursor` alone, or run the query again.",
        "always: the cursor holds its statement and its database",
        "tests/sql",
    ),
    Step(
        "Read again what you need, and call without `since` to follow it anew.",
        "always",
        "tests/shared/test_followers.py::test_who_does_not_ask_is_let_go",
    ),
    Step(
        "Read it again when you need it.",
        "the source can be read, though nothing tells of its changes",
        "tests/shared/test_hub.py",
    ),
    Step(
        "Unsubscribe from some.",
        "a subscription less makes room for another",
        "tests/shared/test_hub_limits.py::test_subscriptions_of_a_connection_are_limited",
    ),
    Step(
        "Try again later.",
        "the issuer answers again; `Retry-After` says when to look",
        "tests/shared/test_issuer.py",
    ),
    Step(
        "Send `Authorization: Bearer TOKEN`: the word once, no quotes, every variable filled in.",
        "always",
        "tests/shared/test_guard.py::test_a_token_or_a_challenge_that_says_what_is_missing",
    ),
    Step(
        "This token lacks the scope {}. Ask for a token that has it.",
        "a token has the scope",
        "test_a_token_with_the_scope_that_was_named_may",
    ),
    Step("Send fewer at once.", "one of the calls is done", "test_a_call_that_is_done_makes_room_for_the_next"),
    Step("Close some.", "a stream is closed", "test_a_stream_that_is_closed_makes_room_for_the_next"),
    Step(
        "Missing session ID. Send `initialize` first, and the Mcp-Session-Id of its answer with every request.",
        "always",
        "test_what_the_gate_says_to_send_is_served",
    ),
    Step(
        "Session not found: it has ended, or is another caller's. Send `initialize` without Mcp-Session-Id.",
        "always",
        "test_what_the_gate_says_to_send_is_served",
    ),
    Step(
        "The answer to this call is not kept: it is longer ago than {} s, or there were too many. "
        "Look whether the call had its effect, then call again.",
        "always: the call ran, and another call runs",
        "test_what_the_gate_says_to_send_is_served",
    ),
    Step("{}. Send `Accept: {}`.", "always", "test_what_the_gate_says_to_send_is_served"),
    Step(
        "A session keeps the revision that `initialize` agreed on, {}. "
        "Send the `protocolVersion` of that answer as {}.",
        "always",
        "test_what_the_gate_says_to_send_is_served",
    ),
    Step("{}. Send one of {}, or with `initialize` none.", "always", "test_what_the_gate_says_to_send_is_served"),
    Step("{}, but `_meta` is of {}. Send that as {} too.", "always", "test_what_the_gate_says_to_send_is_served"),
    Step(
        "{} is {}, which has no `initialize`. Leave the header out of `initialize`; the answer says which revision to "
        "send then.",
        "always",
        "test_what_the_gate_says_to_send_is_served",
    ),
    Step(
        "Look whether it is, then call again.",
        "the server, or another replica, runs again",
        "tests/e2e/test_restarts.py",
    ),
    Step(
        "Parse error: not UTF-8 at byte {} (0x{}). Nothing was run. Encode the whole message as UTF-8, and send it "
        "again.",
        "always: nothing was run",
        "tests/e2e/test_not_utf8.py",
    ),
)
