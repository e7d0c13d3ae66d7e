"""Within two seconds of the last fault everybody has heard or was told to look again: some hundred worlds of it.

`just prove replicas` lives through 100,000.
"""

import logging

import pytest

from mcp_batteries.replicas import bus
from mcp_batteries.subscriptions.subscribers import Subscribers
from mcp_batteries.subscriptions.topics import Topic
from simulation.world import Broken, World, simulate


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.share(1)
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_nobody_misses_anything_unsaid(first: int) -> None:
    for seed in range(first, first + 50):
        simulate(seed)


def test_a_seed_is_one_history(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(World, "note", lambda self, what: told.append(what))
    histories: list[list[str]] = []
    for seed in (*range(20), *range(20)):
        simulate(seed)
        histories.append(told.copy())
        told.clear()
    assert histories[:20] == histories[20:]
    assert all(histories)


def _forgets_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Subscribers, "announce_everything", lambda self: None)


def _believes_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_SILENT_BEATS", 1_000)


def _beats_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "BEAT_SECONDS", 8.0)


def _forgets_while_resting(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(self: Subscribers, topic: Topic | None) -> None:
        if topic is not None and not topic.resting:
            usual(self, topic)

    usual = Subscribers._handle_change
    monkeypatch.setattr(Subscribers, "_handle_change", changed)


@pytest.mark.parametrize("spoil", [_forgets_gaps, _believes_in_silence, _beats_rarely, _forgets_while_resting])
def test_a_broken_promise_is_found(spoil: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(spoil)
    spoil(monkeypatch)
    with pytest.raises(Broken):
        for seed in range(100):
            simulate(seed)
