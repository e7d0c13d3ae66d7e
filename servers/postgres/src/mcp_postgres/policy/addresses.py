"""An address that the operator gave, and the name under which its database is served."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

from mcp_batteries.errors import Unavailable
from mcp_batteries.settings.addresses import unencoded_signs
from mcp_batteries.sql.language.database_names import NAME_PATTERN
from mcp_batteries.sql.language.database_systems import refuse_other_systems

__all__ = ["parse_named_address", "refuse_divided_address"]

_NAMED = re.compile(rf"(?P<name>{NAME_PATTERN})=(?P<rest>(?:postgres(?:ql)?://|[a-z_]+=).*)", re.DOTALL)
# Words of libpq's that `key=value` text begins with.
_LIBPQ_KEYWORDS = (
    "dbname",
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "service",
    "passfile",
    "sslmode",
    "options",
)
_DIVIDED = re.compile(rf"({'|'.join(_LIBPQ_KEYWORDS)})=\S*")
# Options of other libraries in URLs that frameworks hand out; libpq knows none of them and would not connect.
_FOREIGN_OPTIONS = {
    "schema": "serve one schema with --only",
    "pgbouncer": "leave it out",
    "connection_limit": "limit connections with --connections",
    "pool_timeout": "leave it out",
    "socket_timeout": "limit statements with --timeout",
    "statement_cache_size": "leave it out",
    "sslaccept": "say it as sslmode=require or sslmode=verify-full",
    "sslidentity": "name a certificate with sslcert and its key with sslkey",
    "supa": "leave it out",
    "workaround": "leave it out",
}
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_QUOTED = re.compile(rf"""["']|{NAME_PATTERN}=["']postgres(?:ql)?://""")
# What a host or a page leaves for somebody to fill in.
_PLACEHOLDER = re.compile(r"\$\{\w+\}|\[YOUR-\w+\]")
_HOST = re.compile(r"(\[[^]]*\]|[^:]*)(:\d*)?")


def refuse_divided_address(texts: Sequence[str]) -> None:
    """Refuse one address whose words came as several, as a shell divides them without quotes.

    Raises:
        Unavailable: there is one.
    """
    words = [match[1] for match in map(_DIVIDED.fullmatch, texts) if match is not None]
    if len(words) > 1:
        raise Unavailable(
            f"`{words[0]}=` and `{words[1]}=` came as two databases, and are words of one address.",
            'Put it in quotes: "host=... dbname=...".',
        )


def parse_named_address(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return the name in `text`, or that of its database, and the address for libpq.

    Raises:
        Unavailable: it is not understood, or belongs to another database system.
    """
    _refuse_unprepared(text)
    named = _NAMED.fullmatch(text)
    name = ""
    address = text
    if named is not None and named["name"] not in _LIBPQ_KEYWORDS:
        name = named["name"]
        address = named["rest"]
    refuse_other_systems(address, "PostgreSQL")
    own = _database_name(address, environment)
    return name or own, address


def _refuse_unprepared(text: str) -> None:
    """Refuse an address that nobody has prepared for use.

    Raises:
        Unavailable: it stands in quotes, or has a placeholder.
    """
    if _QUOTED.match(text):
        raise Unavailable(
            "A database's address came with quotes around it.",
            "Leave them away: Docker's `--env-file` and some hosts hand them on as part of the value.",
        )
    if _PLACEHOLDER.search(text):
        raise Unavailable(
            "A database's address has a placeholder that nothing has filled in, as `${NAME}` or `[YOUR-PASSWORD]`.",
            "Write its value there, or leave out user and password and give them by PGUSER and PGPASSWORD.",
        )


def _database_name(address: str, environment: Mapping[str, str]) -> str:
    """Return the name of the database that `address` names.

    Raises:
        Unavailable: the address is a URL that is not understood.
    """
    if "://" in address:
        name = _database_of_url(address)
    else:
        setting = re.search(r"\b(?:dbname|service)\s*=\s*'?([^'\s]+)", address)
        name = setting[1] if setting else ""
    return name or environment.get("PGDATABASE") or environment.get("PGSERVICE") or "postgres"


def _refuse_foreign_options(options: Mapping[str, str]) -> None:
    foreign = [name for name in options if name in _FOREIGN_OPTIONS]
    if foreign:
        names = " and ".join(f"`{name}`" for name in foreign)
        steps = dict.fromkeys(_FOREIGN_OPTIONS[name] for name in foreign if _FOREIGN_OPTIONS[name] != "leave it out")
        raise Unavailable(
            f"A database's URL has {names}, for another library than PostgreSQL's own.",
            "; ".join([f"Leave out {names} here", *steps]) + ".",
        )


def _database_of_url(url: str) -> str:
    """Return the name of the database in a URL; empty where there is none.

    Raises:
        Unavailable: a character in the password would end it early, so that answers would show its rest as a name or a
            port.
    """
    signs = unencoded_signs(url)
    if signs:
        raise Unavailable(
            "A sign in the password of a database's URL ends it early.",
            f"Write {signs}, or give the password by PGPASSWORD.",
        )
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Unavailable("A database's URL is not understood.", "Write postgresql://user@host:port/name.") from None
    hosts = parts.netloc.rpartition("@")[2].split(",")
    if "@" in parts.path or not all(map(_HOST.fullmatch, hosts)):
        raise Unavailable(
            "A database's URL has an `@` behind its host, or no number for a port.",
            "Write what a password has of / ? # @ : as %2F %3F %23 %40 %3A, or give it by PGPASSWORD.",
        )
    if _BARE_PERCENT.search(url):
        raise Unavailable("A `%` in a database's URL begins no escape.", "Write it as %25.")
    try:
        unquote(url, errors="strict")
    except UnicodeDecodeError:
        raise Unavailable(
            "A `%` in a database's URL begins a byte that is no text.", "Write a % itself as %25."
        ) from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    _refuse_foreign_options(options)
    return unquote(parts.path.lstrip("/")) or options.get("dbname", "") or options.get("service", "")
