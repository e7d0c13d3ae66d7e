"""What a database accepts as a text at all, before it says what the text means."""

from __future__ import annotations

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.sql.policy.requests import FileEncoding
from mcp_batteries.sql.results.rows import bare_sql

__all__ = ["MAX_SQL", "check_database_name", "check_sql", "is_complete_text", "parse_encoding"]

# One `sql` argument has at most so many characters.
MAX_SQL = 100_000


def check_sql(sql: str) -> str:
    """Return `sql` without what is around the statements, such as the fence of a code block.

    Raises:
        Invalid: no database would read it as it stands.
    """
    if "\0" in sql:
        raise Invalid("`sql` holds a NUL character, `\\0`.", "Bind bytes as a parameter.")
    if len(sql) > MAX_SQL:
        raise Invalid(
            f"`sql` has {len(sql):,} characters, the limit is {MAX_SQL:,}.",
            "Bind big values by `parameters`; many rows come from a file by `copy_from_file`.",
        )
    if not is_complete_text(sql):
        raise Invalid("`sql` holds half of a character (a lone surrogate).", "Send whole characters.")
    return bare_sql(sql)


def check_database_name(name: str) -> str:
    """Return `name`, if something in a database can have it.

    Raises:
        Invalid: nothing can.
    """
    if not name or not is_complete_text(name) or len(name) > 1000:
        raise Invalid(f"{quote(name)} can't be a name in a database.")
    return name


def parse_encoding(name: str) -> FileEncoding:
    """Return an encoding of texts.

    Raises:
        Invalid: Python has none of that name.
    """
    try:
        # What is none of texts, such as base64, has no decoder here either.
        b"a".decode(name)
    except UnicodeError:
        pass
    except (LookupError, ValueError):
        raise Invalid(f"There is no encoding {quote(name)}.", "Such as cp1252, latin-1, utf-16 or shift_jis.") from None
    return FileEncoding(name)


def is_complete_text(text: str) -> bool:
    """Return whether a database accepts `text`: no NUL and no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
