"""Reads what drawings of ECMA-376 say in parts of their own: charts as tables of their figures, and diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import BinaryIO

from mcp_fs.engine.documents.formats.archives import Unreadable, Zip
from mcp_fs.engine.documents.formats.markup.lines import LineBuilder, read_xml_lines
from mcp_fs.engine.documents.formats.office.office_lines import OfficeLines

__all__ = ["read_drawings"]

_CHART = re.compile(r".*/charts/chart\d*\.xml")
# Of Office since 2016: waterfalls, tree maps, histograms and the like (MS-ODRAWXML).
_EXTENDED_CHART = re.compile(r".*/charts/chartEx\d*\.xml")
_DIAGRAM = re.compile(r".*/diagrams/data\d*\.xml")
# What is on both axes of a chart, by the names of the elements.
_AXES = {"cat": "categories", "xVal": "categories", "val": "values", "yVal": "values", "bubbleSize": "sizes"}
# The same of extended charts, by their types.
_EXTENDED_AXES = {"cat": "categories", "x": "categories", "val": "values", "y": "values", "size": "values"}
_FIRST_DAY = datetime(1899, 12, 30)
_FIRST_DAY_OF_1904 = datetime(1904, 1, 1)
# What a format shows beside the value, as in `0 "days"`, and colours and languages.
_LITERALS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')
# Of all series together.
_MAX_POINTS = 200_000


def read_drawings(file: Zip, parts: Iterable[str]) -> Iterator[str]:
    """Yield the charts and diagrams among some parts of a package."""
    for part in parts:
        stream = file.member(part)
        try:
            if stream is not None and _CHART.fullmatch(f"/{part}"):
                yield from _read_chart(stream, _ChartReader())
            elif stream is not None and _EXTENDED_CHART.fullmatch(f"/{part}"):
                yield from _read_chart(stream, _ExtendedChartReader())
            elif stream is not None and _DIAGRAM.fullmatch(f"/{part}"):
                yield from _read_diagram(stream)
        except Unreadable as damage:
            yield f"[{part} {damage}]\n"


def _read_chart(stream: BinaryIO, chart: _ChartReader) -> Iterator[str]:
    for _ in read_xml_lines(stream, chart):
        pass
    yield from chart.lines()


def _read_diagram(stream: BinaryIO) -> Iterator[str]:
    texts = [line for line in "".join(read_xml_lines(stream, OfficeLines())).splitlines() if line.strip()]
    if texts:
        yield "\n".join(["[diagram]", *texts, ""])


@dataclass(slots=True)
class _Series:
    """A row of figures.

    Attributes:
        points: by what they are, `name`, `categories`, `values` or `sizes`, and by their number; categories that stand
            below others as `categories`, those above as `categories 1` and so on.
    """

    points: dict[str, dict[int, str]] = field(default_factory=dict[str, dict[int, str]])

    def row(self, kind: str) -> list[str]:
        points = self.points.get(kind, {})
        return [points.get(index, "") for index in range(max(points, default=-1) + 1)]

    @property
    def width(self) -> int:
        """How many points there are on an axis, with those that are missing."""
        return max((max(points) + 1 for points in self.points.values()), default=0)

    def category_rows(self) -> list[list[str]]:
        """Return the categories, those above others first."""
        kinds = sorted((kind for kind in self.points if kind.startswith("categories")), reverse=True)
        return [self.row(kind) for kind in kinds]


class _ChartReader(LineBuilder):
    """Takes the figures of a chart from what it keeps of the cells that it shows."""

    def __init__(self) -> None:
        super().__init__()
        self._title = ""
        self._series: list[_Series] = []
        self._kind = ""
        self._index = 0
        self._level = 0
        self._format = ""
        self._value = ""
        self._first_day = _FIRST_DAY

    def lines(self) -> Iterator[str]:
        """Yield the title, then a table: a row for each series below the categories of the one before it.

        Series for which there is no room are counted.
        """
        title = " ".join(self._title.split())
        yield f"[chart: {title}]\n" if title else "[chart]\n"
        categories: list[list[str]] = []
        remaining_points = _MAX_POINTS
        for number, series in enumerate(self._series):
            remaining_points -= series.width
            if remaining_points < 0:
                yield f"[{len(self._series) - number:,} series are not shown, the first of {series.width:,} points]\n"
                return
            if series.category_rows() != categories:
                categories = series.category_rows()
                for row in categories:
                    yield " | ".join(["", *row]) + "\n"
            name = " ".join(series.row("name"))
            yield " | ".join([name, *series.row("values")]) + "\n"
            if sizes := series.row("sizes"):
                yield " | ".join([f"{name} (sizes)", *sizes]) + "\n"

    def _is_in_text(self) -> bool:
        return self._parent() in ("t", "v", "formatCode")

    def _write(self, data: str) -> None:
        if self._parent() != "t":
            self._value += data
        elif "title" in self._path and self._path[self._path.index("title") - 1] == "chart":
            self._title += data

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "date1904":
                if attributes.get("val", "1") not in ("0", "false"):
                    self._first_day = _FIRST_DAY_OF_1904
            case "ser":
                self._series.append(_Series())
            case "tx" if parent == "ser":
                self._kind = "name"
            case "cat" | "xVal" | "val" | "yVal" | "bubbleSize":
                self._kind = _AXES[name]
                self._level = 0
                self._format = ""
            case "lvl":
                if self._level:
                    self._kind = f"categories {self._level}"
                self._level += 1
            case "pt":
                self._index = int(attributes.get("idx", "0"))
            case "v" | "formatCode":
                self._value = ""
            case _:
                pass

    def _end_element(self, name: str, parent: str) -> None:
        match name:
            case "p":
                self._title += " "
            case "formatCode":
                self._format = self._value
            case "v" if self._series and "ser" in self._path and self._kind:
                if parent != "pt":
                    self._index = 0
                self._series[-1].points.setdefault(self._kind, {})[self._index] = self._shown_value()
            case "ser" | "tx" | "cat" | "xVal" | "val" | "yVal" | "bubbleSize":
                self._kind = ""
            case _:
                pass

    def _shown_value(self) -> str:
        """Return a value as it is stored, a day as such."""
        is_day = re.search("[yd]", _LITERALS.sub("", self._format.lower())) is not None
        if not is_day or not self._kind.startswith("categories"):
            return self._value
        try:
            moment = self._first_day + timedelta(days=float(self._value))
        except (ValueError, OverflowError):
            return self._value
        return moment.isoformat(" ").removesuffix(" 00:00:00")


class _ExtendedChartReader(_ChartReader):
    """Takes the figures of an extended chart: its data stand before the series that show them."""

    def __init__(self) -> None:
        super().__init__()
        self._data: dict[str, _Series] = {}
        self._data_id = ""

    def _is_in_text(self) -> bool:
        return self._parent() in ("t", "v", "pt")

    def _write(self, data: str) -> None:
        if "title" in self._path:
            if self._path[self._path.index("title") - 1] == "chart":
                self._title += data
        else:
            self._value += data

    def _start_element(self, name: str, parent: str, attributes: Mapping[str, str]) -> None:
        match name:
            case "data":
                self._data_id = attributes.get("id", "")
                self._data[self._data_id] = _Series()
            case "strDim" | "numDim":
                self._kind = _EXTENDED_AXES.get(attributes.get("type", ""), "")
                self._level = 0
            case "lvl":
                self._format = attributes.get("formatCode", "")
                if self._level:
                    self._kind = f"categories {self._level}"
                self._level += 1
            case "pt":
                self._index = int(attributes.get("idx", "0"))
                self._value = ""
            case "v":
                self._value = ""
            case "series":
                self._series.append(_Series())
            case "dataId" if self._series:
                self._series[-1].points.update(self._data.get(attributes.get("val", ""), _Series()).points)
            case _:
                pass

    def _end_element(self, name: str, parent: str) -> None:
        match name:
            case "p":
                self._title += " "
            case "pt" if self._kind and self._data:
                self._data[self._data_id].points.setdefault(self._kind, {})[self._index] = self._shown_value()
            case "v" if self._series and "series" in self._path and "title" not in self._path:
                self._series[-1].points["name"] = {0: self._value}
            case "strDim" | "numDim":
                self._kind = ""
            case _:
                pass
