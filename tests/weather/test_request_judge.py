"""The judge of our requests is one: what is right passes, each kind of mistake is flagged."""

import json

import pytest

from weather.upstream import MATERIAL, NWS, OPEN_METEO, judge

AGENT = "mcp-weather/0.1.0 (tests@example.org)"
POINT = "latitude=47.3700&longitude=8.5500"


@pytest.mark.parametrize(
    "request_",
    [
        f"/v1/forecast?{POINT}&hourly=temperature_2m,precipitation&forecast_hours=48&timezone=auto&timeformat=unixtime",
        f"/v1/forecast?{POINT}&daily=weather_code&forecast_days=16&models=icon_seamless",
        f"/v1/archive?{POINT}&daily=temperature_2m_max&start_date=2024-01-01&end_date=2024-01-02",
        f"/v1/air-quality?{POINT}&current=european_aqi&forecast_days=2",
        f"/v1/marine?{POINT}&hourly=wave_height",
        f"/v1/flood?{POINT}&daily=river_discharge",
        "/v1/search?name=Z%C3%BCrich&count=20&language=de&format=json",
        "/points/33.521,-86.812",
        "/alerts/active?status=actual&point=33.521,-86.812",
        "/gridpoints/BMX/59,84/forecast/hourly?units=si",
        "/stations/KBHM/observations/latest",
    ],
)
def test_what_is_right_passes(request_: str) -> None:
    assert judge(request_, AGENT) == []


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (f"/v1/forecast?{POINT}&hourly=temperature", "is not one of"),
        (f"/v1/forecast?{POINT}&hourlies=temperature_2m", "hourlies is not a parameter"),
        ("/v1/forecast?latitude=47&hourly=temperature_2m", "longitude is required"),
        (f"/v1/forecast?{POINT}&forecast_days=17", "17 is greater than the maximum"),
        (f"/v1/forecast?{POINT}&forecast_days=many", "forecast_days"),
        (f"/v1/forecast?{POINT}&models=guesswork", "is not one of"),
        (f"/v1/forecast?{POINT}&timeformat=unix", "is not one of"),
        (f"/v1/forecast?{POINT}&latitude=1", "sent twice"),
        (f"/v1/air-quality?{POINT}&forecast_days=8", "greater than the maximum"),
        (f"/v1/archive?{POINT}&daily=temperature_2m_max&end_date=2024-01-02", "start_date is required"),
        (f"/v1/archive?{POINT}&daily=temperature_2m_max&start_date=1.1.2024&end_date=2024-01-02", "no date"),
        ("/v1/search?name=Z", "too short"),
        ("/v1/search?name=Zurich&count=1000", "greater than the maximum"),
        ("/v1/search?name=Zurich&lang=de", "lang is not a parameter"),
        ("/points/33.52123,-86.812", "more than four decimals"),
        ("/points/33.5210,-86.812", "trailing zeros"),
        ("/points/here", "does not match"),
        ("/alerts/active?point=33.521,-86.812&state=AL", "state is not a parameter"),
        ("/alerts/active?status=real", "is not one of"),
        ("/gridpoints/XXX/59,84/forecast", "is not one of"),
        ("/gridpoints/BMX/59,84/forecast?units=metric", "is not one of"),
        ("/v2/forecast", "there is no"),
    ],
)
def test_what_is_wrong_is_flagged(request_: str, reason: str) -> None:
    assert reason in "; ".join(judge(request_, AGENT))


def test_the_weather_service_must_be_told_who_asks() -> None:
    assert judge("/points/33.521,-86.812", "python-httpx2/2.16") != []


def test_the_descriptions_are_the_real_ones() -> None:
    hourly = next(item for item in OPEN_METEO["/v1/forecast"] if item["name"] == "hourly")
    assert len(hourly["schema"]["items"]["enum"]) > 300
    assert len(NWS) == 6
    assert json.loads((MATERIAL / "open-meteo.json").read_text("utf-8"))["licence"] == "CC BY 4.0"
