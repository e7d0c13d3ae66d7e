"""Sets what a call sets for its own statements: a role, what policies read, how a statement is planned."""

from __future__ import annotations

import re

from mcp_batteries.errors import Refused, quote
from mcp_batteries.sql.language.identifiers import quote_identifier
from mcp_postgres.engine.connection.session import Session
from mcp_postgres.policy import NO_ROLE, ROLE, CallSetting, ReadStatement, ReadWithSettings

__all__ = ["apply_call_setting", "apply_settings_of", "check_may_act"]

_MAY_BECOME = "SELECT pg_has_role(oid, $2)::text FROM pg_roles WHERE rolname = $1"
# Whether a library that a function would load, or has loaded, could have a setting with this prefix.
_BELONGS_TO_LIBRARY = """
SELECT (EXISTS (SELECT FROM pg_settings WHERE starts_with(lower(name), $1 || '.')) OR EXISTS (SELECT FROM pg_proc p
    JOIN pg_language l ON l.oid = p.prolang WHERE l.lanname = 'c' AND strpos(lower(p.probin), $1) > 0))::text
"""
# Numbers and choices of pgvector and pg_trgm that say how far a search goes; none names anything that is run.
_HARMLESS_SETTING = re.compile(
    r"hnsw\.(?:ef_search|iterative_scan|max_scan_tuples|scan_mem_multiplier)"
    r"|ivfflat\.(?:probes|iterative_scan|max_probes)|pg_trgm\.(?:strict_)?(?:word_)?similarity_threshold"
)
_SET = "SELECT pg_catalog.set_config($1, $2, true)"


async def apply_settings_of(session: Session, statement: ReadStatement) -> None:
    """Set what the call of a statement sets before it, and nothing of another statement."""
    session.acting_role = None
    if isinstance(statement, ReadWithSettings):
        for setting in statement.settings:
            await apply_call_setting(session, setting)


async def apply_call_setting(session: Session, setting: CallSetting) -> None:
    """Set something until the end of the transaction; a role from the next `act_as_role` on.

    Raises:
        Refused: the role can't become that one, or the setting could be a library's.
    """
    if setting.name == ROLE:
        session.acting_role = None
        if setting.value != NO_ROLE:
            await check_may_act(session, setting.value)
            session.acting_role = quote_identifier(setting.value)
        return
    prefix, is_custom, _ = setting.name.partition(".")
    if is_custom:
        if not _HARMLESS_SETTING.fullmatch(setting.name):
            await _check_custom_setting(session, prefix)
        # It would be there for later callers too, empty instead of missing.
        session.must_be_closed = True
    await session.fetch_value(_SET, setting.name, setting.value)


async def check_may_act(session: Session, role: str) -> None:
    """Check that the caller's role may become another: PostgreSQL asks that of the server's role only.

    Raises:
        Refused: it may not.
    """
    right = "SET" if session.role.major >= 16 else "MEMBER"
    if session.caller_role and await session.fetch_value(_MAY_BECOME, role, right) != "t":
        raise Refused(f"Your role can't become {quote(role)}.", "`list_objects` with `roles` lists memberships.")


async def _check_custom_setting(session: Session, prefix: str) -> None:
    """Check that a setting is an application's, where one of a library could run what the role may run."""
    if not session.role.is_judged:
        return
    async with session.as_server_role():
        belongs_to_library = await session.fetch_value(_BELONGS_TO_LIBRARY, prefix) == "true"
    if belongs_to_library:
        raise Refused(
            f"The role {session.role.explain_judging()}, and a library's settings may begin with {quote(prefix)}.",
            "The operator can give the server a role that can only read.",
        )
