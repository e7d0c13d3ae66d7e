"""The next steps of mcp-weather that send a caller round again; see `tests/next_steps.py`."""

from __future__ import annotations

from next_steps import Step

__all__ = ["NO_STEPS", "STEPS"]

_FAILURES = "tests/weather/test_upstream_failures.py"
_SERVICE_ANSWERS = "the service answers again: nothing is kept of a failure, or of an answer that can't be read"

NO_STEPS = ()

STEPS = (
    Step("Try again in a moment.", _SERVICE_ANSWERS, f"{_FAILURES}::test_an_answer_that_can_not_be_read_is_not_kept"),
    Step(
        "Try again in a moment, and check the clock of the machine that this server runs on.",
        "the clock is right: what is past by it is not told",
        "tests/outside/test_reports_weather.py::test_a_clock_that_is_ahead_is_named_as_a_reason",
    ),
    Step(
        "Try again later, or ask for other values.",
        "the document is renewed, or another one is asked for",
        f"{_FAILURES}::test_what_was_not_understood_is_once_the_service_sends_it_anew",
    ),
    Step(
        "Try again later.",
        "a station near the place has measured",
        f"{_FAILURES}::test_an_old_observation_and_one_without_a_time_are_not_the_present",
    ),
    Step(
        "Ask for an earlier day, or try again later.",
        "always for the earlier day; later when the forecast reaches further",
        f"{_FAILURES}::test_a_day_behind_the_end_of_what_stands_in_is_refused_with_that_end",
    ),
    Step(
        "Call again with one of these as `place`.",
        "always: each name is of one place",
        f"{_FAILURES}::test_an_ambiguous_name_lists_its_places_in_words_that_work",
    ),
    Step(
        "Call again without `source`.",
        "always: Open-Meteo has the whole world",
        f"{_FAILURES}::test_what_the_weather_service_does_not_cover_is_forecast_without_it",
    ),
)
