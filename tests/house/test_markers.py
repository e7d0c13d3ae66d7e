"""The markers are read off the code: what starts a process is found however deep it does so."""

from markers import SIGNS, named
from weather import serving, test_changes, test_policy


def test_what_starts_a_process_is_found_through_helpers_and_classes() -> None:
    for work in (serving.served, test_changes.test_memory_serves_subscriptions_too):
        assert named(work) & SIGNS["process"]
    for work in (serving.client, test_policy.test_a_name_is_taken_apart):
        assert not named(work) & SIGNS["process"]
