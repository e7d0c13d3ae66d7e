"""Turns errors of PostgreSQL and libpq into problems that a caller can act on."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import psycopg

from mcp_batteries.errors import Conflict, Invalid, NotFound, Problem, Refused, TooLarge, Unavailable, quote

__all__ = [
    "NOT_UTF8_ADVICE",
    "DuplicateKey",
    "LockTimeout",
    "MissingName",
    "StatementTimeout",
    "hide_values",
    "in_doubt_problem",
    "locate_problem",
    "outage_problem",
    "to_problem",
    "unreachable_problem",
]

_VALUES_HIDDEN: ContextVar[bool] = ContextVar("terse", default=False)

# The backend was ended: by an administrator, a crash, a shutdown, or for idling.
_CONNECTION_LOST_STATES = ("57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04")

_OUTAGE_FIX = "Try again later: the server connects as soon as that works."
# Nobody answers at the address: PostgreSQL is down, or somewhere else.
_SILENCE = re.compile(r"refused|timeout|timed out|No such file|No route|unreachable")
_SILENCE_FIX = "Try again later; if that ends alike, the operator can check host and port, and start PostgreSQL there."
# What libpq or the server says of a fault that time does not heal, and what the operator can do.
_REMEDIES = (
    ("certificate verify failed", "name the certificate of its authority as `sslrootcert`, or renew the server's"),
    ("does not match host name", "write the host as its certificate does; `hostaddr` may add the address"),
    ("does not support SSL", "switch `ssl` on at the server, or do without by `sslmode=prefer`"),
    ("no encryption|SSL off", "add `sslmode=require`, or have pg_hba.conf admit this"),
    ("client certificate|certificate required", "name a certificate of this role's as `sslcert` and `sslkey`"),
    ("certificate file|private key file", "mend `sslrootcert`, `sslcert` or `sslkey`, which name files"),
    ("no password supplied", "give the password by `PGPASSWORD`, `.pgpass` or `--password-file`"),
    ("password|authentication failed", "mend the password; its file is read again at each connect"),
    ("no pg_hba.conf entry", "have pg_hba.conf admit it"),
    (
        "database .* does not exist|role .* does not exist|not permitted to log in",
        "mend the address or make what it names",
    ),
    ("definition of service|service file|failed to resolve host|invalid .* value", "mend the address"),
)
NOT_UTF8_ADVICE = (
    "A database whose encoding is SQL_ASCII may hold bytes that are not UTF-8. As another encoding, such as LATIN1, a "
    "column is read by convert_from(convert(convert_to(name, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII')."
)
# What PostgreSQL says of a row that another transaction has changed.
_LOCKED_ROW = re.compile(r'while \w+ tuple \(\d+,\d+\) in relation "(.+)"')
# A function of PostgreSQL's own that not everybody may call. Those of others begin with `lo_` too, and hardly ever with
# `pg_`.
_POWERFUL_FUNCTION = re.compile(r"permission denied for function (?:pg_|lo_(?:import|export)\b)")
_QUOTED_PATH = re.compile(r'"[^"]*[/\\]([^"/\\]+)"')
# The foreign data wrapper of PostgreSQL has the first, others have that of SQL/MED.
_FOREIGN_SERVER_UNREACHABLE = ("08001", "HV00N")
# How the context of an error of `postgres_fdw` begins.
_REMOTE_COMMAND = "remote SQL command: "
_DUPLICATE_KEY = "23505"
# Moves in the place of what PostgreSQL adds: by its code, and what its first line matches.
_BETTER_MOVES: Mapping[str, Sequence[tuple[re.Pattern[str], str]]] = {
    "0A000": ((re.compile("cross-database"), "Leave the database's name out; `database` says which."),),
    # PostgreSQL's hint is a setting, which no call can set for another.
    **dict.fromkeys(("22007", "22008"), ((re.compile(""), "Write a time as '2026-01-31 12:00'."),)),
    "22021": ((re.compile("(?s)^(?!.*0x00)"), NOT_UTF8_ADVICE),),
    "22P02": (
        # A list of types leaves out those of schemas that are not served.
        (re.compile("^invalid input value for enum "), "`get_table` shows the values of such a column."),
        (re.compile(r'for type (?:vector|halfvec): "\{'), 'Send a vector as its text: "[0.1, 0.2]".'),
        # A value, as PostgreSQL repeats it, that was an array, and stood where it could be none.
        (
            re.compile(r'(?s)^(?!.*malformed record).*: "\{(?:"(?!(?:[^"\\]|\\.)*": )|NULL|\})'),
            "One of the values of an array is `= ANY ($1)`.",
        ),
    ),
    "22P05": ((re.compile(""), "The database's encoding lacks it: write it otherwise."),),
    "42702": ((re.compile(""), "Write the table, or its alias, before it: `o.id`."),),
    "42P18": ((re.compile(""), "Name its type, as in $1::text. Use every number from $1 on."),),
}
# The next move, where PostgreSQL tells none.
_NEXT_MOVES = {
    "22003": "Send a smaller value, or choose a larger type.",
    "22012": "`a / nullif(b, 0)` is null there.",
    "22P02": "Send a value of that type.",
    "23502": "Give it a value.",
    "23503": "Insert what it points to first, or delete what points to it: one call takes several statements.",
    _DUPLICATE_KEY: "Such a row is there: INSERT ... ON CONFLICT DO UPDATE SET ... changes it.",
    "23514": "`get_table` shows the check.",
    "34000": "Send the query itself: no cursor outlives a call.",
    **dict.fromkeys(("42701", "42710", "42723", "42P06", "42P07"), "`search_schema` finds it. Choose another name."),
    "42803": "Add it to GROUP BY, or aggregate it as `max(column)`.",
}
# The same, where a code stands for several things: words of PostgreSQL's, and the move.
_NEXT_MOVES_BY_WORDS = {
    "22000": (("dimensions", "`get_table` shows how many the column has."),),
    "0A000": (
        (
            "XML feature",
            "Select rows as JSON, by json_agg(t); `list_objects` with `kind` counts counts those of tables.",
        ),
    ),
    "22P02": (
        ("type json", 'JSON is sent as its text, such as "[1, 2]" or "\\"word\\"", or as an object.'),
        ("malformed record", "Send a row as its text, `(1,word)`, or build it: ROW($1, $2)::type."),
    ),
    "23502": (
        (
            "contains null values",
            "Give it a DEFAULT; or add it without NOT NULL, UPDATE, and ALTER ... SET NOT NULL, in the same call.",
        ),
    ),
    "42601": (
        ("unterminated quoted string", "A quote in a text is written twice: 'it''s'."),
        ("at end of input", "Send the whole statement."),
    ),
    "42803": (
        ("not allowed in WHERE", "WHERE sees single rows: use HAVING, or a subquery."),
        ("nested", "Aggregate in a subquery, and that around it."),
        ("not allowed in", "Compute it in a subquery."),
    ),
    "42P10": (("SELECT DISTINCT, ORDER BY", "Select it too, or use GROUP BY in place of DISTINCT."),),
    "55000": (
        ("currval", "SELECT last_value FROM the sequence reads it."),
        ("lastval", "RETURNING shows the value that an INSERT has drawn."),
    ),
    "42P20": (("window functions are not allowed", "Compute it in a subquery, and filter around that."),),
}


_MISSING_KINDS = {"42P01": "relation", "42703": "column", "42883": "function", "42704": "type", "3F000": "schema"}
_MISSING_NAME = re.compile(
    r'(relation|table|view|index|sequence|function|operator|type|schema|column|parameter) "?((?:[^"(]|"")+?)"?'
    r"(?:\(| does not| of relation| referenced in| specified in|$)"
)


class MissingName(NotFound):
    """A name in `sql` that there is not."""

    def __init__(self, failure: str, fix: str, *, kind: str, name: str) -> None:
        super().__init__(failure, fix)
        self.kind = kind
        self.name = name

    @classmethod
    def from_error(cls, error: psycopg.Error, failure: str, fix: str) -> MissingName | None:
        """Return the problem for what PostgreSQL did not find; None where it does not say."""
        match = _MISSING_NAME.search(error.diag.message_primary or "")
        kind = _MISSING_KINDS.get(error.sqlstate or "")
        if match is None or kind is None:
            return None
        return cls(
            failure, fix, kind=match[1] if match[1] in ("index", "sequence", "parameter") else kind, name=match[2]
        )


class StatementTimeout(Unavailable):
    """A statement took longer than it may."""


class LockTimeout(Conflict):
    """A statement gave up waiting for what another session has locked.

    Attributes:
        row_table: the table of which it waited for a row, where PostgreSQL says so.
    """

    def __init__(self, failure: str, fix: str, *, row_table: str | None = None) -> None:
        super().__init__(failure, fix)
        self.row_table = row_table


class DuplicateKey(Invalid):
    """A row has a key that another one has.

    Attributes:
        schema: that of the table.
        table: its name, or that of its partition.
    """

    def __init__(self, failure: str, fix: str, *, schema: str, table: str) -> None:
        super().__init__(failure, fix)
        self.schema = schema
        self.table = table


@contextmanager
def hide_values(hidden: bool) -> Generator[None]:
    """Within the block, if that is wanted, no problem quotes values of rows: masked columns are among them."""
    token = _VALUES_HIDDEN.set(hidden)
    try:
        yield
    finally:
        _VALUES_HIDDEN.reset(token)


def _describe(error: psycopg.Error) -> tuple[str, str]:
    """Return PostgreSQL's words: the first line, and what it adds."""
    diag = error.diag
    primary = diag.message_primary or next(iter(str(error).splitlines()), "no reason given")
    if _VALUES_HIDDEN.get():
        return _describe_without_values(error, primary), ""
    details = [text for text in (diag.message_detail, diag.message_hint) if text]
    return primary, " ".join(f"{text.rstrip('.')}." for text in details)[:600]


def _describe_without_values(error: psycopg.Error, primary: str) -> str:
    """Return PostgreSQL's first line as far as it quotes no value of a row."""
    state = error.sqlstate or ""
    is_inside = any(not line.startswith("COPY ") for line in (error.diag.context or "").splitlines())
    if is_inside or state.startswith("P0"):
        return "an error inside a function or trigger"
    if state.startswith("22"):
        return primary.partition(': "')[0]
    return primary


def locate_problem(problem: Problem, prefix: str) -> Problem:
    """Return the same problem, of one of several statements."""
    return problem.reword(f"{prefix}{problem.failure}", problem.fix)


def unreachable_problem(database: str, error: Exception, *, outage_fix: str = "") -> Unavailable:
    """Return the problem for a connection that could not be made; libpq's words hold no password.

    Args:
        outage_fix: the next move where the reason may pass; empty for that of a model that calls.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = next((line for line in lines if "failed" in line or "FATAL" in line), lines[0] if lines else "no answer")
    message = _QUOTED_PATH.sub(r'"\1"', message.removeprefix("connection failed: ").removeprefix("connection is bad: "))
    failure = f"The database `{database}` can't be reached: {quote(message, 300)}."
    for words, remedy in _REMEDIES:
        if re.search(words, message):
            return Unavailable(failure, f"The operator can {remedy}.")
    if not outage_fix:
        outage_fix = _SILENCE_FIX if _SILENCE.search(message) else _OUTAGE_FIX
    return outage_problem(failure, outage_fix)


def outage_problem(failure: str, fix: str = _OUTAGE_FIX) -> Unavailable:
    """Return the problem for a database that doesn't answer, for a reason that may pass."""
    return Unavailable(failure, fix, retry_after=5)


def in_doubt_problem(database: str) -> Unavailable:
    """Return the problem for a commit whose answer did not come: to call again could do it twice."""
    return Unavailable(
        f"The database `{database}` did not answer the commit: the change may have been made.",
        "Look whether it is there before you call again.",
    )


@dataclass(frozen=True)
class _Report:
    """What PostgreSQL says of an error, as text for the caller.

    Attributes:
        primary: PostgreSQL's first line.
        more: its details and its hint.
        quoted: the first line in quotes, with the SQLSTATE.
        located: the same, with the position in the caller's text.
    """

    error: psycopg.Error
    primary: str
    more: str
    quoted: str
    located: str

    @property
    def state(self) -> str:
        return self.error.sqlstate or ""

    @classmethod
    def of(cls, error: psycopg.Error, prefix_length: int) -> _Report:
        """Read an error; `prefix_length` characters of our own stood before the caller's text."""
        primary, more = _describe(error)
        quoted = quote(primary, 400)
        if error.sqlstate:
            quoted = f"{quoted} (SQLSTATE {error.sqlstate})"
        position = _format_position(error.diag.statement_position, prefix_length)
        return cls(error, primary, more, quoted, f"{quoted}{position}.")

    def missing_name(self, fix: str) -> Problem:
        """Return the problem for a name that there is not."""
        missing = MissingName.from_error(self.error, self.located, fix)
        return missing or NotFound(self.located, fix)

    def invalid(self, fix: str) -> Invalid:
        """Return the problem for a statement that is wrong."""
        return Invalid(f"PostgreSQL says {self.located}", fix)


def to_problem(error: psycopg.Error, database: str, *, prefix_length: int = 0) -> Problem:
    """Return the problem for what a statement met.

    Args:
        prefix_length: characters of our own that stood before the caller's text.
    """
    report = _Report.of(error, prefix_length)
    return (
        _interrupted_problem(report)
        or _foreign_problem(report)
        or _refused_problem(report, database)
        or _missing_problem(report)
        or _invalid_problem(report)
        or _exhausted_problem(report)
        or _lost_problem(report, database)
        or _other_problem(report)
    )


def _interrupted_problem(report: _Report) -> Problem | None:
    match report.state:
        case "57014" if "statement timeout" in report.primary:
            return StatementTimeout(
                "The statement was stopped at its time limit: `statement_timeout`.",
                "Ask for less, or see with `explain_query` what takes so long.",
            )
        case "57014":
            return Unavailable("The statement was cancelled: `query_canceled`.")
        case "55P03" | "40P01":
            row = _LOCKED_ROW.search(report.error.diag.context or "")
            return LockTimeout(
                f"Other sessions hold what it needs: {report.quoted}.",
                "Try again a little later.",
                row_table=row[1] if row else None,
            )
        case "40001" if "conflict with recovery" in report.primary:
            return Conflict(
                f"The standby stopped it to follow its primary: {report.quoted}.",
                "Try again, with less at once. The operator can set `hot_standby_feedback`, or serve the primary.",
            )
        case "40001":
            return Conflict(f"Other sessions hold what it needs: {report.quoted}.", "Try again a little later.")
        case _:
            return None


def _foreign_problem(report: _Report) -> Problem | None:
    """Return the problem for what the server of a foreign table says, or that it can't be reached."""
    diag = report.error.diag
    # PostgreSQL itself ends its connection by FATAL.
    if report.state in _FOREIGN_SERVER_UNREACHABLE and diag.severity_nonlocalized == "ERROR":
        return Unavailable(
            f"The server of a foreign table can't be reached: {report.quoted}.",
            "Leave the table out: `get_table` names its server, which the operator can look at.",
        )
    if _REMOTE_COMMAND in (diag.context or "") and report.state.startswith(("08", "42")):
        return Invalid(
            f"The server of a foreign table says {report.quoted}.",
            "The table there, or what its role may do, may differ: the operator can compare it with the foreign table.",
        )
    return None


def _refused_problem(report: _Report, database: str) -> Problem | None:
    match report.state:
        case "0A000" | "25006" if "during recovery" in report.primary:
            return Refused(
                f"The database `{database}` is a standby, which only reads: {report.quoted}.",
                "The operator can serve the primary: `target_session_attrs=primary` picks it of several hosts.",
            )
        case "25006" if "SELECT FOR" in report.primary:
            return Refused(f"It would do more than read: {report.quoted}.", "Leave the locking clause away.")
        case "25006":
            return Refused(
                f"It would do more than read: {report.quoted}.",
                "If the operator opened that, `write_rows` changes rows and `edit_schema` the schema.",
            )
        case "42501" if "row-level security" in report.primary:
            return Refused(
                f"A policy of the table forbids it: {report.quoted}.", "`get_table` shows the table's policies."
            )
        case "42501" if _POWERFUL_FUNCTION.search(report.primary):
            return Refused(
                f"The role lacks a right: {report.quoted}.", "Leave it out: it reaches beyond the database's tables."
            )
        case "42501":
            return Refused(f"The role lacks a right: {report.quoted}.", report.more or "The operator can grant it.")
        case "42601" if "multiple commands" in report.primary:
            return Refused(f"One statement at a time: {report.quoted}.", "Send each by a call of its own.")
        case _:
            return None


def _missing_problem(report: _Report) -> Problem | None:
    match report.state:
        case "3F000" if "selected to create in" in report.primary:
            return Invalid(report.located, "Write the schema before the name, such as `public.NAME`.")
        case "42703" if "not found in data type" in report.primary:
            return NotFound(report.located, "`list_objects` with `kind` types shows its parts.")
        case "42704" if "configuration parameter" in report.primary:
            missing = MissingName.from_error(report.error, report.located, "`SHOW ALL` lists them.")
            return missing or NotFound(report.located)
        case "42P01" | "3F000" | "42883" | "42703" | "42704":
            return report.missing_name(report.more or "`search_schema` finds names; quote those with capitals.")
        case _:
            return None


def _invalid_problem(report: _Report) -> Problem | None:
    match report.state:
        case "08P01" if "bind message" in report.primary:
            return _parameters_problem(report)
        case "23514" | "23502" if report.error.diag.datatype_name:
            return report.invalid("`list_objects` with `kind` types shows what it takes.")
        case "23514" if report.primary.startswith("no partition"):
            return report.invalid(f"{report.more} `get_table` shows the partitions.".strip())
        case _:
            pass
    for pattern, move in _BETTER_MOVES.get(report.state, ()):
        if pattern.search(report.primary):
            return report.invalid(move)
    return None


def _parameters_problem(report: _Report) -> Problem:
    fix = "Pass an array with one value for each of $1, $2 and so on."
    if "requires 0" in report.primary:
        fix = "Write $1, $2 and so on where its values stand, without quotes."
    return Invalid(f"The statement and its `parameters` do not go together: {report.quoted}.", fix)


def _exhausted_problem(report: _Report) -> Problem | None:
    match report.state:
        case "54000":
            return TooLarge(f"PostgreSQL can't do that: {report.quoted}.", report.more or "Ask for less.")
        case "53100":
            fix = "Ask for less; if that ends alike, the operator can free disk space."
            return TooLarge(f"PostgreSQL ran out of something: {report.quoted}.", fix)
        case "53200" | "53400" | "54001" | "54011" | "54023":
            return TooLarge(f"PostgreSQL ran out of something: {report.quoted}.", report.more or "Ask for less.")
        case _:
            return None


def _lost_problem(report: _Report, database: str) -> Problem | None:
    state = report.state
    is_lost = state in _CONNECTION_LOST_STATES or state.startswith(("08", "53"))
    if not state:
        is_lost = isinstance(report.error, psycopg.OperationalError)
    if not is_lost:
        return None
    return Unavailable(
        f"The connection to `{database}` was lost: {report.quoted}.",
        "Call again; if that ends alike, leave this statement: it may be what ends the connection.",
        retry_after=1,
    )


def _other_problem(report: _Report) -> Problem:
    next_move = ""
    if not report.error.diag.message_hint:
        next_move = _find_next_move(report)
    problem = report.invalid(f"{report.more} {next_move}".strip())
    diag = report.error.diag
    if report.state == _DUPLICATE_KEY and diag.schema_name and diag.table_name:
        return DuplicateKey(problem.failure, problem.fix, schema=diag.schema_name, table=diag.table_name)
    return problem


def _find_next_move(report: _Report) -> str:
    for words, move in _NEXT_MOVES_BY_WORDS.get(report.state, ()):
        if words in report.primary:
            return move
    return _NEXT_MOVES.get(report.state, "")


def _format_position(position: str | None, prefix_length: int) -> str:
    position_in_text = 0
    if position:
        position_in_text = int(position) - prefix_length
    if position_in_text > 0:
        return f", at character {position_in_text}"
    return ""
