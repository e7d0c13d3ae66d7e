"""What dates mean for git, beside what they say."""

import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from git_server.made import Made
from mcp_batteries.errors import Invalid
from mcp_git.engine.history.dates import to_git_date


@pytest.mark.parametrize(
    ("written", "first", "last"),
    [
        *((day, "2024-06-01T00:00:00", "2024-06-01T23:59:59") for day in (
            "2024-06-01", "20240601", "2024/6/1", "June 1st, 2024", "1st of june 2024",
        )),
        *((month, "2024-02-01T00:00:00", "2024-02-29T23:59:59") for month in ("2024-02", "02/2024", "Feb 2024")),
        ("2024", "2024-01-01T00:00:00", "2024-12-31T23:59:59"),
        ("9999-12-31", "2099-12-31T00:00:00", "2099-12-31T23:59:59"),
        ("2024-06-01T10:00:00.5+02:00", "2024-06-01T08:00:00", "2024-06-01T08:00:00"),
        ("2024-06-01 10:00 -0500", "2024-06-01T15:00:00", "2024-06-01T15:00:00"),
        ("2024-06-01T10:00:00Z", "2024-06-01T10:00:00", "2024-06-01T10:00:00"),
        ("1717200000", "2024-06-01T00:00:00", "2024-06-01T00:00:00"),
    ],
)  # fmt: skip
def test_dates_mean_for_git_what_they_say(tmp_path: Path, written: str, first: str, last: str) -> None:
    found = [_seconds_for_git(tmp_path, to_git_date(written, "since", to_end=to_end)) for to_end in (False, True)]
    assert found == [int(datetime.fromisoformat(f"{day}+00:00").timestamp()) for day in (first, last)]


@pytest.mark.parametrize(
    ("written", "days"),
    [
        *(("7d", 7), ("2w", 14), ("a week ago", 7), ("24h", 1), ("-7d", 7), ("3 days", 3), ("48 hrs ago", 2)),
        # Of these git itself makes another time: mostly now, or days before the first of the month.
        *(("last 7 days", 7), ("the past 3 days", 3), ("in the last two weeks", 14), ("last 24 hours", 1), ("week", 7)),
        *(("2.weeks.ago", 14), ("last hour", 1 / 24), ("an hour", 1 / 24), ("90s", 90 / 86400), ("past week", 7)),
    ],
)
def test_times_before_now_are_counted_from_now(tmp_path: Path, written: str, days: int) -> None:
    ago = time.time() - _seconds_for_git(tmp_path, to_git_date(written, "since"))
    assert abs(ago - days * 86400) < 60


def test_today_begins_at_midnight_and_a_weekday_is_a_past_one(tmp_path: Path) -> None:
    now = time.time()
    begun = _seconds_for_git(tmp_path, to_git_date("today", "since"))
    assert not begun % 86400 and now - 86400 <= begun <= time.time()
    for weekday in ("monday", "Friday", "last sunday"):
        begun = _seconds_for_git(tmp_path, to_git_date(weekday, "since"))
        assert not begun % 86400 and now - 8 * 86400 <= begun < now
        assert datetime.fromtimestamp(begun, UTC).strftime("%A").lower() == weekday.lower().removeprefix("last ")


_LONG = {"month": 2_629_746, "year": 31_556_952}


@pytest.mark.parametrize("unit", ["second", "minute", "hour", "day", "week", "month", "year"])
def test_however_long_ago_is_that_time_or_the_first_that_git_counts(tmp_path: Path, unit: str) -> None:
    seconds = timedelta(**{f"{unit}s": 1}).total_seconds() if unit not in _LONG else _LONG[unit]
    for count in (*range(0, 70, 3), 100, 1000, 1999, 2024, 99_999, 240_601, 20_240_601):
        found = _seconds_for_git(tmp_path, to_git_date(f"{count} {unit}s ago", "since"))
        expected = max(0, time.time() - count * seconds)
        assert abs(found - expected) <= (3 * 86400 if unit in _LONG else 60), (count, found, expected)


@pytest.mark.parametrize("form", ["%a %b {0.day} %H:%M:%S %Y %z", "%a, %d %b %Y %H:%M:%S %z", "%Y-%m-%d %H:%M:%S %z"])
def test_dates_as_git_prints_them_are_taken(tmp_path: Path, form: str) -> None:
    for at in range(951_782_400, 1_200_000_000, 13_333_333):
        day = datetime.fromtimestamp(at, timezone(timedelta(minutes=30 * (at % 49 - 24))))
        assert _seconds_for_git(tmp_path, to_git_date(day.strftime(form.format(day)), "since")) == at


@pytest.mark.parametrize(
    "written",
    [
        *("2023-13-45", "2023-02-30", "20241301", "5", "24-06-01", "2024-W23", "Q1 2024", "HEAD~3", "6m", "", "--"),
        *(
            "2.5 months ago",
            "0.3 days ago",
            "1000000000 seconds ago",
            "2024-06-01T25:61",
            "tomorrow",
            "2 days from now",
        ),
        *("a few days ago", "friday last week", "this friday", "days ago", "2 hours ago 10:00", "monday 25:00", "0 0"),
        *(
            "29 february 2023",
            "yesterday evening",
            "noon",
            "5 june",
            "this week",
            "last december",
        ),
    ],
)
def test_what_git_would_take_for_another_time_is_no_date(written: str) -> None:
    with pytest.raises(Invalid, match="is not a date for `until`"):
        to_git_date(written, "until", to_end=True)


def _seconds_for_git(folder: Path, date: str) -> int:
    made = Made(folder / "app")
    return int(made.git("rev-parse", f"--since={date}", TZ="UTC").partition("=")[2])
