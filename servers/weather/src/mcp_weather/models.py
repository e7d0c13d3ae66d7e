"""What the tools answer: numbers in columns with their units and times, where they come from, and how old they are.

A missing value is null and stays null. Every result is complete as structured content and has a text beside it that
a person can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from mcp_batteries.server.results import DataResult

__all__ = [
    "AirQuality", "Airport", "Alert", "Alerts", "Astronomy", "Forecast", "History", "Marine", "Origin", "Picture",
    "PlaceInfo", "Places", "Reading", "Table", "Weather",
]  # fmt: skip

_ROWS = 200
"""Lines of a table in a text."""

Value = float | int | str | None


def _brief(schema: dict[str, Any]) -> None:
    """Parts that many results share are told by the names they always have: whole, they are half of `tools/list`."""
    for name in schema.keys() - {"type", "required"}:
        del schema[name]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, json_schema_extra=_brief)


class PlaceInfo(_Part):
    name: str
    latitude: float
    longitude: float
    timezone: str | None = None
    elevation_m: float | None = None
    resolved: str
    """How the argument became this place."""

    def text(self) -> str:
        zone = f", {self.timezone}" if self.timezone else ""
        height = "" if self.elevation_m is None else f", {self.elevation_m:g} m above the sea"
        return f"{self.name} ({self.latitude:.4f},{self.longitude:.4f}{zone}{height}; {self.resolved})"


class Origin(_Part):
    """Where an answer comes from and what it is worth."""

    source: str
    licence: str
    fetched_at: str
    age_s: int = Field(description="Seconds since the source last confirmed it.")
    stale: bool
    reason: str | None = None

    def text(self) -> str:
        if self.stale:
            return (
                f"[STALE: {self.age_s} s old, fetched {self.fetched_at}; {self.reason}] {self.source}, {self.licence}"
            )
        return f"Source: {self.source}, {self.licence}; {self.age_s} s old."


class Reading(_Part):
    """Values of one moment; `values[i]` is `names[i]` in `units[i]`, null if unknown."""

    observed_at: str | None = None
    station: str | None = None
    names: list[str]
    units: list[str]
    values: list[Value]
    origin: Origin

    def text(self, title: str) -> str:
        shown = [
            f"{_words(name)} {_number(value)}{_unit(unit)}"
            for name, unit, value in zip(self.names, self.units, self.values, strict=True)
            if value is not None
        ]
        unknown = [_words(name) for name, value in zip(self.names, self.values, strict=True) if value is None]
        missing = f"; unknown: {', '.join(unknown)}" if unknown else ""
        at = f" {self.station}" if self.station else ""
        return (
            f"{title}{at} at {self.observed_at or 'an unknown time'}: {', '.join(shown)}{missing}\n{self.origin.text()}"
        )


class Table(_Part):
    """Series; `values[i][j]` is `names[i]` in `units[i]` at `time[j]`, null if unknown."""

    time: list[str]
    names: list[str]
    units: list[str]
    values: list[list[Value]]
    origin: Origin

    def text(self) -> str:
        head = " | ".join(
            ["time", *(f"{name}{_unit(unit, spaced=True)}" for name, unit in zip(self.names, self.units, strict=True))]
        )
        rows = [
            " | ".join([time, *(_number(column[index]) for column in self.values)])
            for index, time in enumerate(self.time[:_ROWS])
        ]
        cut = [f"[truncated: {_ROWS} of {len(self.time)} rows; ask for less at once]"] if len(self.time) > _ROWS else []
        return "\n".join([*cut, self.origin.text(), head, *rows])


class Alert(_Part):
    id: str
    event: str
    severity: str | None = None
    urgency: str | None = None
    headline: str | None = None
    area: str | None = None
    onset: str | None = None
    ends: str | None = None
    sender: str | None = None
    description: str | None = None
    instruction: str | None = None


class Alerts(DataResult):
    place: PlaceInfo
    status: Literal["alerts", "none", "not_covered", "unavailable"]
    explanation: str
    covered_by: list[str]
    not_covered_by: list[str]
    alerts: list[Alert]
    """The worst first, as many as fit."""
    total: int = 0
    next_cursor: str | None = None
    origin: Origin | None = None

    def text(self) -> str:
        return "\n".join([f"Alerts for {self.place.text()}", *self.lines()])

    def lines(self) -> list[str]:
        lines = [self.explanation]
        if self.origin:
            lines.append(self.origin.text())
        for alert in self.alerts:
            until = f" until {alert.ends}" if alert.ends else ""
            since = f" from {alert.onset}" if alert.onset else ""
            lines.append(f"- {alert.event} ({alert.severity or 'severity unknown'}){since}{until}: {alert.area or ''}")
            lines += [f"  {part}" for part in (alert.headline, alert.description, alert.instruction) if part]
        if self.next_cursor:
            lines.append(f"[more: `get_alerts` with `cursor` {self.next_cursor}]")
        return lines


class Weather(DataResult):
    place: PlaceInfo
    now: Reading | None = None
    observation: Reading | None = None
    daily: Table | None = None
    alerts: Annotated[Alerts, WithJsonSchema({"type": "object", "required": ["status", "explanation", "alerts"]})]
    """As `get_alerts` has them, whose schema tells all."""
    resources: list[str]
    notes: Sequence[str] = ()

    def text(self) -> str:
        parts = [f"Weather for {self.place.text()}", *self.notes]
        parts += [self.now.text("Now (model)")] if self.now else []
        parts += [self.observation.text("Observed at station")] if self.observation else []
        parts += [self.daily.text()] if self.daily else []
        parts += ["Alerts: " + "\n".join(self.alerts.lines())]
        more = "Air quality: `get_air_quality`; pollen there too."
        first, *others = self.resources
        also = [f"/{uri.rpartition('/')[2]}" for uri in others]
        return _sourced_once(*parts, more, f"Resources: {', '.join([first, *also])}")


class Forecast(DataResult):
    place: PlaceInfo
    step: Literal["hourly", "daily", "15-minute"]
    tables: dict[str, Table]
    """By model."""
    summary: Sequence[str] = ()
    """Sums, extremes and first occurrences of the first table."""
    notes: Sequence[str] = ()

    def text(self) -> str:
        lines = [f"{self.step.capitalize()} forecast for {self.place.text()}", *self.notes, *self.summary]
        for model, table in self.tables.items():
            lines += [f"Model {model}:" if len(self.tables) > 1 else "", table.text()]
        return _sourced_once(*filter(None, lines))


class AirQuality(DataResult):
    place: PlaceInfo
    now: Reading
    hourly: Table
    category: str | None = None
    """Of the European index now; null when the index is unknown."""
    notes: Sequence[str] = ()

    def text(self) -> str:
        category = f"European air quality index: {self.category or 'unknown'}"
        return _sourced_once(
            f"Air for {self.place.text()}", *self.notes, category, self.now.text("Now"), self.hourly.text()
        )


class Airport(DataResult):
    place: PlaceInfo
    distance_km: float | None = None
    metar: str
    taf: str | None = None
    """Both as they were issued."""
    decoded: Reading
    beside: list[str]
    notes: Sequence[str] = ()

    def text(self) -> str:
        away = "" if self.distance_km is None else f", {self.distance_km:g} km away"
        parts = [f"Airport {self.place.text()}{away}", *self.notes, f"METAR: {self.metar}"]
        parts += [f"TAF: {self.taf}"] if self.taf else []
        parts += [self.decoded.text("Decoded"), *([f"Also near: {', '.join(self.beside)}"] if self.beside else [])]
        return "\n".join(parts)


class Marine(DataResult):
    place: PlaceInfo
    now: Reading | None = None
    table: Table | None = None
    river: Table | None = None
    explanation: str
    notes: Sequence[str] = ()

    def text(self) -> str:
        parts = [f"Water for {self.place.text()}", self.explanation, *self.notes]
        parts += [self.now.text("Now")] if self.now else []
        parts += [table.text() for table in (self.table, self.river) if table]
        return _sourced_once(*parts)


class History(DataResult):
    place: PlaceInfo
    daily: Table
    normals: Table | None = None
    """Means of the same days in the years 1991 to 2020."""
    notes: Sequence[str] = ()

    def text(self) -> str:
        parts = [f"Past weather of {self.place.text()}", *self.notes, self.daily.text()]
        return _sourced_once(*parts, *([f"Normal (1991-2020):\n{self.normals.text()}"] if self.normals else []))


class Astronomy(DataResult):
    place: PlaceInfo
    date: str
    sun: Literal["rises and sets", "polar day", "polar night"]
    names: list[str]
    times: Annotated[list[str | None], WithJsonSchema({"type": "array"})]
    """`times[i]` of `names[i]`, null where that does not happen on this day."""
    day_length_s: int | None = None
    moon_phase: str
    moon_age_days: float
    source: str
    licence: str
    notes: Sequence[str] = ()

    def text(self) -> str:
        shown = [
            f"{_words(name)} {time or 'does not happen'}" for name, time in zip(self.names, self.times, strict=True)
        ]
        length = (
            ""
            if self.day_length_s is None
            else f"; day length {self.day_length_s // 3600} h {self.day_length_s % 3600 // 60} min"
        )
        return "\n".join(
            [
                f"Sky over {self.place.text()} on {self.date}: {self.sun}{length}",
                *self.notes,
                "\n".join(shown),
                f"Moon: {self.moon_phase}, {self.moon_age_days:.1f} days old. {self.source}.",
            ]
        )


class Places(DataResult):
    """`columns` name the parts of each row."""

    columns: list[str]
    rows: Annotated[list[list[Value]], WithJsonSchema({"type": "array"})]
    source: str
    licence: str | None = None
    problem: str | None = None

    def text(self) -> str:
        rows = [" | ".join(_number(cell) for cell in row) for row in self.rows]
        head = f"{len(self.rows)} places from {self.source}" + (f", {self.licence}" if self.licence else "") + "."
        problem = (
            [f"[The places file is broken, this is its last good version: {self.problem}]"] if self.problem else []
        )
        return "\n".join([*problem, head, *([" | ".join(self.columns), *rows] if rows else [])])


class Picture(DataResult):
    place: PlaceInfo
    hours: int
    series: list[str]
    origin: Origin

    def text(self) -> str:
        return f"The next {self.hours} h for {self.place.text()}: {', '.join(self.series)}.\n{self.origin.text()}"


def _sourced_once(*parts: str) -> str:
    """`parts`, one below the other, each with its source unless that is the one told last."""
    lines: list[str] = []
    told = ""
    for line in "\n".join(parts).split("\n"):
        if line.startswith("Source: "):
            if line == told:
                continue
            told = line
        lines.append(line)
    return "\n".join(lines)


def _words(name: str) -> str:
    return name.replace("pm2_5", "pm2.5").replace("_2m", "").replace("_10m", "").replace("_", " ")


def _number(value: Value) -> str:
    if value is None:
        return "-"
    return f"{value + 0.0:g}" if isinstance(value, float) else str(value)


def _unit(unit: str, *, spaced: bool = False) -> str:
    if not unit:
        return ""
    return f" [{unit}]" if spaced else (unit if unit in ("%", "°") else f" {unit}")
