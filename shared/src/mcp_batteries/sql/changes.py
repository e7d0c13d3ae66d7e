"""What a change did, or would do, as one text: each statement, what the schema gained and lost, rows before and after.

Both SQL servers fill the same form, so that a migration reads the same; what only one of them knows is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from mcp_batteries.sql.rows import RowPage, compact, count, one_line

__all__ = ["Change", "Import", "Sample", "Step"]

# A section of the answer has at most so many lines.
_MOST = 200


@dataclass(frozen=True)
class Step:
    """What one statement did.

    Attributes:
        what: in the database's words, such as `CREATE INDEX`, or `UPDATE in books`.
        rows: how many it touched; None if that means nothing.
        detail: other facts: rows that triggers touched, its locks, its time.
        returned: rows that it returned.
    """

    what: str
    rows: int | None = None
    detail: str = ""
    returned: RowPage | None = None

    def text(self) -> str:
        parts = [count(self.rows, "row")] if self.rows is not None else []
        line = f"{self.what}: {parts[0]}" if self.what and parts else self.what or "".join(parts)
        line += f"{', ' if line else ''}{self.detail}" if self.detail else ""
        if self.returned is None:
            return line
        head, _, rows = self.returned.text().rstrip().partition("\n")
        told = re.search(rf"(?:^|: ){re.escape(head.strip('[]'))}(?: in |, |$)", line)
        return "\n".join(filter(None, [line, "" if told else head, rows]))


@dataclass(frozen=True)
class Sample:
    """Some rows of a table as they were and as they are.

    Attributes:
        columns: their names; rows are lines of JSON, as in `RowPage`.
        had: the old names, if the table has others now.
    """

    table: str
    columns: Sequence[str]
    before: str
    after: str
    had: Sequence[str] = ()

    def text(self) -> str:
        lines = [f"{self.table}: {compact(self.columns)}"]
        lines += [f"before: {compact(self.had)}"] if self.had and list(self.had) != list(self.columns) else []
        # A value may have what else ends lines, such as U+2028.
        lines += [f"- {line}" for line in self.before.split("\n") if line]
        return "\n".join(lines + [f"+ {line}" for line in self.after.split("\n") if line])


@dataclass(frozen=True)
class Change:
    """What statements did, or would do, in one transaction.

    Attributes:
        objects: what the schema gained (+), lost (-) and changed (~); None if none could change.
        samples: rows of changed tables; in a dry run.
        findings: remarkable facts, each a heading with lines below it: locks, rewrites, keys that point nowhere.
        back: statements that would undo it, and what no statement restores; in a dry run.
    """

    steps: Sequence[Step]
    dry_run: bool
    objects: Sequence[str] | None = None
    samples: Sequence[Sample] = ()
    findings: Sequence[tuple[str, Sequence[str]]] = ()
    back: Sequence[str] = ()

    def text(self) -> str:
        lines = ["Dry run, nothing was changed. It would do this:" if self.dry_run else "Done and committed."]
        several = len(self.steps) > 1
        lines += [f"{number}. {step.text()}" if several else step.text() for number, step in enumerate(self.steps, 1)]
        if self.objects is not None:
            lines += ["Schema:", *_bounded(self.objects or ["nothing"])]
        if self.samples:
            lines += ["Rows (- before, + after), a sample:", *(sample.text() for sample in self.samples)]
        for title, found in self.findings:
            lines += [title, *_bounded(found)]
        if self.back:
            lines += ["The way back:", *_bounded(self.back)]
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True)
class Import:
    """Rows of a file in a table.

    Attributes:
        made: the definitions of its columns, if the table was created.
        seen: what the values of each column are like; in a dry run.
        written: the form of the file, if it is unusual.
    """

    table: str
    columns: Sequence[str]
    rows: int
    dry_run: bool
    made: Sequence[str] = ()
    seen: Sequence[str] = ()
    written: str = ""

    def text(self) -> str:
        return self._said() + (f"\nIn the file {one_line(self.written)}." if self.written else "")

    def _said(self) -> str:
        verb = "Dry run, nothing was changed; it would insert" if self.dry_run else "Inserted"
        said = f"{verb} {count(self.rows, 'row')} into `{self.table}`"
        if not self.made:
            return one_line(f"{said} ({', '.join(self.columns)}).")
        if not self.seen:
            return one_line(f"{said}, a new table: {', '.join(self.made)}")
        lines = [f"{column}: {seen}" for column, seen in zip_longest(self.made, self.seen, fillvalue="empty")]
        return "\n".join([f"{said}, a new table:", *map(one_line, lines)])


def _bounded(lines: Sequence[str]) -> Sequence[str]:
    return lines if len(lines) <= _MOST else [*lines[:_MOST], f"… {len(lines) - _MOST} more"]
