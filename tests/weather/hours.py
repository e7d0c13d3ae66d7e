"""Weather of which every quarter of an hour is known: do rows, sums, days, pictures and sources agree on it?"""

import itertools
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any
from xml.etree import ElementTree as Xml
from zoneinfo import ZoneInfo

from mcp_batteries.errors import Unavailable
from mcp_weather.engine.answers.forecasts import ForecastQuery, fetch_day, fetch_forecast, fetch_quarter_hours
from mcp_weather.engine.computed.plot import draw_svg
from mcp_weather.engine.requests import queries
from mcp_weather.engine.requests import upstream as asking
from mcp_weather.models import Forecast, Table
from mcp_weather.policy.days import WrittenDay
from mcp_weather.policy.place import Place, point_at
from proofs.tally import Tally
from weather.serving import World
from weather.upstream import MATERIAL, Upstream, unit

INTERVALS = json.loads((MATERIAL / "intervals.json").read_text("utf-8"))
QUARTER, HOUR = 900, 3600
# Zones with whole, half and quarter hours, and the days on which their clocks change, by an hour or by half of one.
ZONES = {
    "Europe/Zurich": ["2026-03-29", "2026-10-25", "2026-07-01"],
    "America/New_York": ["2026-03-08", "2026-11-01", "2026-07-01"],
    "Asia/Kolkata": ["2026-07-01"],
    "Asia/Kathmandu": ["2026-07-01"],
    "Australia/Adelaide": ["2026-04-05", "2026-10-04"],
    "Australia/Lord_Howe": ["2026-04-05", "2026-10-04"],
    "America/St_Johns": ["2026-03-08", "2026-11-01"],
    "Pacific/Chatham": ["2026-04-05", "2026-09-27"],
    "Africa/Cairo": ["2026-04-24", "2026-10-30"],
    "UTC": ["2026-07-01"],
}
# Where in the hour it is: at its edge, just after, within, just before the next.
POSITIONS = [0, 1, 600, 1799, 1800, 1801, 2700, 3598, 3599]
AMOUNTS = ("precipitation", "rain", "showers", "snowfall")
COMBINED: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": sum, "max": max, "mean": lambda values: sum(values) / len(values), "probability": max,
}  # fmt: skip
BLUE = "#1d4ed8"


class Truth(Upstream):
    """Services that all tell the same weather, each in its own way.

    Attributes:
        grid: where between two hours of the world those of the service begin, in seconds.
    """

    def __init__(self) -> None:
        super().__init__()
        self.zone = ZoneInfo("UTC")
        self.grid = 0
        self.seed = 0

    def quarter(self, name: str, begin: float) -> float:
        """What is told of the quarter of an hour that begins then."""
        roll = random.Random(f"{self.seed} {name} {begin}")
        if name == "precipitation_probability":
            # There is one for an hour, not for its parts.
            hour = (begin - self.grid) // HOUR
            return random.Random(f"{self.seed} {name} {hour}").randrange(101)
        if name in AMOUNTS:
            return roll.choice([0, 0, 0, 0, 0, 0.1, 0.4, 2])
        return roll.randrange(1, 100)

    def between(self, name: str, kind: str, begin: float, end: float) -> float:
        """What lies between two moments."""
        if kind == "Instant":
            return self.quarter(name, begin)
        quarters = [self.quarter(name, begin + part * QUARTER) for part in range(round((end - begin) / QUARTER))]
        return round(COMBINED[kind](quarters), 6)

    def told(self, name: str, step: str, moment: float) -> float:
        """What Open-Meteo tells at a moment: what lies before it, but for what is of the moment itself."""
        kind = INTERVALS[step][name].rpartition(" ")[2]
        if kind == "Instant":
            return self.between(name, kind, moment, moment)
        length = HOUR if step == "hourly" else QUARTER
        return self.between(name, kind, moment - length, moment)

    def open_meteo(self, query: dict[str, str], path: str = "") -> dict[str, Any]:
        now = self.now()
        here = datetime.fromtimestamp(now, self.zone)
        offset = here.utcoffset()
        assert offset is not None
        document: dict[str, Any] = {"timezone": str(self.zone), "utc_offset_seconds": int(offset.total_seconds())}
        midnight = datetime.combine(here.date(), time(), self.zone)
        days = [midnight + timedelta(days=count) for count in range(int(query.get("forecast_days", 7)) + 1)]
        seconds = [day.timestamp() for day in days]
        if "hourly" in query:
            begin, end = self.aligned(now), self.aligned(now) + HOUR * int(query.get("forecast_hours", 0))
            if "forecast_hours" not in query:
                begin, end = self.aligned(seconds[0] + HOUR - 1), seconds[-1]
            self.fill(document, "hourly", query, begin, end, HOUR)
        if "minutely_15" in query:
            begin = now // QUARTER * QUARTER
            count = int(query["forecast_minutely_15"])
            self.fill(document, "minutely_15", query, begin, begin + QUARTER * count, QUARTER)
        if "daily" in query:
            names = query["daily"].split(",")
            document["daily_units"] = {name: unit(name) for name in names}
            document["daily"] = {"time": seconds[:-1], **{name: [99.0] * (len(days) - 1) for name in names}}
        return document

    def aligned(self, moment: float) -> float:
        """The last beginning of an hour of the service."""
        return (moment - self.grid) // HOUR * HOUR + self.grid

    def fill(
        self, document: dict[str, Any], step: str, query: dict[str, str], begin: float, end: float, length: int
    ) -> None:
        names = query[step].split(",")
        times = [begin + length * row for row in range(round((end - begin) / length))]
        document[f"{step}_units"] = {name: unit(name) for name in names}
        document[step] = {"time": times, **{name: [self.told(name, step, at) for at in times] for name in names}}

    def nws(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path.startswith("/points/"):
            cell = {"gridId": "BMX", "gridX": 1, "gridY": 2, "timeZone": str(self.zone)}
            return 200, {"properties": cell}
        if not path.endswith("/forecast/hourly"):
            return super().nws(path, query)
        begin = self.aligned(self.now()) - HOUR
        return 200, {"properties": {"periods": [self.period(begin + HOUR * row) for row in range(50)]}}

    def period(self, begin: float) -> dict[str, Any]:
        """An hour as the Weather Service tells it: at its beginning."""
        times = [datetime.fromtimestamp(at, self.zone).isoformat() for at in (begin, begin + HOUR)]
        chance = {"unitCode": "wmoUnit:percent", "value": self.quarter("precipitation_probability", begin)}
        return {
            "startTime": times[0], "endTime": times[1], "probabilityOfPrecipitation": chance,
            "temperature": self.quarter("temperature_2m", begin), "temperatureUnit": "C",
        }  # fmt: skip


class Trial:
    """One place and moment after another."""

    def __init__(self, truth: Truth, seed: int) -> None:
        self.truth, self.random = truth, random.Random(seed)
        self.wrong: list[str] = []
        self.about = ""

    async def run(self, count: int) -> list[str]:
        """Descriptions of all that did not agree."""
        asking._RETRY_DELAY_SECONDS = 0.0  # Between two tries, for the sake of a real service.
        for number in range(count):
            await self.once(number)
            self.truth.requests.clear()
            self.truth.faults.clear()
        return self.wrong

    async def once(self, number: int) -> None:
        roll, truth = self.random, self.truth
        name = roll.choice(list(ZONES))
        truth.zone, truth.seed = ZoneInfo(name), roll.randrange(10**9)
        day = date.fromisoformat(roll.choice(ZONES[name])) - timedelta(days=roll.choice([0, 0, 1, 2]))
        hours = roll.choice([0, 1, 2, 3, 12, 22, 23])
        now = datetime.combine(day, time(), truth.zone).timestamp() + hours * HOUR + roll.choice(POSITIONS)
        offset = datetime.fromtimestamp(now, truth.zone).utcoffset()
        assert offset is not None
        # By the world's hours, or by those of the place's clocks.
        truth.grid = roll.choice([0, -int(offset.total_seconds()) % HOUR])
        self.about = f"{number}: {name} at {datetime.fromtimestamp(now, truth.zone)}, grid {truth.grid}"
        place = point_at(33.521, -86.812, timezone=name, country="US", resolved="test")
        async with World(truth, now=now) as world:
            await self.check_hours(world, place)
            await self.check_day(world, place)
            await self.check_days(world, place)
            await self.check_quarters(world, place)
            await self.check_sources(world, place)

    def expect(self, what: str, got: object, wanted: object) -> None:
        if got != wanted:
            self.wrong.append(f"{self.about}: {what} is {got}, not {wanted}")

    async def check_hours(self, world: World, place: Place) -> None:
        group = self.random.choice(list(queries.HOURLY_VARIABLES))
        span = self.random.choice([1, 2, 24, 47])
        query = ForecastQuery(place, "hourly", [group, "basic"], span, "metric")
        await fetch_forecast(world.engine, query)
        # What was fetched a while ago is shown without the hours that are over by now.
        self.truth.fail("/v1/forecast", 500, times=9)
        world.now += self.random.choice([0, 0, 1, 30, QUARTER, HOUR, 2 * HOUR + 1])
        forecast = await fetch_forecast(world.engine, query)
        self.truth.faults.clear()
        table = forecast.tables.get("best_match")
        if table is None:  # After some hours the Weather Service stands in.
            return
        first = datetime.fromisoformat(table.time[0]).timestamp()
        self.expect("the first row's distance", first <= world.now < first + HOUR, True)
        self.check_rows(table, "hourly", HOUR)
        self.check_summary(forecast, table)
        self.check_picture(table)

    def check_rows(self, table: Table, step: str, length: int) -> None:
        moments = [datetime.fromisoformat(moment).timestamp() for moment in table.time]
        steps = {later - earlier for earlier, later in itertools.pairwise(moments)}
        self.expect("steps", steps - {length}, set())
        for name, values in zip(table.names, table.values, strict=True):
            if name == "weather":
                continue
            kind = INTERVALS[step][name].rpartition(" ")[2]
            # The service has the depth of snow in metres, answers have it in centimetres.
            factor = 100 if name == "snow_depth" else 1
            wanted = [factor * self.truth.between(name, kind, moment, moment + length) for moment in moments]
            self.expect(name, [_rounded(value) for value in values], [_rounded(value) for value in wanted])

    def check_summary(self, forecast: Forecast, table: Table) -> None:
        """Sum and first hour, counted from the quarters and not from the rows."""
        said = next((line for line in forecast.summary if line.startswith("precipitation: ")), "")
        begin = datetime.fromisoformat(table.time[0]).timestamp()
        quarters = [begin + QUARTER * part for part in range(4 * len(table.time))]
        amounts = {at: self.truth.quarter("precipitation", at) for at in quarters}
        total = re.search(r"sum ([\d.]+)", said)
        self.expect("sum", float(total[1]) if total else None, _rounded(sum(amounts.values())))
        first = re.search(r"first (\S+?),", said)
        wet = [at for at, amount in amounts.items() if amount]
        wanted = None if not wet else begin + (wet[0] - begin) // HOUR * HOUR
        self.expect("first", datetime.fromisoformat(first[1]).timestamp() if first else None, wanted)

    def check_picture(self, table: Table) -> None:
        """A bar over each wet hour, between the marks of its beginning and its end."""
        picture = Xml.fromstring(draw_svg(table, "test"))
        rects = [item for item in picture.iter() if item.tag.endswith("}rect") and item.get("fill") == BLUE]
        width = (934 - 84) / len(table.time)
        drawn = [math.floor((float(item.attrib["x"]) - 84) / width) for item in rects]
        rain = table.values[table.names.index("precipitation")]
        wet = [row for row, value in enumerate(rain) if isinstance(value, int | float) and value > 0]
        self.expect("bars", drawn, wet)

    async def check_day(self, world: World, place: Place) -> None:
        word = self.random.choice(["today", "tomorrow"])
        try:
            forecast = await fetch_day(world.engine, place, ["basic"], WrittenDay(word), "metric")
        except Unavailable:
            return
        table = forecast.tables.get("best_match")
        if table is None:
            return
        today = datetime.fromtimestamp(world.now, self.truth.zone).date()
        day = today + timedelta(days=word == "tomorrow")
        begin, end = self.bounds(day)
        wanted = [at for at in self.beginnings(begin, end) if at + HOUR > world.now]
        self.expect(f"hours of {word}", [datetime.fromisoformat(moment).timestamp() for moment in table.time], wanted)
        self.check_rows(table, "hourly", HOUR)

    async def check_days(self, world: World, place: Place) -> None:
        group = self.random.choice(["basic", "precipitation"])
        forecast = await fetch_forecast(world.engine, ForecastQuery(place, "daily", [group], 3, "metric"))
        table = forecast.tables["best_match"]
        today = datetime.fromtimestamp(world.now, self.truth.zone).date()
        self.expect("days", table.time, [(today + timedelta(days=count)).isoformat() for count in range(3)])
        for name, kind in (("precipitation_sum", "sum"), ("precipitation_probability_max", "probability")):
            if name not in table.names:
                continue
            variable = name.removesuffix("_sum").removesuffix("_max")
            for day, value in zip(table.time, table.values[table.names.index(name)], strict=True):
                hours = self.beginnings(*self.bounds(date.fromisoformat(day)))
                parts = [self.truth.between(variable, kind, at, at + HOUR) for at in hours]
                self.expect(f"{name} of {day}", _rounded(value), _rounded(COMBINED[kind](parts)))

    def bounds(self, day: date) -> tuple[float, float]:
        begin = datetime.combine(day, time(), self.truth.zone)
        return begin.timestamp(), datetime.combine(day + timedelta(days=1), time(), self.truth.zone).timestamp()

    def beginnings(self, begin: float, end: float) -> list[float]:
        """The hours of the service that begin between two moments."""
        first = self.truth.aligned(begin + HOUR - 1)
        return [first + HOUR * row for row in range(math.ceil((end - first) / HOUR))]

    async def check_quarters(self, world: World, place: Place) -> None:
        forecast = await fetch_quarter_hours(world.engine, place, 6, "metric")
        self.check_rows(forecast.tables["best_match"], "minutely_15", QUARTER)

    async def check_sources(self, world: World, place: Place) -> None:
        """What both services know of an hour stands beside the same time."""
        official = (await world.engine.nws.fetch_forecast(place, "hourly", 24, "metric")).tables["nws"]
        wanted = [
            self.truth.quarter("precipitation_probability", datetime.fromisoformat(moment).timestamp())
            for moment in official.time
        ]
        self.expect("the official chance", official.values[official.names.index("precipitation_probability")], wanted)
        first = datetime.fromisoformat(official.time[0]).timestamp()
        self.expect("the official first row", first <= world.now < first + HOUR, True)


def _rounded(value: object) -> object:
    return round(value, 1) + 0.0 if isinstance(value, int | float) else value


async def prove(count: int, seed: int) -> Tally:
    """Look at so many places and moments."""
    with Truth() as truth:
        wrong = await Trial(truth, seed).run(count)
    return Tally.of({"places and moments": count}, wrong)
