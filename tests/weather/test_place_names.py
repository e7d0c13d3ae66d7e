"""Names as people type them, in their own languages, are found at once; what is not one place is never guessed."""

from typing import Any

import pytest

from mcp_batteries.errors import Invalid, NotFound
from mcp_weather.geography.countries import find_countries, fold_name, guess_languages
from weather import upstream as imitation
from weather.serving import World, client, settings, text
from weather.upstream import Upstream, place

pytestmark = pytest.mark.anyio


@pytest.mark.share(10)
@pytest.mark.parametrize(
    ("typed", "point", "country"),
    [
        ("London, UK", "51.5085,-0.1257", "GB"), ("london england", "51.5085,-0.1257", "GB"),
        ("London, Great Britain", "51.5085,-0.1257", "GB"), ("London, ON", "42.9834,-81.233", "CA"),
        ("Paris, Texas, USA", "33.6609,-95.5555", "US"), ("Paris TX", "33.6609,-95.5555", "US"),
        ("Paris, Frankreich", "48.8534,2.3488", "FR"), ("Paris, Texas, Lamar County", "33.6609,-95.5555", "US"),
        ("Washington, DC", "38.8951,-77.0364", "US"), ("Washington, D.C., U.S.A.", "38.8951,-77.0364", "US"),
        ("Washington DC", "38.8951,-77.0364", "US"), ("Arlington VA", "38.881,-77.1043", "US"),
        ("Arlington, Virginia", "38.881,-77.1043", "US"), ("Arlington VA USA", "38.881,-77.1043", "US"),
        ("Berlin, Deutschland", "52.5244,13.4105", "DE"), ("Berlin, New Hampshire", "44.4687,-71.1851", "US"),
        ("Berlin Allemagne", "52.5244,13.4105", "DE"), ("München, Bayern", "48.1374,11.5755", "DE"),
        ("München", "48.1374,11.5755", "DE"), ("São Paulo, Brasil", "-23.5475,-46.6361", "BR"),
        ("Sao Paulo, SP", "-23.5475,-46.6361", "BR"), ("北京", "39.9075,116.3972", "CN"),
        ("北京, 中国", "39.9075,116.3972", "CN"), ("北京 中国", "39.9075,116.3972", "CN"),
        ("Москва", "55.7522,37.6156", "RU"), ("Москва, Россия", "55.7522,37.6156", "RU"),
        ("Warszawa", "52.2298,21.0118", "PL"), ("Warszawa, Polska", "52.2298,21.0118", "PL"),
        ("القاهرة", "30.0626,31.2497", "EG"), ("Longyearbyen", "78.2233,15.6469", "SJ"),
    ],
)  # fmt: skip
async def test_what_people_type_is_found_at_once(upstream: Upstream, typed: str, point: str, country: str) -> None:
    async with World(upstream) as world:
        found = await world.place(typed)
        assert (found.coordinates, found.country) == (point, country)


@pytest.mark.parametrize("typed", ["Paris, Ohio", "London, Deutschland", "Berlin, 中国", "北京, Brasil"])
async def test_the_wrong_country_is_not_ignored(upstream: Upstream, typed: str) -> None:
    async with World(upstream) as world:
        with pytest.raises(NotFound, match="Of that name there are"):
            await world.place(typed)


async def test_one_part_too_many_is_named_and_never_makes_a_guess(upstream: Upstream) -> None:
    async with World(upstream) as world:
        found = await world.place("Paris, Texas, Lamar County")
        assert found.resolved.startswith("`Lamar County` is not known there and was ignored; ")
        with pytest.raises(Invalid, match="ambiguous"):
            await world.place("Springfield, Sangamon, USA")
        # Most people of that name live in Pennsylvania or in the capital, but the part that nobody knows may decide.
        with pytest.raises(Invalid, match="ambiguous, and `Yolo County` is not known: "):
            await world.place("Washington, Yolo County, USA")


@pytest.mark.parametrize("typed", ["Salem, IN", "Salem IN"])
async def test_a_region_that_two_countries_have_does_not_decide_by_size(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, typed: str
) -> None:
    places = [
        place("Salem", 11.65, 78.16, "Asia/Kolkata", 826267, admin1="Tamil Nadu", country="India", country_code="IN"),
        place("Salem", 38.6, -86.1, "America/Indiana/Vincennes", 6319, admin1="Indiana", country_code="US"),
        place("Salem", 44.94, -123.04, "America/Los_Angeles", 164549, admin1="Oregon", country_code="US"),
    ]
    monkeypatch.setattr(imitation, "GAZETTEER", places)
    async with World(upstream) as world:
        with pytest.raises(Invalid, match="is ambiguous: `Salem, Tamil Nadu, India`; `Salem, Indiana, US`"):
            await world.place(typed)
        assert (await world.place("Salem, Indiana")).coordinates == "38.6,-86.1"
        assert (await world.place("Salem, India")).coordinates == "11.65,78.16"


@pytest.mark.parametrize(("typed", "point"), [("Paris 15", "48.8534,2.3488"), ("Paris 15e", "48.8534,2.3488")])
async def test_the_number_of_a_district_is_of_a_city(upstream: Upstream, typed: str, point: str) -> None:
    async with World(upstream) as world:
        found = await world.place(typed)
        assert found.coordinates == point and "was ignored; " in found.resolved


@pytest.mark.parametrize("typed", ["Ystad 271 42", "Ystad 27142", "SE-271 42 Ystad", "Ystad, se-27142"])
async def test_a_postal_code_decides_however_it_is_written(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, typed: str
) -> None:
    places = [
        place("Ystad", 55.43, 13.82, "Europe/Stockholm", 19000, country="Sweden", country_code="SE"),
        place("Ystad", 60.0, 15.0, "Europe/Stockholm", 20, postcodes=["271 42"], country="Sweden", country_code="SE"),
    ]
    monkeypatch.setattr(imitation, "GAZETTEER", places)
    async with World(upstream) as world:
        assert (await world.place(typed)).coordinates == "60,15"


@pytest.mark.parametrize("typed", ["Birmingham 3520", "Birmingham GL1 1AA", "Birmingham 35203"])
async def test_a_code_with_a_mistake_in_it_does_not_mean_the_city(
    monkeypatch: pytest.MonkeyPatch, upstream: Upstream, typed: str
) -> None:
    village = place("Birmingham", 40.9, -80.9, "America/New_York", 120, admin1="Ohio", country_code="US")
    monkeypatch.setattr(imitation, "GAZETTEER", [*imitation.GAZETTEER, village])
    async with World(upstream) as world:
        with pytest.raises(Invalid, match="is not known: `Birmingham, Alabama, United States`; `Birmingham, Ohio, US`"):
            await world.place(typed)


@pytest.mark.parametrize(
    ("language", "typed", "answered"),
    [
        ("zh", "北京", "北京, 北京市, 中国"), ("ru", "Москва", "Москва, Россия"),
        ("de", "München", "München, Bayern, Deutschland"),
        ("pl", "Warszawa", "Warszawa, Mazowieckie, Polska"), ("ar", "القاهرة", "القاهرة, Cairo, مصر"),
    ],
)  # fmt: skip
async def test_questions_and_answers_in_other_languages(
    upstream: Upstream, language: str, typed: str, answered: str
) -> None:
    async with client(upstream, "--language", language) as found:
        for tool in ("get_weather", "get_alerts"):
            result = await found.call_tool(tool, {"place": typed})
            assert not result.is_error, text(result)
            assert result.structured_content is not None and result.structured_content["place"]["name"] == answered
        again = await found.call_tool("get_astronomy", {"place": answered})
        assert not again.is_error and answered in text(again)


async def test_a_well_known_name_costs_one_request(upstream: Upstream) -> None:
    async with World(upstream) as world:
        for typed in ("London, UK", "Zurich", "Paris, Texas, USA", "Washington, DC"):
            upstream.requests.clear()
            await world.place(typed)
            assert upstream.count("/v1/search") == 1


def test_countries_are_known_in_many_languages() -> None:
    for name, code in (
        ("Deutschland", "DE"), ("Allemagne", "DE"), ("Германия", "DE"), ("德国", "DE"), ("ドイツ", "DE"),
        ("ألمانيا", "DE"),
        ("U.S.A.", "US"), ("Estados Unidos", "US"), ("Suomi", "FI"), ("Ελλάδα", "GR"), ("भारत", "IN"),
        ("Türkiye", "TR"),
        ("uk", "GB"), ("Côte d’Ivoire", "CI"),
    ):  # fmt: skip
        assert find_countries(fold_name(name)) == {code}, name
    assert find_countries("atlantis") == frozenset()
    assert guess_languages("北京") == ("zh", "ja") and guess_languages("Zürich") == ()


@pytest.mark.parametrize("typed", ["NaN,0", "nan, nan", "inf,0", "0,-Infinity", "(1e999, 5)", "-inf,inf"])
async def test_what_is_no_number_is_no_place_and_is_not_looked_up(upstream: Upstream, typed: str) -> None:
    async with client(upstream) as found:
        for tool, argument in (("get_weather", "place"), ("find_place", "query")):
            result = await found.call_tool(tool, {argument: typed})
            assert result.is_error and "both must be numbers" in text(result), text(result)
    assert upstream.requests == []


async def test_a_town_called_nan_is_a_town(upstream: Upstream) -> None:
    async with World(upstream) as world:
        for typed in ("Nan, 55000", "Nan"):
            with pytest.raises(NotFound):
                await world.place(typed)
    assert upstream.count("/v1/search?name=Nan") > 0


async def test_a_language_that_is_none_is_refused(upstream: Upstream) -> None:
    async with client(upstream) as found:
        refused = await found.call_tool("find_place", {"query": "Paris", "language": "xx"})
        assert refused.is_error and "No language has the code `xx`" in text(refused)
        assert not (await found.call_tool("find_place", {"query": "Paris", "language": "fr"})).is_error
    with pytest.raises(SystemExit):
        settings(upstream, "--language", "xx")


async def test_stations_without_data_are_told(upstream: Upstream) -> None:
    async with client(upstream) as found:
        upstream.fail("/stations/", 404, times=9)
        result = await found.call_tool("get_weather", {"place": "Birmingham, Alabama"})
        assert "[Nothing measured: no data from the stations near (KBHM, " in text(result)
        elsewhere = await found.call_tool("get_weather", {"place": "Zurich"})
        assert "Nothing measured" not in text(elsewhere)


async def test_why_alerts_can_not_be_had_is_told_where_they_are_asked_for(upstream: Upstream) -> None:
    async with client(upstream, "--meteoalarm-url", "http://127.0.0.1:9") as found:
        brief: Any = (await found.call_tool("get_weather", {"place": "Assen"})).structured_content
        full: Any = (await found.call_tool("get_alerts", {"place": "Assen"})).structured_content
        assert brief["alerts"]["status"] == full["status"] == "unavailable"
        assert len(brief["alerts"]["explanation"]) < 90 and "`get_alerts` says why" in brief["alerts"]["explanation"]
        assert "refused the connection" in full["explanation"] and "there may" not in full["explanation"]
