"""The questions asked of the upstreams, as cache keys: the same question is the same key, whoever asks.

Always metric and in the place's own time: units are converted here, so that a document serves both, and times come as
seconds since the epoch, which no change of clocks makes ambiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlencode

from mcp_weather.policy import Days, Place

__all__ = [
    "DAILY",
    "GROUPS",
    "Group",
    "Model",
    "air_key",
    "airport_key",
    "airports_keys",
    "alerts_key",
    "archive_key",
    "canada_key",
    "current_key",
    "daily_key",
    "ensemble_key",
    "flood_key",
    "geocoding_key",
    "grid_key",
    "hourly_key",
    "is_open_meteo",
    "marine_key",
    "meteoalarm_key",
    "observation_key",
    "points_key",
    "quarters_key",
    "recent_key",
    "scope_of",
    "service_of",
    "stations_key",
]  # fmt: skip

Group = Literal["basic", "wind", "precipitation", "sky", "comfort", "soil"]
Model = Literal[
    "best_match",
    "ecmwf_ifs025",
    "ncep_gfs_seamless",
    "icon_seamless",
    "meteofrance_seamless",
    "cmc_gem_seamless",
    "ukmo_seamless",
    "jma_seamless",
]
CURRENT = (
    "temperature_2m", "apparent_temperature", "relative_humidity_2m", "precipitation", "weather_code", "cloud_cover",
    "pressure_msl", "wind_speed_10m", "wind_direction_10m", "wind_gusts_10m", "is_day",
)  # fmt: skip
GROUPS: dict[Group, tuple[str, ...]] = {
    "basic": ("temperature_2m", "precipitation_probability", "precipitation", "weather_code", "wind_speed_10m"),
    "wind": ("wind_speed_10m", "wind_direction_10m", "wind_gusts_10m"),
    "precipitation": ("precipitation_probability", "precipitation", "rain", "showers", "snowfall", "snow_depth"),
    "sky": ("weather_code", "cloud_cover", "visibility", "sunshine_duration", "is_day", "uv_index"),
    "comfort": ("temperature_2m", "apparent_temperature", "relative_humidity_2m", "dew_point_2m", "pressure_msl"),
    "soil": ("soil_temperature_0cm", "soil_temperature_6cm", "soil_moisture_0_to_1cm", "et0_fao_evapotranspiration"),
}
DAILY: dict[Group, tuple[str, ...]] = {
    "basic": (
        "weather_code", "temperature_2m_max", "temperature_2m_min", "precipitation_sum",
        "precipitation_probability_max", "wind_speed_10m_max",
    ),
    "wind": ("wind_speed_10m_max", "wind_gusts_10m_max", "wind_direction_10m_dominant"),
    "precipitation": ("precipitation_sum", "precipitation_hours", "rain_sum", "showers_sum", "snowfall_sum"),
    "sky": ("weather_code", "sunshine_duration", "daylight_duration", "uv_index_max", "shortwave_radiation_sum"),
    "comfort": ("temperature_2m_max", "temperature_2m_min", "apparent_temperature_max", "apparent_temperature_min"),
    "soil": ("et0_fao_evapotranspiration",),
}  # fmt: skip
AIR_NOW = (
    "european_aqi",
    "us_aqi",
    "pm2_5",
    "pm10",
    "ozone",
    "nitrogen_dioxide",
    "sulphur_dioxide",
    "carbon_monoxide",
    "uv_index",
)
AIR = ("european_aqi", "us_aqi", "pm2_5", "pm10", "ozone", "nitrogen_dioxide")
POLLEN = ("alder_pollen", "birch_pollen", "grass_pollen", "mugwort_pollen", "olive_pollen", "ragweed_pollen")
SEA_NOW = (
    "wave_height",
    "wave_direction",
    "wave_period",
    "swell_wave_height",
    "sea_surface_temperature",
    "ocean_current_velocity",
)
SEA = (
    "wave_height",
    "wave_direction",
    "wave_period",
    "wind_wave_height",
    "swell_wave_height",
    "swell_wave_period",
    "sea_surface_temperature",
)
PAST = (
    "weather_code",
    "temperature_2m_mean",
    "temperature_2m_max",
    "temperature_2m_min",
    "precipitation_sum",
    "wind_speed_10m_max",
)
RECENT = ("weather_code", "temperature_2m_max", "temperature_2m_min", "precipitation_sum", "wind_speed_10m_max")
NORMAL = ("temperature_2m_mean", "temperature_2m_max", "temperature_2m_min", "precipitation_sum", "wind_speed_10m_max")


QUARTERS = ("precipitation", "rain", "snowfall", "weather_code", "wind_gusts_10m")
UNSURE = ("temperature_2m", "precipitation", "wind_speed_10m")
ENSEMBLE = "ecmwf_ifs025"
"""51 members, all the world."""


def service_of(key: str) -> str:
    return key.partition("/")[0]


def scope_of(key: str) -> str:
    """Whose limits apply: one upstream's stop the others of the same house only."""
    return "open-meteo" if is_open_meteo(key) else service_of(key)


def is_open_meteo(key: str) -> bool:
    return service_of(key) not in ("nws", "canada", "meteoalarm", "aviation")


def current_key(place: Place) -> str:
    return _key("forecast/v1/forecast", place, current=CURRENT)


def hourly_key(place: Place, groups: Sequence[Group], hours: int, model: Model) -> str:
    return _key("forecast/v1/forecast", place, hourly=_variables(GROUPS, groups), forecast_hours=hours, **_model(model))


def daily_key(place: Place, groups: Sequence[Group], days: int, model: Model) -> str:
    return _key("forecast/v1/forecast", place, daily=_variables(DAILY, groups), forecast_days=days, **_model(model))


def quarters_key(place: Place, quarters: int) -> str:
    return _key("forecast/v1/forecast", place, minutely_15=QUARTERS, forecast_minutely_15=quarters)


def ensemble_key(place: Place, days: int) -> str:
    return _key("ensemble/v1/ensemble", place, hourly=UNSURE, models=ENSEMBLE, forecast_days=days)


def airport_key(code: str) -> str:
    return "aviation/api/data/metar?" + urlencode({"ids": code, "format": "json", "taf": "true"})


def airports_keys(place: Place) -> list[str]:
    """Airports in a box of some hundred kilometres round a place, whose corners do not tell where in it that is.

    One that goes over the date line is two.
    """
    latitude, longitude = round(place.latitude), round(place.longitude)
    south, north = max(-90, latitude - 1), min(90, latitude + 1)
    wide = 1 if abs(latitude) < 45 else 2 if abs(latitude) < 65 else 5
    west, east = longitude - wide, longitude + wide
    spans = [(max(-180, west), min(180, east))]
    spans += [(west + 360, 180)] if west < -180 else [(-180, east - 360)] if east > 180 else []
    boxes = [f"{south},{begin},{north},{end}" for begin, end in spans]
    return [
        "aviation/api/data/metar?" + urlencode({"bbox": box, "format": "json", "taf": "true"}, safe=",")
        for box in boxes
    ]


def air_key(place: Place, days: int, *, pollen: bool) -> str:
    more = POLLEN if pollen else ()
    return _key("air/v1/air-quality", place, current=(*AIR_NOW, *more), hourly=(*AIR, *more), forecast_days=days)


def marine_key(place: Place, days: int) -> str:
    return _key("marine/v1/marine", place, current=SEA_NOW, hourly=SEA, forecast_days=days)


def flood_key(place: Place, days: int) -> str:
    return _key("flood/v1/flood", place, daily=("river_discharge", "river_discharge_max"), forecast_days=days)


def archive_key(place: Place, days: Days, *, normal: bool = False) -> str:
    span = {"start_date": days.first.isoformat(), "end_date": days.last.isoformat()}
    return _key("archive/v1/archive", place, daily=NORMAL if normal else PAST, **span)


def recent_key(place: Place, days: Days) -> str:
    """Days that the archive does not have yet, as the forecasts' models saw them."""
    span = {"start_date": days.first.isoformat(), "end_date": days.last.isoformat()}
    return _key("forecast/v1/forecast", place, daily=RECENT, **span)


def geocoding_key(name: str, language: str) -> str:
    return "geocoding/v1/search?" + urlencode({"name": name, "count": 20, "language": language, "format": "json"})


def points_key(place: Place) -> str:
    return f"nws/points/{place.point}"


def alerts_key(place: Place) -> str:
    return "nws/alerts/active?" + urlencode({"status": "actual", "point": place.point}, safe=",")


def canada_key(place: Place) -> str:
    """The alerts whose area has the point in it: a box that is a point, but for rounding."""
    west, south = place.longitude - 0.0005, place.latitude - 0.0005
    box = f"{west:.4f},{south:.4f},{west + 0.001:.4f},{south + 0.001:.4f}"
    return "canada/collections/weather-alerts/items?" + urlencode({"f": "json", "bbox": box, "limit": 500}, safe=",")


def meteoalarm_key(country: str) -> str:
    return f"meteoalarm/api/v1/warnings/feeds-{country}"


def stations_key(office: str, x: int, y: int) -> str:
    return f"nws/gridpoints/{office}/{x},{y}/stations"


def grid_key(office: str, x: int, y: int, *, hourly: bool) -> str:
    return f"nws/gridpoints/{office}/{x},{y}/forecast{'/hourly' if hourly else ''}?units=si"


def observation_key(station: str) -> str:
    return f"nws/stations/{station}/observations/latest"


def _key(path: str, place: Place, **asked: str | int | tuple[str, ...]) -> str:
    query = {"latitude": f"{place.latitude:.4f}", "longitude": f"{place.longitude:.4f}"}
    query |= {
        name: value if isinstance(value, str) else ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in asked.items()
    }
    return f"{path}?" + urlencode(query | {"timezone": "auto", "timeformat": "unixtime"}, safe=",")


def _variables(of: dict[Group, tuple[str, ...]], groups: Sequence[Group]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in of[group]))


def _model(model: Model) -> dict[str, str]:
    # With one model named, Open-Meteo leaves the names of variables as they are.
    return {} if model == "best_match" else {"models": model}
