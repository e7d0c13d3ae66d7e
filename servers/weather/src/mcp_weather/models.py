"""What the tools answer: numbers in columns with their units and times, where they come from, and how old they are.

A missing value is null and stays null. Every result is complete as structured content and has a text beside it that
a person can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from mcp_batteries.server.calling.results import DataResult

__all__ = [
    "AirQuality", "Airport", "Alert", "Alerts", "Astronomy", "Forecast", "History", "Marine", "Origin", "Picture",
    "PlaceInfo", "Places", "Reading", "Table", "Value", "Weather",
]  # fmt: skip

# A text has so many rows of a table.
_MAX_TEXT_ROWS = 200

# What the time of a row means, by the step.
_ROW_MEANINGS = {
    "hourly": "Rows begin at their time: amounts, chances and gusts are of the hour from then.",
    "15-minute": "Rows begin at their time: amounts and gusts are of the 15 minutes from then.",
}

Value = float | int | str | None


def _shorten_schema(schema: dict[str, Any]) -> None:
    """Leave only the names that a model always has: whole, the models in results are half of `tools/list`."""
    for name in schema.keys() - {"type", "required"}:
        del schema[name]


class _SharedModel(BaseModel):
    """A model that many results contain."""

    model_config = ConfigDict(frozen=True, json_schema_extra=_shorten_schema)


class PlaceInfo(_SharedModel):
    """A place as results show it.

    Attributes:
        resolved: how the argument became this place.
    """

    name: str
    latitude: float
    longitude: float
    timezone: str | None = None
    elevation_m: float | None = None
    resolved: str

    def text(self) -> str:
        details = f"{self.latitude:.4f},{self.longitude:.4f}"
        if self.timezone:
            details += f", {self.timezone}"
        if self.elevation_m is not None:
            details += f", {self.elevation_m:g} m above the sea"
        return f"{self.name} ({details}; {self.resolved})"


class Origin(_SharedModel):
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


class Reading(_SharedModel):
    """Values of one moment; `values[i]` is `names[i]` in `units[i]`, null if unknown.

    Attributes:
        distance_km: from the place to the station.
        periods: the time that amounts and gusts are of, by their names.
    """

    observed_at: str | None = None
    station: str | None = None
    distance_km: float | None = None
    names: list[str]
    units: list[str]
    values: list[Value]
    periods: dict[str, str] | None = None
    origin: Origin

    def text(self, title: str) -> str:
        amounts: list[str] = []
        unknown_names: list[str] = []
        for name, unit, value in zip(self.names, self.units, self.values, strict=True):
            if value is None:
                unknown_names.append(_format_name(name))
            else:
                amount = f"{_format_name(name)} {_format_value(value)}{_unit_suffix(unit)}"
                if self.periods and name in self.periods:
                    amount += f" {self.periods[name]}"
                amounts.append(amount)
        line = title
        if self.station:
            line += f" {self.station}"
        if self.distance_km is not None:
            line += f", {self.distance_km:g} km away,"
        line += f" at {self.observed_at or 'an unknown time'}: {', '.join(amounts) or 'nothing'}"
        if unknown_names:
            line += f"; unknown: {', '.join(unknown_names)}"
        return f"{line}\n{self.origin.text()}"


class Table(_SharedModel):
    """Series; `values[i][j]` is `names[i]` in `units[i]` at `time[j]`, null if unknown."""

    time: list[str]
    names: list[str]
    units: list[str]
    values: list[list[Value]]
    origin: Origin

    def text(self) -> str:
        lines: list[str] = []
        if len(self.time) > _MAX_TEXT_ROWS:
            lines.append(f"[truncated: {_MAX_TEXT_ROWS} of {len(self.time)} rows; ask for less at once]")
        lines.append(self.origin.text())
        lines.append(" | ".join(["time", *map(_column_title, self.names, self.units)]))
        for row, time in enumerate(self.time[:_MAX_TEXT_ROWS]):
            cells = [_format_value(column[row]) for column in self.values]
            lines.append(" | ".join([time, *cells]))
        return "\n".join(lines)


class Alert(_SharedModel):
    """A warning, in the terms of the Common Alerting Protocol."""

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
    """What the services say of the dangers at a place.

    Attributes:
        alerts: the worst first, as many as fit.
    """

    place: PlaceInfo
    status: Literal["alerts", "none", "not_covered", "unavailable"]
    explanation: str
    covered_by: list[str]
    not_covered_by: list[str]
    alerts: list[Alert]
    total: int = 0
    next_cursor: str | None = None
    origin: Origin | None = None

    def text(self) -> str:
        return "\n".join([f"Alerts for {self.place.text()}", *self.lines()])

    def lines(self) -> list[str]:
        """Return the text without the place."""
        lines = [self.explanation]
        if self.origin:
            lines.append(self.origin.text())
        for alert in self.alerts:
            lines += _alert_lines(alert)
        if self.next_cursor:
            lines.append(f"[more: `get_alerts` with `cursor` {self.next_cursor}]")
        return lines


def _alert_lines(alert: Alert) -> list[str]:
    line = f"- {alert.event} ({alert.severity or 'severity unknown'})"
    if alert.onset:
        line += f" from {alert.onset}"
    if alert.ends:
        line += f" until {alert.ends}"
    lines = [f"{line}: {alert.area or ''}"]
    lines.extend(f"  {text}" for text in (alert.headline, alert.description, alert.instruction) if text)
    return lines


class Weather(DataResult):
    """The weather of a place at a glance.

    Attributes:
        alerts: as `get_alerts` has them, whose schema tells all.
        resources: the URIs that can be subscribed to.
    """

    place: PlaceInfo
    now: Reading | None = None
    observation: Reading | None = None
    daily: Table | None = None
    alerts: Annotated[Alerts, WithJsonSchema({"type": "object", "required": ["status", "explanation", "alerts"]})]
    resources: list[str]
    notes: Sequence[str] = ()

    def text(self) -> str:
        sections = [f"Weather for {self.place.text()}", *self.notes]
        if self.now:
            sections.append(self.now.text("Now (model)"))
        if self.observation:
            sections.append(self.observation.text("Observed at station"))
        if self.daily:
            sections.append(self.daily.text())
        sections.append("Alerts: " + "\n".join(self.alerts.lines()))
        sections.append("Air quality: `get_air_quality`; pollen there too.")
        first_uri, *other_uris = self.resources
        kinds = [f"/{uri.rpartition('/')[2]}" for uri in other_uris]
        sections.append(f"Resources: {', '.join([first_uri, *kinds])}")
        return _join_sections(sections)


class Forecast(DataResult):
    """A forecast.

    Attributes:
        tables: by model.
        summary: sums, extremes and first occurrences of the first table.
    """

    place: PlaceInfo
    step: Literal["hourly", "daily", "15-minute"]
    tables: dict[str, Table]
    summary: Sequence[str] = ()
    notes: Sequence[str] = ()

    def text(self) -> str:
        sections = [f"{self.step.capitalize()} forecast for {self.place.text()}", *self.notes, *self.summary]
        if self.step in _ROW_MEANINGS:
            sections.append(_ROW_MEANINGS[self.step])
        for model, table in self.tables.items():
            if len(self.tables) > 1:
                sections.append(f"Model {model}:")
            sections.append(table.text())
        return _join_sections(sections)


class AirQuality(DataResult):
    """Air quality, now and by hour.

    Attributes:
        category: of the European index now; null when the index is unknown.
    """

    place: PlaceInfo
    now: Reading
    hourly: Table
    category: str | None = None
    notes: Sequence[str] = ()

    def text(self) -> str:
        return _join_sections(
            [
                f"Air for {self.place.text()}",
                *self.notes,
                f"European air quality index: {self.category or 'unknown'}",
                self.now.text("Now"),
                self.hourly.text(),
            ]
        )


class Airport(DataResult):
    """What an airport reports.

    Attributes:
        metar: the report as it was issued.
        taf: the forecast as it was issued.
        beside: other airports near the place, with their distances.
    """

    place: PlaceInfo
    distance_km: float | None = None
    metar: str
    taf: str | None = None
    decoded: Reading
    beside: list[str]
    notes: Sequence[str] = ()

    def text(self) -> str:
        title = f"Airport {self.place.text()}"
        if self.distance_km is not None:
            title += f", {self.distance_km:g} km away"
        lines = [title, *self.notes, f"METAR: {self.metar}"]
        if self.taf:
            lines.append(f"TAF: {self.taf}")
        lines.append(self.decoded.text("Decoded"))
        if self.beside:
            lines.append(f"Also near: {', '.join(self.beside)}")
        return "\n".join(lines)


class Marine(DataResult):
    """The sea, now and by hour, and a river by day."""

    place: PlaceInfo
    now: Reading | None = None
    table: Table | None = None
    river: Table | None = None
    explanation: str
    notes: Sequence[str] = ()

    def text(self) -> str:
        sections = [f"Water for {self.place.text()}", self.explanation, *self.notes]
        if self.now:
            sections.append(self.now.text("Now"))
        if self.table:
            sections.append(self.table.text())
        if self.river:
            sections.append(self.river.text())
        return _join_sections(sections)


class History(DataResult):
    """Past weather.

    Attributes:
        normals: means of the same days in the years 1991 to 2020.
    """

    place: PlaceInfo
    daily: Table
    normals: Table | None = None
    notes: Sequence[str] = ()

    def text(self) -> str:
        sections = [f"Past weather of {self.place.text()}", *self.notes, self.daily.text()]
        if self.normals:
            sections.append(f"Normal (1991-2020):\n{self.normals.text()}")
        return _join_sections(sections)


class Astronomy(DataResult):
    """Sun and moon on a day.

    Attributes:
        times: `times[i]` of `names[i]`, null where that does not happen on this day.
    """

    place: PlaceInfo
    date: str
    sun: Literal["rises and sets", "polar day", "polar night"]
    names: list[str]
    times: Annotated[list[str | None], WithJsonSchema({"type": "array"})]
    day_length_s: int | None = None
    moon_phase: str
    moon_age_days: float
    source: str
    licence: str
    notes: Sequence[str] = ()

    def text(self) -> str:
        title = f"Sky over {self.place.text()} on {self.date}: {self.sun}"
        if self.day_length_s is not None:
            title += f"; day length {self.day_length_s // 3600} h {self.day_length_s % 3600 // 60} min"
        lines = [title, *self.notes]
        for name, time in zip(self.names, self.times, strict=True):
            lines.append(f"{_format_name(name)} {time or 'does not happen'}")
        lines.append(f"Moon: {self.moon_phase}, {self.moon_age_days:.1f} days old. {self.source}.")
        return "\n".join(lines)


class Places(DataResult):
    """`columns` name the parts of each row."""

    columns: list[str]
    rows: Annotated[list[list[Value]], WithJsonSchema({"type": "array"})]
    source: str
    licence: str | None = None
    problem: str | None = None

    def text(self) -> str:
        lines: list[str] = []
        if self.problem:
            lines.append(f"[The places file is broken, this is its last good version: {self.problem}]")
        title = f"{len(self.rows)} places from {self.source}"
        if self.licence:
            title += f", {self.licence}"
        lines.append(f"{title}.")
        if self.rows:
            lines.append(" | ".join(self.columns))
        lines.extend(" | ".join(map(_format_value, row)) for row in self.rows)
        return "\n".join(lines)


class Picture(DataResult):
    """What a picture of a forecast shows."""

    place: PlaceInfo
    hours: int
    series: list[str]
    origin: Origin

    def text(self) -> str:
        return f"The next {self.hours} h for {self.place.text()}: {', '.join(self.series)}.\n{self.origin.text()}"


def _join_sections(sections: Sequence[str]) -> str:
    """Return the sections one below the other; a source is left out if it is the one that was named last."""
    lines: list[str] = []
    last_source = ""
    for line in "\n".join(sections).split("\n"):
        if line.startswith("Source: "):
            if line == last_source:
                continue
            last_source = line
        lines.append(line)
    return "\n".join(lines)


def _format_name(name: str) -> str:
    return name.replace("pm2_5", "pm2.5").replace("_2m", "").replace("_10m", "").replace("_", " ")


def _format_value(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value + 0.0:g}"  # Minus zero becomes zero.
    return str(value)


def _column_title(name: str, unit: str) -> str:
    if not unit:
        return name
    return f"{name} [{unit}]"


def _unit_suffix(unit: str) -> str:
    """Return what stands behind a number for its unit."""
    if not unit or unit in ("%", "°"):
        return unit
    return f" {unit}"
