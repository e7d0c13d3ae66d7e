"""Waves and currents of the sea, and the discharge of a river."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from mcp_batteries.errors import Problem
from mcp_batteries.remote import Snapshot
from mcp_weather.engine.computed.tides import describe_tides
from mcp_weather.engine.computed.timestamps import zone_of
from mcp_weather.engine.engine import Engine
from mcp_weather.engine.gather import attempt, gather
from mcp_weather.engine.requests import queries
from mcp_weather.engine.services.open_meteo import days_covering
from mcp_weather.engine.services.open_meteo_documents import OPEN_METEO, has_values, read_present
from mcp_weather.engine.services.source import origin_of
from mcp_weather.models import Marine, Reading, Table, Value
from mcp_weather.policy.place import DIRECTIONS, Place
from mcp_weather.policy.units import Units

__all__ = ["fetch_marine"]

# The sea is looked for at these distances, in all directions.
_COAST_KM = (15, 40)
_RIVER_DAYS = 30


@dataclass
class _SeaSearch:
    """What the search for the sea near a place found.

    Attributes:
        snapshot: of the sea, or of the place itself if there is none.
        has_waves: whether the snapshot knows any.
        is_sea: whether it knows anything: in harbours the models have the temperature of the water alone.
        notes: say where the sea is if it is not at the place.
        problems: why points near the place could not be asked.
    """

    snapshot: Snapshot
    has_waves: bool
    is_sea: bool
    notes: list[str] = field(default_factory=list[str])
    problems: list[Problem] = field(default_factory=list[Problem])

    def take_waves_of(self, snapshot: Snapshot, location: str) -> None:
        """Take a sea that lies apart from the place, which has none, or none with waves."""
        lacking = "waves" if self.is_sea else "sea"
        self.notes.append(f"[No {lacking} at the place itself: this is {location}.]")
        self.snapshot = snapshot
        self.has_waves = True
        self.is_sea = True


async def fetch_marine(engine: Engine, place: Place, units: Units, hours: int, *, river: bool) -> Marine:
    """Return waves and currents at the place, else at the nearest sea within `_COAST_KM`.

    Args:
        river: also return the discharge of a river; then the sea is not looked for elsewhere.
    """
    days = days_covering(hours)
    snapshot = await engine.cache.get(queries.marine_key(place, days))
    zone = zone_of(snapshot.json())
    is_sea = has_values(snapshot.json(), "hourly", queries.SEA_VARIABLES)
    search = _SeaSearch(snapshot, _has_waves(snapshot), is_sea)
    if not search.has_waves and not river:
        await _search_coast(engine, place, days, search)
    notes = search.notes
    waves = None
    if search.is_sea:
        waves = _note_problem(notes, "The sea by hour", await _attempt_waves(engine, search, hours, units))
    tides = None if waves is None else describe_tides(waves)
    if tides:
        notes.append(tides)
    discharge = None
    if river:
        discharge = _note_problem(notes, "The river's discharge", await _attempt_discharge(engine, place, units))
    return Marine(
        place=place.to_info(str(zone)),
        now=_read_present(search, units),
        table=waves,
        river=discharge,
        notes=notes,
        explanation=_explain(search),
    )


def _has_waves(snapshot: Snapshot) -> bool:
    return has_values(snapshot.json(), "hourly", queries.WAVE_VARIABLES)


async def _search_coast(engine: Engine, place: Place, days: int, search: _SeaSearch) -> None:
    """Look for a sea with waves around a place, near it first."""
    for km in _COAST_KM:
        points = {direction: place.move(km, direction) for direction in DIRECTIONS}
        answers = await gather(
            *(partial(attempt, partial(engine.cache.get, queries.marine_key(point, days))) for point in points.values())
        )
        for (direction, point), answer in zip(points.items(), answers, strict=True):
            if isinstance(answer, Problem):
                search.problems.append(answer)
            elif not search.has_waves and _has_waves(answer):
                search.take_waves_of(answer, f"{km} km to the {direction}, at {point.coordinates}")
        if search.has_waves:
            return


async def _attempt_waves(engine: Engine, search: _SeaSearch, hours: int, units: Units) -> Table | Problem:
    async def read_waves() -> Table:
        table = engine.open_meteo.read_rows_to_come(search.snapshot, "hourly", hours, units)
        if search.has_waves:
            return table
        columns = [_forget_waves(name, values) for name, values in zip(table.names, table.values, strict=True)]
        return table.model_copy(update={"values": columns})

    return await attempt(read_waves)


def _forget_waves(name: str, values: Sequence[Value]) -> list[Value]:
    """Return the values of a variable where there are no waves: some models call them zero, which a calm sea is."""
    if name in queries.WAVE_VARIABLES:
        return [None] * len(values)
    return list(values)


async def _attempt_discharge(engine: Engine, place: Place, units: Units) -> Table | Problem:
    async def fetch_discharge() -> Table:
        snapshot = await engine.cache.get(queries.river_key(place, _RIVER_DAYS))
        return engine.open_meteo.read_days_to_come(snapshot, units)

    return await attempt(fetch_discharge)


def _note_problem(notes: list[str], subject: str, answer: Table | Problem) -> Table | None:
    """Return the table; if there is none, add a note that says why."""
    if isinstance(answer, Problem):
        notes.append(f"[{subject} is missing: {answer}]")
        return None
    return answer


def _read_present(search: _SeaSearch, units: Units) -> Reading | None:
    """Return the present values of the sea; None if none of them is known."""
    reading = read_present(search.snapshot.json(), units, origin_of(search.snapshot, OPEN_METEO))
    if not search.has_waves:
        values = [_forget_waves(name, [value])[0] for name, value in zip(reading.names, reading.values, strict=True)]
        reading = reading.model_copy(update={"values": values})
    if not search.is_sea or all(value is None for value in reading.values):
        return None
    return reading


def _explain(search: _SeaSearch) -> str:
    """Say whether there is a sea, or that it is not known because points near the place could not be asked."""
    if search.has_waves:
        return "Waves and currents."
    if search.is_sea:
        return "The models have no waves here. Pass coordinates off the coast."
    if not search.problems:
        return "No sea here: the models have no water at this point. Pass coordinates off the coast."
    asked_points = len(_COAST_KM) * len(DIRECTIONS)
    share = f"{len(search.problems)} of {asked_points} points can't be asked: {search.problems[0]}"
    return f"No sea at the point itself; whether there is some near is not known, {share}"
