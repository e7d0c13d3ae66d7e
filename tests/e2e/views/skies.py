"""The weather's upstreams on loopback, with a swing in it and, if asked, an evil alert. For weather.mjs."""

import json
import math
import sys
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).parents[2]))

from weather.upstream import BIRMINGHAM, Upstream

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202egpj.exe"


BIRMINGHAMS = ZoneInfo("America/Chicago")


# The station of the recordings measured 13.9 degrees, so the model has about as many.
MEAN_WARMTH, SWING = 15.0, 4.0
WINTER = ("Blizzard Warning", "Winter Weather Advisory")
OF_THE_HOUR_BEFORE = ("precipitation", "rain", "showers", "snowfall", "wind_gusts")


class Swing(Upstream):
    """A day's warmth and a night's cold; rain and wind that come and go. Hours, days and the present are of one sky."""

    def open_meteo(self, query: dict[str, str], path: str = "") -> dict[str, Any]:
        document = super().open_meteo(query, path)
        for step in ("hourly", "minutely_15", "current"):
            series = document.get(step, {})
            for name in set(series) - {"time", "interval"}:
                if step == "current":
                    series[name] = told(name, series["time"])
                else:
                    series[name] = [told(name, second) for second in series["time"]]
        days = document.get("daily", {})
        for name in set(days) - {"time"}:
            days[name] = [of_day(name, second) for second in days["time"]]
        return document

    def nws(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        status, found = super().nws(path, query)
        if path.startswith("/alerts") and query.get("point") == BIRMINGHAM:
            recorded = found["features"]
            found["features"] = [item for item in recorded if item["properties"]["event"] not in WINTER]
            if "evil" in sys.argv:
                first = recorded[1]["properties"]
                first.update(event=f"High Wind Warning {EVIL}", severity="Severe", areaDesc="Jefferson")
                first.update(headline=f"Winds to 90 km/h {EVIL}", description=f"{EVIL}\nStay inside.")
                found["features"].append(recorded[1])
        return status, found


def told(name: str, second: float) -> float:
    """What the service tells at a moment, of the moment itself or of the hour before it."""
    if name.startswith(OF_THE_HOUR_BEFORE):
        second -= 3600
    wave = math.sin((datetime.fromtimestamp(second, BIRMINGHAMS).hour - 9) * math.pi / 12)
    rain = math.sin(second // 3600 / 9)
    match name.split("_")[0]:
        case "weather":
            return 61 if rain > 0 else 3 if rain > -0.2 else 2 if rain > -0.8 else 0
        case "precipitation" if "probability" in name:
            return round(50 + 45 * rain)
        case "precipitation" | "rain" | "snowfall" | "showers":
            return round(max(0.0, 3 * rain), 1)
        case "wind" if "direction" in name:
            return 116
        case "wind":
            return round(18 + 8 * math.cos(second // 3600 / 7) + (12 if "gusts" in name else 0), 1)
        case "relative" | "cloud":
            return round(60 + 30 * rain)
        case "pressure":
            return 1013.2
        case _:
            # Warmest at three in the afternoon at the place that the pictures show.
            return round(MEAN_WARMTH + SWING * wave - (1.5 if "apparent" in name else 0), 1)


def of_day(name: str, midnight: float) -> float:
    """What the hours of a day come to."""
    combine: Any = max
    if name.endswith("_sum"):
        combine = sum
    elif name.endswith("_min"):
        combine = min
    bare = name.removesuffix("_sum").removesuffix("_min").removesuffix("_max")
    return round(combine(told(bare, midnight + 3600 * hour) for hour in range(24)), 1)


with Swing() as upstream:
    print(json.dumps(upstream.arguments), flush=True)
    sys.stdin.read()
    if upstream.violations:
        sys.exit("\n".join(upstream.violations))
