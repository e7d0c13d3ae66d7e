"""Words for days in other languages than English, and the night that `tonight` is."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mcp_batteries.errors import Invalid
from mcp_weather.engine.answers.forecasts import fetch_day
from mcp_weather.policy.days import Day, WrittenDay, parse_astronomy_day, parse_forecast_day, parse_past_days
from mcp_weather.policy.policy import Policy
from weather.serving import World, client, text
from weather.upstream import Upstream

TODAY = date(2026, 11, 21)  # a Saturday


async def nowhere(name: str, languages: Any) -> Any:
    raise AssertionError((name, languages))


policy = Policy(dict, nowhere)


@pytest.mark.parametrize(
    ("words", "days"),
    [
        ("heute aujourd’hui hoy oggi hoje dziś vandaag bugün 今天 今日 오늘 сегодня сьогодні", 0),
        ("اليوم امروز היום Σήμερα आज วันนี้ idag tänään", 0),
        ("Morgen demain mañana domani amanhã jutro yarın 明天 明日 내일 завтра", 1),
        ("غداً فردا מחר αύριο कल พรุ่งนี้ imorgon huomenna zítra holnap besok", 1),
        ("übermorgen après-demain dopodomani pojutrze overmorgen 后天 後天 明後日 모레 послезавтра", 2),
        ("מחרתיים μεθαύριο परसों", 2),
        ("Samstag samedi sábado sabato sobota zaterdag Cumartesi 周六 星期六 土曜日 토요일", 0),
        ("суббота السبت שבת Σάββατο शनिवार", 0),
        ("Sonntag dimanche domingo domenica niedziela zondag Pazar 周日 星期天 日曜日 일요일", 1),
        ("воскресенье الأحد Κυριακή", 1),
        ("Freitag vendredi viernes venerdì sexta-feira piątek vrijdag Cuma 周五 金曜日 금요일", 6),
        ("пятница الجمعة Παρασκευή", 6),
        ("11月25日 11月25号 2026年11月25日 11월25일", 4),
    ],
)  # fmt: skip
def test_days_in_other_languages(words: str, days: int) -> None:
    for word in words.split():
        assert parse_forecast_day(word, TODAY) == Day(TODAY + timedelta(days=days)), word


@pytest.mark.parametrize("word", ["Freitag", "周五", "금요일", "пятница", "الجمعة"])
def test_a_past_weekday_is_the_last_one(word: str) -> None:
    assert parse_past_days(word, None, today=TODAY, max_days=9).first == date(2026, 11, 20)


@pytest.mark.parametrize(
    "words", ["day after tomorrow", "pasado mañana", "i morgon", "ngày mai", "am Sonntag", "le dimanche"]
)
def test_days_of_several_words(words: str) -> None:
    assert parse_forecast_day(words, TODAY).date > TODAY


@pytest.mark.parametrize("word", ["gestern", "昨天", "어제", "вчера", "hier", "ayer", "ieri", "أمس", "कल"])
def test_what_was_is_past(word: str) -> None:
    assert parse_past_days(word, None, today=TODAY, max_days=9).first == date(2026, 11, 20)


@pytest.mark.parametrize("word", ["13月1日", "2月30日", "mañanas", "morgens früh", "明天后天", "周八"])
def test_what_is_no_day_in_any_language_is_refused(word: str) -> None:
    with pytest.raises(Invalid, match="a day"):
        parse_forecast_day(word, TODAY)


@pytest.mark.parametrize(
    "words",
    [
        "tonight",
        "this evening",
        "heute Abend",
        "ce soir",
        "今晚",
        "今夜",
        "오늘 밤",
        "сегодня вечером",
        "الليلة",
        "esta noche",
    ],
)
def test_tonight_is_a_night(words: str) -> None:
    assert parse_forecast_day(words, TODAY) == Day(TODAY, is_night=True)
    assert parse_astronomy_day(words, TODAY) == Day(TODAY)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("now", "first", "last", "hours"),
    [
        ("2026-07-01T09:30", "2026-07-01T18:00", "2026-07-02T05:00", 12),
        ("2026-07-01T22:30", "2026-07-01T22:00", "2026-07-02T05:00", 8),
        ("2026-07-01T00:30", "2026-07-01T18:00", "2026-07-02T05:00", 12),
        ("2026-10-24T12:00", "2026-10-24T18:00", "2026-10-25T05:00", 13),
        ("2026-03-28T12:00", "2026-03-28T18:00", "2026-03-29T05:00", 11),
    ],
)
async def test_tonight_is_from_this_evening_to_tomorrow_morning(
    now: str, first: str, last: str, hours: int, upstream: Upstream
) -> None:
    zone = ZoneInfo("Europe/Zurich")
    at = datetime.fromisoformat(now).replace(tzinfo=zone).timestamp()
    async with World(upstream, now=at) as world:
        zurich = await world.place("Zurich")
        forecast = await fetch_day(world.engine, zurich, ("basic",), WrittenDay("tonight"), "metric")
        times = forecast.tables["best_match"].time
        assert (times[0][:16], times[-1][:16], len(times)) == (first, last, hours)
        assert any("18:00 to " in note for note in forecast.notes)
    assert datetime.fromisoformat(times[0]).astimezone(UTC) < datetime.fromisoformat(times[-1]).astimezone(UTC)


@pytest.mark.anyio
async def test_the_tool_takes_days_in_other_languages(upstream: Upstream) -> None:
    async with client(upstream) as found:
        chinese = await found.call_tool("get_forecast", {"place": "Zurich", "day": "明天"})
        english = await found.call_tool("get_forecast", {"place": "Zurich", "day": "tomorrow"})
        assert text(chinese) == text(english)
        tonight = await found.call_tool("get_forecast", {"place": "Zurich", "day": "今晚"})
        assert "[The night: " in text(tonight)
