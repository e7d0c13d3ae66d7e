"""The only place that says no before PostgreSQL does: a caller's words become a trusted type here, or a refusal.

What a statement may do is not decided here by looking at it. It becomes a `ReadStatement`, a `WriteStatement` or a
`SchemaStatement` by the tool that it came through, and the engine has PostgreSQL refuse what that kind may not do.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl, quote_from_bytes, unquote, urlsplit

from mcp_batteries.errors import Invalid, NotFound, Refused, Unavailable, quote
from mcp_batteries.sql.rows import bare_sql

__all__ = [
    "MAX_SQL", "Database", "Parameters", "Policy", "PolicySettings", "ReadStatement", "SchemaStatement", "Subject",
    "Table", "WriteStatement", "escaped",
]  # fmt: skip

MAX_SQL = 100_000
"""Characters of one `sql` argument."""

Parameters = Sequence[Any] | None

_PAGE_ROWS = 100
"""Rows of a table that its resource shows."""

_NAMED = re.compile(r"(?P<name>[A-Za-z0-9_-]+)=(?P<rest>(?:postgres(?:ql)?://|[a-z_]+=).*)", re.DOTALL)


class PolicySettings(Protocol):
    """What the policy needs to be told."""

    @property
    def databases(self) -> Sequence[str]: ...
    @property
    def demo(self) -> bool: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def write(self) -> bool: ...
    @property
    def ddl(self) -> bool: ...


@dataclass(frozen=True)
class Database:
    """A served database.

    Attributes:
        name: how callers name it, in the characters a URI needs no escapes for.
        address: connection URL or `key=value` text for libpq, which adds its environment; never shown.
    """

    name: str
    address: str = field(repr=False)


@dataclass(frozen=True)
class ReadStatement:
    """To be run where nothing can be changed."""

    database: Database
    sql: str
    parameters: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class WriteStatement(ReadStatement):
    """May change rows."""


@dataclass(frozen=True)
class SchemaStatement(ReadStatement):
    """May change the schema."""


@dataclass(frozen=True)
class Table:
    """A name to be looked up in a database's catalogue, `schema.name` or one on its search path; never pasted."""

    database: Database
    name: str
    schema: str | None = None


@dataclass(frozen=True)
class Subject:
    """What a resource URI means: the one spelling of the URI, and the request for its content."""

    uri: str
    database: Database
    request: Mapping[str, Any]


class Policy:
    """What may be reached under these settings.

    Args:
        demo: address of the demo database, if it is served.

    Raises:
        Unavailable: no database is named, here or in libpq's environment.
    """

    def __init__(self, settings: PolicySettings, *, environment: Mapping[str, str] = os.environ) -> None:
        self.can_write = settings.write and not settings.read_only
        self.can_reshape = settings.ddl and not settings.read_only
        self.databases: dict[str, Database] = {}
        if settings.demo:
            self.databases["demo"] = Database("demo", "")
        addresses = list(settings.databases)
        if not addresses and any(environment.get(name) for name in ("PGHOST", "PGSERVICE", "PGDATABASE")):
            addresses = [""]
        for address in addresses:
            named = _NAMED.fullmatch(address)
            wanted, address = (named["name"], named["rest"]) if named and named["name"] not in _WORDS else ("", address)
            own = _name_in(address, environment)
            name = self._free_name(wanted or own)
            self.databases[name] = Database(name, address)
        if not self.databases:
            raise Unavailable(
                "There is no database to serve.", "Name one as postgresql://host/name, set PGHOST, or pass --demo."
            )

    def _free_name(self, wanted: str) -> str:
        plain = re.sub(r"[^a-z0-9_-]+", "_", wanted.lower()).strip("_") or "database"
        name, number = plain, 2
        while name in self.databases:
            name, number = f"{plain}_{number}", number + 1
        return name

    def database(self, name: str | None) -> Database:
        """The database called `name`; None is the only one there is.

        Raises:
            NotFound: there is none of that name.
            Invalid: none is named and there are several.
        """
        served = ", ".join(f"`{known}`" for known in self.databases)
        if name is None:
            if len(self.databases) > 1:
                raise Invalid("Several databases are served.", f"Name one as `database`: {served}.")
            return next(iter(self.databases.values()))
        found = self.databases.get(name.lower())
        if found is None:
            raise NotFound(f"There is no database {quote(name)}.", f"There are: {served}.")
        return found

    def read(self, database: str | None, sql: str, parameters: Parameters = None) -> ReadStatement:
        """A statement that will run where it can change nothing."""
        return ReadStatement(self.database(database), _text(sql), _bound(parameters))

    def write(self, database: str | None, sql: str, parameters: Parameters = None) -> WriteStatement:
        """A statement that may change rows.

        Raises:
            Refused: the operator has not opened that.
        """
        if not self.can_write:
            raise Refused("Rows can't be changed through this server.", "The operator can start it with `--write`.")
        return WriteStatement(self.database(database), _text(sql), _bound(parameters))

    def reshape(self, database: str | None, sql: str) -> SchemaStatement:
        """A statement that may change the schema.

        Raises:
            Refused: the operator has not opened that.
        """
        if not self.can_reshape:
            raise Refused("The schema can't be changed through this server.", "The operator can start it with `--ddl`.")
        return SchemaStatement(self.database(database), _text(sql))

    def table(self, database: str | None, name: str) -> Table:
        """A table or view, which may turn out not to exist; quotes are understood as PostgreSQL does."""
        parts = re.fullmatch(r'\s*(?:("(?:[^"]|"")+"|[^".]+)\.)?("(?:[^"]|"")+"|[^"]+?)\s*', name)
        if parts is None:
            raise Invalid(
                f"{quote(name)} can't be the name of a table.", "Name it as `schema.table`, quoted as in SQL."
            )
        schema = None if parts[1] is None else _name(_unquoted(parts[1]))
        return Table(self.database(database), _name(_unquoted(parts[2])), schema)

    def table_uri(self, database: Database, schema: str, name: str) -> str:
        """The URI of a table's first rows."""
        return f"postgres://{database.name}/{escaped(schema)}/{escaped(name)}"

    def subject(self, uri: str) -> Subject | None:
        """What a `postgres://` URI means; None for URIs of another kind.

        Raises:
            NotFound: it names no database, or has no meaning here.
            Invalid: its query is not understood.
        """
        if not uri.lower().startswith("postgres://"):
            return None
        rest, _, query = uri[len("postgres://") :].partition("?")
        parts = rest.rstrip("/").split("/")
        database = self.database(unquote(parts[0]))
        top = f"postgres://{database.name}"
        options = dict(parse_qsl(query, keep_blank_values=True))
        match parts[1:]:
            case [".schema" | ".health" | ".activity" | ".role" as what] if not options:
                return Subject(f"{top}/{what}", database, {"do": what[1:]})
            case [schema, ".schema"] if schema and not options:
                name = _name(unquote(schema))
                return Subject(f"{top}/{escaped(name)}/.schema", database, {"do": "schema", "schema": name})
            case [schema, table, ".schema"] if schema and table and not options:
                names = {"schema": _name(unquote(schema)), "table": _name(unquote(table))}
                spelled = "/".join(map(escaped, names.values()))
                return Subject(f"{top}/{spelled}/.schema", database, {"do": "table", **names})
            case [schema, table] if schema and table:
                return _rows(top, database, _name(unquote(schema)), _name(unquote(table)), options)
            case [schema, table, key] if schema and table and not options:
                names = {"schema": _name(unquote(schema)), "table": _name(unquote(table)), "key": unquote(key)}
                spelled = "/".join(map(escaped, names.values()))
                return Subject(f"{top}/{spelled}", database, {"do": "row", **names})
            case _:
                raise NotFound(f"No resource has the URI {quote(uri)}.", f"`{top}/.schema` is the schema.")


_WORDS = ("dbname", "host", "hostaddr", "port", "user", "password", "service", "passfile", "sslmode", "options")
"""Words of libpq's that `key=value` text begins with."""


def _name_in(address: str, environment: Mapping[str, str]) -> str:
    """The name of the database that `address` names.

    Raises:
        Unavailable: A character of the password would end it early: answers would tell its rest as a name or a port.
    """
    if "://" in address:
        try:
            parts = urlsplit(address)
        except ValueError:
            raise Unavailable(
                "A database's URL is not understood.", "Write postgresql://user@host:port/name."
            ) from None
        hosts = parts.netloc.rpartition("@")[2].split(",")
        if "@" in parts.path or not all(re.fullmatch(r"(\[[^]]*\]|[^:]*)(:\d*)?", host) for host in hosts):
            raise Unavailable(
                "A database's URL has an `@` behind its host, or no number for a port.",
                "Write what a password has of / ? # @ : as %2F %3F %23 %40 %3A, or give it by PGPASSWORD.",
            )
        found = unquote(parts.path.lstrip("/"))
    else:
        word = re.search(r"\b(?:dbname|service)\s*=\s*'?([^'\s]+)", address)
        found = word[1] if word else ""
    return found or environment.get("PGDATABASE") or environment.get("PGSERVICE") or "postgres"


def _rows(top: str, database: Database, schema: str, table: str, options: dict[str, str]) -> Subject:
    limit = options.pop("limit", str(_PAGE_ROWS))
    if not limit.isdecimal() or not 1 <= int(limit) <= _PAGE_ROWS:
        raise Invalid(f"`limit` must be from 1 to {_PAGE_ROWS}, not {quote(limit)}.")
    if options.keys() - {"column", "value"} or len(options) == 1:
        raise Invalid("The query of the URI is not understood.", "It takes `limit`, and `column` with `value`.")
    request = {"do": "rows", "schema": schema, "table": table, "limit": int(limit), **options}
    query = "&".join(
        f"{name}={escaped(str(request[name]))}" for name in ("column", "value", "limit") if name in request
    )
    return Subject(f"{top}/{escaped(schema)}/{escaped(table)}?{query}", database, request)


def escaped(text: str) -> str:
    """`text` as one segment of a URI; a leading dot is escaped too, so that no name means `.schema`."""
    escaped = quote_from_bytes(text.encode("utf-8", "surrogatepass"), safe="")
    return "%2E" + escaped[1:] if escaped.startswith(".") else escaped


def _unquoted(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _text(sql: str) -> str:
    if "\0" in sql:
        raise Invalid(
            "`sql` holds a NUL character, `\\0`.", "PostgreSQL has no text with NUL; bind bytes as a parameter."
        )
    if len(sql) > MAX_SQL:
        raise Invalid(f"`sql` has {len(sql):,} characters, the limit is {MAX_SQL:,}.", "Bind big values as parameters.")
    if not _whole(sql):
        raise Invalid("`sql` holds half of a character (a lone surrogate).", "Send whole characters.")
    return bare_sql(sql)


def _name(name: str) -> str:
    if not name or not _whole(name) or len(name) > 1000:
        raise Invalid(f"{quote(name)} can't be the name of a table.")
    return name


def _bound(parameters: Parameters) -> tuple[str | None, ...]:
    return tuple(_value(value, number) for number, value in enumerate(parameters or (), 1))


def _value(value: Any, number: int) -> str | None:
    """A JSON value as PostgreSQL reads it; which type that is, PostgreSQL decides by where it stands."""

    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value)
        case str() if _whole(value):
            return value
        case {"base64": str() as encoded} if len(value) == 1:
            try:
                return "\\x" + base64.b64decode(encoded, validate=True).hex()
            except binascii.Error:
                pass
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return _array(cast("list[Any]", value), number)
        case _:
            pass
    raise Invalid(
        f"The value for `${number}` can't be bound.",
        'A value is text, a number, true, false, null, an array, an object for json, or {"base64": "..."} for bytes.',
    )


def _array(values: list[Any], number: int) -> str:
    parts: list[str] = []
    for value in values:
        if isinstance(value, list):
            parts.append(_array(cast("list[Any]", value), number))
        elif (text := _value(value, number)) is None:
            parts.append("NULL")
        else:
            parts.append('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return "{" + ",".join(parts) + "}"
