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

from mcp_batteries.errors import Invalid
from mcp_batteries.limits import DEFAULT_PAGE_BYTES, Cursor, Stop, in_thread
from mcp_batteries.observability.audit import whose
from mcp_batteries.server.declare import in_words_of, renames, tool
from mcp_batteries.subscriptions.hub import Hub
from mcp_batteries.subscriptions.journal import Noted, Telling
from mcp_batteries.subscriptions.topics import Follower, Topic

__all__ = ["ChangeTools", "Changes", "Following", "change_tools"]

_KIND = "changes"
_MOST_NAMED = 20
# At most so many characters are shown of one change.
_MOST_SHOWN = 3000


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
        cut: whether there were more changes, which are forgotten.
    """

    since: str
    lines: Sequence[str] = ()
    total: int = 0
    first: int = 1
    following: Sequence[str] = ()
    added: Sequence[str] = ()
    absent: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False

    def text(self) -> str:
        """A line that says what this is and how to continue, then the changes."""
        again = f'since="{self.since}"'
        if self.following:
            named = ", ".join(self.following[:_MOST_NAMED]) + (", ..." if len(self.following) > _MOST_NAMED else "")
            return "\n".join([f"[following from now on: {named}; what changes is told for {again}]", *self._absent()])
        last = self.first + len(self.lines) - 1
        said = "no changes" if not self.total else f"{self.total:,} change{'s' * (self.total != 1)}"
        if last < self.total or self.first > 1:
            said = f"changes {self.first:,} to {last:,} of {self.total:,}"
        if self.cut:
            said += ", and older ones that are forgotten: read again what you follow"
        if self.added:
            said += f"; followed from now on, unlike before: {', '.join(self.added[:_MOST_NAMED])}"
        return "\n".join([f"[{said}; next {again}]", *self._absent(), *self.lines])

    def _absent(self) -> list[str]:
        said = [f"not there yet: {uri} ({_clipped(why)})" for uri, why in islice(self.absent.items(), _MOST_NAMED)]
        more = len(self.absent) - len(said)
        return [*said, f"[{more:,} more are not there yet]"] if more > 0 else said


@dataclass(frozen=True)
class Following:
    """The texts of `list_changes` for a server, and its defaults.

    Attributes:
        what: the kind of things that can change.
        shows: what an answer contains about a change besides its time.
        instead: which other tool to use, and for what.
        uris: how such things are named, and what is followed by default.
        usual: the URIs that are followed when a client names none and is subscribed to none.
        open_world: whether checking them reaches systems beyond the server's own data.
    """

    what: str = "resources"
    shows: str = ""
    instead: str = ""
    uris: str = "URIs of resources. Needed unless the client subscribed to some."
    usual: Callable[[], Sequence[str]] = tuple
    open_world: bool = False


@dataclass(frozen=True)
class ChangeTools:
    """The one tool of this room, which `change_tools` marks.

    Args:
        hub: the hub that knows what changes.
        usual: the URIs that are followed when a client names none and is subscribed to none.
        form: how such URIs are written, for a model, which cannot list resources.
    """

    hub: Hub
    usual: Callable[[], Sequence[str]] = tuple
    form: str = ""

    async def list_changes(
        self,
        ctx: Context,
        uris: list[str] = [],  # noqa: B006 - read only, and in the schema it reads as what it is
        since: Annotated[str | None, Field(description="From an answer of the last hour.")] = None,
    ) -> Changes:
        """List what changed since the last call."""
        request = cast("ServerRequestContext[Any]", ctx.request_context)
        owner = whose(request)
        followers = self.hub.followers
        journal = self.hub.journal
        if since is None:
            wanted = uris or self.hub.subscribed(request) or list(self.usual())
            if not wanted:
                raise Invalid("`uris` is empty, so there is nothing to follow.", self.form)
            name, follower = await followers.begin(owner, wanted)
            absent = self.hub.absent(follower, wanted)
            return Changes(_cursor(name, journal.mark()), following=wanted, absent=absent)
        try:
            name, after, until, shown = Cursor.decode(_KIND, since)
        except Invalid:
            raise Invalid("`since` is from no answer of this tool.", "Call without it to begin to follow.") from None
        follower = followers.again(owner, name)
        if not shown:
            await self.hub.look(follower)
            until = journal.mark()
        found = _once(journal.between(follower.topics, after, until), follower)
        lines = await in_thread(lambda stop: _lines(follower, found[shown:], stop), what="Comparing")
        last = shown + len(lines)
        following = [uri for uri in uris if uri not in follower.uris]
        await followers.extend(follower, following)
        return Changes(
            _cursor(name, after, until, last) if last < len(found) else _cursor(name, until),
            lines,
            len(found),
            shown + 1,
            added=following,
            absent=self.hub.absent(follower, following),
            cut=journal.is_cut(follower.topics, after),
        )


def change_tools(hub: Hub, following: Following) -> ChangeTools:
    """The room, with a server's texts."""
    said = (
        f"List which {following.what} changed since an earlier call{following.shows}.\n\n"
        "The first call only notes the state; pass its `since` to the next one. "
        f"Each line says what happened, when and to what.{following.instead and ' '}{following.instead}"
    )
    uris = Annotated[list[str], Field(description=following.uris)]
    kind = in_words_of({"list_changes": said}, {"uris": uris})(type("ChangeTools", (ChangeTools,), {}))
    adapt = renames(paths="uris", path="uris", cursor="since")
    tool("List changes", open_world=following.open_world, adapt=adapt)(kind.list_changes)
    form = following.uris.partition(". ")[0]
    return kind(hub, following.usual, f"Name some {form[:1].lower()}{form[1:].rstrip('.')}.")


def _cursor(name: str, after: int, until: int = 0, shown: int = 0) -> str:
    return Cursor.encode(_KIND, [name, after, until, shown])


def _once(found: Sequence[Noted], follower: Follower) -> list[Noted]:
    """Each thing once, from the first topic that has it: several globs may match one file."""
    ranks: dict[Hashable, int] = {topic: rank for rank, topic in enumerate(follower.topics)}
    first: dict[Hashable, Noted] = {}
    for noted in sorted(found, key=lambda noted: ranks[noted.place]):
        topic = cast("Topic", noted.place)
        first.setdefault((topic.watched, noted.change.name or topic), noted)
    told = set(map(id, first.values()))
    return [noted for noted in found if id(noted) in told]


def _lines(follower: Follower, found: Sequence[Noted], stop: Stop) -> list[str]:
    """As many of `found` as fit on a page, at least one."""
    uris: dict[Topic, list[str]] = {}
    for uri, topic in follower.uris.items():
        uris.setdefault(topic, []).append(uri)
    lines: list[str] = []
    left = DEFAULT_PAGE_BYTES
    for noted in found:
        stop.check()
        topic = cast("Topic", noted.place)
        at = datetime.fromtimestamp(noted.at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        named = noted.change.name or ", ".join(uris.get(topic, ()))
        line = f"{noted.change.what} {at} {named}"
        source = topic.watched and topic.watched.source
        if isinstance(source, Telling) and (detail := source.shown(noted.change).rstrip("\n")):
            line += f"\n{_clipped(detail)}"
        left -= len(line.encode("utf-8", "replace"))
        if lines and left < 0:
            break
        lines.append(line)
    return lines


def _clipped(detail: str) -> str:
    if len(detail) <= _MOST_SHOWN:
        return detail
    kept = detail[:_MOST_SHOWN].rpartition("\n")[0] or detail[:_MOST_SHOWN]
    more = detail.count("\n") - kept.count("\n")
    return f"{kept}\n[{more:,} more lines]" if more else f"{kept} [cut]"
