"""The settings of mcp-postgres, besides those of every server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from mcp_batteries.settings import ABSOLUTE, InstallQuestion, Positional, Secret
from mcp_batteries.settings import Settings as Common
from mcp_postgres import operator_sql

__all__ = ["Settings"]


class Settings(Common):
    """Serve PostgreSQL databases over MCP: read them safely with any role, and follow their changes."""

    COMMAND: ClassVar[str] = "mcp-postgres"
    # A variable, since a URL often holds a password and everybody sees command lines.
    INSTALL_QUESTIONS: ClassVar[tuple[InstallQuestion, ...]] = (
        InstallQuestion(
            "database",
            "Database URL",
            "postgresql://user:password@localhost:5432/shop",
            variable="MCP_POSTGRES_DATABASES",
            secret=True,
        ),
    )
    SELECTOR_LOOP: ClassVar[bool] = True
    FREQUENT: ClassVar[tuple[str, ...]] = ("databases", "demo", "write", "ddl", "dba", "create_reader")
    EXAMPLES: ClassVar[tuple[str, ...]] = ("--demo", "postgresql://reader@localhost/shop", "--dba --queries ./sql")
    DOCUMENTED: ClassVar[tuple[str, ...]] = ("--demo", "--write", "--ddl", "--dba", "--files", "{folder}")

    databases: Annotated[tuple[str, ...], Positional(" "), Secret(url=True)] = Field(
        (),
        description="Databases as a URL or `key=value` text; a name may come first: `shop=postgresql://...`.",
    )
    demo: bool = Field(False, description="Also serve `demo`, a sample shop in a temporary PostgreSQL.")
    password_file: Annotated[str | None, ABSOLUTE] = Field(
        None, description="File with the password, used if the URL, PGPASSWORD and .pgpass have none."
    )
    password_command: str | None = Field(
        None,
        description="Command that prints the password, such as a cloud's token; {host}, {port}, {user} and {dbname} "
        "are filled in.",
    )
    write: bool = Field(False, description="Offer a tool that changes rows.")
    ddl: bool = Field(False, description="Offer a tool that changes the schema.")
    admin: bool = Field(
        False, description="Like `--ddl` for any role, plus roles, extensions, DO and CALL. Trust the model."
    )
    dba: bool = Field(
        False, description="Offer tools for administrators: health, slow queries, sessions, indexes, settings."
    )
    trust_database: bool = Field(
        False, description="Trust everybody who may create objects, even if the role could do harm through their code."
    )
    trust_functions: tuple[str, ...] = Field(
        (),
        description="Trust this function `schema.function`, or all of this `extension`, with any input, even if the "
        "role could do harm; repeatable.",
    )
    only: tuple[str, ...] = Field(
        (),
        description="Serve only this `schema` or `schema.table`, a view or function by its name too; repeatable.",
    )
    mask: tuple[str, ...] = Field(
        (), description="Never show or compare this column, `schema.table.column`; repeatable."
    )
    files: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Folder for exports and imports; without it they are off."
    )
    queries: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Folder of .sql files, each served as a tool and a resource."
    )
    role_claim: str | None = Field(
        None, description="Claim of each HTTP caller's token that names its PostgreSQL role; `role` in --auth-file."
    )
    timeout: int = Field(30, ge=1, le=3600, description="Seconds until a running statement is stopped.")
    lock_timeout: int = Field(3, ge=1, le=600, description="Seconds a statement may wait for a lock.")
    connections: int = Field(5, ge=1, le=50, description="Most connections to each database.")
    poll: int = Field(
        250, ge=50, le=60000, description="Milliseconds between two checks for changes while somebody is subscribed."
    )
    listen: str | None = Field(None, description="Channel to LISTEN on, so that changes are noticed at once.")
    create_reader: Annotated[str | None, Secret(url=True)] = Field(
        None,
        description="Make a role that can only read, connected as an administrator by this URL, print its address and "
        "exit; with --install or --print-config for its entry.",
    )
    renew_reader: bool = Field(False, description="With --create-reader: give the role a new password.")
    print_role_sql: bool = Field(False, description="Print SQL for a role that can only read and exit.")
    print_notify_sql: bool = Field(
        False, description="Print SQL for triggers that notify the channel of --listen and exit."
    )

    @field_validator("listen")
    @classmethod
    def _identifier(cls, channel: str | None) -> str | None:
        if channel is not None and not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", channel):
            raise ValueError("must be a plain lower-case identifier")
        return channel

    @model_validator(mode="after")
    def _callers(self) -> Settings:
        if self.role_claim is not None:
            if self.transport == "stdio" or not (self.auth_file or self.auth_tokens or self.auth_issuer):
                raise ValueError("--role-claim is for HTTP with tokens, which name the callers' roles")
            if self.ddl or self.admin:
                raise ValueError(
                    "--role-claim does not work with --ddl or --admin: others would run what one caller defines"
                )
        return self

    @model_validator(mode="after")
    def _one_source(self) -> Settings:
        if self.password_file and self.password_command:
            raise ValueError("use either --password-file or --password-command")
        return self

    @model_validator(mode="after")
    def _part(self) -> Settings:
        if (self.only or self.mask) and (self.ddl or self.admin):
            raise ValueError("--only and --mask do not work with --ddl or --admin: a definition could reach the rest")
        return self

    @model_validator(mode="after")
    def _reader(self) -> Settings:
        if self.renew_reader and self.create_reader is None:
            raise ValueError("--renew-reader needs --create-reader")
        if self.create_reader is not None and (self.write or self.ddl or self.admin):
            raise ValueError("--create-reader makes a role that can only read: leave out --write, --ddl and --admin")
        return self

    def open_questions(self) -> Sequence[InstallQuestion]:
        """Return the database, unless the sample is what is served."""
        return () if self.demo else self.INSTALL_QUESTIONS

    def needed_paths(self) -> list[str]:
        return [*super().needed_paths(), *filter(None, [self.password_file, self.files, self.queries])]

    def preparation(self) -> str | None:
        return "reader_role" if self.create_reader is not None else None

    def printout(self) -> str | None:
        if self.print_role_sql:
            return operator_sql.reader_role_sql()
        if self.print_notify_sql:
            return operator_sql.notify_sql(self.listen or "mcp_changes")
        return None
