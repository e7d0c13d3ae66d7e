"""Turns errors of PostgreSQL and libpq into problems that a caller can act on."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import psycopg

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote

__all__ = ["Missing", "in_doubt", "placed", "problem", "unreachable", "without_values"]

_TERSE: ContextVar[bool] = ContextVar("terse", default=False)

_GONE = ("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04")
"""The backend was ended: by an administrator, a crash, a shutdown, or for idling."""

_REMEDIES = (
    ("certificate verify failed", "name the certificate of its authority as `sslrootcert`, or renew the server's"),
    ("does not match host name", "write the host as its certificate does; `hostaddr` may add the address"),
    ("does not support SSL", "switch `ssl` on at the server, or do without by `sslmode=prefer`"),
    ("no encryption|SSL off", "add `sslmode=require`, or have pg_hba.conf admit this"),
    ("client certificate|certificate required", "name a certificate of this role's as `sslcert` and `sslkey`"),
    ("certificate file|private key file", "mend `sslrootcert`, `sslcert` or `sslkey`, which name files"),
    ("password|authentication failed", "mend the password; its file is read again at each connect"),
    ("no pg_hba.conf entry", "have pg_hba.conf admit it"),
    (
        "database .* does not exist|role .* does not exist|not permitted to log in",
        "mend the address or make what it names",
    ),
    ("definition of service|service file|failed to resolve host|invalid .* value", "mend the address"),
)
"""What libpq or the server says of a fault that time does not heal, and what the operator can do."""
_ARRAY = re.compile(r': "\{(?:"(?!(?:[^"\\]|\\.)*": )|NULL|\})')
"""A value, as PostgreSQL repeats it, that was an array, and stood where it could be none."""
_ENUM = re.compile(r"^invalid input value for enum ")
_NOT_UTF8 = (
    "A database whose encoding is SQL_ASCII may hold bytes that are not UTF-8. As another encoding, such as LATIN1, a "
    "column is read by convert_from(convert(convert_to(name, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII')."
)
_PATH = re.compile(r'"[^"]*[/\\]([^"/\\]+)"')
_MOVES = {
    "22003": "Send a smaller value, or choose a larger type.",
    "22012": "`a / nullif(b, 0)` is null there.",
    "22P02": "Send a value of that type.",
    "23502": "Give it a value.",
    "23503": "Insert what it points to first, or delete what points to it: one call takes several statements.",
    "23505": "Such a row is there: INSERT ... ON CONFLICT DO UPDATE SET ... changes it.",
    "23514": "`get_table` shows the check.",
    **dict.fromkeys(("42701", "42710", "42723", "42P06", "42P07"), "`search_schema` finds it. Choose another name."),
    "42803": "Add it to GROUP BY, or aggregate it as `max(column)`.",
}
"""The next move, where PostgreSQL tells none."""
_WAYS = {
    "22P02": (
        ("type json", 'JSON is sent as its text, such as "[1, 2]" or "\\"word\\"", or as an object.'),
        ("malformed record", "Send a row as its text, `(1,word)`, or build it: ROW($1, $2)::type."),
    ),
    "42601": (("unterminated quoted string", "A quote in a text is written twice: 'it''s'."),),
    "42803": (
        ("not allowed in WHERE", "WHERE sees single rows: use HAVING, or a subquery."),
        ("nested", "Aggregate in a subquery, and that around it."),
        ("not allowed in", "Compute it in a subquery."),
    ),
    "42P10": (("SELECT DISTINCT, ORDER BY", "Select it too, or use GROUP BY in place of DISTINCT."),),
    "42P20": (("window functions are not allowed", "Compute it in a subquery, and filter around that."),),
}
"""The same, where a code stands for several things: words of PostgreSQL's, and the move."""


_MISSING = {"42P01": "relation", "42703": "column", "42883": "function", "42704": "type", "3F000": "schema"}
_NAME = re.compile(
    r'(relation|table|view|index|sequence|function|operator|type|schema|column|parameter) "?((?:[^"(]|"")+?)"?'
    r"(?:\(| does not| of relation| referenced in| specified in|$)"
)


class Missing(NotFound):
    """A name in `sql` that there is not."""

    def __init__(self, what: str, fix: str, *, kind: str, name: str) -> None:
        super().__init__(what, fix)
        self.kind, self.name = kind, name

    @classmethod
    def of(cls, error: psycopg.Error, what: str, fix: str) -> Missing | None:
        """The problem for what PostgreSQL did not find; None where it does not say."""
        found = _NAME.search(error.diag.message_primary or "")
        kind = _MISSING.get(error.sqlstate or "")
        if found is None or kind is None:
            return None
        return cls(what, fix, kind=found[1] if found[1] in ("index", "sequence", "parameter") else kind, name=found[2])


@contextmanager
def without_values(wanted: bool) -> Generator[None]:
    """Within the block, if that is wanted, no problem quotes values of rows: masked columns are among them."""
    token = _TERSE.set(wanted)
    try:
        yield
    finally:
        _TERSE.reset(token)


def _said(error: psycopg.Error) -> tuple[str, str]:
    """PostgreSQL's words: the first line, and what it adds."""
    diag = error.diag
    primary = diag.message_primary or next(iter(str(error).splitlines()), "no reason given")
    more = " ".join(f"{text.rstrip('.')}." for text in (diag.message_detail, diag.message_hint) if text)[:600]
    if not _TERSE.get():
        return primary, more
    inner = [line for line in (diag.context or "").splitlines() if not line.startswith("COPY ")]
    if inner or (error.sqlstate or "").startswith("P0"):
        return "an error inside a function or trigger", ""
    return (primary.partition(': "')[0] if (error.sqlstate or "").startswith("22") else primary), ""


def placed(found: Problem, where: str) -> Problem:
    """The same problem, of one of several statements."""
    if isinstance(found, Missing):
        return Missing(f"{where}{found.what}", found.fix, kind=found.kind, name=found.name)
    return type(found)(f"{where}{found.what}", found.fix)


def unreachable(database: str, error: Exception) -> Unavailable:
    """The problem for a connection that could not be made; libpq's words hold no password."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "failed" in line or "FATAL" in line), lines[0] if lines else "no answer")
    said = _PATH.sub(r'"\1"', said.removeprefix("connection failed: ").removeprefix("connection is bad: "))
    what = f"The database `{database}` can't be reached: {quote(said, 300)}."
    for words, remedy in _REMEDIES:
        if re.search(words, said):
            return Unavailable(what, f"The operator can {remedy}.")
    return Unavailable(what, "Try again later: the server connects as soon as that works.", retry_after=5)


def in_doubt(database: str) -> Unavailable:
    """The problem for a commit whose answer did not come: to call again could do it twice."""
    return Unavailable(
        f"The database `{database}` did not answer the commit: the change may have been made.",
        "Look whether it is there before you call again.",
    )


def problem(error: psycopg.Error, database: str, *, before: int = 0) -> Problem:
    """The problem for what a statement met.

    Args:
        before: characters of our own that stood before the caller's text.
    """
    diag, state = error.diag, error.sqlstate or ""
    primary, more = _said(error)
    said = f"{quote(primary, 400)} (SQLSTATE {state})" if state else quote(primary, 400)
    where = _where(diag.statement_position, before)
    match state:
        case "57014":
            if "statement timeout" in primary:
                return Unavailable(
                    "The statement was stopped at its time limit: `statement_timeout`.",
                    "Ask for less, or see with `explain_query` what takes so long.",
                )
            return Unavailable("The statement was cancelled: `query_canceled`.")
        case "55P03" | "40P01" | "40001":
            return Conflict(f"Other sessions hold what it needs: {said}.", "Try again a little later.")
        case "0A000" | "25006" if "during recovery" in primary:
            return Refused(
                f"The database `{database}` is a standby, which only reads: {said}.",
                "The operator can serve the primary: `target_session_attrs=primary` picks it of several hosts.",
            )
        case "25006":
            tool = "If the operator opened that, `write_rows` changes rows and `edit_schema` the schema."
            if "SELECT FOR" in primary:
                tool = "Leave the locking clause away."
            return Refused(f"It would do more than read: {said}.", tool)
        case "42501" if "row-level security" in primary:
            return Refused(f"A policy of the table forbids it: {said}.", "`get_table` shows the table's policies.")
        case "42501":
            return Refused(f"The role lacks a right: {said}.", more or "The operator can grant it.")
        case "3F000" if "selected to create in" in primary:
            return Invalid(f"{said}{where}.", "Write the schema before the name, such as `public.NAME`.")
        case "42703" if "not found in data type" in primary:
            return NotFound(f"{said}{where}.", "`list_objects` with `kind` types shows its parts.")
        case "42704" if "configuration parameter" in primary:
            return Missing.of(error, f"{said}{where}.", "`SHOW ALL` lists them.") or NotFound(f"{said}{where}.")
        case "42P01" | "3F000" | "42883" | "42703" | "42704":
            fix = more or "`search_schema` finds names; quote those with capitals."
            return Missing.of(error, f"{said}{where}.", fix) or NotFound(f"{said}{where}.", fix)
        case "08P01" if "bind message" in primary:
            return Invalid(
                f"The statement and its `parameters` do not go together: {said}.",
                "Write $1, $2 and so on where its values stand, without quotes."
                if "requires 0" in primary
                else "Pass an array with one value for each of $1, $2 and so on.",
            )
        case "42P18":
            return Invalid(
                f"PostgreSQL says {said}{where}.", "Name its type, as in $1::text. Use every number from $1 on."
            )
        case "22P02" if _ENUM.search(primary):
            return Invalid(f"PostgreSQL says {said}{where}.", "`list_objects` with `kind` types shows its values.")
        case "23514" | "23502" if diag.datatype_name:
            return Invalid(f"PostgreSQL says {said}{where}.", "`list_objects` with `kind` types shows what it takes.")
        case "23514" if primary.startswith("no partition"):
            return Invalid(f"PostgreSQL says {said}{where}.", f"{more} `get_table` shows the partitions.".strip())
        case "0A000" if "cross-database" in primary:
            return Invalid(f"PostgreSQL says {said}{where}.", "Leave the database's name out; `database` says which.")
        case "22021" if "0x00" not in primary:
            return Invalid(f"PostgreSQL says {said}{where}.", _NOT_UTF8)
        case "22P05":
            return Invalid(f"PostgreSQL says {said}{where}.", "The database's encoding lacks it: write it otherwise.")
        case "22P02" if _ARRAY.search(primary) and "malformed record" not in primary:
            return Invalid(f"PostgreSQL says {said}{where}.", "One of the values of an array is `= ANY ($1)`.")
        case "22007" | "22008":
            # PostgreSQL's hint is a setting, which no call can set for another.
            return Invalid(f"PostgreSQL says {said}{where}.", "Write a time as '2026-01-31 12:00'.")
        case "42702":
            return Invalid(f"PostgreSQL says {said}{where}.", "Write the table, or its alias, before it: `o.id`.")
        case "42601" if "multiple commands" in primary:
            return Refused(f"One statement at a time: {said}.", "Send each by a call of its own.")
        case "53100" | "53200" | "53400" | "54000" | "54001" | "54011" | "54023":
            ran = "PostgreSQL can't do that" if state == "54000" else "PostgreSQL ran out of something"
            return TooLarge(f"{ran}: {said}.", more or "Ask for less.")
        case _ if (
            state in _GONE
            or state.startswith(("08", "53"))
            or (not state and isinstance(error, psycopg.OperationalError))
        ):
            return Unavailable(f"The connection to `{database}` was lost: {said}.", "Call again.", retry_after=1)
        case _:
            move = next((way for words, way in _WAYS.get(state, ()) if words in primary), _MOVES.get(state, ""))
            move = "" if diag.message_hint else move
            return Invalid(f"PostgreSQL says {said}{where}.", f"{more} {move}".strip())


def _where(position: str | None, before: int) -> str:
    found = int(position) - before if position else 0
    return f", at character {found}" if found > 0 else ""
