"""The way back from a change of the schema: drops what is new, undoes renames, and creates again what is gone.

Drops use the names after the change, and everything after the renames uses the names before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from mcp_postgres.engine.change.objects import DatabaseObject, Dependency, ObjectsByKey, read_dependencies, read_objects
from mcp_postgres.engine.change.undo.definitions import LATE_RANK, DefinitionRequest, read_definitions
from mcp_postgres.engine.change.undo.grants import grant_identity, grant_option_statement, grant_statements
from mcp_postgres.engine.change.undo.object_order import find_owners, sort_by_dependency
from mcp_postgres.engine.change.undo.renames import rename_statements
from mcp_postgres.engine.change.undo.sql_comments import remark
from mcp_postgres.engine.connection.pool import Session

__all__ = ["SchemaChange", "describe_change", "undo_statements"]

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
_GRANT = "g"
_COMMENT = "d"
_WAITS = "when the values are back: "
# Parts of a value for which there are statements.
_SPELLED = {
    "c": (0, 1, 2, 3, 4, 5, 6, 8, 9, 10), "a": (0, 1, 2, 3, 5, 6, 7, 8, 9), "k": (0, 2), "f": (0, 1), "t": (0, 1),
    "p": (0,), "r": (0, 1), "s": (0, 1), "y": (0, 1, 2), "n": (0,),
}  # fmt: skip


@dataclass
class SchemaChange:
    """What was seen of a change while it was there.

    Attributes:
        was: all objects as they were; `now` as they would be.
        depends: how those that the change is about depend on each other then.
        recreated: statements for what is new under a name that something else had.
    """

    was: ObjectsByKey
    now: ObjectsByKey
    depends: Sequence[Dependency] = ()
    recreated: dict[str, list[tuple[int, str]]] = field(default_factory=dict[str, list[tuple[int, str]]])

    @property
    def new(self) -> list[str]:
        return [key for key in self.now if key not in self.was]

    @property
    def dropped(self) -> list[str]:
        return [key for key in self.was if key not in self.now]

    @property
    def changed(self) -> list[str]:
        return [key for key in self.was if key in self.now and self.now[key].state != self.was[key].state]

    @property
    def renamed(self) -> list[str]:
        return [key for key in self.was if key in self.now and self.now[key].label != self.was[key].label]


async def describe_change(session: Session, was: ObjectsByKey, now: ObjectsByKey) -> SchemaChange:
    """Look at a change while it is there."""
    change = SchemaChange(was, now)
    keys = {*change.new, *change.changed, *change.renamed}
    if keys:
        change.depends = await read_dependencies(session, _without_grants(keys))
    had = {was[key].label for key in change.dropped}
    same = [key for key in change.new if now[key].label in had and key[0] in "ck"]
    if same:
        change.recreated = await read_definitions(session, [_request_dropped(now[key]) for key in same])
    return change


async def undo_statements(session: Session, change: SchemaChange) -> Sequence[str]:
    """Return statements that undo a change, asked for when it is not there any more."""
    return await _UndoPlan(session, change).lines()


class _UndoPlan:
    def __init__(self, session: Session, change: SchemaChange) -> None:
        self.session = session
        self.change = change

    async def lines(self) -> list[str]:
        change = self.change
        if change.recreated:
            dropped = _without_grants(change.dropped)
            definitions = await read_definitions(self.session, [_request_dropped(change.was[key]) for key in dropped])
            change = self.change = _match_recreated(
                change, {change.was[key].label: key for key in dropped}, definitions
            )
        if change.dropped or change.changed:
            self.depended = await read_dependencies(self.session, _without_grants({*change.dropped, *change.changed}))
        else:
            self.depended = []
        self.remade = await self._find_remade()
        lines, remarks, late = self._drop_new()
        change = self.change
        lines += remarks
        lines = [*lines, *(f"CREATE SCHEMA {change.was[key].name};" for key in change.dropped if key[0] == "n")]
        lines += rename_statements(change.was, change.now, change.renamed, change.depends)
        lines += await self._restore_old()
        return [*lines, *late]

    async def _find_remade(self) -> set[str]:
        """Return views whose columns can't be taken off in their place, and what depends on them."""
        change = self.change
        now = change.now
        was = change.was
        remade = {now[key].parent for key in change.new if now[key].label is None and now[key].parent in was}
        fresh = remade
        while fresh:
            ones = {
                one
                for one, other, _ in await read_dependencies(self.session, fresh)
                if other in fresh and one[0] in "ctr"
            }
            if unseen := [key[1:] for key in ones if key not in was]:
                # No part of the change: they are what they were.
                more = {
                    key: thing for key, thing in (await read_objects(self.session, unseen)).items() if key not in was
                }
                # Who tries the way back looks at them too.
                was.update(more)
                change = self.change = SchemaChange(was, more | now, change.depends, change.recreated)
                now = change.now
                was = change.was
            fresh = {key for key in ones if key in was and key in now} - remade
            remade |= fresh
        return remade

    def _drop_new(self) -> tuple[list[str], list[str], list[str]]:
        """Return what drops what is new, in the names of now.

        What is left; and what can be dropped behind all else only.
        """
        now = self.change.now
        depends = self.change.depends
        new = {*self.change.new}
        changed = dict.fromkeys(self.change.changed)
        root = find_owners(
            new, [edge for edge in depends if edge[1] in new or (edge[1] in changed and edge[2] == "i")], now
        )
        own = [key for key in self.change.new if key not in root and key[0] not in _GRANT + _COMMENT] + [*self.remade]
        # A new schema is left first by what was moved into it.
        stays = {*changed, *(key for key in self.change.renamed if now[key].parent in new)} - self.remade
        late = {root.get(other, other) for one, other, _ in depends if other in new and one in stays}
        late &= {*own}
        while (
            more := {root.get(other, other) for one, other, _ in depends if root.get(one, one) in late} & {*own} - late
        ):
            late |= more
        order = sort_by_dependency(own, [(root.get(other, other), root.get(one, one)) for one, other, _ in depends])
        lines = [line for key in changed for line in self._detach_statements(key)]
        remarks = list[str]()
        granted = list[DatabaseObject]()
        for key in self.change.new:
            thing = now[key]
            whole = thing.parent in new or thing.parent in self.remade
            if key[0] == _GRANT and not whole:
                granted.append(thing)
            elif key[0] == _COMMENT and not whole:
                on = now.get(thing.parent)
                if on is None or not on.label:
                    remarks.append(remark(f"not undone: {thing.label}, new"))
                else:
                    lines.append(f"COMMENT ON {on.sql_kind} {on.qualified_name} IS NULL;")
        lines += grant_statements(granted, is_grant=False)
        dropped: dict[bool, list[str]] = {False: lines, True: []}
        for keys in order:
            texts = [self._drop_statement(now[key]) for key in keys]
            if len(keys) > 1 and all(text.startswith("DROP TABLE ") for text in texts):
                texts = [f"DROP TABLE {', '.join(now[key].qualified_name for key in keys)};"]
            dropped[any(key in late for key in keys)] += [text for text in texts if text]
        return lines, remarks, dropped[True]

    def _detach_statements(self, key: str) -> Iterable[str]:
        """Yield what takes a table from those it has as parents now."""
        thing = self.change.now[key]
        if key[0] == "c":
            had = (self.change.was[key].state[6] or "").split()
        else:
            had = []
        for parent in (thing.state[6] or "").split() if key[0] == "c" else []:
            if parent not in had:
                on = self.change.now[parent].qualified_name
                is_partition = thing.state[7] is not None
                yield (
                    f"ALTER TABLE {on} DETACH PARTITION {thing.qualified_name};"
                    if is_partition
                    else f"ALTER TABLE {thing.qualified_name} NO INHERIT {on};"
                )

    def _drop_statement(self, thing: DatabaseObject) -> str:
        if thing.label is None or (thing.key[0] == "a" and thing.state[9] == "true"):
            return ""
        if thing.key[0] == "k" and _is_inherited(thing, self.change.now, {*self.change.new}):
            return ""
        on = self.change.now.get(thing.parent)
        if thing.kind == "column" and on is not None and on.kind == "type":
            kind = "attribute"
        else:
            kind = thing.kind
        if kind not in _DROPS:
            return remark(f"not undone: {thing.label}, new")
        text = _DROPS[kind].format(
            name=thing.name, spelled=thing.qualified_name, on=on.qualified_name if on is not None else ""
        )
        if kind == "constraint" and thing.parent[0] == "y":
            return text.replace("TABLE", "DOMAIN", 1)
        return text

    async def _restore_old(self) -> list[str]:
        """Return what makes again what is gone, and what it was what is changed; in the names of before."""
        was = self.change.was
        now = self.change.now
        dropped = {*self.change.dropped, *self.remade}
        changed = {*self.change.changed} - self.remade
        things = _without_grants((*dropped, *changed))
        numbered = [key for key in things if key[1:].replace(".", "").isdigit()]
        requests = [_request_dropped(was[key]) for key in numbered if key in dropped]
        requests += [_request_changed(was[key], now[key]) for key in numbered if key in changed]
        constraints = [key for key in things if key in dropped and key[0] == "k"]
        inherited = {key for key in constraints if was[key].parent in dropped and was[key].state[1] == "true"}
        inherited |= {key for key in constraints if _is_inherited(was[key], was, dropped)}
        definitions = await read_definitions(self.session, [each for each in requests if each.key not in inherited])
        along = find_owners(
            dropped,
            [
                edge
                for edge in self.depended
                if edge[2] in "ePS" or (edge[2] == "i" and (edge[1] in dropped or edge[1] in changed))
            ],
            was,
        )
        along |= {key: was[key].parent for key in dropped if key[0] == "a" and was[key].parent in dropped}
        pairs = [(along.get(one, one), along.get(other, other)) for one, other, kind in self.depended
                 if not (kind == "a" and one in was and was[one].kind == "sequence")]  # fmt: skip
        lost = {key for key in dropped if was[key].kind == "table"}
        lost |= {was[key].parent for key in dropped if key[0] == "a" and was[key].parent not in dropped}
        needs = [
            (key, {along.get(other, other).partition(".")[0].replace("a", "c") for one, other in pairs if one == key})
            for key in things
        ]
        waits = {key for key, needed in needs if key[0] == "k" and needed & lost}
        waits |= {one for one, other in pairs if other in waits}
        lines = list[str]()
        late = list[str]()
        for keys in sort_by_dependency([key for key in things if key not in along], pairs):
            for key in keys:
                # Schemas are there already.
                statements = [(rank, line) for rank, line in definitions.get(key, []) if rank > 1 or key[0] != "n"]
                for part in (part for part in along if along[part] == key and part[0] == "a"):
                    statements += [(rank, line) for rank, line in definitions.get(part, []) if rank >= 4]
                if key in waits:
                    late += [remark(_WAITS + line) for _, line in statements]
                    continue
                lines += [line for rank, line in statements if rank < LATE_RANK]
                late += [line for rank, line in statements if rank >= LATE_RANK]
                late += self._remark_on_rest(key, key in definitions)
        granted: list[DatabaseObject] = []
        revoked = {grant_identity(now[key]) for key in self.change.new if key[:2] == _GRANT + "c"}
        for key, thing in was.items():
            # What takes a right on a table takes it on each of its columns.
            is_back = (
                key in dropped
                or thing.parent in self.remade
                or (key[:2] == _GRANT + "a" and grant_identity(thing) in revoked)
            )
            if key[0] == _GRANT and is_back:
                granted.append(thing)
            elif key[0] == _GRANT and key in changed:
                lines.append(grant_option_statement(thing))
            elif key[0] == _COMMENT and (is_back or key in changed):
                said = self._comment(thing)
                late.append(remark(_WAITS + said) if thing.parent in waits else said)
            elif key in dropped and key[0] in "fy" and f"g{key}/{'EXECUTE' if key[0] == 'f' else 'USAGE'}/0" not in was:
                word = "EXECUTE ON ROUTINE" if key[0] == "f" else "USAGE ON TYPE"
                lines.append(f"REVOKE {word} {thing.qualified_name} FROM PUBLIC;")
        lines += grant_statements(granted, is_grant=True)
        return lines + late

    def _comment(self, thing: DatabaseObject) -> str:
        on = self.change.was.get(thing.parent)
        if on is None or not on.label:
            return remark(f"not undone: {thing.label}, {'changed' if thing.key in self.change.now else 'dropped'}")
        said = (thing.state[0] or "").replace("'", "''")
        return f"COMMENT ON {on.sql_kind} {on.qualified_name} IS '{said}';"

    def _remark_on_rest(self, key: str, is_spelled: bool) -> list[str]:
        """Return a remark for what no statement brings back."""
        thing = self.change.was[key]
        now = self.change.now
        if thing.label is None:
            return []
        if key in now and key not in self.remade:
            parts = {*_changed_parts(thing, now[key])}
            if is_spelled and parts <= {*_SPELLED.get(key[0], ())}:
                return []
            if key[0] == "c" and parts <= ({6, 7} if thing.kind.endswith("table") else {1}):
                return []
            if (
                key[0] == "a"
                and thing.state[9] == "true"
                and (9 not in parts or self.change.was[thing.parent].state[7])
            ):
                return []
            return [remark(f"not undone: {thing.label}, changed")]
        if is_spelled or (key[0] == "a" and thing.state[9] == "true") or (key[0] == "k" and thing.state[1] == "true"):
            return []
        return [remark(f"not undone: {thing.label}, dropped")]


def _without_grants(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if key[0] not in _GRANT + _COMMENT]


def _match_recreated(
    change: SchemaChange, twins: dict[str | None, str], definitions: dict[str, list[tuple[int, str]]]
) -> SchemaChange:
    """Return the same without what was only made anew, as with another type of a column, and is what it was."""
    same = {
        key: twins[change.now[key].label] for key, lines in change.recreated.items()
        if twins.get(change.now[key].label) and lines == definitions.get(twins[change.now[key].label])
        and change.now[key].state == change.was[twins[change.now[key].label]].state
    }  # fmt: skip
    if not same:
        return change

    def old(key: str) -> str:
        head, slash, tail = key.partition("/")
        if head[0] == _GRANT:
            return _GRANT + same.get(head[1:], head[1:]) + slash + tail
        return same.get(key, key)

    now: ObjectsByKey = {}
    for key, thing in change.now.items():
        parent = same.get(thing.parent, thing.parent)
        kept = old(key)
        if key[0] == _COMMENT and parent != thing.parent:
            kept = next(
                (one for one, other in change.was.items() if one[0] == _COMMENT and other.parent == parent), key
            )
        now[kept] = DatabaseObject(kept, parent, thing.name, thing.label, thing.state)
    depends = [(same.get(one, one), same.get(other, other), kind) for one, other, kind in change.depends]
    return SchemaChange(change.was, now, depends)


def _is_inherited(constraint: DatabaseObject, look: ObjectsByKey, keys: Collection[str]) -> bool:
    """Return whether it is inherited from another one of `keys`."""
    table = look.get(constraint.parent)
    if table is not None and table.key[0] == "c":
        parents = (table.state[6] or "").split()
    else:
        parents = []
    return constraint.state[1] == "true" and any(
        key[0] == "k" and look[key].name == constraint.name and look[key].parent in parents for key in keys
    )


def _request_dropped(thing: DatabaseObject) -> DefinitionRequest:
    value = thing.state
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
            if value[0] != "O":
                parts = [0]
            else:
                parts = []
        case "s":
            if value[0]:
                parts = [0]
            else:
                parts = []
        case _:
            parts = [1]
    return DefinitionRequest(thing.key, is_gone=True, parts=parts, flags="false false true")


def _request_changed(was: DatabaseObject, now: DatabaseObject) -> DefinitionRequest:
    parts = _changed_parts(was, now)
    options = ""
    parents = ""
    flags = ""
    if was.key[0] == "c":
        options = _new_options(now.state[2], was.state[2])
        parents = now.state[6] or ""
        flags = now.state[8] or ""
    elif was.key[0] == "a":
        options = _new_options(now.state[8], was.state[8])
        flags = f"{'d' if now.state[2] and now.state[4] == '' else '-'} {'i' if now.state[3] else ''}"
    return DefinitionRequest(was.key, is_gone=False, parts=parts, options=options, parents=parents, flags=flags)


def _changed_parts(was: DatabaseObject, now: DatabaseObject) -> list[int]:
    """Return the parts of the value that are others."""
    return [at for at, (one, other) in enumerate(zip(was.state, now.state, strict=True)) if one != other]


def _new_options(now: str | None, was: str | None) -> str:
    """Return the names of options that were not there."""
    mine, theirs = ({item.partition("=")[0] for item in (text or "").split(", ") if item} for text in (now, was))
    return ", ".join(sorted(mine - theirs))
