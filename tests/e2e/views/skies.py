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


class Swing(Upstream):
    """A day's warmth and a night's cold; rain and wind that come and go."""

    def value(self, name: str, index: int) -> float:
        wave = math.sin((index - 3) * math.pi / 12)
        match name.removeprefix("daily_").split("_")[0]:
            case "weather":
                return (2, 3, 61, 61, 3, 2, 0, 1)[index // 2 % 8]
            case "precipitation" if "probability" in name:
                return round(50 + 45 * math.sin(index / 9))
            case "precipitation" | "rain" | "snowfall" | "showers":
                return round(max(0.0, 3 * math.sin(index / 9)), 1)
            case "wind" if "direction" in name:
                return round(180 + 90 * wave)
            case "wind":
                return round(18 + 8 * math.cos(index / 7) + (12 if "gusts" in name else 0), 1)
            case "relative" | "cloud":
                return round(60 + 30 * wave)
            case "pressure":
                return 1013.2
            case _:
                if not name.startswith("daily"):
                    # Warmest at three in the afternoon at the place that the pictures show.
                    wave = math.sin((datetime.now(BIRMINGHAMS).hour + index - 9) * math.pi / 12)
                return round(8 + 7 * wave - (2.5 if "apparent" in name or "min" in name else 0), 1)

    def nws(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        status, found = super().nws(path, query)
        if "evil" in sys.argv and path.startswith("/alerts") and query.get("point") == BIRMINGHAM:
            first = found["features"][1]["properties"]
            first.update(event=f"High Wind Warning {EVIL}", severity="Severe", areaDesc="Jefferson")
            first.update(headline=f"Winds to 90 km/h {EVIL}", description=f"{EVIL}\nStay inside.")
        return status, found


with Swing() as upstream:
    print(json.dumps(upstream.arguments), flush=True)
    sys.stdin.read()
    if upstream.violations:
        sys.exit("\n".join(upstream.violations))
