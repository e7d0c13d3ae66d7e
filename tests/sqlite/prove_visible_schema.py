"""Prove that `--only` and `--mask` hold: two databases that differ in hidden rows and masked values answer alike.

Every value that nobody may see has `canary` in it and is another one in the second file, and they lie in another
order. So an answer that depends on one differs, whatever its form. The twin of each form, with a column that is not
masked, gives what it gives without `--mask`.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from mcp_sqlite.worker import operations
from mcp_sqlite.worker.connection.connections import Connections
from mcp_sqlite.worker.connection.database import VisibleNames
from mcp_sqlite.worker.connection.interrupt import Interrupt
from mcp_sqlite.worker.language.failure import Failure
from proofs.tally import Tally
from sqlite.visible_schema_cases import (
    COMPARED,
    HIDDEN,
    MASK,
    ONLY,
    ORDERLESS,
    QUIET,
    ROWS,
    SCENE,
    SERVED_BUT_LEADING,
    SHOWN,
    SOURCES,
    USES,
    WRITES,
)

WAYS: dict[str, tuple[str, str]] = {
    "query": ("query", "{q}"),
    "one of several": ("query", "SELECT 1; {q}"),
    "explain": ("query", "EXPLAIN {q}"),
    "plan in a query": ("query", "EXPLAIN QUERY PLAN {q}"),
    "plan": ("explain", "{q}"),
    "export, csv": ("export csv", "{q}"),
    "export, jsonl": ("export jsonl", "{q}"),
    "what is followed": ("watch", "{q}"),
    "beside a file": ("query", 'SELECT * FROM ({q}) LEFT JOIN "beside/in.csv" ON beside_id = 1'),
    "in a change": ("change", "INSERT INTO copy (x) SELECT count(*) FROM ({q}) RETURNING x"),
    "as a change": ("change", "{q}"),
}
_PROGRAM = re.compile(r"Transaction[^\n]*?(?=\\n|\n)|vtab:[0-9A-F]+")
REFUSED = ("no such table", "masked", "not served", "no statement may say", "stays closed", "no such column")
PAGE = {"limit": 100, "max_bytes": 20_000, "max_cell": 200}


def make(path: Path, seed: int) -> Path:
    """One of the two databases; they differ in what nobody may see, not in how much it is."""
    chance = random.Random(seed)
    ends = chance.sample("abcdefghijklmnopqrstuvwxyz", 4 * ROWS)
    hidden = iter(f"canary-{end}" for end in ends)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCENE)
        numbers = range(1, ROWS + 1)
        person = [(number, "n" if number % 2 else "m", next(hidden), number) for number in numbers]
        connection.executemany("INSERT INTO person (id, name, email, n) VALUES (?, ?, ?, ?)", person)
        connection.executemany("INSERT INTO mails VALUES (?, ?, ?)", [(n, next(hidden), f"m{n}") for n in numbers])
        connection.executemany("INSERT INTO watched VALUES (?, ?, ?)", [(n, f"w{n}", next(hidden)) for n in numbers])
        connection.executemany("INSERT INTO secret VALUES (?, ?)", [(n, next(hidden)) for n in numbers])
        connection.executemany("INSERT INTO private VALUES (?)", [(f"canary {n} {ends[n]}",) for n in numbers])
        connection.execute('INSERT INTO "odd ""name" SELECT * FROM secret')
        connection.execute("INSERT INTO logged VALUES (1, 'a')")
        connection.execute("INSERT INTO found (found) VALUES ('rebuild')")
        connection.execute("ANALYZE")
    return path


class Server:
    """What a worker answers for one of the databases.

    Args:
        whole: serve everything.
    """

    def __init__(self, path: Path, folder: Path, *, whole: bool = False) -> None:
        self.path, self.folder = str(path), folder
        with closing(sqlite3.connect(path)) as connection:
            columns = ("email FROM person", "email FROM mails", "email FROM watched", "x FROM secret", "x FROM private")
            found = [value for column in columns for (value,) in connection.execute(f"SELECT {column}")]
        # These stand in a table that everybody may read, and in definitions.
        self.secrets = set(found) - {"canary-k", "canary-m"}
        self._connections = Connections(
            Interrupt(), {} if whole else {self.path: VisibleNames(ONLY, MASK)}, str(folder)
        )
        (folder / "beside").mkdir(exist_ok=True)
        (folder / "beside" / "in.csv").write_text("beside_id,beside_name\n1,n\n2,m\n", "utf-8")

    def close(self) -> None:
        self._connections.close()

    def ask(self, do: str, **more: Any) -> tuple[bool, str]:
        """Whether it failed, and all that came back, files too."""
        do, _, ending = do.partition(" ")
        spool = self.folder / "spool"
        request = {"do": do, "path": self.path, "spool": str(spool), "spool_bytes": 1_000_000, **PAGE, **more}
        if do == "export":
            request |= {"folder": str(self.folder), "name": f"out.{ending}", "max_bytes": 1_000_000}
        if do == "change":
            request |= {"mode": "write", "dry_run": True, "parameters": None}
        if do == "watch":
            subject = {"do": "query", "path": self.path, "parameters": None, **PAGE, "sql": more["sql"]}
            request |= {"subjects": {"a": subject}, "new": True}
        frames: list[dict[str, Any]] = []
        try:
            found = operations.run(self._connections, request, frames.append)
            failed = False
        except Failure as failure:
            found, failed = {"said": f"{failure.kind}: {failure.message} {failure.fix}"}, True
        said = json.dumps([_timeless(found), frames], ensure_ascii=False, default=str)
        for file in filter(Path.is_file, self.folder.iterdir()):
            said += file.read_text("utf-8")
            file.unlink()
        return failed or '"error": [' in said, said


def _timeless(found: dict[str, Any]) -> dict[str, Any]:
    found.pop("seconds", None)
    for step in found.get("steps", ()):
        step.pop("seconds", None)
    return found


def cases() -> Iterator[tuple[str, str, str, str]]:
    """Kind, what it is called, the statement, and its twin if it has one."""
    for name, (before, items, column) in SOURCES.items():
        for template in USES:
            sql, twin = (before + template.format(c=each, f=items) for each in (column, "p.name"))
            yield "used", f"{name}: {sql}", sql, twin
    for kind, statements in (("order", ORDERLESS), ("compared", COMPARED), ("hidden", HIDDEN), ("shown", SHOWN)):
        for sql in statements:
            yield kind, sql, sql, ""


def prove(share: float, seed: int) -> Tally:
    """Try a share of all cases."""
    tally, chance = Tally(), random.Random(seed)
    with tempfile.TemporaryDirectory() as name, ExitStack() as ends:
        root = Path(name)
        folder = root / "files"
        folder.mkdir()
        paths = [make(root / f"{letter}.db", seed + number) for number, letter in enumerate("ab")]
        one, two = (ends.enter_context(closing(Server(path, folder))) for path in paths)
        whole = ends.enter_context(closing(Server(paths[0], folder, whole=True)))
        for kind, case, sql, twin in cases():
            for way, (do, form) in WAYS.items():
                if chance.random() < (share if kind == "used" else min(1.0, 10 * share)):
                    tally.note(kind, f"{way}: {case}", _fault(kind, way, one, two, whole, do, form.format(q=sql)))
                    if twin and do != "change":
                        tally.note("twins", f"{way}: {twin}", _twin(one, whole, do, form.format(q=twin)))
        for kind, statements in (("writes", WRITES), ("quiet", QUIET)):
            for sql in statements:
                if chance.random() < min(1.0, 20 * share):
                    tally.note(kind, sql, _change_fault(kind, one, two, whole, sql))
        _other_ways(tally, one, two)
    return tally


def _differs(one: tuple[bool, str], two: tuple[bool, str], asked: str, secrets: Collection[str]) -> str:
    # A program names the version of the schema that it was compiled for, and places in memory.
    one, two = ((failed, _PROGRAM.sub("", said)) for failed, said in (one, two))
    if one != two:
        return f"{one[1]} <> {two[1]}"
    asked = asked.lower()
    seen = [value for value in secrets if value not in asked and value in one[1].lower()]
    return one[1] if seen or "can't be understood" in one[1] else ""


def _fault(kind: str, way: str, one: Server, two: Server, whole: Server, do: str, sql: str) -> str:
    said = one.ask(do, sql=sql)
    if fault := _differs(said, two.ask(do, sql=sql), sql, one.secrets):
        return fault
    if (
        kind == "hidden"
        and way in ("query", "one of several", "export, csv")
        and not (said[0] and any(w in said[1] for w in REFUSED))
    ):
        return said[1]
    if kind == "shown" and way in ("query", "export, csv"):
        return "" if said == whole.ask(do, sql=sql) else said[1]
    return ""


def _twin(one: Server, whole: Server, do: str, sql: str) -> str:
    (failed, said), (other, expected) = one.ask(do, sql=sql), whole.ask(do, sql=sql)
    if failed != other:
        return said
    same = _rows(said) == _rows(expected) or do not in ("query", "export csv", "export jsonl")
    return "" if same or "EXPLAIN" in sql or "mails" in sql else f"{said} <> {expected}"


def _rows(said: str) -> list[str]:
    try:
        found = json.loads(said)[0]
    except ValueError:
        return sorted(map(_unordered, said.splitlines()))
    return sorted(
        _unordered(line) for page in found.get("results", [found]) for line in page.get("lines", "").splitlines()
    )


def _unordered(line: str) -> str:
    """A row whatever the order of what was gathered in it."""
    return "".join(sorted(line))


def _change_fault(kind: str, one: Server, two: Server, whole: Server, sql: str) -> str:
    said = one.ask("change", sql=sql)
    if fault := _differs(said, two.ask("change", sql=sql), sql, one.secrets):
        return fault
    if kind == "writes":
        return "" if said[0] and any(word in said[1] for word in (*REFUSED, "because it is a view")) else said[1]
    expected = whole.ask("change", sql=sql)
    return "" if said[0] == expected[0] and _changed(said[1]) == _changed(expected[1]) else f"{said} <> {expected}"


def _changed(said: str) -> list[Any]:
    steps = json.loads(said)[0].get("steps", ())
    return [(step["rows"], step["columns"], sorted(step.get("lines", "").splitlines())) for step in steps]


def _other_ways(tally: Tally, one: Server, two: Server) -> None:
    """Everything that shows something without SQL of the caller's."""
    tables = [
        *ONLY, "secret", "hidden", "inner_view", "private", "private_content", "log", "child", "sqlite_master",
        "sqlite_stat1", 'odd "name',
    ]  # fmt: skip
    hidden = [*tables[len(ONLY) :], *SERVED_BUT_LEADING]
    requests: list[tuple[str, dict[str, Any]]] = [("describe", {"table": table, "sample": 6}) for table in tables]
    requests += [("catalog", {"name": name, "budget": 1.0, "after": None}) for name in (None, "secret", "person")]
    requests += [("schema", {}), *(("schema", {"table": table}) for table in tables)]
    requests += [("find", {"text": word}) for word in ("canary-", "secret", "email", "private", "e")]
    requests += [("names", {"typed": ""}), *(("names", {"typed": "", "table": table}) for table in tables)]
    wheres: tuple[dict[str, Any], ...] = (
        {},
        {"newest": True},
        *({"column": column, "value": "canary-k"} for column in ("email", "x")),
    )
    requests += [("rows", {"table": table, **more}) for table in tables for more in wheres]
    requests += [("row", {"table": table, "key": key}) for table in tables for key in ("1", "canary-k")]
    requests += [
        ("search", {"text": "canary", "table": table}) for table in (None, "found", "private", "docs", "words")
    ]
    requests += [("check", {"quick": quick}) for quick in (True, False)]
    for do, more in requests:
        said = one.ask(do, **more)
        fault = _differs(said, two.ask(do, **more), "canary-k", one.secrets)
        asked = more.get("table")
        if (
            do in ("describe", "rows", "row", "schema")
            and asked in hidden
            and not (said[0] and "There is no table" in said[1])
        ):
            fault = fault or said[1]
        if do in ("catalog", "names") and any(f'"{name}"' in said[1] for name in hidden):
            fault = fault or said[1]
        tally.note("other ways", f"{do} {more}", fault)
    for missing in (
        "SELECT * FROM {t}",
        "SELECT x FROM {t} WHERE id = 1",
        "INSERT INTO {t} VALUES (1)",
        "SELECT nothing FROM {t}",
    ):
        do = "change" if missing.startswith("INSERT") else "query"
        said, other = (
            one.ask(do, sql=missing.format(t=name))[1].replace(name, "T").partition("`.")[0]
            for name in ("secret", "secrex")
        )
        tally.note("as if missing", missing, "" if said == other else f"{said} <> {other}")
