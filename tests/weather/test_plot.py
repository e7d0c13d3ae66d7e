"""The picture of a forecast, read as the drawing that it is made from."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from xml.etree import ElementTree as Xml

import pytest

from mcp_batteries.media.pictures import LONGEST_SIDE
from mcp_batteries.media.png import check_png
from mcp_weather.engine.computed import plot
from mcp_weather.models import Origin, Table, Value

UNITS = ["°C", "mm", "%", "km/h", "km/h"]
WARM = "#c2410c"
SVG = "{http://www.w3.org/2000/svg}"
ORIGIN = Origin(source="Open-Meteo", licence="CC BY 4.0", fetched_at="2026-11-22T10:00+00:00", age_s=0, stale=False)


def table(temperatures: list[Value], *, begin: datetime = datetime(2026, 11, 22, 22, tzinfo=UTC)) -> Table:
    hours = len(temperatures)
    times = [(begin + timedelta(hours=hour)).isoformat() for hour in range(hours)]
    others: list[Value] = [1.5, 40, 10, 20]
    values = [temperatures, *([value] * hours for value in others)]
    return Table(time=times, names=list(plot.SERIES), units=UNITS, values=values, origin=ORIGIN)


def drawn(found: Table, title: str = "Zürich") -> Xml.Element:
    return Xml.fromstring(plot.draw_svg(found, title))


def words(picture: Xml.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def curves(picture: Xml.Element) -> list[list[tuple[float, float]]]:
    """The points of each unbroken piece of the temperature's line."""
    found = [path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.get("stroke") == WARM]
    pieces = [piece.removeprefix("M").split("L") for piece in found]
    return [[(float(x), float(y)) for x, y in map(str.split, piece)] for piece in pieces]


def test_a_gap_is_a_gap_and_a_lone_value_is_a_dot() -> None:
    first, dot, last = curves(drawn(table([1, 2, 3, None, 4, None, None, 5, 6])))
    assert len(first) == 3 and len(last) == 2
    assert dot[0] == dot[1]
    assert first[0][1] > first[1][1] > first[2][1] > dot[0][1] > last[1][1], "warmer is higher"
    assert first[2][0] - first[1][0] == pytest.approx((last[0][0] - dot[0][0]) / 3, abs=0.1), "an hour is an hour"


def test_the_axis_counts_in_the_first_hours_offset_when_clocks_change() -> None:
    hours = [datetime(2026, 10, 25, 0, tzinfo=UTC) + timedelta(hours=hour) for hour in range(4)]
    offsets = [2, 1, 1, 1]  # As in Zürich: 02:00 comes twice.
    times = [hour.astimezone(timezone(timedelta(hours=east))) for hour, east in zip(hours, offsets, strict=True)]
    found = table([1, 2, 3, 4]).model_copy(update={"time": [time.isoformat() for time in times]})
    (line,) = curves(drawn(found))
    assert line[0][0] < line[1][0] < line[2][0] < line[3][0]
    assert {"02:00", "03:00", "04:00", "05:00"} <= set(words(drawn(found)))


@pytest.mark.parametrize("hours", [1, 2, 24, 48, 168])
def test_labels_do_not_run_into_each_other(hours: int) -> None:
    picture = drawn(table([float(hour % 7) for hour in range(hours)]))
    rows: dict[str, list[float]] = {}
    for element in picture.iter(f"{SVG}text"):
        if (element.get("text-anchor"), element.get("transform")) == ("middle", None):
            rows.setdefault(element.attrib["y"], []).append(float(element.attrib["x"]))
    assert rows
    for places in rows.values():
        assert all(after - before > 45 for before, after in pairwise(places))


@pytest.mark.parametrize("values", [[], [None], [None] * 24, [5], [5] * 24, [-60.0, 55.0], [1e-9, 2e-9]])
def test_whatever_came_there_is_a_picture(values: list[Value]) -> None:
    drawn_png = check_png(plot.draw_png(table(values), "Zürich"), LONGEST_SIDE * LONGEST_SIDE)
    assert max(drawn_png.width, drawn_png.height) <= LONGEST_SIDE and drawn_png.depth == 8 and drawn_png.is_plain


def test_a_name_is_text_whatever_it_holds() -> None:
    name = '</text><image href="file:///etc/passwd"/>\x00\x1b&amp; 北京'
    picture = drawn(table([1, 2]), name)
    assert words(picture)[0] == name.replace("\x00", " ").replace("\x1b", " ")
    assert not list(picture.iter(f"{SVG}image"))
    assert plot.draw_png(table([1, 2]), name).startswith(b"\x89PNG")


def test_letters_of_many_languages_are_drawn() -> None:
    letters = "łžéñüøșğąđΩЖӘ"
    pictures = {plot.draw_png(table([1, 2]), letter) for letter in letters}
    assert len(pictures) == len(letters), "a letter that the font lacks is a box, like any other it lacks"
