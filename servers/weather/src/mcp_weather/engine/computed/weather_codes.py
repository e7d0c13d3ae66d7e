"""WMO weather interpretation codes (WMO 4677, as Open-Meteo uses them) in words."""

from __future__ import annotations

__all__ = ["describe_weather"]

_WEATHER = {
    0: "clear", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "rime fog", 51: "light drizzle",
    53: "drizzle", 55: "dense drizzle", 56: "light freezing drizzle", 57: "dense freezing drizzle", 61: "light rain",
    63: "rain", 65: "heavy rain", 66: "light freezing rain", 67: "heavy freezing rain", 71: "light snow", 73: "snow",
    75: "heavy snow", 77: "snow grains", 80: "light showers", 81: "showers", 82: "violent showers",
    85: "light snow showers", 86: "heavy snow showers", 95: "thunderstorm", 96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}  # fmt: skip


def describe_weather(code: float) -> str:
    """Return a WMO weather interpretation code (WMO 4677, as Open-Meteo uses it) in words."""
    return _WEATHER.get(int(code), f"code {int(code)}")
