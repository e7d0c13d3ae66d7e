"""The queries to the services, as cache keys: the same query is the same key, whoever asks.

They always ask for metric units and the place's own time: units are converted here, so that one document serves all.
Times come as seconds since the epoch, which no change of clocks makes ambiguous.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import urlencode

from mcp_weather.policy.days import Days
from mcp_weather.policy.place import Place

__all__ = [
    "CAP_SERVICES", "ENSEMBLE_MODEL", "MAX_PLACES", "NORMAL_VARIABLES", "SEA_VARIABLES", "WAVE_VARIABLES", "Group",
    "Model", "air_key", "airport_key", "airports_keys", "archive_key", "canada_alerts_key", "current_key", "daily_key",
    "ensemble_key", "geocoding_key", "hourly_key", "hourly_variables", "is_cap_index", "is_open_meteo", "marine_key",
    "meteoalarm_warnings_key", "nws_alerts_key", "nws_forecast_key", "nws_observation_key", "nws_point_key",
    "nws_stations_key", "quarter_hours_key", "recent_days_key", "river_key", "scope_of", "service_of",
]  # fmt: skip

# That the geocoder lists of one name.
MAX_PLACES = 20
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
PRESENT_VARIABLES = (
    "temperature_2m", "apparent_temperature", "relative_humidity_2m", "precipitation", "weather_code", "cloud_cover",
    "pressure_msl", "wind_speed_10m", "wind_direction_10m", "wind_gusts_10m", "is_day",
)  # fmt: skip
HOURLY_VARIABLES: dict[Group, tuple[str, ...]] = {
    "basic": ("temperature_2m", "precipitation_probability", "precipitation", "weather_code", "wind_speed_10m"),
    "wind": ("wind_speed_10m", "wind_direction_10m", "wind_gusts_10m"),
    "precipitation": ("precipitation_probability", "precipitation", "rain", "showers", "snowfall", "snow_depth"),
    "sky": ("weather_code", "cloud_cover", "visibility", "sunshine_duration", "is_day", "uv_index"),
    "comfort": ("temperature_2m", "apparent_temperature", "relative_humidity_2m", "dew_point_2m", "pressure_msl"),
    "soil": ("soil_temperature_0cm", "soil_temperature_6cm", "soil_moisture_0_to_1cm", "et0_fao_evapotranspiration"),
}
DAILY_VARIABLES: dict[Group, tuple[str, ...]] = {
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
AIR_PRESENT_VARIABLES = (
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
AIR_VARIABLES = ("european_aqi", "us_aqi", "pm2_5", "pm10", "ozone", "nitrogen_dioxide")
POLLEN_VARIABLES = ("alder_pollen", "birch_pollen", "grass_pollen", "mugwort_pollen", "olive_pollen", "ragweed_pollen")
SEA_PRESENT_VARIABLES = (
    "wave_height",
    "wave_direction",
    "wave_period",
    "swell_wave_height",
    "sea_surface_temperature",
    "ocean_current_velocity",
)
WAVE_VARIABLES = (
    "wave_height",
    "wave_direction",
    "wave_period",
    "wind_wave_height",
    "swell_wave_height",
    "swell_wave_period",
)
SEA_VARIABLES = (*WAVE_VARIABLES, "sea_surface_temperature", "sea_level_height_msl")
PAST_VARIABLES = (
    "weather_code",
    "temperature_2m_mean",
    "temperature_2m_max",
    "temperature_2m_min",
    "precipitation_sum",
    "wind_speed_10m_max",
)
RECENT_VARIABLES = (
    "weather_code", "temperature_2m_max", "temperature_2m_min", "precipitation_sum", "wind_speed_10m_max",
)  # fmt: skip
NORMAL_VARIABLES = (
    "temperature_2m_mean", "temperature_2m_max", "temperature_2m_min", "precipitation_sum", "wind_speed_10m_max",
)  # fmt: skip
RIVER_VARIABLES = ("river_discharge", "river_discharge_max")
# The hours behind the values of past days.
HOURS_OF_PAST_DAYS = ("precipitation",)
# The hours behind the values of days, which are counted here from midnight to midnight.
HOURS_OF_DAYS: dict[Group, tuple[str, ...]] = {
    "basic": ("precipitation", "precipitation_probability"),
    "wind": ("wind_gusts_10m",),
    "precipitation": ("precipitation", "rain", "showers", "snowfall"),
    "sky": ("sunshine_duration", "shortwave_radiation"),
    "comfort": (),
    "soil": ("et0_fao_evapotranspiration",),
}
# One document of each length serves all who ask for less: its last row has no amounts, which come an hour later.
HOURLY_LENGTHS = (49, 169, 384)
# The last hour of a day stands at the beginning of the next.
DAILY_LENGTHS = (8, 16)
QUARTER_HOUR_VARIABLES = ("precipitation", "rain", "snowfall", "weather_code", "wind_gusts_10m")
ENSEMBLE_VARIABLES = ("temperature_2m", "precipitation", "wind_speed_10m")
# It has 51 members and covers all the world.
ENSEMBLE_MODEL = "ecmwf_ifs025"


# Those whose answers are feeds and messages of the Common Alerting Protocol, in XML.
CAP_SERVICES = ("metservice", "wmo")
_CAP_INDEXES = ("/rss", "/rss.xml")
_AVIATION_PATH = "aviation/api/data/metar?"
_FORECAST_PATH = "forecast/v1/forecast"
_NOT_OPEN_METEO = ("nws", "canada", "meteoalarm", "aviation", *CAP_SERVICES)
_HALF_BOX_DEGREES = 0.0005
# Pictures have both; texts come from the same document, so that both say the same.
_SHARED_GROUPS: tuple[Group, ...] = ("basic", "wind")

_QueryValue = str | int | tuple[str, ...]


def is_cap_index(key: str) -> bool:
    """Return whether a key is for the list of a service's messages, and not for one of them, which never changes."""
    return key.endswith(_CAP_INDEXES)


def service_of(key: str) -> str:
    """Return the name of the service that a key is for."""
    return key.partition("/")[0]


def scope_of(key: str) -> str:
    """Return whose limits apply to a key: those of one service stop only other services of the same house."""
    if is_open_meteo(key):
        return "open-meteo"
    return service_of(key)


def is_open_meteo(key: str) -> bool:
    """Return whether a key is for one of Open-Meteo's services."""
    return service_of(key) not in _NOT_OPEN_METEO


def current_key(place: Place) -> str:
    """Return the key of the present values."""
    return _open_meteo_key(_FORECAST_PATH, place, current=PRESENT_VARIABLES)


def hourly_key(place: Place, groups: Sequence[Group], hours: int, model: Model) -> str:
    """Return the key of a document of one model that has at least the next `hours`, which are less than 384."""
    length = next(length for length in HOURLY_LENGTHS if hours < length)
    if set(groups) <= set(_SHARED_GROUPS):
        groups = _SHARED_GROUPS
    variables = hourly_variables(groups)
    return _open_meteo_key(_FORECAST_PATH, place, hourly=variables, forecast_hours=length, **_name_model(model))


def hourly_variables(groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the variables by hour of all `groups`, each once."""
    return _list_variables(HOURLY_VARIABLES, groups)


def daily_key(place: Place, groups: Sequence[Group], days: int, model: Model) -> str:
    """Return the key of a document of one model that has at least the next `days`, which are 16 at most."""
    length = next((length for length in DAILY_LENGTHS if days < length), DAILY_LENGTHS[-1])
    days_of = _list_variables(DAILY_VARIABLES, groups)
    parameters: dict[str, _QueryValue] = {"daily": days_of}
    hours_of = _list_variables(HOURS_OF_DAYS, groups)
    if hours_of:
        parameters["hourly"] = hours_of
    return _open_meteo_key(_FORECAST_PATH, place, **parameters, forecast_days=length, **_name_model(model))


def quarter_hours_key(place: Place, quarter_hours: int) -> str:
    """Return the key of the next quarters of an hour."""
    return _open_meteo_key(
        _FORECAST_PATH, place, minutely_15=QUARTER_HOUR_VARIABLES, forecast_minutely_15=quarter_hours
    )


def ensemble_key(place: Place, days: int) -> str:
    """Return the key of all members of the ensemble by hour."""
    return _open_meteo_key(
        "ensemble/v1/ensemble", place, hourly=ENSEMBLE_VARIABLES, models=ENSEMBLE_MODEL, forecast_days=days
    )


def airport_key(code: str) -> str:
    """Return the key of the reports of one airport."""
    return _AVIATION_PATH + urlencode({"ids": code, "format": "json", "taf": "true"})


def airports_keys(place: Place) -> list[str]:
    """Return the keys of the airports in a box of some hundred kilometres round a place.

    The corners of the box do not tell where in it the place is. One that goes over the date line is two.
    """
    latitude = round(place.latitude)
    longitude = round(place.longitude)
    south = max(-90, latitude - 1)
    north = min(90, latitude + 1)
    half_width = _half_box_width(latitude)
    west = longitude - half_width
    east = longitude + half_width
    boxes = [f"{south},{max(-180, west)},{north},{min(180, east)}"]
    if west < -180:
        boxes.append(f"{south},{west + 360},{north},180")
    elif east > 180:
        boxes.append(f"{south},-180,{north},{east - 360}")
    return [_AVIATION_PATH + urlencode({"bbox": box, "format": "json", "taf": "true"}, safe=",") for box in boxes]


def _half_box_width(latitude: int) -> int:
    """Return the degrees of longitude that are some hundred kilometres: more of them towards the poles."""
    if abs(latitude) < 45:
        return 1
    if abs(latitude) < 65:
        return 2
    return 5


def air_key(place: Place, days: int, *, pollen: bool) -> str:
    """Return the key of the air quality, now and by hour."""
    present = AIR_PRESENT_VARIABLES
    hourly = AIR_VARIABLES
    if pollen:
        present += POLLEN_VARIABLES
        hourly += POLLEN_VARIABLES
    return _open_meteo_key("air/v1/air-quality", place, current=present, hourly=hourly, forecast_days=days)


def marine_key(place: Place, days: int) -> str:
    """Return the key of the sea, now and by hour."""
    return _open_meteo_key(
        "marine/v1/marine", place, current=SEA_PRESENT_VARIABLES, hourly=SEA_VARIABLES, forecast_days=days
    )


def river_key(place: Place, days: int) -> str:
    """Return the key of a river's discharge by day."""
    return _open_meteo_key("flood/v1/flood", place, daily=RIVER_VARIABLES, forecast_days=days)


def archive_key(place: Place, days: Days, *, normal: bool = False) -> str:
    """Return the key of past days, with the variables of the days themselves or with those of normal values.

    The last hour of a day stands at the beginning of the next, so `days` should have one more than is shown.
    """
    variables = NORMAL_VARIABLES if normal else PAST_VARIABLES
    return _open_meteo_key("archive/v1/archive", place, daily=variables, hourly=HOURS_OF_PAST_DAYS, **_span(days))


def recent_days_key(place: Place, days: Days) -> str:
    """Return the key of days that the archive does not have yet, as the forecasts' models saw them."""
    return _open_meteo_key(_FORECAST_PATH, place, daily=RECENT_VARIABLES, hourly=HOURS_OF_PAST_DAYS, **_span(days))


def geocoding_key(name: str, language: str) -> str:
    """Return the key of the geocoder's results for a name in one language."""
    return "geocoding/v1/search?" + urlencode(
        {"name": name, "count": MAX_PLACES, "language": language, "format": "json"}
    )


def nws_point_key(place: Place) -> str:
    """Return the key of what the National Weather Service has of a point."""
    return f"nws/points/{place.coordinates}"


def nws_alerts_key(place: Place) -> str:
    """Return the key of the National Weather Service's alerts for a point."""
    return "nws/alerts/active?" + urlencode({"status": "actual", "point": place.coordinates}, safe=",")


def nws_stations_key(office: str, x: int, y: int) -> str:
    """Return the key of the stations near a cell of an office's grid."""
    return f"nws/gridpoints/{office}/{x},{y}/stations"


def nws_forecast_key(office: str, x: int, y: int, *, hourly: bool) -> str:
    """Return the key of the forecast for a cell of an office's grid, by hour or by half day."""
    path = f"nws/gridpoints/{office}/{x},{y}/forecast"
    if hourly:
        path += "/hourly"
    return path + "?units=si"


def nws_observation_key(station: str) -> str:
    """Return the key of the latest observation of a station."""
    return f"nws/stations/{station}/observations/latest"


def canada_alerts_key(place: Place) -> str:
    """Return the key of the alerts whose area has the point in it: a box that is a point, but for rounding."""
    west = place.longitude - _HALF_BOX_DEGREES
    south = place.latitude - _HALF_BOX_DEGREES
    east = west + 2 * _HALF_BOX_DEGREES
    north = south + 2 * _HALF_BOX_DEGREES
    box = f"{west:.4f},{south:.4f},{east:.4f},{north:.4f}"
    return "canada/collections/weather-alerts/items?" + urlencode({"f": "json", "bbox": box, "limit": 500}, safe=",")


def meteoalarm_warnings_key(country: str) -> str:
    """Return the key of MeteoAlarm's list of a country, by the name that it has there."""
    return f"meteoalarm/api/v1/warnings/feeds-{country}"


def _open_meteo_key(path: str, place: Place, **parameters: _QueryValue) -> str:
    query: dict[str, str | int] = {"latitude": f"{place.latitude:.4f}", "longitude": f"{place.longitude:.4f}"}
    for name, value in parameters.items():
        if isinstance(value, tuple):
            value = ",".join(value)
        query[name] = value
    query |= {"timezone": "auto", "timeformat": "unixtime"}
    return f"{path}?" + urlencode(query, safe=",")


def _list_variables(variables: Mapping[Group, tuple[str, ...]], groups: Sequence[Group]) -> tuple[str, ...]:
    """Return the variables of all `groups`, each once."""
    names: dict[str, None] = {}
    for group in groups:
        names |= dict.fromkeys(variables[group])
    return tuple(names)


def _span(days: Days) -> dict[str, str]:
    return {"start_date": days.first.isoformat(), "end_date": days.last.isoformat()}


def _name_model(model: Model) -> dict[str, str]:
    # With one model named, Open-Meteo leaves the names of variables as they are.
    if model == "best_match":
        return {}
    return {"models": model}
