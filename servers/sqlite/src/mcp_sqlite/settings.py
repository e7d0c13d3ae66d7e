"""The settings of mcp-sqlite, besides those of every server."""

from __future__ import annotations

import os
import re
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from mcp_batteries.settings import ABSOLUTE, Dependencies, InstallQuestion, Positional, to_absolute_path
from mcp_batteries.settings import Settings as Common
from mcp_batteries.sql.language.database_names import NAME_PATTERN

__all__ = ["Settings", "split_named_path"]


_NAMED = re.compile(rf"(?P<name>{NAME_PATTERN})=(?P<path>.+)", re.DOTALL)


def split_named_path(text: str) -> tuple[str, str]:
    """Return the name that stands before a path as `name=path`, empty if none does, and the path."""
    named = _NAMED.fullmatch(text)
    if named is None or os.path.exists(text):
        return "", text
    return named["name"], named["path"]


def _absolute_path(text: str) -> str:
    name, path = split_named_path(text)
    if not name:
        return to_absolute_path(text)
    return f"{name}={to_absolute_path(path)}"


class Settings(Common):
    """Serve SQLite databases over MCP: read them safely, follow their changes, and change them only if told to."""

    COMMAND: ClassVar[str] = "mcp-sqlite"
    INSTALL_QUESTIONS: ClassVar[tuple[InstallQuestion, ...]] = (
        InstallQuestion("database", "Database file to serve", "/path/to/app.db", "file", multiple=True),
    )
    DOCUMENTED: ClassVar[tuple[str, ...]] = ("--demo", "--write", "--ddl", "--files", "{folder}")

    FREQUENT: ClassVar[tuple[str, ...]] = ("databases", "demo", "create", "write", "ddl", "files")
    EXAMPLES: ClassVar[tuple[str, ...]] = ("--demo", "app.db", "--write --ddl --files ./exports app.db")

    databases: Annotated[tuple[str, ...], Positional()] = Field(
        (), description="Database files to serve, each as `name=path`, or named after its file without the extension."
    )
    demo: bool = Field(False, description="Also serve `demo`, a temporary sample database of a small library.")
    create: bool = Field(False, description="Create missing database files instead of refusing to start.")
    write: bool = Field(False, description="Offer tools that change rows.")
    ddl: bool = Field(False, description="Offer a tool that changes the schema.")
    only: tuple[str, ...] = Field((), description="Serve only this table or view; repeatable.")
    mask: tuple[str, ...] = Field((), description="Never show or compare this column, `table.column`; repeatable.")
    files: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Folder for exports, imports, backups and files that SQL reads; without it they are off."
    )
    queries: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Folder of .sql files, each served as a tool and a resource."
    )
    insights: Annotated[str | None, ABSOLUTE] = Field(
        None, description="Database file that keeps insights; without it they end with the server."
    )
    sqlite_vec: bool = Field(
        False, description="Load sqlite-vec (extra `sqlite-vec`), to search tables of vectors for the nearest."
    )
    timeout: int = Field(10, ge=1, le=600, description="Seconds until a running statement is stopped.")
    workers: int = Field(4, ge=1, le=32, description="Concurrent statements, each in its own process.")

    @field_validator("databases")
    @classmethod
    def _absolute(cls, databases: tuple[str, ...]) -> tuple[str, ...]:
        # Hosts start servers in folders of their own: what the operator meant is fixed here.
        # A URL stays one, so that the refusal can say whose it is.
        return tuple(path if "://" in path else _absolute_path(path) for path in databases)

    @model_validator(mode="after")
    def _part(self) -> Settings:
        if (self.only or self.mask) and self.ddl:
            raise ValueError("--only and --mask do not work with --ddl: a definition could reach the rest")
        return self

    def unanswered_question(self) -> InstallQuestion | None:
        return None if self.demo else super().unanswered_question()

    def needed_paths(self) -> list[str]:
        paths = [*super().needed_paths(), *self._paths(), *filter(None, [self.files, self.queries])]
        if not self.create:
            return paths
        created = self._paths()
        return [path for path in paths if path not in created]

    def depends_on(self) -> Dependencies | None:
        # Saved queries become tools as their files come and go.
        if self.queries or self.demo:
            return None
        return Dependencies(places=(*self._paths(), *filter(None, [self.files])))

    def _paths(self) -> list[str]:
        """Return the paths of the databases, without the names before them."""
        return [split_named_path(text)[1] for text in self.databases]
