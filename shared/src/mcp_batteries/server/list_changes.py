"""`list_changes`: what changed since the model last asked, for hosts that do not pass on notices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, cast

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context
from pydantic import Field

from mcp_batteries.clipping import DEFAULT_PAGE_BYTES
from mcp_batteries.concurrency.cancellation import CancelToken
from mcp_batteries.concurrency.threads import run_in_thread
from mcp_batteries.cursors import Cursor
from mcp_batteries.errors import Invalid
from mcp_batteries.observability.audit import caller_key
from mcp_batteries.server.declaration.decorators import rename_arguments, tool
from mcp_batteries.subscriptions.folded_changes import FoldedChanges, fold_changes
from mcp_batteries.subscriptions.hub import Hub
from mcp_batteries.subscriptions.journal import DetailedSource, JournalEntry
from mcp_batteries.subscriptions.topics import Follower, Topic

__all__ = ["ChangeFeedConfig", "ChangeTools", "Changes", "change_tools"]

_CURSOR_KIND = "changes"
_MAX_NAMED = 20
# At most so many characters are shown of one change.
_MAX_DETAIL_CHARACTERS = 3000


@dataclass(frozen=True)
class Changes:
    """A page of changes.

    Attributes:
        since: the cursor for the next call.
        lines: one text for each change.
        total: the number of changes of which this is a page; earlier pages had those before it.
        first: the number of the first change, from 1.
        following: what is followed from now on; only in the first answer.
        added: what is additionally followed from now on.
        absent: why nothing exists yet at some of the followed URIs.
        omitted: what is not followed of them; only in the first answer and with no changes.
        cut: whether there were more changes, which are forgotten.
    """

    since: str
    lines: Sequence[str] = ()
    total: int = 0
    first: int = 1
    following: Sequence[str] = ()
    added: Sequence[str] = ()
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    omitted: Sequence[str] = ()
    cut: bool = False

    def text(self) -> str:
        """Return a line that says what this is and how to continue, then the changes."""
        next_call = f'since="{self.since}"'
        if self.following:
            uris = self.following[:_MAX_NAMED]
            if len(self.following) > _MAX_NAMED:
                uris = [*uris, "..."]
            facts = [
                f"following from now on: {', '.join(uris)}",
                *self.omitted,
                f"what changes is told for {next_call}",
            ]
            first_line = f"[{'; '.join(facts)}]"
            return "\n".join([first_line, *self._absent_lines()])
        return "\n".join([f"[{self._summary()}; next {next_call}]", *self._absent_lines(), *self.lines])

    def _summary(self) -> str:
        """Say how many changes there are, and what is special about the page."""
        last = self.first + len(self.lines) - 1
        if last < self.total or self.first > 1:
            summary = f"changes {self.first:,} to {last:,} of {self.total:,}"
        elif self.total == 0:
            summary = "no changes"
        elif self.total == 1:
            summary = "1 change"
        else:
            summary = f"{self.total:,} changes"
        if self.total == 0:
            summary = "; ".join([summary, *self.omitted])
        if self.cut:
            summary += ", and older ones that are forgotten: read again what you follow"
        if self.added:
            summary += f"; followed from now on, unlike before: {', '.join(self.added[:_MAX_NAMED])}"
        return summary

    def _absent_lines(self) -> list[str]:
        lines: list[str] = []
        for uri, reason in islice(self.absent.items(), _MAX_NAMED):
            lines.append(f"not there yet: {uri} ({_shorten(reason)})")
        omitted = len(self.absent) - len(lines)
        if omitted > 0:
            lines.append(f"[{omitted:,} more are not there yet]")
        return lines


Since = Annotated[str | None, Field(description="From an answer of the last hour.")]


@dataclass(frozen=True)
class ChangeFeedConfig:
    """The texts of `list_changes` for a server, and its defaults.

    Attributes:
        subject: the kind of things that can change.
        detail: what an answer contains about a change besides its time.
        instead: which other tool to use, and for what.
        uris: how such things are named, and what is followed by default.
        usual: the URIs that are followed when a client names none and is subscribed to none.
        open_world: whether checking them reaches systems beyond the server's own data.
    """

    subject: str = "resources"
    detail: str = ""
    instead: str = ""
    uris: str = "URIs of resources. Needed unless the client subscribed to some."
    usual: Callable[[], Sequence[str]] = tuple
    open_world: bool = False


@dataclass(frozen=True)
class ChangeTools:
    """What the one tool of this room does, to which `change_tools` gives a server's words.

    Args:
        hub: the hub that knows what changes.
        usual: the URIs that are followed when a client names none and is subscribed to none.
        form: how such URIs are written, for a model, which cannot list resources.
    """

    hub: Hub
    usual: Callable[[], Sequence[str]] = tuple
    form: str = ""

    async def follow(self, ctx: Context, uris: Sequence[str], since: str | None) -> Changes:
        """Return what changed since the last call, or begin to follow."""
        request = cast("ServerRequestContext[Any]", ctx.request_context)
        if since is None:
            return await self._begin(request, uris)
        return await self._continue(request, uris, since)

    async def _begin(self, request: ServerRequestContext[Any], uris: Sequence[str]) -> Changes:
        """Begin to follow `uris`, by default what the client is subscribed to."""
        followed = uris or self.hub.subscribed_uris(request) or list(self.usual())
        if not followed:
            raise Invalid("`uris` is empty, so there is nothing to follow.", self.form)
        name, follower = await self.hub.followers.begin(caller_key(request), followed)
        absent = self.hub.find_absent(follower, followed)
        omitted = self.hub.find_omitted(follower)
        cursor = _cursor(name, self.hub.journal.mark())
        return Changes(cursor, following=followed, absent=absent, omitted=omitted)

    async def _continue(self, request: ServerRequestContext[Any], uris: Sequence[str], since: str) -> Changes:
        """Return the next page of changes, and follow those of `uris` that are new."""
        followers = self.hub.followers
        journal = self.hub.journal
        try:
            name, after, until, listed_count = Cursor.decode(_CURSOR_KIND, since)
        except Invalid:
            raise Invalid("`since` is from no answer of this tool.", "Call without it to begin to follow.") from None
        follower = followers.find(caller_key(request), name)
        if not listed_count:
            await self.hub.poll(follower)
            until = journal.mark()
        changes = fold_changes(_unique_changes(journal.between(follower.topics, after, until), follower))
        remaining = changes[listed_count:]
        lines = await run_in_thread(lambda stop: _format_page(follower, remaining, stop), description="Comparing")
        last = listed_count + len(lines)
        next_since = _cursor(name, until)
        if last < len(changes):
            next_since = _cursor(name, after, until, last)
        added = [uri for uri in uris if uri not in follower.uris]
        await followers.extend(follower, added)
        return Changes(
            next_since,
            lines,
            len(changes),
            listed_count + 1,
            added=added,
            absent=self.hub.find_absent(follower, added),
            omitted=self.hub.find_omitted(follower),
            cut=journal.is_cut(follower.topics, after),
        )


def change_tools(hub: Hub, following: ChangeFeedConfig) -> ChangeTools:
    """Make the room, with a server's texts."""
    description = (
        f"List which {following.subject} changed since an earlier call{following.detail}.\n\n"
        "The first call only notes the state; pass its `since` to the next one. "
        "Each line says what happened, when and to what."
    )
    if following.instead:
        description += f" {following.instead}"
    adapt = rename_arguments(paths="uris", path="uris", cursor="since")

    class DescribedChangeTools(ChangeTools):
        @tool("List changes", open_world=following.open_world, adapt=adapt)
        async def list_changes(self, ctx: Context, uris: list[str] = [], since: Since = None) -> Changes:  # noqa: B006
            return await self.follow(ctx, uris, since)

    DescribedChangeTools.list_changes.__doc__ = description
    uris = Annotated[list[str], Field(description=following.uris)]
    DescribedChangeTools.list_changes.__annotations__["uris"] = uris
    form = following.uris.partition(". ")[0]
    return DescribedChangeTools(hub, following.usual, f"Name some {form[:1].lower()}{form[1:].rstrip('.')}.")


def _cursor(name: str, after: int, until: int = 0, listed_count: int = 0) -> str:
    return Cursor.encode(_CURSOR_KIND, [name, after, until, listed_count])


def _unique_changes(changes: Sequence[JournalEntry], follower: Follower) -> list[JournalEntry]:
    """Return each thing's change once, from the first topic that has it: several globs may match one file."""
    ranks: dict[Hashable, int] = {topic: rank for rank, topic in enumerate(follower.topics)}
    first_by_thing: dict[Hashable, JournalEntry] = {}
    for entry in sorted(changes, key=lambda entry: ranks[entry.topic]):
        topic = cast("Topic", entry.topic)
        first_by_thing.setdefault((topic.watched, entry.change.name or topic), entry)
    unique = set(map(id, first_by_thing.values()))
    return [entry for entry in changes if id(entry) in unique]


def _format_page(follower: Follower, changes: Sequence[JournalEntry | FoldedChanges], stop: CancelToken) -> list[str]:
    """Return lines on as many of `changes` as fit on a page, at least one."""
    uris: dict[Topic, list[str]] = {}
    for uri, topic in follower.uris.items():
        uris.setdefault(topic, []).append(uri)
    lines: list[str] = []
    remaining = DEFAULT_PAGE_BYTES
    for entry in changes:
        stop.check()
        if isinstance(entry, FoldedChanges):
            line = _format_folded(entry)
        else:
            line = _format_change(entry, uris)
        remaining -= len(line.encode("utf-8", "replace"))
        if lines and remaining < 0:
            break
        lines.append(line)
    return lines


def _format_change(entry: JournalEntry, uris: Mapping[Topic, list[str]]) -> str:
    """Say what happened, when and to what, then show the change if its source can."""
    topic = cast("Topic", entry.topic)
    name = entry.change.name or ", ".join(uris.get(topic, ()))
    line = f"{entry.change.kind} {_format_time(entry.at)} {name}"
    if entry.change.origin:
        line = f"renamed {_format_time(entry.at)} {entry.change.origin} to {name}"
    if entry.change.note:
        line += f", {entry.change.note}"
    source = topic.watched and topic.watched.source
    if isinstance(source, DetailedSource):
        detail = source.describe_change(entry.change).rstrip("\n")
        if detail:
            line += f"\n{_shorten(detail)}"
    return line


def _format_folded(folded: FoldedChanges) -> str:
    """Say what happened to all of a folder's things in one line."""
    time = _format_time(folded.at)
    if folded.origin:
        return f"renamed {time} {folded.count:,} from {folded.origin}/ to {folded.folder}/"
    more = ", ..." if folded.count > len(folded.examples) else ""
    return f"{folded.kind} {time} {folded.count:,} in {folded.folder}/: {', '.join(folded.examples)}{more}"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _shorten(detail: str) -> str:
    if len(detail) <= _MAX_DETAIL_CHARACTERS:
        return detail
    start = detail[:_MAX_DETAIL_CHARACTERS]
    # The cut is at the end of a line, unless the first line is longer than everything that may be shown.
    excerpt = start.rpartition("\n")[0] or start
    omitted_lines = detail.count("\n") - excerpt.count("\n")
    if omitted_lines:
        return f"{excerpt}\n[{omitted_lines:,} more lines]"
    return f"{excerpt} [cut]"
