"""Lists, page by page: objects reduced to columns, whole rows up to a size, and cursors that continue where it was
cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mcp_batteries.errors import Invalid, NotFound, Unavailable, quote
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor
from mcp_github.client.api import Answer, Api, paging
from mcp_github.models import Listing
from mcp_github.policy import Repo
from mcp_github.safety.lockdown import INSIDERS

__all__ = [
    "Getter",
    "Row",
    "Shape",
    "author",
    "clipped",
    "cut_note",
    "listing",
    "names",
    "nodes",
    "pick",
    "plain",
    "rows_within",
    "shown",
    "trust",
    "turned",
]

Row = Mapping[str, Any]
Getter = str | Callable[[Row], Any]

_PAGES = 4
"""Of GitHub's for one of ours, where some of what it lists is not shown."""
_SEARCHED = 1000
"""Hits of a search that GitHub shows, however many there are."""
_BODY = 1500
"""Characters of a text inside a list."""
_CUT = " more characters]"


@dataclass(frozen=True)
class Shape:
    """What is kept of a kind of object.

    Attributes:
        getters: by column, where its value is: a dotted path or a function.
        default: columns shown unless the caller chooses.
    """

    getters: Mapping[str, Getter]
    default: Sequence[str]

    def choose(self, fields: Sequence[str] | None) -> list[str]:
        """The columns for the caller's `fields`.

        Raises:
            Invalid: there is no such column.
        """
        if not fields:
            return list(self.default)
        for name in fields:
            if name not in self.getters:
                known = ", ".join(f"`{item}`" for item in self.getters)
                raise Invalid(f"There is no field {quote(name)}.", f"There are: {known}.")
        return list(dict.fromkeys(fields))

    def row(self, item: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
        if len(columns) == 1:
            getter = self.getters[columns[0]]
            return [pick(item, getter.path if isinstance(getter, _Clipped) else getter)]
        return [pick(item, self.getters[name]) for name in columns]

    def record(self, item: Mapping[str, Any], fields: Sequence[str] | None = None) -> dict[str, Any]:
        """`item` trimmed, without what is not set."""
        columns = self.choose(fields)
        values = dict(zip(columns, self.row(item, columns), strict=True))
        return {name: value for name, value in values.items() if value is not None and value != []}

    def untold(self, columns: Sequence[str], told: Collection[str]) -> list[str]:
        """Those of `columns` for which no item had anything to look at, of which these members were `told`."""
        getters = {name: self.getters[name] for name in columns}
        paths = {name: of.path if isinstance(of, _Clipped) else of for name, of in getters.items()}
        return [f"`{name}`" for name, path in paths.items() if isinstance(path, str) and path.split(".")[0] not in told]


def pick(item: Mapping[str, Any], getter: Getter) -> Any:
    """The value `getter` finds in `item`; None where there is none."""
    if callable(getter):
        return getter(item)
    value: Any = item
    for part in getter.split("."):
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, Any]", value).get(part)
    return value


@dataclass(frozen=True)
class _Clipped:
    path: str
    limit: int

    def __call__(self, item: Mapping[str, Any]) -> Any:
        text = pick(item, self.path)
        if not isinstance(text, str) or len(text) <= self.limit:
            return text
        return f"{text[: self.limit]}… [{len(text) - self.limit}{_CUT}"


def clipped(path: str, limit: int = _BODY) -> Getter:
    """The text at `path`, cut with a word about it; whole where it is the only column."""
    return _Clipped(path, limit)


def cut_note(column: str, values: Iterable[Any]) -> str | None:
    """How to get a text whole, if one of `values` was cut."""
    cut = any(isinstance(value, str) and value.endswith(_CUT) for value in values)
    return f"A text that was cut is whole with fields={column} alone." if cut else None


def names(path: str, key: str = "name") -> Getter:
    """The `key` of each object in the list at `path`."""

    def get(item: Mapping[str, Any]) -> Any:
        found = pick(item, path)
        if not isinstance(found, list):
            return None
        return [one if isinstance(one, str) else pick(one, key) for one in cast("list[Any]", found)]

    return get


def author(item: Mapping[str, Any]) -> str | None:
    """The login of who wrote `item`; those whose account is gone are `ghost`, as on GitHub's pages."""
    for name in ("user", "author"):
        if name in item:
            return str(pick(item, f"{name}.login") or "ghost")
    return None


def trust(item: Mapping[str, Any]) -> str | None:
    """Whether the author of `item` belongs to the repository; only then their text has any authority there."""
    association = item.get("author_association") or item.get("authorAssociation")
    if association is None:
        return None
    return "insider" if association in INSIDERS else "outsider"


def plain(*columns: str) -> dict[str, Getter]:
    """Getters for columns that are called the same upstream."""
    return dict(zip(columns, columns, strict=True))


def row_bytes(row: list[Any]) -> int:
    """How much of an answer a row takes."""
    return len(json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def rows_within(rows: Sequence[list[Any]], max_bytes: int) -> int:
    """How many of `rows` fit into `max_bytes`; at least one."""
    size = 0
    for number, row in enumerate(rows):
        size += row_bytes(row)
        if size > max_bytes and number:
            return number
    return len(rows)


async def listing(
    api: Api, path: str, what: str, shape: Shape, *, params: Mapping[str, Any] | None = None, repo: Repo | None = None,
    fields: Sequence[str] | None = None, limit: int = 30, cursor: str | None = None,
    inside: Callable[[Any], Any] | None = None, keep: Callable[[Sequence[Row]], Sequence[Row]] | None = None,
    accept: str = "application/vnd.github+json", hint: str = "", ends: int | None = None,
) -> Listing:  # fmt: skip
    """One page of what `path` lists.

    Args:
        inside: finds the list in the answer, where it is not the answer itself.
        keep: picks the objects that are shown.
        hint: what to try if there is no such list.
        ends: how many GitHub lists at most, without a word about the others.
    """
    params = {name: value for name, value in (params or {}).items() if value is not None}
    scope = [path, params]
    first: dict[str, Any] = {"n": limit, "q": {}, "skip": 0}
    position: dict[str, Any] = Cursor.decode("page", cursor, scope) if cursor else first
    most, columns = min(100, int(position["n"])), shape.choose(fields)
    rows: list[list[Any]] = []
    members: set[str] = set()
    size = removed = hidden = listed = 0
    total: int | None = None
    note: str | None = None
    pages: int | None = None
    following: dict[str, Any] | None = None
    for left in reversed(range(_PAGES if keep else 1)):
        asked = {**params, "per_page": most, **paging(position["q"])}
        answer = await api.get(path, what, asked, repo=repo, accept=accept, hint=hint)
        found: Any = answer.data if inside is None else inside(answer.data)
        if not isinstance(found, list):
            raise Unavailable(f"GitHub's answer for {what} is not a list.", "Try again in a moment.")
        pages, listed = answer.pages, len(cast("list[Row]", found))
        removed, total, note = removed + answer.removed, _total(answer), note or _shortfall(answer)
        following = None
        for number, item in enumerate(cast("list[Row]", found)[position["skip"] :], position["skip"]):
            # GitHub has listed null among issues.
            if not item or (keep is not None and not keep([item])):
                hidden += 1
                continue
            row = shape.row(item, columns)
            size += row_bytes(row)
            if rows and (size > DEFAULT_PAGE_BYTES or len(rows) == most):
                following = {**position, "skip": number}
                break
            rows.append(row)
            members |= item.keys()
        else:
            following = {"n": position["n"], "q": answer.following, "skip": 0} if answer.following else None
            # A page of which most is not shown would look like the end.
            if following is not None and len(rows) < most and left:
                position = following
                continue
        break
    if note is None and "body" in columns:
        note = cut_note("body", (row[columns.index("body")] for row in rows))
    if fields and rows and (untold := shape.untold(columns, members)):
        absent = f"Not told in a list, so null: {', '.join(untold)}."
        note = f"{note} {absent}" if note else absent
    reached = _SEARCHED if path.startswith("/search/") else total or 0
    if following:
        left = _Left(total and min(total, reached), pages, most, filtered=keep is not None)
        note = " ".join(filter(None, [note, left.told(position, following, listed)])) or None
    elif ends is not None and (int(position["q"].get("page", 1)) - 1) * most + listed >= ends:
        note = " ".join(filter(None, [note, f"GitHub lists the first {ends} only."]))
    elif (total or 0) > reached:
        told = f"GitHub shows the first {reached:,} of {total:,} only: search for something narrower."
        note = " ".join(filter(None, [note, told]))
    return Listing(
        cursor=Cursor.encode("page", following, scope) if following else None,
        note=note,
        total=None if hidden else total,
        removed=removed or None,
        columns=columns,
        rows=rows,
    )


def turned(
    found: Mapping[str, Any], rows: list[list[Any]], position: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, int]:
    """The position after a page of GraphQL's that was shown from `position` on, and how many of its `rows` fit."""
    fit = rows_within(rows, DEFAULT_PAGE_BYTES)
    done = position["done"] + fit
    if fit < len(rows):
        return {**position, "skip": position["skip"] + fit, "done": done}, fit
    if found["pageInfo"]["hasNextPage"]:
        return {**position, "after": found["pageInfo"]["endCursor"], "skip": 0, "done": done}, fit
    return None, fit


async def nodes(
    api: Api, query: str, given: Mapping[str, Any], what: str, shape: Shape, *, inside: Callable[[Any], Any],
    repo: Repo | None = None, fields: Sequence[str] | None = None, limit: int = 30, cursor: str | None = None,
) -> Listing:  # fmt: skip
    """One page of what a GraphQL query lists.

    Args:
        inside: finds the connection in the answer; what it lacks is not there.
    """
    columns, scope = shape.choose(fields), [query.split("(")[0], dict(given)]
    first: dict[str, Any] = {"n": limit, "after": None, "skip": 0, "done": 0}
    position: dict[str, Any] = Cursor.decode("nodes", cursor, scope) if cursor else first
    answer = await api.graphql(query, {**given, "first": position["n"], "after": position["after"]}, what, repo=repo)
    try:
        found = cast("dict[str, Any]", inside(answer.data))
        items = cast("list[Row]", found["nodes"])[position["skip"] :]
    except (KeyError, TypeError):
        raise NotFound(f"GitHub does not find {what}, or hides it from this token.") from None
    following, fit = turned(found, rows := [shape.row(item, columns) for item in items], position)
    return Listing(
        cursor=Cursor.encode("nodes", following, scope) if following else None,
        note=f"{found['totalCount'] - following['done']} more." if following else None, total=found["totalCount"],
        removed=answer.removed or None, columns=columns, rows=rows[:fit],
    )  # fmt: skip


@dataclass(frozen=True)
class _Left:
    """What GitHub tells of a list's length.

    Attributes:
        each: how many are on a page of GitHub's.
        filtered: some of them are not shown.
    """

    total: int | None
    pages: int | None
    each: int
    filtered: bool

    def told(self, position: Mapping[str, Any], following: Mapping[str, Any], listed: int) -> str | None:
        """How many are left, in words; None where nobody knows.

        Args:
            position: of the page of GitHub's that was read last.
            following: where the next answer begins.
            listed: how many that page had.
        """
        if position["q"].keys() - {"page"}:
            # Turned by a mark that nobody can count by.
            return None
        within = following["q"] == position["q"]
        done = (int(position["q"].get("page", 1)) - 1) * self.each + (following["skip"] if within else listed)
        if self.total is not None:
            least = most = self.total - done
        elif self.pages is not None:
            least, most = (self.pages - 1) * self.each + 1 - done, self.pages * self.each - done
        elif within:
            least = most = listed - following["skip"]
        else:
            return None
        if most < 1:
            return None
        if self.filtered:
            return f"At most {most} more."
        return f"{most} more." if least == most else f"At least {max(1, least)} more."


def shown(api: Api, items: Sequence[Row], *, key: Getter, private: Getter | None = None) -> Sequence[Row]:
    """Those of `items` whose repository is served; flow control learns that their text is shown.

    Args:
        key: the `owner/name` of an item's repository.
        private: whether the repository is private, where an item says so.
    """
    served = api.policy.only_served(items, key=lambda item: str(pick(item, key) or ""))
    for item in served:
        full, is_private = str(pick(item, key) or ""), None if private is None else pick(item, private)
        api.flow.saw(full)
        if isinstance(is_private, bool):
            api.flow.knows(full, public=not is_private)
    return served


def _shortfall(answer: Answer) -> str | None:
    data: Any = answer.data
    if isinstance(data, dict) and cast("dict[str, Any]", data).get("incomplete_results"):
        return "GitHub ran out of time: there is more than this. Search for something narrower."
    return None


def _total(answer: Answer) -> int | None:
    data: Any = answer.data
    total = cast("dict[str, Any]", data).get("total_count") if isinstance(data, dict) else None
    return total if isinstance(total, int) else None
