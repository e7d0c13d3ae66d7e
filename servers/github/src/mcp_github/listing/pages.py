"""Lists, page by page: objects reduced to columns, whole rows up to a size, and cursors that continue where it was
cut."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Unavailable
from mcp_github.client.api import Api, ApiResponse, select_paging_params
from mcp_github.client.http import JSON_TYPE
from mcp_github.listing.projections import Getter, Item, Projection, clip_note_of_rows, pick
from mcp_github.models import Listing
from mcp_github.policy import Repo

__all__ = [
    "Complete", "ListQuery", "PageOptions", "count_bytes", "count_fitting_rows", "fetch_page", "join_notes",
    "keep_served",
]  # fmt: skip

# Adds to the objects of a page what its list does not tell for these columns; None stands for one that is not shown.
Complete = Callable[[Sequence[Item | None], Sequence[str]], Awaitable[Sequence[Item | None]]]

# How many of GitHub's pages are read for one of ours, which may be longer or show only some of what they list.
_MAX_UPSTREAM_PAGES = 10
_MAX_UPSTREAM_ROWS = 100
# Few are shown where it is at most one in so many of those that GitHub lists.
_ONE_IN = 2
# Hits of a search that GitHub shows, however many there are.
_MAX_SEARCH_HITS = 1000


@dataclass(frozen=True)
class PageOptions:
    """What a caller may choose for a page of any list.

    Attributes:
        fields: the columns; None for the default ones.
        limit: how many rows at most.
        cursor: of the page before; None for the first page.
    """

    fields: Sequence[str] | None = None
    limit: int = 30
    cursor: str | None = None


@dataclass(frozen=True)
class ListQuery:
    """A list of GitHub's.

    Attributes:
        description: what it lists, in words for messages.
        repo: whose text it is, for taint tracking and redirects.
        find_list: finds the list in the answer, where it is not the answer itself.
        select: picks the objects that are shown; all without it.
        exclude: says what an object is that is not shown, in a noun, and None of one that is; the last page tells how
            many there are of each.
        complete: adds to the objects that are shown what the list does not tell.
        excluded_late: what those are that `complete` leaves out, in a noun.
        hint: what to try if there is no such list.
        max_items: how many GitHub lists at most, without a word about the others.
    """

    path: str
    description: str
    projection: Projection
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repo: Repo | None = None
    find_list: Callable[[Any], Any] | None = None
    select: Callable[[Sequence[Item]], Sequence[Item]] | None = None
    complete: Complete | None = None
    accept: str = JSON_TYPE
    hint: str = ""
    max_items: int | None = None
    exclude: Callable[[Item], str | None] | None = None
    excluded_late: str = ""

    @property
    def set_params(self) -> dict[str, Any]:
        """The parameters that have a value."""
        return {name: value for name, value in self.params.items() if value is not None}

    @property
    def is_search(self) -> bool:
        """Whether GitHub searches for what it lists, as it does for runs by their branch, event or state, too."""
        return self.path.startswith("/search/") or (self.path.endswith("/runs") and bool(self.set_params))


@dataclass(frozen=True)
class _Position:
    """Where a page begins.

    Attributes:
        limit: how many rows the caller wants at most.
        paging: the parameters of GitHub's page.
        skip: how many objects of that page were listed before.
        shown_before: how many rows all pages before have.
        excluded_before: how many objects of each kind they left out.
    """

    limit: int
    paging: Mapping[str, str] = field(default_factory=dict[str, str])
    skip: int = 0
    shown_before: int = 0
    excluded_before: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def decode(cls, cursor: str, scope: Sequence[Any]) -> _Position:
        value: dict[str, Any] = Cursor.decode("page", cursor, scope)
        return cls(value["n"], value["q"], value["skip"], int(value.get("shown", 0)), value.get("excluded", {}))

    def encode(self, scope: Sequence[Any]) -> str:
        value: dict[str, Any] = {
            "n": self.limit, "q": self.paging, "skip": self.skip, "shown": self.shown_before,
        }  # fmt: skip
        if self.excluded_before:
            value["excluded"] = self.excluded_before
        return Cursor.encode("page", value, scope)

    @property
    def page_size(self) -> int:
        return min(_MAX_UPSTREAM_ROWS, int(self.limit))

    @property
    def items_before(self) -> int:
        """How many objects are on GitHub's pages before this one, where its pages have numbers."""
        return (int(self.paging.get("page", 1)) - 1) * self.page_size


class _Remaining(NamedTuple):
    at_least: int
    at_most: int


@dataclass
class _Page:
    """A page as it grows.

    Attributes:
        start: where it begins.
        position: of the page of GitHub's that was read last.
        next_position: where the next answer begins; None after the last.
        members: the names of all members that the objects had.
        hidden_count: how many objects are not shown.
        excluded_counts: how many of each kind are not shown, here and on pages before; see `ListQuery.exclude`.
        removed: how many invisible characters were taken out.
        total: how many objects there are, where GitHub says so.
        page_count: of GitHub's pages, where GitHub says so.
        listed_count: how many objects the page of GitHub's had that was read last.
        note: what GitHub said of the list.
        failure: why no more was read; None if nothing failed.
        is_full: whether a row did not fit.
    """

    query: ListQuery
    columns: list[str]
    start: _Position
    position: _Position
    next_position: _Position | None = None
    rows: list[list[Any]] = field(default_factory=list[list[Any]])
    size: int = 0
    members: set[str] = field(default_factory=set[str])
    hidden_count: int = 0
    excluded_counts: Counter[str] = field(default_factory=Counter[str])
    removed: int = 0
    total: int | None = None
    page_count: int | None = None
    listed_count: int = 0
    note: str | None = None
    failure: str | None = None
    is_full: bool = False

    def find_items(self, response: ApiResponse) -> list[Item | None]:
        """Return the objects that GitHub lists, with None for those that are not shown."""
        items: list[Item | None] = []
        for item in self._items_of(response):
            # GitHub has listed null among issues.
            if item and self._is_selected(item):
                items.append(item)
            else:
                items.append(None)
        return items

    def add(self, response: ApiResponse, items: Sequence[Item | None]) -> None:
        """Add what fits of a page of GitHub's."""
        self.page_count = response.page_count
        self.listed_count = len(items)
        self.removed += response.removed
        self.total = _total_of(response)
        self.note = self.note or _incomplete_note(response)
        self.next_position = None
        upstream_items = self._items_of(response)
        for number, item in enumerate(items[self.position.skip :], self.position.skip):
            if item is None:
                self.hidden_count += 1
                self._count_excluded(upstream_items[number])
                continue
            row = self.query.projection.to_row(item, self.columns)
            self.size += count_bytes(row)
            if self.rows and (self.size > DEFAULT_PAGE_BYTES or self._has_all_rows):
                self.next_position = replace(
                    self.position, skip=number, shown_before=self.shown_count,
                    excluded_before=dict(self.excluded_counts),
                )  # fmt: skip
                self.is_full = True
                return
            self.rows.append(row)
            self.members |= item.keys()
        if response.next_page:
            self.next_position = _Position(
                self.position.limit, response.next_page, shown_before=self.shown_count,
                excluded_before=dict(self.excluded_counts),
            )  # fmt: skip

    @property
    def may_grow(self) -> bool:
        """Whether GitHub has another page, and this one has room for rows of it."""
        return self.next_position is not None and not self.is_full and not self._has_all_rows

    @property
    def shown_count(self) -> int:
        """How many rows the caller has with this page."""
        return self.start.shown_before + len(self.rows)

    def count_all(self) -> int | None:
        """Return how many objects there are for the caller; None where nobody knows."""
        if self.total is not None and not self._has_hidden:
            return self.total
        is_incomplete = self.note is not None or self._is_cut_by_github
        if self.next_position is not None or is_incomplete:
            return None
        return self.shown_count

    @property
    def _has_hidden(self) -> bool:
        """Whether objects are not shown, here or on pages before."""
        return self.hidden_count > 0 or self.start.shown_before != self.start.items_before + self.start.skip

    @property
    def _is_cut_by_github(self) -> bool:
        """Whether GitHub lists no more, however many there are."""
        max_items = self.query.max_items
        if max_items is not None and self.position.items_before + self.listed_count >= max_items:
            return True
        return self._reachable_total is not None and (self.total or 0) > self._reachable_total

    @property
    def _has_all_rows(self) -> bool:
        return len(self.rows) >= self.position.limit

    def _items_of(self, response: ApiResponse) -> list[Item]:
        data: Any = response.data
        if self.query.find_list is not None:
            data = self.query.find_list(data)
        if not isinstance(data, list):
            raise Unavailable(f"GitHub's answer for {self.query.description} is not a list.", "Try again in a moment.")
        return cast("list[Item]", data)

    def _count_excluded(self, item: Item | None) -> None:
        """Count an object of GitHub's that is not shown by what it is; GitHub has listed null."""
        if self.query.exclude is None or not item:
            return
        kind = self.query.exclude(item) or self.query.excluded_late
        if kind:
            self.excluded_counts[kind] += 1

    def _is_selected(self, item: Item) -> bool:
        if self.query.exclude is not None and self.query.exclude(item) is not None:
            return False
        return self.query.select is None or bool(self.query.select([item]))

    def compose_note(self, fields: Sequence[str] | None) -> str | None:
        """Return what the caller has to know of the page: what is cut, what is missing and how much is to come."""
        return join_notes(self._cut_note(), self._missing_note(fields), self.failure, self._end_note())

    def _cut_note(self) -> str | None:
        return self.note or clip_note_of_rows(self.columns, self.rows)

    def _missing_note(self, fields: Sequence[str] | None) -> str | None:
        if not fields or not self.rows:
            return None
        missing = self.query.projection.missing_columns(self.columns, self.members)
        if not missing:
            return None
        return f"Not told in a list, so null: {', '.join(missing)}."

    def _end_note(self) -> str | None:
        """Return how many objects are to come, or that GitHub lists no more of them."""
        if self.next_position is not None:
            return self._remaining_note(self.next_position)
        if not self._is_cut_by_github:
            return self._few_note() or self._round_note()
        if self.query.max_items is not None:
            return f"GitHub lists the first {self.query.max_items} only."
        return (
            f"GitHub shows the first {self._reachable_total:,} of {self.total:,} only: search for something narrower."
        )

    def _few_note(self) -> str | None:
        """Return that these are all that match, and what the others are: a few look like a list that was cut."""
        if self.query.exclude is None or self.position.paging.keys() - {"page"}:
            return None
        listed_total = self.position.items_before + self.listed_count
        if self.shown_count * _ONE_IN > listed_total or not self.excluded_counts:
            return None
        kinds = [f"{count} {kind}" for kind, count in self.excluded_counts.most_common()]
        return f"Complete: {self.shown_count} match; GitHub also listed {', '.join(kinds)}."

    def _round_note(self) -> str | None:
        """Return that these are all, where their number looks like the most that a page has."""
        if self.failure or self.note or not self.shown_count or self.shown_count % _MAX_UPSTREAM_ROWS:
            return None
        return f"Complete: there are no more than these {self.shown_count}."

    @property
    def _reachable_total(self) -> int | None:
        """How many of all objects GitHub can be brought to list."""
        if self.total is not None and self.query.is_search:
            return min(self.total, _MAX_SEARCH_HITS)
        return self.total

    def _remaining_note(self, next_position: _Position) -> str | None:
        remaining = self._count_remaining(next_position)
        if remaining is None or remaining.at_most < 1:
            return None
        if self.query.select is not None or self.query.exclude is not None:
            return f"At most {remaining.at_most} more."
        if remaining.at_least == remaining.at_most:
            return f"{remaining.at_most} more."
        return f"At least {max(1, remaining.at_least)} more."

    def _count_remaining(self, next_position: _Position) -> _Remaining | None:
        """Return how many objects are to come; None where nobody knows."""
        if self.position.paging.keys() - {"page"}:
            # Its pages are turned by a mark that nobody can count by.
            return None
        page_size = self.position.page_size
        is_same_page = next_position.paging == self.position.paging
        done_on_page = self.listed_count
        if is_same_page:
            done_on_page = next_position.skip
        done = self.position.items_before + done_on_page
        if self._reachable_total is not None:
            count = self._reachable_total - done
            return _Remaining(count, count)
        if self.page_count is not None:
            full_pages = (self.page_count - 1) * page_size
            return _Remaining(full_pages + 1 - done, full_pages + page_size - done)
        if is_same_page:
            count = self.listed_count - next_position.skip
            return _Remaining(count, count)
        return None


async def fetch_page(api: Api, query: ListQuery, options: PageOptions) -> Listing:
    """Return one page of what `query` lists."""
    scope = [query.path, query.set_params]
    position = _Position(options.limit)
    if options.cursor:
        position = _Position.decode(options.cursor, scope)
    page = _Page(
        query, query.projection.choose_columns(options.fields), position, position,
        excluded_counts=Counter(position.excluded_before),
    )  # fmt: skip
    await _read_upstream_page(api, page, position)
    for _ in range(_MAX_UPSTREAM_PAGES - 1):
        # A page of which most is not shown would look like the end.
        if page.next_position is None or not page.may_grow:
            break
        try:
            await _read_upstream_page(api, page, page.next_position)
        except Unavailable as problem:
            if not page.rows:
                raise
            page.failure = f"{problem.failure} What came before is here."
            break
    cursor = None
    if page.next_position is not None:
        cursor = page.next_position.encode(scope)
    return Listing(
        cursor=cursor,
        note=page.compose_note(options.fields),
        total=page.count_all(),
        removed=page.removed or None,
        columns=page.columns,
        rows=page.rows,
    )


async def _read_upstream_page(api: Api, page: _Page, position: _Position) -> None:
    """Add to `page` what fits of GitHub's page at `position`."""
    query = page.query
    params = {**query.set_params, "per_page": position.page_size, **select_paging_params(position.paging)}
    response = await api.get(
        query.path, query.description, params, repo=query.repo, accept=query.accept, hint=query.hint
    )
    items: Sequence[Item | None] = page.find_items(response)
    if query.complete is not None:
        items = await query.complete(items, page.columns)
    page.position = position
    page.add(response, items)


def keep_served(
    api: Api, items: Sequence[Item], *, repo_getter: Getter, private_getter: Getter | None = None
) -> Sequence[Item]:
    """Return those of `items` whose repository is served; taint tracking learns that their text is shown.

    Args:
        repo_getter: finds the `owner/name` of an item's repository.
        private_getter: finds whether the repository is private, where an item says so.
    """

    def repo_of(item: Item) -> str:
        return str(pick(item, repo_getter) or "")

    served_items = api.policy.only_served(items, key=repo_of)
    for item in served_items:
        repo = repo_of(item)
        api.taint.record_read(repo)
        if private_getter is None:
            continue
        is_private = pick(item, private_getter)
        if isinstance(is_private, bool):
            api.taint.record_visibility(repo, public=not is_private)
    return served_items


def count_fitting_rows(rows: Sequence[list[Any]], max_bytes: int) -> int:
    """Return how many of `rows` fit into `max_bytes`; at least one."""
    size = 0
    for number, row in enumerate(rows):
        size += count_bytes(row)
        if size > max_bytes and number:
            return number
    return len(rows)


def join_notes(*notes: str | None) -> str | None:
    """Return those of `notes` that say something, as one text; None if none does."""
    return " ".join(note for note in notes if note) or None


def count_bytes(rows: list[Any]) -> int:
    """Return how much of an answer a row takes, or several."""
    return len(json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _incomplete_note(response: ApiResponse) -> str | None:
    data: Any = response.data
    if isinstance(data, dict) and cast("dict[str, Any]", data).get("incomplete_results"):
        return "GitHub ran out of time: there is more than this. Search for something narrower."
    return None


def _total_of(response: ApiResponse) -> int | None:
    data: Any = response.data
    if not isinstance(data, dict):
        return None
    total = cast("dict[str, Any]", data).get("total_count")
    if isinstance(total, int):
        return total
    return None
