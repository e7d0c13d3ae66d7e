"""Reads `SET` and its like, which hold for the statements behind them in the same call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.sql.language.identifiers import unquote_identifier
from mcp_batteries.sql.policy import check_database_name, is_complete_text
from mcp_postgres.statement_splitter import strip_leading_comments

__all__ = [
    "NO_ROLE",
    "ROLE",
    "CallSetting",
    "PlannerSettings",
    "parse_call_setting",
    "parse_planner_settings",
    "without_dump_settings",
]

# What PostgreSQL calls the setting that says as which role statements run, and its value for one's own.
ROLE = "role"
NO_ROLE = "none"

# What only makes the planner choose otherwise, and what a query may use of memory.
_PLANNER_SETTING = re.compile(
    r"enable_\w+|jit(?:_\w+)?|geqo(?:_\w+)?|\w+_cost|(?:join|from)_collapse_limit|(?:hash_mem_multiplier|work_mem)"
    r"|max_parallel_workers_per_gather|min_parallel_(?:table|index)_scan_size|effective_(?:cache_size|io_concurrency)"
    r"|plan_cache_mode|constraint_exclusion|cursor_tuple_fraction|recursive_worktable_factor"
)
# A setting of an application, which its policies read.
_CUSTOM_SETTING = re.compile(r"[a-z_]\w*(?:\.[a-z_]\w*)+")
_TIME_ZONE = "timezone"
# Without it, functions may be made before the tables that they read, as dumps do.
_CHECK_BODIES = "check_function_bodies"

_TEXT = r"'(?:[^']|'')*'"
_WORD = r"[^\W\d]\w*"
_QUOTED_NAME = r'"(?:[^"]|"")+"'
_NAME = rf"(?:{_WORD}|{_QUOTED_NAME})(?:\.(?:{_WORD}|{_QUOTED_NAME}))*"
_VALUE = rf"{_TEXT}|{_QUOTED_NAME}|[-+]?[\w.]+"
_SET = r"SET\s+(?:LOCAL\s+|SESSION\s+)?"
_COMMAND = re.compile(r"(?:SET|RESET)\b", re.I)
_RESET_ROLE = re.compile(r"RESET\s+ROLE", re.I)
_SETTINGS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"{_SET}(?P<name>ROLE)\s+(?P<value>{_TEXT}|{_QUOTED_NAME}|{_WORD})",
        rf"{_SET}(?P<zone>TIME\s+ZONE)\s+(?P<value>{_VALUE})",
        rf"{_SET}(?P<name>{_NAME})\s*(?:=|\bTO\b)\s*(?P<value>{_VALUE})",
        rf"SELECT\s+(?:pg_catalog\.)?set_config\(\s*'(?P<name>{_NAME})'\s*,\s*(?P<value>{_TEXT})\s*,\s*(?:true|false)\s*\)",
    )
)


# What pg_dump sets before its statements. But for the check of functions it holds here anyway, or a dump does not need
# it, since it names each table with its schema. Newer ones stand between two commands of psql.
_DUMP_SETTINGS = {
    **dict.fromkeys(
        ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_timeout"), ("0",)
    ),
    "client_encoding": ("UTF8",), "standard_conforming_strings": ("on",), _CHECK_BODIES: ("false",),
    "xmloption": ("content",), "client_min_messages": ("warning",), "row_security": ("off",), "search_path": ("",),
    "default_tablespace": ("",), "default_table_access_method": ("heap",),
}  # fmt: skip
_DUMP_MARKS = (_CHECK_BODIES, "row_security", "standard_conforming_strings")
_RESTRICT = re.compile(r"\\(?:un)?restrict[ \t]+\w+[ \t]*(?:\r?\n|\Z)")


class CallSetting(NamedTuple):
    """What a setting is for the statements behind it; of the setting `ROLE` a role, or `NO_ROLE`."""

    name: str
    value: str


def parse_call_setting(sql: str) -> CallSetting | None:
    """Return what a statement sets; None for one that sets nothing.

    Raises:
        Invalid: it sets what no call may, so that the statements behind it would not do what they are meant to.
    """
    statement = strip_leading_comments(sql).strip()
    if _RESET_ROLE.fullmatch(statement):
        return CallSetting(ROLE, NO_ROLE)
    for pattern in _SETTINGS:
        match = pattern.fullmatch(statement)
        if match is not None:
            groups = match.groupdict()
            return _check_setting(groups.get("name") or _TIME_ZONE, groups["value"])
    if _COMMAND.match(statement):
        raise Invalid(f"{quote(statement[:200])} sets what no call can set.", _TAKEN)
    return None


_TAKEN = (
    "A call can set, for the statements behind it, a role (SET ROLE name), what policies read (SET app.user = '7'), "
    "the planner's settings and TimeZone."
)
# What models set most, and how to do without.
_WITHOUT_SETTING = {
    "search_path": "Name tables with their schemas, as in `app.orders`.",
    "statement_timeout": "Leave it away: the operator sets it by `--timeout`.",
    "lock_timeout": "Leave it away: the operator sets it by `--lock-timeout`.",
    **dict.fromkeys(
        ("transaction_read_only", "default_transaction_read_only"),
        "Leave it away: `write_rows` and `edit_schema` make changes, where they are offered.",
    ),
}


def without_dump_settings(parts: Sequence[str]) -> list[str]:
    """Return the statements of a dump of pg_dump without settings that change nothing here; others as they are."""
    statements: list[str] = []
    names: set[str] = set()
    for part in parts:
        statement = strip_leading_comments(part)
        restrict = _RESTRICT.match(statement)
        if restrict is not None:
            statement = strip_leading_comments(statement[restrict.end() :])
        name = _find_dump_setting(statement)
        if name is not None:
            names.add(name)
        if statement and name in (None, _CHECK_BODIES):
            statements.append(statement)
    # Who sets one of these alone wants something else by it.
    if not names.issuperset(_DUMP_MARKS):
        return list(parts)
    return statements


def _find_dump_setting(statement: str) -> str | None:
    """Return the setting that a statement sets to what a dump does."""
    for pattern in _SETTINGS:
        match = pattern.fullmatch(statement.strip())
        if match is None:
            continue
        groups = match.groupdict()
        name = (groups.get("name") or "").lower()
        if _unquote(groups["value"]) in _DUMP_SETTINGS.get(name, ()):
            return name
    return None


def _check_setting(written_name: str, written_value: str) -> CallSetting:
    name = ".".join(_unquote(part) for part in re.findall(rf"{_QUOTED_NAME}|{_WORD}", written_name)).lower()
    value = _unquote(written_value)
    if name == ROLE:
        if not written_value.startswith(("'", '"')):
            value = value.lower()
        return CallSetting(ROLE, check_database_name(value))
    is_known = name in (_TIME_ZONE, _CHECK_BODIES) or _PLANNER_SETTING.fullmatch(name)
    if not is_known and not _CUSTOM_SETTING.fullmatch(name):
        raise Invalid(f"No call can set {quote(name)}.", _WITHOUT_SETTING.get(name, _TAKEN))
    if "\0" in value:
        raise Invalid(f"The value of {quote(name)} holds a NUL character.")
    return CallSetting(name, value)


def _unquote(word: str) -> str:
    if word.startswith("'"):
        return word[1:-1].replace("''", "'")
    return unquote_identifier(word)


class PlannerSettings(NamedTuple):
    """Settings of the planner by their names, for one plan."""

    values: Mapping[str, str]


def parse_planner_settings(values: dict[str, str | bool | float]) -> PlannerSettings:
    """Return settings that change a plan and nothing else.

    Raises:
        Invalid: one is another setting.
    """
    settings: dict[str, str] = {}
    for name, value in values.items():
        if not _PLANNER_SETTING.fullmatch(name):
            raise Invalid(f"{quote(name)} is no setting of the planner.", "Such as `enable_seqscan` or `work_mem`.")
        settings[name] = _check_value(name, str(value))
    return PlannerSettings(settings)


def _check_value(name: str, value: str) -> str:
    if not is_complete_text(value):
        raise Invalid(f"The value of {quote(name)} holds a NUL character or half of a character.")
    return value
