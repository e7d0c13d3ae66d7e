"""The way back from a change of the schema: drops what is new, undoes renames, and creates again what is gone.

Drops use the names after the change, and everything after the renames uses the names before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from mcp_postgres.engine.change.objects import Edge, Look, Object, edges, look
from mcp_postgres.engine.change.undo.definitions import LATE, Wanted, definitions
from mcp_postgres.engine.change.undo.grants import grants, optioned, whose
from mcp_postgres.engine.change.undo.object_order import ordered, roots
from mcp_postgres.engine.change.undo.renames import renames
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.pool import Session

__all__ = ["After", "after", "way_back"]

_DROPS = {
    "column": "ALTER TABLE {on} DROP COLUMN {name};", "attribute": "ALTER TYPE {on} DROP ATTRIBUTE {name} CASCADE;",
    "constraint": "ALTER TABLE {on} DROP CONSTRAINT {name};", "trigger": "DROP TRIGGER {name} ON {on};",
    "policy": "DROP POLICY {name} ON {on};", "rule": "DROP RULE {name} ON {on};", "function": "DROP ROUTINE {spelled};",
    "partitioned table": "DROP TABLE {spelled};",
    **{kind: f"DROP {kind.upper()} {{spelled}};" for kind in (
        "table", "foreign table", "view", "materialized view", "sequence", "index", "type", "statistics", "collation",
        "schema", "extension", "role", "operator", "cast",
    )},
}  # fmt: skip
_GRANT, _COMMENT = "g", "d"
_WAITS = "when the values are back: "
_SPELLED = {
    "c": (0, 1, 2, 3, 4, 5, 6, 8, 9, 10), "a": (0, 1, 2, 3, 5, 6, 7, 8, 9), "k": (0, 2), "f": (0, 1), "t": (0, 1),
    "p": (0,), "r": (0, 1), "s": (0, 1), "y": (0, 1, 2), "n": (0,),
}  # fmt: skip
"""Parts of a value for which there are statements."""


@dataclass
class After:
    """What was seen of a change while it was there.

    Attributes:
        was: all objects as they were; `now` as they would be.
        depends: how those that the change is about depend on each other then.
        again: statements for what is new under a name that something else had.
    """

    was: Look
    now: Look
    depends: Sequence[Edge] = ()
    again: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])

    @property
    def new(self) -> list[str]:
        return [key for key in self.now if key not in self.was]

    @property
    def gone(self) -> list[str]:
        return [key for key in self.was if key not in self.now]

    @property
    def changed(self) -> list[str]:
        return [key for key in self.was if key in self.now and self.now[key].value != self.was[key].value]

    @property
    def renamed(self) -> list[str]:
        return [key for key in self.was if key in self.now and self.now[key].label != self.was[key].label]


async def after(session: Session, was: Look, now: Look) -> After:
    """Look at a change while it is there."""
    seen = After(was, now)
    keys = {*seen.new, *seen.changed, *seen.renamed}
    if keys:
        seen.depends = await edges(session, _things(keys))
    had = {was[key].label for key in seen.gone}
    same = [key for key in seen.new if now[key].label in had and key[0] in "ck"]
    if same:
        seen.again = await definitions(session, [_gone(now[key]) for key in same])
    return seen


async def way_back(session: Session, seen: After) -> Sequence[str]:
    """Statements that undo a change, asked for when it is not there any more."""
    return await _Plan(session, seen).lines()


class _Plan:
    def __init__(self, session: Session, seen: After) -> None:
        self.session, self.seen = session, seen

    async def lines(self) -> list[str]:
        seen = self.seen
        if seen.again:
            gone = _things(seen.gone)
            said = await definitions(self.session, [_gone(seen.was[key]) for key in gone])
            seen = self.seen = _rebuilt(seen, {seen.was[key].label: key for key in gone}, said)
        self.depended = (
            await edges(self.session, _things({*seen.gone, *seen.changed})) if seen.gone or seen.changed else []
        )
        self.remade = await self._remade()
        lines, left, late = self._away()
        seen = self.seen
        lines += left
        lines = [*lines, *(f"CREATE SCHEMA {seen.was[key].name};" for key in seen.gone if key[0] == "n")]
        lines += renames(seen.was, seen.now, seen.renamed, seen.depends)
        lines += await self._again()
        return [*lines, *late]

    async def _remade(self) -> set[str]:
        """Views whose columns can't be taken off in their place, and what depends on them."""
        seen = self.seen
        now, was = seen.now, seen.was
        found = {now[key].parent for key in seen.new if now[key].label is None and now[key].parent in was}
        fresh = found
        while fresh:
            ones = {one for one, other, _ in await edges(self.session, fresh) if other in fresh and one[0] in "ctr"}
            if unseen := [key[1:] for key in ones if key not in was]:
                # No part of the change: they are what they were.
                more = {key: thing for key, thing in (await look(self.session, unseen)).items() if key not in was}
                # Who tries the way back looks at them too.
                was.update(more)
                seen = self.seen = After(was, more | now, seen.depends, seen.again)
                now, was = seen.now, seen.was
            fresh = {key for key in ones if key in was and key in now} - found
            found |= fresh
        return found

    def _away(self) -> tuple[list[str], list[str], list[str]]:
        """What drops what is new, in the names of now; what is left; and what can be dropped behind all else only."""
        now, depends = self.seen.now, self.seen.depends
        new, changed = {*self.seen.new}, dict.fromkeys(self.seen.changed)
        root = roots(new, [edge for edge in depends if edge[1] in new or (edge[1] in changed and edge[2] == "i")], now)
        own = [key for key in self.seen.new if key not in root and key[0] not in _GRANT + _COMMENT] + [*self.remade]
        # A new schema is left first by what was moved into it.
        stays = {*changed, *(key for key in self.seen.renamed if now[key].parent in new)} - self.remade
        late = {root.get(other, other) for one, other, _ in depends if other in new and one in stays}
        late &= {*own}
        while (
            more := {root.get(other, other) for one, other, _ in depends if root.get(one, one) in late} & {*own} - late
        ):
            late |= more
        order = ordered(own, [(root.get(other, other), root.get(one, one)) for one, other, _ in depends])
        lines = [line for key in changed for line in self._detached(key)]
        left, granted = list[str](), list[Object]()
        for key in self.seen.new:
            thing = now[key]
            whole = thing.parent in new or thing.parent in self.remade
            if key[0] == _GRANT and not whole:
                granted.append(thing)
            elif key[0] == _COMMENT and not whole:
                on = now.get(thing.parent)
                if on is None or not on.label:
                    left.append(remark(f"not undone: {thing.label}, new"))
                else:
                    lines.append(f"COMMENT ON {on.word} {on.spelled} IS NULL;")
        lines += grants(granted, again=False)
        dropped: dict[bool, list[str]] = {False: lines, True: []}
        for keys in order:
            texts = [self._dropped(now[key]) for key in keys]
            if len(keys) > 1 and all(text.startswith("DROP TABLE ") for text in texts):
                texts = [f"DROP TABLE {', '.join(now[key].spelled for key in keys)};"]
            dropped[any(key in late for key in keys)] += [text for text in texts if text]
        return lines, left, dropped[True]

    def _detached(self, key: str) -> Iterable[str]:
        """What takes a table from those it has as parents now."""
        thing, had = self.seen.now[key], (self.seen.was[key].value[6] or "").split() if key[0] == "c" else []
        for parent in (thing.value[6] or "").split() if key[0] == "c" else []:
            if parent not in had:
                on = self.seen.now[parent].spelled
                is_partition = thing.value[7] is not None
                yield (
                    f"ALTER TABLE {on} DETACH PARTITION {thing.spelled};"
                    if is_partition
                    else f"ALTER TABLE {thing.spelled} NO INHERIT {on};"
                )

    def _dropped(self, thing: Object) -> str:
        if thing.label is None or (thing.key[0] == "a" and thing.value[9] == "true"):
            return ""
        if thing.key[0] == "k" and _comes_along(thing, self.seen.now, {*self.seen.new}):
            return ""
        on = self.seen.now.get(thing.parent)
        kind = "attribute" if thing.kind == "column" and on is not None and on.kind == "type" else thing.kind
        if kind not in _DROPS:
            return remark(f"not undone: {thing.label}, new")
        text = _DROPS[kind].format(name=thing.name, spelled=thing.spelled, on=on.spelled if on is not None else "")
        return text.replace("TABLE", "DOMAIN", 1) if kind == "constraint" and thing.parent[0] == "y" else text

    async def _again(self) -> list[str]:
        """What makes again what is gone, and what it was what is changed; in the names of before."""
        was, now = self.seen.was, self.seen.now
        gone = {*self.seen.gone, *self.remade}
        changed = {*self.seen.changed} - self.remade
        things = _things((*gone, *changed))
        numbered = [key for key in things if key[1:].replace(".", "").isdigit()]
        wanted = [_gone(was[key]) for key in numbered if key in gone]
        wanted += [_changed(was[key], now[key]) for key in numbered if key in changed]
        here = [key for key in things if key in gone and key[0] == "k"]
        inherited = {key for key in here if was[key].parent in gone and was[key].value[1] == "true"}
        inherited |= {key for key in here if _comes_along(was[key], was, gone)}
        found = await definitions(self.session, [each for each in wanted if each.key not in inherited])
        along = roots(
            gone,
            [
                edge
                for edge in self.depended
                if edge[2] in "ePS" or (edge[2] == "i" and (edge[1] in gone or edge[1] in changed))
            ],
            was,
        )
        along |= {key: was[key].parent for key in gone if key[0] == "a" and was[key].parent in gone}
        pairs = [(along.get(one, one), along.get(other, other)) for one, other, kind in self.depended
                 if not (kind == "a" and one in was and was[one].kind == "sequence")]  # fmt: skip
        lost = {key for key in gone if was[key].kind == "table"}
        lost |= {was[key].parent for key in gone if key[0] == "a" and was[key].parent not in gone}
        needs = [
            (key, {along.get(other, other).partition(".")[0].replace("a", "c") for one, other in pairs if one == key})
            for key in things
        ]
        waits = {key for key, needed in needs if key[0] == "k" and needed & lost}
        waits |= {one for one, other in pairs if other in waits}
        lines, late = list[str](), list[str]()
        for keys in ordered([key for key in things if key not in along], pairs):
            for key in keys:
                # Schemas are there already.
                statements = [(rank, line) for rank, line in found.get(key, []) if rank > 1 or key[0] != "n"]
                for part in (part for part in along if along[part] == key and part[0] == "a"):
                    statements += [(rank, line) for rank, line in found.get(part, []) if rank >= 4]
                if key in waits:
                    late += [remark(_WAITS + line) for _, line in statements]
                    continue
                lines += [line for rank, line in statements if rank < LATE]
                late += [line for rank, line in statements if rank >= LATE]
                late += self._unsaid(key, key in found)
        granted: list[Object] = []
        taken = {whose(now[key]) for key in self.seen.new if key[:2] == _GRANT + "c"}
        for key, thing in was.items():
            # What takes a right on a table takes it on each of its columns.
            is_back = key in gone or thing.parent in self.remade or (key[:2] == _GRANT + "a" and whose(thing) in taken)
            if key[0] == _GRANT and is_back:
                granted.append(thing)
            elif key[0] == _GRANT and key in changed:
                lines.append(optioned(thing))
            elif key[0] == _COMMENT and (is_back or key in changed):
                said = self._comment(thing)
                late.append(remark(_WAITS + said) if thing.parent in waits else said)
            elif key in gone and key[0] in "fy" and f"g{key}/{'EXECUTE' if key[0] == 'f' else 'USAGE'}/0" not in was:
                word = "EXECUTE ON ROUTINE" if key[0] == "f" else "USAGE ON TYPE"
                lines.append(f"REVOKE {word} {thing.spelled} FROM PUBLIC;")
        lines += grants(granted, again=True)
        return lines + late

    def _comment(self, thing: Object) -> str:
        on = self.seen.was.get(thing.parent)
        if on is None or not on.label:
            return remark(f"not undone: {thing.label}, {'changed' if thing.key in self.seen.now else 'dropped'}")
        said = (thing.value[0] or "").replace("'", "''")
        return f"COMMENT ON {on.word} {on.spelled} IS '{said}';"

    def _unsaid(self, key: str, is_spelled: bool) -> list[str]:
        """A remark for what no statement brings back."""
        thing, now = self.seen.was[key], self.seen.now
        if thing.label is None:
            return []
        if key in now and key not in self.remade:
            parts = {*_differing(thing, now[key])}
            if is_spelled and parts <= {*_SPELLED.get(key[0], ())}:
                return []
            if key[0] == "c" and parts <= ({6, 7} if thing.kind.endswith("table") else {1}):
                return []
            if key[0] == "a" and thing.value[9] == "true" and (9 not in parts or self.seen.was[thing.parent].value[7]):
                return []
            return [remark(f"not undone: {thing.label}, changed")]
        if is_spelled or (key[0] == "a" and thing.value[9] == "true") or (key[0] == "k" and thing.value[1] == "true"):
            return []
        return [remark(f"not undone: {thing.label}, dropped")]


def _things(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key[0] not in _GRANT + _COMMENT]


def _rebuilt(seen: After, twins: dict[str | None, str], said: dict[str, list[tuple[int, str]]]) -> After:
    """The same without what was only made anew, as with another type of a column, and is what it was."""
    same = {
        key: twins[seen.now[key].label] for key, lines in seen.again.items()
        if twins.get(seen.now[key].label) and lines == said.get(twins[seen.now[key].label])
        and seen.now[key].value == seen.was[twins[seen.now[key].label]].value
    }  # fmt: skip
    if not same:
        return seen

    def old(key: str) -> str:
        head, slash, tail = key.partition("/")
        if head[0] == _GRANT:
            return _GRANT + same.get(head[1:], head[1:]) + slash + tail
        return same.get(key, key)

    now: Look = {}
    for key, thing in seen.now.items():
        parent, kept = same.get(thing.parent, thing.parent), old(key)
        if key[0] == _COMMENT and parent != thing.parent:
            kept = next((one for one, other in seen.was.items() if one[0] == _COMMENT and other.parent == parent), key)
        now[kept] = Object(kept, parent, thing.name, thing.label, thing.value)
    depends = [(same.get(one, one), same.get(other, other), kind) for one, other, kind in seen.depends]
    return After(seen.was, now, depends)


def _comes_along(constraint: Object, look: Look, keys: Collection[str]) -> bool:
    """Whether it is inherited from another one of `keys`."""
    table = look.get(constraint.parent)
    parents = (table.value[6] or "").split() if table is not None and table.key[0] == "c" else []
    return constraint.value[1] == "true" and any(
        key[0] == "k" and look[key].name == constraint.name and look[key].parent in parents for key in keys
    )


def _gone(thing: Object) -> Wanted:
    value = thing.value
    match thing.key[0]:
        case "c":
            parts = [
                0,
                *(at for at, plain in ((2, ""), (3, "false"), (4, "false"), (5, "d")) if value[at] != plain),
                8,
                9,
            ]
            parts = [at for at in parts if not (at == 2 and not value[2])]
        case "a":
            parts = [5, *(at for at in (6, 7, 8) if value[at])]
        case "t" | "r":
            parts = [0] if value[0] != "O" else []
        case "s":
            parts = [0] if value[0] else []
        case _:
            parts = [1]
    return Wanted(thing.key, is_gone=True, parts=parts, flags="false false true")


def _changed(was: Object, now: Object) -> Wanted:
    parts = _differing(was, now)
    options, parents, flags = "", "", ""
    if was.key[0] == "c":
        options, parents, flags = _only(now.value[2], was.value[2]), now.value[6] or "", now.value[8] or ""
    elif was.key[0] == "a":
        options = _only(now.value[8], was.value[8])
        flags = f"{'d' if now.value[2] and now.value[4] == '' else '-'} {'i' if now.value[3] else ''}"
    return Wanted(was.key, is_gone=False, parts=parts, options=options, parents=parents, flags=flags)


def _differing(was: Object, now: Object) -> list[int]:
    """The parts of the value that are others."""
    return [at for at, (one, other) in enumerate(zip(was.value, now.value, strict=True)) if one != other]


def _only(now: str | None, was: str | None) -> str:
    """The names of options that were not there."""
    mine, theirs = ({item.partition("=")[0] for item in (text or "").split(", ") if item} for text in (now, was))
    return ", ".join(sorted(mine - theirs))
