"""What users reported of weather services and of programs that ask them, tried on mcp-weather with our own places."""

from typing import Any

import pytest

from weather import upstream as imitation
from weather.conftest import upstream
from weather.serving import client, text
from weather.upstream import Upstream, place

__all__ = ["upstream"]
pytestmark = pytest.mark.anyio

_RU: dict[str, Any] = {"country": "Russia", "country_code": "RU"}
_NO: dict[str, Any] = {"country": "Norway", "country_code": "NO"}


@pytest.fixture
def more_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places whose usual spelling the geocoder does not find, or finds another place by."""
    monkeypatch.setattr(
        imitation,
        "GAZETTEER",
        [
            *imitation.GAZETTEER,
            place("Saint-Pétersbourg", 59.93863, 30.31413, "Europe/Moscow", 5351935, admin1="Saint Petersburg", **_RU),
            place("Tromsø", 69.6489, 18.95508, "Europe/Oslo", 38980, admin1="Troms", **_NO),
            place("Tromsøysund", 69.7, 19.1, "Europe/Oslo", None, admin1="Troms", **_NO),
        ],
    )


async def forecast(upstream: Upstream, **arguments: Any) -> tuple[bool, str]:
    """Return whether the call failed, and what it says."""
    async with client(upstream) as found:
        result = await found.call_tool("get_forecast", {"days": 2, **arguments})
        return bool(result.is_error), text(result)


@pytest.mark.reported("open-meteo/geocoding-api#20")
async def test_the_capital_comes_before_a_hamlet_of_its_name(upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place="北京")
    assert not failed and "39.9075,116.3972" in said and "others:" in said


@pytest.mark.reported("open-meteo/geocoding-api#34")
@pytest.mark.reported("Orinks/AccessiWeather#488")
@pytest.mark.usefixtures("more_places")
@pytest.mark.parametrize("spelling", ["Tromsø", "Tromso", "Tromsoe"])
async def test_a_place_typed_without_its_accents_is_found_or_asked_back(spelling: str, upstream: Upstream) -> None:
    failed, said = await forecast(upstream, place=spelling)
    assert failed and "No place is called" in said if "ø" not in spelling else "69.6489,18.9551" in said


@pytest.mark.reported("open-meteo/geocoding-api#10")
@pytest.mark.usefixtures("more_places")
async def test_a_hyphen_is_a_space(upstream: Upstream) -> None:
    for spelling in ("Saint Pétersbourg", "saint petersbourg", "Saint Pétersbourg, Russia"):
        failed, said = await forecast(upstream, place=spelling)
        assert not failed and "59.9386,30.3141" in said and "taken as `" in said, spelling
    failed, said = await forecast(upstream, place="São-Paulo")
    assert not failed and "-23.5475,-46.6361" in said


@pytest.mark.reported("open-meteo/open-meteo#791")
async def test_a_country_behind_the_name_decides(upstream: Upstream) -> None:
    for spelling, where in (("Berlin, US", "44.4687"), ("Berlin, DE", "52.5244"), ("London CA", "42.9834")):
        failed, said = await forecast(upstream, place=spelling)
        assert not failed and where in said, spelling


@pytest.mark.reported("open-meteo/open-meteo#1790")
@pytest.mark.reported("open-meteo/open-meteo#512")
async def test_a_zone_that_the_service_does_not_know_is_said(upstream: Upstream) -> None:
    upstream.fail("/v1/forecast", 400, b'{"reason":"Invalid timezone","error":true}')
    failed, said = await forecast(upstream, place="36.55,26.35")
    assert failed and "`Invalid timezone`" in said
