"""An id names one request of a session at a time, from its arrival until its answer leaves."""

from typing import Any

import pytest

from mcp_batteries.transports.http.gate.bad_request import BadRequest
from mcp_batteries.transports.http.gate.request_ids import RequestIds

START = {"type": "http.response.start", "status": 200, "headers": []}
EVENT = {"type": "http.response.body", "body": b"data: 1\r\n\r\n", "more_body": True}
END = {"type": "http.response.body", "body": b"{}"}
pytestmark = pytest.mark.anyio


async def drop(part: Any) -> None:
    pass


def is_free(ids: RequestIds, request_id: int | str = 7, caller: str = "alice", session: str = "s") -> bool:
    try:
        with ids.hold(caller, session, request_id, drop):
            return True
    except BadRequest as refusal:
        assert (refusal.status, refusal.request_id) == (400, request_id)
        return False


async def test_an_id_is_free_before_the_last_part_of_its_answer_leaves() -> None:
    ids = RequestIds()
    free: list[bool] = []

    async def send(part: Any) -> None:
        free.append(is_free(ids))

    with ids.hold("alice", "s", 7, send) as (send_and_release, _):
        for part in (START, EVENT, END):
            await send_and_release(part)
    assert free == [False, False, True]


async def test_a_request_that_ends_late_leaves_the_next_one_its_id() -> None:
    ids = RequestIds()
    with ids.hold("alice", "s", 7, drop) as (send_and_release, first):
        await send_and_release(END)
        following = ids.hold("alice", "s", 7, drop)
        _, second = following.__enter__()
    assert not is_free(ids)
    ids.cancel("alice", "s", 7)
    assert first is not None and not first.is_set()
    assert second is not None and second.is_set()
    following.__exit__()
    assert is_free(ids)


async def test_a_request_that_fails_frees_its_id() -> None:
    ids = RequestIds()
    with pytest.raises(ZeroDivisionError), ids.hold("alice", "s", 7, drop):
        raise ZeroDivisionError
    assert is_free(ids)


@pytest.mark.parametrize(
    ("caller", "session", "request_id"),
    [("bob", "s", 7), ("alice", "other", 7), ("alice", "s", "7"), ("alice", "s", 8)],
)
async def test_only_the_same_id_of_the_same_session_is_held_and_cancelled(
    caller: str, session: str, request_id: int | str
) -> None:
    ids = RequestIds()
    with ids.hold("alice", "s", 7, drop) as (_, cancelled):
        assert cancelled is not None
        assert is_free(ids, request_id, caller, session)
        ids.cancel(caller, session, request_id)
        assert not cancelled.is_set()
        ids.cancel("alice", "s", 7)
        assert cancelled.is_set()


async def test_without_a_session_an_id_is_nobody_elses_concern() -> None:
    ids = RequestIds()
    for _ in range(2):
        ids.hold("alice", None, 7, drop).__enter__()
    with ids.hold("alice", None, 7, drop) as (send, cancelled):
        assert send is drop
        assert cancelled is None
