"""All upstreams on one loopback port: each request judged by their own descriptions, answers replayed, faults injected.

Open-Meteo's answers are computed in its shape from `shift`, so that a test changes the weather by setting it; those of
the National Weather Service are its own recordings, their relative times made real.
"""

import json
import re
import threading
import time
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

from jsonschema import Draft202012Validator

MATERIAL = Path(__file__).parent / "material"
OPEN_METEO = json.loads((MATERIAL / "open-meteo.json").read_text("utf-8"))["paths"]
NWS = json.loads((MATERIAL / "nws.json").read_text("utf-8"))["paths"]
GEOCODER = [
    {"name": "name", "in": "query", "required": True, "schema": {"type": "string", "minLength": 2}},
    {"name": "count", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 100}},
    {"name": "language", "in": "query", "schema": {"type": "string", "pattern": "^[a-z]{2}$"}},
    {"name": "format", "in": "query", "schema": {"enum": ["json", "protobuf"]}},
    {"name": "countryCode", "in": "query", "schema": {"type": "string", "pattern": "^[A-Z]{2}$"}},
]
GEOMET = [
    {"name": "f", "in": "query", "required": True, "schema": {"enum": ["json"]}},
    {
        "name": "bbox",
        "in": "query",
        "required": True,
        "schema": {"type": "string", "pattern": r"^(-?\d+(\.\d+)?,?){4}$"},
    },
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 10000}},
    {"name": "offset", "in": "query", "schema": {"type": "integer", "minimum": 0}},
    {"name": "lang", "in": "query", "schema": {"enum": ["en", "fr"]}},
]
# As their pages describe them: the description at hand is older than these.
_WHERE = [
    {"name": name, "in": "query", "required": True, "schema": {"type": "string"}} for name in ("latitude", "longitude")
]
_TIMES = [
    {"name": "timezone", "in": "query", "schema": {"type": "string"}},
    {"name": "timeformat", "in": "query", "schema": {"enum": ["iso8601", "unixtime"]}},
    {"name": "forecast_days", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 35}},
]
_UNSURE = ["temperature_2m", "precipitation", "wind_speed_10m", "wind_gusts_10m", "cloud_cover", "snowfall"]
OPEN_METEO["/v1/ensemble"] = [
    *_WHERE,
    *_TIMES,
    {"name": "hourly", "in": "query", "schema": {"type": "array", "items": {"enum": _UNSURE}}},
    {
        "name": "models",
        "in": "query",
        "required": True,
        "schema": {"type": "array", "items": {"enum": ["icon_seamless", "gfs_seamless", "ecmwf_ifs025"]}},
    },
]
OPEN_METEO["/v1/forecast"].append(
    {"name": "forecast_minutely_15", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1536}}
)
AVIATION = [
    {"name": "ids", "in": "query", "schema": {"type": "string", "pattern": "^[A-Z0-9]{4}(,[A-Z0-9]{4})*$"}},
    {"name": "bbox", "in": "query", "schema": {"type": "string", "pattern": r"^(-?\d+(\.\d+)?,){3}-?\d+(\.\d+)?$"}},
    {"name": "format", "in": "query", "required": True, "schema": {"enum": ["raw", "json", "geojson", "xml", "html"]}},
    {"name": "taf", "in": "query", "schema": {"enum": ["true", "false"]}},
]
AIRPORTS = [
    ("LSZH", "Zurich-Kloten, ZH, CH", 47.48, 8.536, "LSZH 221450Z 24008KT 9999 FEW030 M01/M03 Q1018 NOSIG", "VFR"),
    ("LSMD", "Dubendorf AB, ZH, CH", 47.4, 8.65, "LSMD 221450Z VRB02KT 9999 SCT040 01/M02 Q1018", "VFR"),
    ("KBHM", "Birmingham Intl, AL, US", 33.564, -86.754, "KBHM 221453Z 18010G20KT 10SM BKN250 21/09 A3024", "VFR"),
]
# Their polygons are pairs of latitude and longitude.
WELLINGTON_REGION = "-41.7,174.5 -41,174.5 -41,175.5 -41.7,175.5 -41.7,174.5"
NORTHLAND = "-36,173 -35,173 -35,174.6 -36,174.6 -36,173"
CAP_PREFIX = 'xmlns:cap="urn:oasis:names:tc:emergency:cap:1.2"'
CAP_LINKS = (
    "https://severeweather.wmo.int/v2/cap-alerts/{folder}/{identifier}.xml",
    "https://alerts.metservice.com/cap/alert?id={identifier}",
)
SERVICES = ("forecast", "geocoding", "air-quality", "marine", "archive", "flood", "ensemble")
MEMBERS = 51
BIRMINGHAM = "33.521,-86.812"
METEOALARM = json.loads((MATERIAL / "meteoalarm/countries.json").read_text("utf-8"))
UNITS = {
    "temperature": "°C", "dew_point": "°C", "apparent_temperature": "°C", "soil_temperature": "°C",
    "sea_surface_temperature": "°C", "precipitation_probability": "%", "relative_humidity": "%", "cloud_cover": "%",
    "precipitation_hours": "h", "precipitation": "mm", "rain": "mm", "showers": "mm", "snowfall": "cm",
    "snow_depth": "m", "weather_code": "wmo code", "wind_direction": "°", "wave_direction": "°",
    "wind_speed": "km/h", "wind_gusts": "km/h", "pressure": "hPa", "visibility": "m", "wave_height": "m",
    "sea_level_height_msl": "m", "swell_wave_height": "m", "swell_wave_period": "s", "wind_wave_height": "m",
    "wave_period": "s",
    "ocean_current_velocity": "km/h", "pm": "μg/m³", "ozone": "μg/m³", "nitrogen": "μg/m³", "sulphur": "μg/m³",
    "carbon": "μg/m³", "european_aqi": "EAQI", "us_aqi": "USAQI", "river_discharge": "m³/s",
}  # fmt: skip


def place(name: str, latitude: float, longitude: float, zone: str, people: int | None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": round((latitude + 90) * 1e5) * 10**8 + round((longitude + 180) * 1e5),
        "name": name,
        "latitude": latitude,
        "longitude": longitude,
        "timezone": zone,
        **more,
    }
    return found if people is None else {**found, "population": people}


_NL = {"country": "Netherlands", "country_code": "NL"}
_CA = {"country": "Canada", "country_code": "CA"}
_US = {"country": "United States", "country_code": "US"}
_CH = {"country": "Switzerland", "country_code": "CH"}
_FR = {"country": "France", "country_code": "FR"}
_GB = {"country": "United Kingdom", "country_code": "GB"}
_DE = {"country": "Germany", "country_code": "DE"}
_CN = {"country": "China", "country_code": "CN"}
GAZETTEER = [
    place("Zürich", 47.36667, 8.55, "Europe/Zurich", 341730, admin1="Zurich", elevation=408.0, **_CH),
    place("Paris", 48.85341, 2.3488, "Europe/Paris", 2138551, admin1="Île-de-France", **_FR),
    place("Paris", 33.66094, -95.55551, "America/Chicago", 24171, admin1="Texas", **_US),
    place("Springfield", 37.21533, -93.29824, "America/Chicago", 166810, admin1="Missouri", **_US),
    place("Springfield", 39.80172, -89.64371, "America/Chicago", 116565, admin1="Illinois", **_US),
    place("Springfield", 42.10148, -72.58981, "America/New_York", 154341, admin1="Massachusetts", **_US),
    place("Birmingham", 33.521, -86.812, "America/Chicago", 212461, admin1="Alabama", **_US),
    place("Longyearbyen", 78.22334, 15.64689, "Arctic/Longyearbyen", 2060, country="Svalbard", country_code="SJ"),
    place("Somewhere", -16.8, 180.0, "Pacific/Fiji", None),
    place("Toronto", 43.70011, -79.4163, "America/Toronto", 2794356, admin1="Ontario", **_CA),
    place("Assen", 52.99667, 6.5625, "Europe/Amsterdam", 62237, admin1="Drenthe", **_NL),
    place("London", 51.50853, -0.12574, "Europe/London", 8961989, admin1="England", **_GB),
    place("London", 42.98339, -81.23304, "America/Toronto", 422324, admin1="Ontario", **_CA),
    place("Washington", 38.89511, -77.03637, "America/New_York", 689545, admin1="District of Columbia", **_US),
    place("Washington", 40.17396, -80.24617, "America/New_York", 13500, admin1="Pennsylvania", **_US),
    place("Arlington", 32.73569, -97.10807, "America/Chicago", 388125, admin1="Texas", **_US),
    place("Arlington", 38.88101, -77.10428, "America/New_York", 207627, admin1="Virginia", **_US),
    place("Berlin", 52.52437, 13.41053, "Europe/Berlin", 3426354, admin1="State of Berlin", **_DE),
    place(
        "Berlin", 44.46867, -71.18508, "America/New_York", 9367, admin1="New Hampshire", postcodes=["03570"], **_US,
    ),
    place(
        "Munich", 48.13743, 11.57549, "Europe/Berlin", 1260391, admin1="Bavaria", **_DE,
        told={"de": {"name": "München", "admin1": "Bayern", "country": "Deutschland"}},
    ),
    place(
        "São Paulo", -23.5475, -46.63611, "America/Sao_Paulo", 10021295, admin1="São Paulo", country="Brazil",
        country_code="BR", told={"pt": {"name": "São Paulo", "country": "Brasil"}},
    ),
    place(
        "Beijing", 39.9075, 116.39723, "Asia/Shanghai", 18960744, admin1="Beijing", **_CN,
        told={"zh": {"name": "北京", "admin1": "北京市", "country": "中国"}},
    ),
    place(
        "Beijing", 30.72608, 108.67483, "Asia/Shanghai", None, admin1="Chongqing", **_CN,
        told={"zh": {"name": "北京", "admin1": "重庆市", "country": "中国"}},
    ),
    place(
        "Moscow", 55.75222, 37.61556, "Europe/Moscow", 10381222, admin1="Moscow", country="Russia", country_code="RU",
        told={"ru": {"name": "Москва", "admin1": "Москва", "country": "Россия"}},
    ),
    place(
        "Warsaw", 52.22977, 21.01178, "Europe/Warsaw", 1702139, admin1="Mazovia", country="Poland", country_code="PL",
        told={"pl": {"name": "Warszawa", "admin1": "Mazowieckie", "country": "Polska"}},
    ),
    place("Wellington", -41.28664, 174.77557, "Pacific/Auckland", 381900, country="New Zealand", country_code="NZ"),
    place("Auckland", -36.84853, 174.76349, "Pacific/Auckland", 417910, country="New Zealand", country_code="NZ"),
    place("Sydney", -33.86785, 151.20732, "Australia/Sydney", 5638830, country="Australia", country_code="AU"),
    place("Warszawa", 41.05, -81.5, "America/New_York", None, admin1="Ohio", **_US),
    place(
        "Cairo", 30.06263, 31.24967, "Africa/Cairo", 9606916, admin1="Cairo", country="Egypt", country_code="EG",
        told={"ar": {"name": "القاهرة", "country": "مصر"}},
    ),
]  # fmt: skip


@dataclass
class Fault:
    """What happens instead of an answer, to the next `times` requests whose path and query contain `where`."""

    where: str
    status: int = 500
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()
    times: int = 1
    hold: threading.Event | None = None
    """Wait for it first."""
    cut: bool = False
    """Break the connection in the middle of the answer."""
    change: Callable[[dict[str, Any]], None] | None = None
    """Answer as ever, with the document changed."""


class Upstream:
    """A context manager; `arguments` point a server at it.

    Attributes:
        requests: each path and query, in order.
        violations: what was wrong with them.
        shift: added to every number Open-Meteo answers.
        alerts: whether the recorded alerts are in effect.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.violations: list[str] = []
        self.faults: list[Fault] = []
        self.agents: set[str] = set()
        self.shift = 0.0
        self.alerts = True
        self.caps: dict[str, list[dict[str, Any]]] = {
            "metservice": [
                {"identifier": "windy", "polygon": WELLINGTON_REGION}, {"identifier": "north", "polygon": NORTHLAND},
            ],
            "au-bom-en": [{"identifier": "gale", "polygon": "-34.5,150 -33,150 -33,152 -34.5,152 -34.5,150"}],
        }  # fmt: skip
        # It stands: a minute or a quarter of an hour that begins during a test would change what is answered.
        began = time.time()
        self.now: Callable[[], float] = lambda: began
        self.arrived = threading.Condition()
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                upstream.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # A client that goes away is one of the things that are tried.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self.faults:
            if fault.hold:
                fault.hold.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def arguments(self) -> list[str]:
        urls = [word for service in SERVICES for word in (f"--{service}-url", self.url)]
        urls += ["--metservice-url", self.url, "--wmo-url", self.url]
        urls += ["--aviation-url", self.url, "--meteoalarm-url", self.url, "--geomet-url", self.url]
        return [*urls, "--nws-url", self.url, "--contact", "tests@example.org"]

    def count(self, where: str) -> int:
        return sum(where in request for request in self.requests)

    def fail(self, where: str, status: int = 500, body: bytes = b"{}", **more: Any) -> Fault:
        fault = Fault(where, status, body, **more)
        self.faults.append(fault)
        return fault

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        with self.arrived:
            self.requests.append(handler.path)
            self.arrived.notify_all()
        agent = handler.headers.get("user-agent", "")
        self.agents.add(agent)
        wrong = judge(handler.path, agent)
        if wrong:
            self.violations.extend(wrong)
            send(handler, 400, json.dumps({"error": True, "reason": "; ".join(wrong)}).encode())
            return
        fault = self._take_fault(handler.path)
        if fault is not None and fault.change is None:
            _answer_instead(handler, fault)
            return
        parts = urlsplit(handler.path)
        query = dict(parse_qsl(parts.query))
        if parts.path == "/api/data/metar":
            self._answer_airports(handler, query, fault)
        elif parts.path.startswith(("/cap/", "/v2/cap-alerts/")):
            status, body = self.cap(parts.path, query)
            send(handler, status, body)
        else:
            self._answer_document(handler, parts.path, query, fault)

    def _take_fault(self, path: str) -> Fault | None:
        """Return what is to happen to a request, if anything, after any hold."""
        fault = next((item for item in self.faults if item.where in path and item.times > 0), None)
        if fault is not None:
            fault.times -= 1
            if fault.hold:
                fault.hold.wait(60)
        return fault

    def _answer_airports(self, handler: BaseHTTPRequestHandler, query: dict[str, str], fault: Fault | None) -> None:
        reports = self.airports(query)
        if fault is not None and fault.change is not None:
            fault.change({"reports": reports})
        if reports:
            send(handler, 200, json.dumps(reports).encode())
        else:
            send(handler, 204, b"")

    def _answer_document(
        self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str], fault: Fault | None
    ) -> None:
        status, document = self._find_document(path, query)
        if fault is not None and fault.change is not None:
            fault.change(document)
        body = dump(document)
        if not _is_weather_service(path):
            send(handler, status, body)
            return
        stamp = f'"{hash(body)}"'
        headers = [("etag", stamp), ("cache-control", "public, max-age=1")]
        if status == 200 and handler.headers.get("if-none-match") == stamp:
            send(handler, 304, b"", *headers)
        else:
            send(handler, status, body, *headers)

    def _find_document(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path.startswith("/v1/search"):
            return 200, self.found(query)
        if path in OPEN_METEO:
            return 200, self.open_meteo(query, path)
        if path.startswith("/api/v1/warnings/"):
            return 200, self.warnings(path)
        if path.startswith("/collections/"):
            return 200, self.canada(query)
        return self.nws(path, query)

    def found(self, query: dict[str, str]) -> dict[str, Any]:
        wanted = plain(query["name"])
        # It matches names of the language asked for, and the usual one where that language has none; and postal codes.
        told = [{**item, **item.get("told", {}).get(query.get("language", "en"), {})} for item in GAZETTEER]
        hits = [
            {key: value for key, value in item.items() if key != "told"}
            for item in told
            if plain(item["name"]).startswith(wanted) or wanted in item.get("postcodes", ())
        ]
        # No match is an answer without results.
        return {"generationtime_ms": time.perf_counter(), **({"results": hits[: int(query["count"])]} if hits else {})}

    def airports(self, query: dict[str, str]) -> list[dict[str, Any]]:
        """Reports in the Aviation Weather Center's shape; of two airports only the first has a forecast."""
        found: list[dict[str, Any]] = []
        for code, name, latitude, longitude, report, category in AIRPORTS:
            if "bbox" in query:
                south, west, north, east = map(float, query["bbox"].split(","))
                if not (south <= latitude <= north and west <= longitude <= east):
                    continue
            elif code not in query["ids"].split(","):
                continue
            variable = "VRB" in report
            item: dict[str, Any] = {
                "icaoId": code, "obsTime": int(self.now()) - 600, "reportTime": "2026-11-22T15:00:00.000Z",
                "temp": -1, "dewp": -3.0, "wdir": "VRB" if variable else 240, "wspd": 2 if variable else 8,
                "visib": "6+" if "9999" in report else "10+", "altim": 1018, "qcField": 0, "metarType": "METAR",
                "rawOb": report, "lat": latitude, "lon": longitude, "elev": 424, "name": name, "clouds": [],
                "fltCat": category,
            }  # fmt: skip
            if code != "LSMD":
                item["rawTaf"] = f"TAF {code} 221125Z 2212/2318 25008KT 9999 FEW030"
            found.append(item)
        return found

    def open_meteo(self, query: dict[str, str], path: str = "") -> dict[str, Any]:
        latitude, longitude = float(query["latitude"]), float(query["longitude"])
        near = (
            item
            for item in GAZETTEER
            if abs(item["latitude"] - latitude) < 0.1 and abs(item["longitude"] - longitude) < 0.1
        )
        zone = ZoneInfo(next(near, {"timezone": "GMT"})["timezone"])
        now = self.now()
        here = datetime.fromtimestamp(now, zone)
        offset = here.utcoffset()
        assert offset is not None
        seconds = int(offset.total_seconds())
        document: dict[str, Any] = {
            "latitude": latitude, "longitude": longitude, "generationtime_ms": time.perf_counter(),
            "utc_offset_seconds": seconds, "timezone": str(zone), "elevation": 38.0,
        }  # fmt: skip
        midnight = (int(now) + seconds) // 86400 * 86400 - seconds
        if "current" in query:
            names = query["current"].split(",")
            document["current_units"] = {
                "time": "unixtime",
                "interval": "seconds",
                **{name: unit(name) for name in names},
            }
            at = int(now) // 900 * 900
            document["current"] = {"time": at, "interval": 900, **{name: self.value(name, 0) for name in names}}
        for step, length in (("hourly", 3600), ("daily", 86400), ("minutely_15", 900)):
            if step not in query:
                continue
            begin, count = midnight, int(query.get("forecast_days", 7)) * 86400 // length
            if "forecast_hours" in query:
                begin, count = int(now) // 3600 * 3600, int(query["forecast_hours"])
            if step == "minutely_15":
                begin, count = int(now) // 900 * 900, int(query["forecast_minutely_15"])
            if "start_date" in query:
                first, last = (
                    datetime.fromisoformat(query[name]).replace(tzinfo=UTC) for name in ("start_date", "end_date")
                )
                begin, count = int(first.timestamp()) - seconds, ((last - first).days + 1) * 86400 // length
            names = query[step].split(",")
            document[f"{step}_units"] = {"time": "unixtime", **{name: unit(name) for name in names}}
            if query.get("models") == "ecmwf_ifs025" and path == "/v1/ensemble":
                names = [f"{name}_member{number:02}" if number else name for name in names for number in range(MEMBERS)]
                document[f"{step}_units"] = {"time": "unixtime", **{name: unit(name) for name in names}}
            series = {name: [self.value(name, index) for index in range(count)] for name in names}
            document[step] = {"time": [begin + index * length for index in range(count)], **series}
        return document

    def value(self, name: str, index: int) -> float:
        if "weather_code" in name:
            return 3
        member = int(name.partition("_member")[2] or 0)
        return round(10 + self.shift + index * 0.1 + member, 2)

    def cap(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        """The feeds of MetService and of the WMO's copies, and their messages."""
        if path == "/cap/rss":
            return 200, cap_index(self.cap_messages("metservice"))
        if path == "/cap/alert":
            return self.cap_message("metservice", query["id"])
        folder, _, name = path.removeprefix("/v2/cap-alerts/").partition("/")
        if name == "rss.xml":
            return 200, cap_index(self.cap_messages(folder))
        return self.cap_message(folder, name.removesuffix(".xml"))

    def cap_message(self, folder: str, identifier: str) -> tuple[int, bytes]:
        found = [message for message in self.cap_messages(folder) if message["identifier"] == identifier]
        return (200, cap_xml(found[0])) if found else (404, b"<html>Not Found</html>")

    def cap_messages(self, folder: str) -> list[dict[str, Any]]:
        """What is in force, by the name that each message has in the links of its feed."""
        if not self.alerts:
            return []
        return [{**message, "now": self.now(), "folder": folder} for message in self.caps.get(folder, ())]

    def warnings(self, path: str) -> dict[str, Any]:
        """MeteoAlarm's list for a country: that of the Netherlands is recorded, with one warning among all-clears."""
        if not path.endswith("-netherlands") or not self.alerts:
            return {"warnings": []}
        return json.loads((MATERIAL / "meteoalarm/netherlands.json").read_text("utf-8"))

    def canada(self, query: dict[str, str]) -> dict[str, Any]:
        """GeoMet's alerts, of which it sends those whose area meets the box."""
        found = json.loads((MATERIAL / "canada/alerts.json").read_text("utf-8"))
        west, south, east, north = map(float, query["bbox"].split(","))
        kept = [
            item for item in found["features"]
            if self.alerts and contains(item["geometry"]["coordinates"][0], (west + east) / 2, (south + north) / 2)
        ]  # fmt: skip
        return {**found, "features": kept, "numberMatched": len(kept), "numberReturned": len(kept)}

    def nws(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        problem = {
            "title": "Data Unavailable For Requested Point",
            "type": "https://api.weather.gov/problems/InvalidPoint",
            "status": 404,
        }
        if path.startswith("/points/"):
            return (200, recording("point", self.now())) if path == f"/points/{BIRMINGHAM}" else (404, problem)
        if path.endswith("/stations"):
            return 200, recording("stations", self.now())
        if path.endswith("/forecast/hourly"):
            return 200, recording("hourly", self.now())
        if path.endswith("/forecast"):
            return 200, recording("forecast", self.now())
        if path.startswith("/alerts"):
            found = recording("alerts", self.now())
            if query.get("point") != BIRMINGHAM or not self.alerts:
                found["features"] = []
            return 200, found
        if path.startswith("/stations/KBHM/"):
            found = recording("KBHM", self.now())
            found["properties"]["timestamp"] = datetime.fromtimestamp(self.now() - 1800, UTC).isoformat(
                timespec="seconds"
            )
            return 200, found
        return 404, {"title": "Not Found", "status": 404}


def _answer_instead(handler: BaseHTTPRequestHandler, fault: Fault) -> None:
    """Answer with a fault, or with the beginning of an answer whose connection then breaks."""
    if not fault.cut:
        send(handler, fault.status, fault.body, *fault.headers)
        return
    handler.send_response(200)
    handler.send_header("content-length", "100000")
    handler.end_headers()
    handler.wfile.write(b'{"latitude":')
    handler.close_connection = True


def _is_weather_service(path: str) -> bool:
    """Return whether a path is one of the National Weather Service, whose answers alone have tags."""
    return path not in OPEN_METEO and not path.startswith(("/v1/search", "/api/v1/warnings/", "/collections/"))


def judge(target: str, agent: str) -> list[str]:
    """What is wrong with a request, by the descriptions of those it is for."""
    parts = urlsplit(target)
    query = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    path = unquote(parts.path)
    if path in OPEN_METEO:
        return _judge(f"{path}:", OPEN_METEO[path], query, {})
    if path == "/collections/weather-alerts/items":
        return _judge(f"{path}:", GEOMET, query, {})
    if found := re.fullmatch(r"/api/v1/warnings/feeds-([a-z-]+)", path):
        known = found[1] in METEOALARM and not query
        return [] if known else [f"{path}: no such list, or one with parameters"]
    if found := re.fullmatch(r"/cap/(rss|alert)|/v2/cap-alerts/[a-z-]+/[a-z0-9./-]+\.xml", path):
        known = dict(query).keys() == ({"id"} if found[1] == "alert" else set())
        return [] if known else [f"{path}: no such feed or message"]
    if path == "/api/data/metar":
        wrong = [] if ("ids" in dict(query)) != ("bbox" in dict(query)) else [f"{path}: neither ids nor bbox, or both"]
        return wrong + _judge(f"{path}:", AVIATION, query, {})
    if path == "/v1/search":
        return _judge(f"{path}:", GEOCODER, query, {})
    for template, parameters in NWS.items():
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+?)", re.escape(template))
        if found := re.fullmatch(pattern, path):
            wrong = _judge(f"{path}:", parameters, query, found.groupdict())
            if "(" not in agent or "@" not in agent:
                wrong.append(f"{path}: no User-Agent that says who asks")
            point = found.groupdict().get("point") or dict(query).get("point")
            if point and any(
                len(number.partition(".")[2]) > 4 or (number.endswith(("0", ".")) and "." in number)
                for number in point.split(",")
            ):
                wrong.append(f"{path}: {point} has more than four decimals or trailing zeros")
            return wrong
    return [f"there is no {path}"]


def _judge(where: str, parameters: list[Any], query: list[tuple[str, str]], in_path: dict[str, str]) -> list[str]:
    known = {item["name"]: item for item in parameters}
    sent = dict(query) | in_path
    wrong = [f"{where} {name} is not a parameter" for name in sent if name not in known]
    wrong += [
        f"{where} {name} is sent twice"
        for name in {name for name, _ in query}
        if sum(name == other for other, _ in query) > 1
    ]
    for name, item in known.items():
        if name not in sent:
            # A span by dates needs both; one by days needs none, whatever the description says.
            if item.get("required") and not (name in ("start_date", "end_date") and "forecast_days" in sent):
                wrong.append(f"{where} {name} is required")
            continue
        schema = item["schema"]
        kinds = [schema, *schema.get("anyOf", []), *schema.get("oneOf", [])]
        value: Any = sent[name]
        if any(kind.get("type") == "array" for kind in kinds):
            value = value.split(",")
        elif any(kind.get("type") in ("integer", "number") for kind in kinds):
            with suppress(ValueError):
                value = float(value) if "." in value else int(value)
        wrong += [f"{where} {name}: {error.message[:200]}" for error in Draft202012Validator(schema).iter_errors(value)]
        if schema.get("format") == "date" and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", sent[name]):
            wrong.append(f"{where} {name}: {sent[name]} is no date")
    return wrong


def cap_index(messages: list[dict[str, Any]]) -> bytes:
    """A feed as MetService (without times) and the WMO (with `cap:expires`) write it."""
    items: list[str] = []
    for message in messages:
        link = message.get("link") or CAP_LINKS[message["folder"] == "metservice"].format(**message)
        expires = ""
        if message["folder"] != "metservice" and message.get("hours", 6) is not None:
            moment = datetime.fromtimestamp(message["now"] + 3600 * message.get("hours", 6), UTC)
            expires = f"<cap:expires>{moment:%a, %d %b %Y %H:%M:%S +0000}</cap:expires>"
        items.append(f"<item><title>{message['identifier']}</title><link>{escape(link)}</link>{expires}</item>")
    channel = f"<channel><title>Warnings</title>{''.join(items)}</channel>"
    return f'<?xml version="1.0"?><rss version="2.0" {CAP_PREFIX}>{channel}</rss>'.encode()


def cap_xml(message: dict[str, Any]) -> bytes:
    """A message by the specification of CAP 1.2, with one warning."""
    sent = datetime.fromtimestamp(message["now"] - 3600 * message.get("age", 1), UTC)
    expires = ""
    if message.get("hours", 6) is not None:
        ends = datetime.fromtimestamp(message["now"] + 3600 * message.get("hours", 6), UTC)
        expires = f"<expires>{_cap_time(ends)}</expires>"
    shapes = "".join(f"<{kind}>{message[kind]}</{kind}>" for kind in ("polygon", "circle") if message.get(kind))
    return f"""<?xml version="1.0" encoding="UTF-8"?><alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
<identifier>{message["identifier"]}</identifier><sender>test@example.org</sender><sent>{_cap_time(sent)}</sent>
<status>{message.get("status", "Actual")}</status><msgType>{message.get("msgType", "Alert")}</msgType>
<scope>Public</scope>
<references>{message.get("references", "")}</references>
<info><language>en-NZ</language><category>Met</category><event>{message.get("event", "Strong Wind Warning")}</event>
<urgency>Expected</urgency><severity>Severe</severity><certainty>Likely</certainty>{expires}
<headline>Wind of {message["identifier"]}</headline>
<area><areaDesc>area of {message["identifier"]}</areaDesc>{shapes}</area>
</info></alert>""".encode()


def _cap_time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def contains(ring: list[list[float]], x: float, y: float) -> bool:
    """Whether the point is in the ring, by crossings."""
    sides = zip(ring, ring[1:] + ring[:1], strict=True)
    crossed = ((y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1 for (x1, y1), (x2, y2) in sides)
    return sum(crossed) % 2 == 1


def unit(name: str) -> str:
    found = max((key for key in UNITS if name.startswith(key)), key=len, default=None)
    return UNITS[found] if found else ""


def plain(name: str) -> str:
    return "".join(
        letter for letter in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(letter)
    )


def dump(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()


def recording(name: str, now: float) -> dict[str, Any]:
    """A recording, its times told from `now`."""
    found = json.loads((MATERIAL / "nws" / f"{name}.json").read_text("utf-8"))
    return real(found, datetime.fromtimestamp(int(now), UTC))


def real(node: Any, now: datetime) -> Any:
    if isinstance(node, dict):
        return {key: real(value, now) for key, value in node.items()}
    if isinstance(node, list):
        return [real(value, now) for value in node]
    if isinstance(node, str) and node.startswith("date:"):
        return _moment(node, now)
    return node


def _moment(said: str, now: datetime) -> str:
    at = now.replace(second=0)
    if found := re.match(r"date:today (\d{2}):(\d{2}):([-+]?\d{1,2})", said):
        at = now.replace(hour=int(found[1]), minute=int(found[2]), second=0) - timedelta(hours=int(found[3]))
    elif "hour" in said.split(" ")[0]:
        at = now.replace(minute=0, second=0)
    if found := re.search(r" ([-+]\d+) (day|hour|minute|second)s?", said):
        at += timedelta(**{f"{found[2]}s": int(found[1])})
    return at.isoformat()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, *headers: tuple[str, str]) -> None:
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body)))
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)
