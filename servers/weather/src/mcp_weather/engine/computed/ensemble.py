"""How certain a forecast is: what nine in ten members of an ensemble of forecasts say, hour by hour."""

from __future__ import annotations

from mcp_weather.models import Table, Value

__all__ = ["compute_percentiles", "count_fewest_members"]

# By the suffix that a column of the percentile gets.
_PERCENTILES = {"p10": 10, "median": 50, "p90": 90}
_MIN_MEMBERS = 5


def compute_percentiles(members: Table) -> Table:
    """Return the 10th, 50th and 90th percentile of each variable over its members; null where few members know.

    Args:
        members: one column for each member, called after its variable: `temperature_2m_member07`.
    """
    names: list[str] = []
    units: list[str] = []
    values: list[list[Value]] = []
    for variable, columns in _group_columns(members.names).items():
        sorted_by_hour = [_sort_known(members, columns, hour) for hour in range(len(members.time))]
        for suffix, percent in _PERCENTILES.items():
            names.append(f"{variable}_{suffix}")
            units.append(members.units[columns[0]])
            values.append([_percentile(hour_values, percent) for hour_values in sorted_by_hour])
    return members.model_copy(update={"names": names, "units": units, "values": values})


def count_fewest_members(members: Table, first_hour: str, last_hour: str) -> tuple[int, int]:
    """Return how many members at least know a variable in hours of which a percentile is told, and how many there are.

    The hours are as in the table, the first and the last one included.
    """
    counts: list[int] = []
    most = 0
    hours = [hour for hour, time in enumerate(members.time) if first_hour <= time <= last_hour]
    for columns in _group_columns(members.names).values():
        most = max(most, len(columns))
        counts += [len(_sort_known(members, columns, hour)) for hour in hours]
    return min((count for count in counts if count >= _MIN_MEMBERS), default=most), most


def _group_columns(names: list[str]) -> dict[str, list[int]]:
    """Return the indexes of the columns of each variable."""
    columns: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        variable = name.partition("_member")[0]
        columns.setdefault(variable, []).append(index)
    return columns


def _sort_known(members: Table, columns: list[int], hour: int) -> list[float]:
    """Return what the members say of one hour, ascending."""
    numbers: list[float] = []
    for column in columns:
        value = members.values[column][hour]
        if isinstance(value, int | float):
            numbers.append(value)
    return sorted(numbers)


def _percentile(ascending: list[float], percent: int) -> float | None:
    """Return the percentile, interpolated between the two nearest members."""
    if len(ascending) < _MIN_MEMBERS:
        return None
    position = (len(ascending) - 1) * percent / 100
    lower = int(position)
    upper = min(lower + 1, len(ascending) - 1)
    interpolated = ascending[lower] + (ascending[upper] - ascending[lower]) * (position - lower)
    return round(interpolated, 2) + 0.0  # Minus zero becomes zero.
