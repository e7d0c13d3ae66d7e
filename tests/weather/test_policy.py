"""What is a place, a day and a URI, and what is refused in words that help."""

import math
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_batteries.errors import Invalid, NotFound, Problem
from mcp_weather.engine.requests.budget import compute_weight
from mcp_weather.engine.requests.queries import archive_key, current_key, daily_key, hourly_key
from mcp_weather.engine.saved_places import SavedPlaces
from mcp_weather.engine.services.nws import may_cover
from mcp_weather.geography.geocoder_results import Candidate, full_name, list_names, merge_candidates, population
from mcp_weather.policy.days import Day, Days, parse_astronomy_day, parse_forecast_day, parse_past_days
from mcp_weather.policy.place import Place, point_at
from mcp_weather.policy.place_search import place_from_result
from mcp_weather.policy.place_text import PlaceName
from mcp_weather.policy.policy import Policy
from mcp_weather.policy.units import CustomUnits, parse_units

HOME = Place("Home", 47.37, 8.55, None, None, "saved as home")


async def nowhere(name: str, language: str | None) -> list[dict[str, Any]]:
    return []


policy = Policy(lambda: {"home": HOME}, nowhere)
TODAY = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("47.37,8.55", "47.37,8.55"), (" 47.37 , 8.55 ", "47.37,8.55"), ("-33.9,18.4", "-33.9,18.4"),
        ("33.9S,18.4E", "-33.9,18.4"), ("33.9 s, 18.4 w", "-33.9,-18.4"), ("47.37° N, 8.55° E", "47.37,8.55"),
        ("33.52099,-86.81201", "33.521,-86.812"), ("0,0", "0,0"), ("-0.00001,0", "0,0"), ("90,120", "90,0"),
        ("10,-180", "10,180"), ("home", "47.37,8.55"), ("HOME ", "47.37,8.55"),
        ("47.37 8.55", "47.37,8.55"), ("(47.37; 8.55)", "47.37,8.55"), ("[47.37, 8.55]", "47.37,8.55"),
        ("47,37; 8,55", "47.37,8.55"), ("8.55E 47.37N", "47.37,8.55"), ("47°22'12\"N 8°33'E", "47.37,8.55"),
        ("33°54′S, 18°24′E", "-33.9,18.4"), ("-33.9 18.4", "-33.9,18.4"), ("geo:47.37,8.55", "47.37,8.55"),
        ("lat=47.37, lon=8.55", "47.37,8.55"), ("longitude: 8.55 latitude: 47.37", "47.37,8.55"),
        ('{"lat": 47.37, "lng": 8.55}', "47.37,8.55"), ("weather://47.37,8.55/now", "47.37,8.55"),
        ("geo:47.37,8.55?z=11", "47.37,8.55"), ("GEO:47.37,8.55,400;u=35", "47.37,8.55"),
        ("https://www.openstreetmap.org/?mlat=47.37&mlon=8.55#map=12", "47.37,8.55"),
        ("47.37\uff0c8.55", "47.37,8.55"), ("47\uff0e37\u30018\uff0e55", "47.37,8.55"),
    ],
)  # fmt: skip
def test_what_is_a_point(text: str, point: str) -> None:
    found = policy.parse_place(text)
    assert isinstance(found, Place) and found.coordinates == point


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("91,0", "not on the globe"), ("-91,0", "not on the globe"), ("0,181", "not on the globe"),
        ("0,-181", "not on the globe"), ("120,45", "They look swapped: try `45,120`"),
        ("-120,-45", "They look swapped: try `-45,-120`"), ("120,95", "Latitude is within 90"),
        ("120,-95", "Latitude is within 90"), ("181,45", "Latitude is within 90"), ("-181,45", "Latitude is within 90"),
        ("-33.9S,18.4E", "both a sign and a direction"), ("", "is not a place"), ("12", "is not a place"),
        ("?", "is not a place"), ("48°61'N 16°E", "can't be read as coordinates"), ("x", "is not a place"),
        (",Illinois", "is not a place"), ("https://maps.app.goo.gl/gZ1x", "no link is opened"),
    ],
)  # fmt: skip
def test_what_is_no_place(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        policy.parse_place(text)


def test_what_is_too_long_for_a_place_is_not_searched_for_coordinates() -> None:
    # It would take hours, and a URI may be as long as a message.
    for text in ("1.1N," * 100_000, "https://" + "@1.1,1.1" * 100_000):
        with pytest.raises(Invalid, match="at most 600 characters"):
            policy.parse_uri(f"weather://{quote(text, safe='')}/daily")


def test_a_name_is_taken_apart() -> None:
    assert policy.parse_place("Springfield,  Illinois , US") == PlaceName(
        "Springfield", ("Illinois", "US"), "Springfield, Illinois , US"
    )


@pytest.mark.parametrize("code", ["12345", "8001", "113 51", "100-0001"])
def test_a_postal_code_is_looked_up(code: str) -> None:
    assert policy.parse_place(code) == PlaceName(code, (), code)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-02-29", "2024-02-29"), ("2024-1-5", "2024-01-05"), ("20240105", "2024-01-05"),
        ("2024-01-05T12:00:00Z", "2024-01-05"), ("Today", "2026-11-21"), (" yesterday ", "2026-11-20"),
        ("tomorrow", "2026-11-22"),
        ("the day after tomorrow", "2026-11-23"), ("Day before yesterday", "2026-11-19"), ("tonight", "2026-11-21"),
        ("in 3 days", "2026-11-24"), ("3 days ago", "2026-11-18"), ("1 day from now", "2026-11-22"),
        ("Saturday", "2026-11-21"), ("on Fri", "2026-11-27"), ("this friday", "2026-11-27"),
        ("last Friday", "2026-11-20"), ("last Saturday", "2026-11-14"), ("2024/1/5", "2024-01-05"),
        ("5.1.2024", "2024-01-05"), ("01/13/2024", "2024-01-13"), ("13/01/2024", "2024-01-13"),
        ("Nov 25", "2026-11-25"), ("1 March", "2027-03-01"), ("March 1st, 2024", "2024-03-01"),
        ("29th of February 2024", "2024-02-29"), ("Wed, Nov 25 2026", "2026-11-25"),
        ("2024\u201301\u201305", "2024-01-05"), ("2024-01-05 8:30 pm", "2024-01-05"),
        ("2024-01-05t12:00:00.5+01:00", "2024-01-05"), ("29 Feb", "2028-02-29"),
    ],
)  # fmt: skip
def test_what_is_a_day(text: str, day: str) -> None:
    assert parse_astronomy_day(text, TODAY) == Day(date.fromisoformat(day))


@pytest.mark.parametrize(
    "text",
    [
        "2023-02-29",
        "29 Feb 2023",
        "2026-01-02 to 2026-01-05",
        "2026-01-02 or 3",
        "30 Feb",
        "30.02.2024",
        "last week",
        "",
        "2024",
        "0000-01-01",
        "2024111",
    ],
)
def test_what_is_no_day(text: str) -> None:
    with pytest.raises(Invalid, match=r"(can.t be read as|is not) a day.*YYYY-MM-DD"):
        parse_astronomy_day(text, TODAY)
    with pytest.raises(Invalid, match=r"(can.t be read as|is not) a day.*YYYY-MM-DD"):
        parse_past_days("2026-01-01", text, today=TODAY, max_days=92)


@pytest.mark.parametrize(
    ("text", "days"),
    [("01/02/2024", "2024-02-01 or 2024-01-02"), ("next Friday", "2026-11-27 or 2026-12-04")],
)
def test_a_day_that_may_be_two_is_asked_back(text: str, days: str) -> None:
    with pytest.raises(Invalid, match=f"may be {days}"):
        parse_forecast_day(text, TODAY)


def test_a_weekday_that_the_date_is_not_is_told() -> None:
    with pytest.raises(Invalid, match="2026-11-25, for `Friday, 25 November`, is a Wednesday"):
        parse_forecast_day("Friday, 25 November", TODAY)


def test_without_a_year_a_past_day_was_the_last_one() -> None:
    for text, day in (
        ("Friday", "2026-11-20"),
        ("Saturday", "2026-11-21"),
        ("Nov 25", "2025-11-25"),
        ("Feb 29", "2024-02-29"),
    ):
        assert parse_past_days(text, None, today=TODAY, max_days=1).first == date.fromisoformat(day)


WRITTEN = [
    "{a}°{n} {o}°{e}", "{n}{a} {e}{o}", "{n} {a}°, {e} {o}°", "{a} {n}; {o} {e}", "{a} degrees {N}, {o} degrees {E}",
    "{c}° {n}, {d}° {e}", "{o}{e}, {a}{n}", "{e}{o} / {n}{a}", "{A}°{M}'{S}\"{n}, {O}°{P}'{Q}\"{e}",
    "{A}º {M}′ {S}″ {n} {O}º {P}′ {Q}″ {e}", "{n}{A}°{M}'{S}'', {e}{O}°{P}'{Q}''", "{A} {M} {S} {n} {O} {P} {Q} {e}",
    "{n} {A} {M} {S}\n{e} {O} {P} {Q}", "{A}:{M}:{S}{n} {O}:{P}:{Q}{e}", "{A}d{M}m{S}s {n}, {O}d{P}m{Q}s {e}",
    "{A} deg {M} min {S} sec {N}, {O} deg {P} min {Q} sec {E}", "{x},{y}", "{x} / {y}", "{x}|{y}", "lat={x}&lng={y}",
    "POINT({y} {x})", "https://www.google.com/maps/@{x},{y},12z", "https://maps.google.com/?q={x},{y}",
    "https://www.openstreetmap.org/#map=12/{x}/{y}", "coordinates: {x}, {y}", "{x:+08.4f}{y:+09.4f}/",
]  # fmt: skip
latitudes, longitudes = st.integers(-89 * 3600, 89 * 3600), st.integers(-179 * 3600, 179 * 3600)


@given(form=st.sampled_from(WRITTEN), latitude=latitudes, longitude=longitudes)
def test_coordinates_are_read_as_people_write_them(form: str, latitude: int, longitude: int) -> None:
    x, y = f"{latitude / 3600:.4f}", f"{longitude / 3600:.4f}"
    parts = {"a": x.strip("-"), "o": y.strip("-"), "n": "NS"[latitude < 0], "e": "EW"[longitude < 0]}
    parts |= {"c": parts["a"].replace(".", ","), "d": parts["o"].replace(".", ",")}
    parts |= {"N": ("north", "South")[latitude < 0], "E": ("east", "West")[longitude < 0]}
    for names, seconds in (("AMS", abs(latitude)), ("OPQ", abs(longitude))):
        parts |= zip(names, map(str, (seconds // 3600, seconds // 60 % 60, seconds % 60)), strict=True)
    signed = {"x": float(x), "y": float(y)} if ":+" in form else {"x": x, "y": y}
    found = policy.parse_place(form.format(**parts, **signed))
    assert isinstance(found, Place)
    assert math.isclose(found.latitude, float(x), abs_tol=2e-4)
    assert math.isclose(found.longitude, float(y), abs_tol=2e-4)


@pytest.mark.parametrize("text", ["0001-01-01", "1899-12-31", "2100-01-01", "9999-12-31"])
def test_the_sky_is_computed_for_the_years_of_its_formulas(text: str) -> None:
    with pytest.raises(Invalid, match="computed from 1900-01-01 to 2099-12-31"):
        parse_astronomy_day(text, TODAY)


@given(st.text(max_size=60))
def test_any_words_are_a_place_a_name_or_a_problem(text: str) -> None:
    try:
        found = policy.parse_place(text)
    except Problem:
        return
    if isinstance(found, Place):
        assert -90 <= found.latitude <= 90 and -180 < found.longitude <= 180


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_points_have_four_decimals_and_no_trailing_zeros(latitude: float, longitude: float) -> None:
    point = point_at(latitude, longitude, resolved="test").coordinates
    for number in point.split(","):
        whole, _, decimals = number.partition(".")
        assert len(decimals) <= 4 and not decimals.endswith("0") and whole != "-"
        assert number != "-0"


@pytest.mark.parametrize(
    ("uri", "one"),
    [
        ("weather://47.370,8.55/now", "weather://47.37,8.55/now"), ("weather://Home/daily", "weather://home/daily"),
        ("weather://47.37%2C8.55/air", "weather://47.37,8.55/air"),
        ("weather://Springfield,%20Illinois/now", "weather://springfield,%20illinois/now"),
    ],
)  # fmt: skip
def test_a_uri_has_one_spelling(uri: str, one: str) -> None:
    found = policy.parse_uri(uri)
    assert found is not None and found.uri == one
    again = policy.parse_uri(one)
    assert again == found


@pytest.mark.parametrize(
    "uri",
    ["weather://places", "weather://places/problem", "weather://home/then", "http://home/now", "weather://a/b/now"],
)
def test_other_uris_are_of_another_kind(uri: str) -> None:
    assert policy.parse_uri(uri) is None


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        ("2026-01-02", "2026-01-01", "is before `start`"), ("2026-11-22", None, "not past yet"),
        ("1939-12-31", None, "Records begin on 1940-01-01"),
        ("2025-01-01", "2025-12-31", "Ask for 2025-01-01 to 2025-04-02 first"),
        ("2025-01-01", "2025-04-03", "93 days are more than the 92 of one call"),
    ],
)  # fmt: skip
def test_days_that_cannot_be_had(start: str, end: str | None, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        parse_past_days(start, end, today=TODAY, max_days=92)


def test_as_many_days_as_one_call_takes_can_be_had() -> None:
    days = parse_past_days("2025-01-01", "2025-04-02", today=TODAY, max_days=92)
    assert days == Days(date(2025, 1, 1), date(2025, 4, 2))


def test_the_forecast_by_hour_covers_fifteen_days() -> None:
    for text, day in (("today", TODAY), ("tomorrow", date(2026, 11, 22)), ("2026-12-05", date(2026, 12, 5))):
        assert parse_forecast_day(text, TODAY) == Day(day)
    with pytest.raises(Invalid, match=r"from 2026-11-21 to 2026-12-05, not for 2026-12-06\. Ask for an earlier day"):
        parse_forecast_day("2026-12-06", TODAY)
    with pytest.raises(Invalid, match=r"not for 2026-11-20\. Use `get_history`"):
        parse_forecast_day("yesterday", TODAY)


@pytest.mark.anyio
async def test_places_of_one_name_are_told_apart_by_where_they_are() -> None:
    def hit(latitude: float, region: str) -> dict[str, Any]:
        return {"name": "Twin", "admin1": region, "country": "Land", "latitude": latitude, "longitude": 8.0}

    async def look_up(name: str, languages: Sequence[str | None]) -> list[list[dict[str, Any]]]:
        return [[hit(1, "East"), hit(2, "East"), hit(3, "West")] for _ in languages]

    told = r"ambiguous: `1\.00,8\.00` \(Twin, East, Land\); `2\.00,8\.00` \(Twin, East, Land\); `Twin, West, Land`\."
    with pytest.raises(Invalid, match=told):
        await Policy(dict, look_up).resolve_place("Twin")


def hit(name: str, people: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": name, "latitude": 1, "longitude": people / 1000, "population": people, **more}


def geocoder(asked: list[tuple[str, str | None]], *hits: dict[str, Any]) -> Policy:
    """A policy whose geocoder has `hits` in every language for their own names, and notes what it is asked for."""

    async def look_up(name: str, languages: Sequence[str | None]) -> list[list[dict[str, Any]]]:
        asked.extend((name, language) for language in languages)
        return [[hit for hit in hits if hit["name"] == name] for _ in languages]

    return Policy(dict, look_up)


@pytest.mark.anyio
async def test_the_largest_is_meant_that_has_twenty_times_as_many_people() -> None:
    assert (
        "by far the largest of 2 listed"
        in (await geocoder([], hit("Ur", 2000), hit("Ur", 100)).resolve_place("Ur")).resolved
    )
    told = [hit("Ur", 2000), {**hit("Ur"), "population": 2_000_000.0}]
    assert population({"population": 10**400}) == 10**400 and population({"population": float("inf")}) == 0
    assert "by far" in (await geocoder([], *told).resolve_place("Ur")).resolved, (
        "a service may write a number as it likes"
    )
    with pytest.raises(Invalid, match="ambiguous"):
        await geocoder([], hit("Ur", 1999), hit("Ur", 100)).resolve_place("Ur")


@pytest.mark.anyio
async def test_languages_are_asked_where_they_may_help_only() -> None:
    asked: list[tuple[str, str | None]] = []
    with pytest.raises(NotFound):
        await geocoder(asked).resolve_place("Nowhere")
    assert len(asked) == len(set(asked)) and ("Nowhere", "de") in asked
    asked.clear()
    with pytest.raises(NotFound):
        await geocoder(asked, hit("Ur", 60_000)).resolve_place("Ur, Atlantis")
    assert ("Ur", None) in asked and ("Ur", "de") not in asked
    asked.clear()
    at_sea = hit("Ur", 3000), hit("Ur", 2000)
    with pytest.raises(NotFound):
        await geocoder(asked, *at_sea, hit("Ur", 1000, country_code="IT")).resolve_place("Ur, Atlantis")
    assert ("Ur", "it") in asked and ("Ur", "de") not in asked
    asked.clear()
    with pytest.raises(NotFound):
        await geocoder(asked).resolve_place("Nowhere, Atlantis")
    assert ("Nowhere", "de") in asked


@pytest.mark.anyio
async def test_what_may_be_a_name_before_a_region() -> None:
    asked: list[tuple[str, str | None]] = []
    with pytest.raises(NotFound):
        await geocoder(asked).resolve_place("A New York")
    assert {name for name, _ in asked} == {"A New York", "A-New-York", "A New"}
    asked.clear()
    # A region is two words at most.
    with pytest.raises(NotFound):
        await geocoder(asked).resolve_place("San Juan New York")
    assert {name for name, _ in asked} == {"San Juan New York", "San-Juan-New-York", "San Juan New", "San Juan"}


def test_what_the_geocoder_does_not_know_is_not_told() -> None:
    found = place_from_result(hit("Ur"), "found")
    assert (found.timezone, found.country, found.elevation) == (None, None, None)


def test_a_hit_is_told_in_words_that_can_be_passed_on() -> None:
    assert (Candidate((hit("Ur", country_code="iq"),)).country, Candidate((hit("Ur"),)).country) == ("IQ", "")
    assert full_name(hit("Ur", country_code="IQ")) == "Ur, IQ"
    many = [hit(f"Ur {number}") for number in range(10)]
    assert list_names(many).endswith("`Ur 7` and 2 more") and list_names(many[:8]).endswith("`Ur 7`")
    # In another language a place may lie a little elsewhere, and is the same.
    first, second = hit("Warsaw", 5, id=7), hit("Warszawa", 6, id=7)
    assert merge_candidates([Candidate((first,))], [[second]]) == [Candidate((first, second))]


SPELLED = {
    "temperature": {"°C": "c °c Celsius", "°F": "F °f fahrenheit", "K": "k"},
    "wind": {"km/h": "km/h kmh", "m/s": "m/s ms", "mph": "mph", "kn": "kn kt knots"},
    "precipitation": {"mm": "mm", "inch": "in inch"},
    "pressure": {"hPa": "hPa mbar", "inHg": "inhg", "mmHg": "mmHg"},
    "distance": {"m": "m", "ft": "ft", "km": "km", "mi": "mi"},
}


def test_a_unit_alone_is_that_of_its_quantity() -> None:
    assert parse_units("celsius", "imperial") == CustomUnits("imperial", (("temperature", "°C"),))
    assert parse_units("US, knots", "metric") == CustomUnits("imperial", (("wind", "kn"),))


@pytest.mark.parametrize("quantity", SPELLED)
def test_a_unit_is_known_by_each_of_its_names(quantity: str) -> None:
    for unit, names in SPELLED[quantity].items():
        for name in names.split():
            assert parse_units(f"{quantity}={name}", "metric") == CustomUnits("metric", ((quantity, unit),)), name


@pytest.mark.parametrize(
    ("direction", "north", "east"),
    [
        ("north", 1, 0), ("north-east", 1, 1), ("east", 0, 1), ("south-east", -1, 1), ("south", -1, 0),
        ("south-west", -1, -1), ("west", 0, -1), ("north-west", 1, -1),
    ],
)  # fmt: skip
def test_a_place_beside_another_is_so_far_away(direction: str, north: int, east: int) -> None:
    there = HOME.move(50, direction)
    up, right = math.radians(there.latitude - HOME.latitude), math.radians(there.longitude - HOME.longitude)
    across = right * math.cos(math.radians((HOME.latitude + there.latitude) / 2))
    assert math.hypot(up, across) * 6371 == pytest.approx(50, rel=0.01)
    assert [(value > 0.001) - (value < -0.001) for value in (up, across)] == [north, east]
    assert north * east == 0 or abs(up) == pytest.approx(abs(across), rel=0.01)


def test_a_place_beside_another_stays_on_the_globe() -> None:
    assert point_at(89.5, 0, resolved="test").move(500, "north").latitude == 89
    assert point_at(-89.5, 0, resolved="test").move(500, "south").latitude == -89
    assert point_at(0, 179.5, resolved="test").move(111.2, "east").longitude == -179.5
    assert point_at(0, -179.5, resolved="test").move(111.2, "west").longitude == 179.5


@pytest.mark.parametrize("kind", ["now", "hourly", "daily", "alerts", "air"])
def test_each_kind_has_a_uri(kind: str) -> None:
    subject = policy.parse_uri(f"weather://Home/{kind}")
    assert subject is not None and (subject.uri, subject.place, subject.kind) == (
        f"weather://home/{kind}",
        "home",
        kind,
    )
    assert policy.resource_uri("home", kind) == subject.uri and HOME.uri(kind) == f"weather://47.37,8.55/{kind}"


def test_one_day_is_a_span_of_one() -> None:
    for end in (None, "today", "2026-11-21"):
        assert parse_past_days("today", end, today=TODAY, max_days=1) == Days(TODAY, TODAY)


def test_the_weather_service_is_asked_only_where_it_may_answer() -> None:
    def at(point: str, country: str | None = None) -> bool:
        latitude, longitude = map(float, point.split(","))
        return may_cover(point_at(latitude, longitude, country=country, resolved="test"))

    for point in ("38.9,-77", "61.2,-149.9", "21.3,-157.9", "13.4,144.8", "18.4,-66.1", "-14.3,-170.7", "52,175"):
        assert at(point)
    for point in ("47.4,8.5", "-33.9,18.4", "19.4,-99.1", "90,0", "0,0"):
        assert not at(point)
    # A border town is its country's, whichever box it lies in.
    assert not at("49.0,-123.0", "CA") and at("48.9,-122.7", "US") and at("0,0", "US")


def test_calls_weigh_what_they_ask_for() -> None:
    assert compute_weight(current_key(HOME)) == pytest.approx(1.1)
    assert compute_weight(daily_key(HOME, ("basic",), 16, "best_match")) == pytest.approx(16 / 14)
    assert compute_weight(hourly_key(HOME, ("basic", "sky", "comfort"), 48, "best_match")) > 1.3
    assert compute_weight(archive_key(HOME, Days(date(2026, 1, 1), date(2026, 1, 28)))) == pytest.approx(2)


def test_places_are_read_from_toml_and_each_mistake_is_named(tmp_path) -> None:  # pyright: ignore
    path = tmp_path / "places.toml"
    saved = SavedPlaces(str(path))
    assert saved.problem == "it does not exist."
    path.write_text("[Home]\nlatitude = 47.37\nlongitude = 8.55\ntimezone = 'Europe/Zurich'\n", "utf-8")
    assert saved.refresh() and saved.problem is None and saved.all()["home"].timezone == "Europe/Zurich"
    assert not saved.refresh()
    for text, reason in (
        ("[home\n", "not TOML"), ("home = 1\n", "not a table"), ("[home]\nlatitude = 1\n", "needs `longitude`"),
        ("[home]\nlatitude = true\nlongitude = 1\n", "needs `latitude` as a number"),
        ("[home]\nlatitude = 91\nlongitude = 1\n", "not on the globe"),
        ("[home]\nlatitude = 1\nlongitude = 1\nlong = 2\n", "unknown key `long`"),
        ('["a/b"]\nlatitude = 1\nlongitude = 1\n', "alias"),
        ("[home]\nlatitude = 1\nlongitude = 1\ntimezone = 'Europe/Zürich'\n", "unknown `timezone`"),
        ("[home]\nlatitude = 1\nlongitude = 1\ncountry = 'Atlantis'\n", "unknown `country`"),
        ("[home]\nlatitude = 1\nlongitude = 1\ntimezone = 2\n", "unknown `timezone`"),
    ):  # fmt: skip
        path.write_text(text, "utf-8")
        assert saved.refresh() and reason in str(saved.problem)
        assert list(saved.all()) == ["home"]


@pytest.mark.parametrize("said", ["US", "us", "USA", "United States", "Vereinigte Staaten"])
def test_a_saved_country_is_known_by_each_of_its_names(said: str, tmp_path) -> None:  # pyright: ignore
    """Under any other spelling than the code nobody was said to warn there."""
    path = tmp_path / "places.toml"
    path.write_text(f"[home]\nlatitude = 33.521\nlongitude = -86.812\ncountry = '{said}'\n", "utf-8")
    saved = SavedPlaces(str(path))
    assert saved.problem is None and saved.all()["home"].country == "US"


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Pacific/Apia", "2011-12-30"), ("Pacific/Kiritimati", "1994-12-31"), ("Pacific/Kwajalein", "1993-08-21")],
)
def test_a_day_that_never_was_has_no_sky(zone: str, day: str) -> None:
    """West of the date line one day, east of it the next: the one between was no polar night."""
    with pytest.raises(Invalid, match=f"There was no {day} there"):
        parse_astronomy_day(day, TODAY, ZoneInfo(zone))
    for beside in (-1, 1):
        other = date.fromisoformat(day) + timedelta(days=beside)
        assert parse_astronomy_day(other.isoformat(), TODAY, ZoneInfo(zone)) == Day(other)
