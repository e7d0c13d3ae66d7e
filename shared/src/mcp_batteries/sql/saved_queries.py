"""Saved queries: the operator's `.sql` files, each a named, described query with typed parameters.

    -- Books an author wrote.
    -- database: library
    -- :author text  The author's name.
    -- :most integer = 10  How many at most.
    SELECT title FROM books ... WHERE name = :author LIMIT :most

The model reads the comment at the top. A line that begins with `:name type` declares a parameter, with a default where
it has one; `database:` is needed where several are served. Everything below is one SELECT. The database determines how
it names its parameters: by `:name`, or by `$1` in the order of the declarations.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Any, Literal, cast

from mcp_batteries.errors import Invalid, Problem, quote
from mcp_batteries.settings import open_text

__all__ = ["Parameter", "SavedQueries", "SavedQuery", "parse"]

Kind = Literal["text", "integer", "real"]

logger = logging.getLogger(__name__)

_MAX_FILES = 100
_MAX_BYTES = 100_000
_ARGUMENT = re.compile(r"(?!model_)[a-z][a-z0-9_]*")
_DECLARED = re.compile(r":(?P<name>\w+)\s+(?P<kind>\w+)(?:\s*=\s*(?P<default>'[^']*'|\S+))?(?:\s+(?P<words>.*))?")


@dataclass(frozen=True)
class Parameter:
    """One parameter; it is required unless it has a default."""

    name: str
    kind: Kind
    default: str | int | float | None
    description: str


@dataclass(frozen=True)
class SavedQuery:
    """One query from its file; if it is an older version, `complaint` says what is wrong with the file now."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    database: str | None
    sql: str
    complaint: str | None = None

    def values(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return values for all parameters, in the order of their declarations.

        Raises:
            Invalid: one is missing, unknown or of another type.
        """
        parameters = {parameter.name: parameter for parameter in self.parameters}
        for name in arguments:
            if name not in parameters:
                valid = ", ".join(f"`{parameter}`" for parameter in parameters) or "none"
                raise Invalid(f"`{self.name}` has no parameter {quote(name)}.", f"It has: {valid}.")
        values: dict[str, Any] = {}
        for name, parameter in parameters.items():
            if name not in arguments and parameter.default is None:
                raise Invalid(f"`{self.name}` needs a value for `{name}`.", f"It is {parameter.kind}.")
            values[name] = _convert(arguments.get(name, parameter.default), parameter)
        return values


def _convert(value: Any, parameter: Parameter) -> Any:
    try:
        match parameter.kind:
            case "integer":
                return int(value)
            case "real":
                return float(value)
            case "text":
                return str(value)
    except ValueError:
        raise Invalid(f"`{parameter.name}` must be {parameter.kind}, not {quote(str(value))}.") from None


def parse(name: str, text: str) -> SavedQuery:
    """Return the query in a file.

    Raises:
        Invalid: it does not have the form in this module's docstring.
    """
    lines = text.rstrip().split("\n")  # whatever else ends lines may stand in a text of the query
    head: list[str] = []
    while lines and (lines[0].strip().startswith("--") or not lines[0].strip()):
        head.append(lines.pop(0).strip().removeprefix("--").strip())
    words: list[str] = []
    parameters: list[Parameter] = []
    database: str | None = None
    for line in filter(None, head):
        if line.lower().startswith("database:"):
            database = line.partition(":")[2].strip()
        elif line.startswith(":"):
            parameters.append(_parameter(line))
        else:
            words.append(line)
    if not words:
        raise Invalid("The query says nothing about itself.", "Begin the file with a comment that describes it.")
    if len({parameter.name for parameter in parameters}) < len(parameters):
        raise Invalid("A parameter is declared twice.")
    return SavedQuery(name, " ".join(words)[:900], tuple(parameters), database, "\n".join(lines))


def _parameter(line: str) -> Parameter:
    match = _DECLARED.fullmatch(line)
    if match is None or match["kind"] not in ("text", "integer", "real") or not _is_argument(match["name"]):
        raise Invalid(
            f"The parameter {quote(line)} is not understood.",
            "Write `-- :name text|integer|real = default  words` in small letters.",
        )
    parameter = Parameter(match["name"], cast("Kind", match["kind"]), None, match["words"] or match["name"])
    if match["default"] is None:
        return parameter
    return replace(parameter, default=_convert(match["default"].strip("'"), parameter))


def _is_argument(name: str) -> bool:
    """Return whether a parameter of this name can become an argument of a function."""
    return _ARGUMENT.fullmatch(name) is not None and not iskeyword(name)


class SavedQueries:
    """The queries of a folder, each in its last good version.

    Args:
        compile: lets the database check a query without running it; raises a `Problem` if it cannot run.
        reserved_names: names whose tools would clash with the server's own.

    Attributes:
        queries: by name.
    """

    def __init__(
        self,
        folder: str,
        compile: Callable[[SavedQuery], Awaitable[None]],  # noqa: A002
        reserved_names: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self.queries: dict[str, SavedQuery] = {}
        self._compile = compile
        self._reserved_names = reserved_names
        self._complaints: dict[str, str] = {}

    def files(self) -> list[str]:
        """Return the paths of the `.sql` files, and of one more if there are too many."""
        try:
            names = sorted(
                name for name in os.listdir(self.folder) if name.endswith(".sql") and not name.startswith(".")
            )
        except OSError:
            return []
        return [os.path.join(self.folder, name) for name in names[: _MAX_FILES + 1]]

    async def refresh(self) -> set[str]:
        """Read all files again, and return the names of queries that were added, removed or changed."""
        current: dict[str, SavedQuery] = {}
        for number, path in enumerate(self.files()):
            if number == _MAX_FILES:
                self._complain(path, f"Only the first {_MAX_FILES} files by name are served, and none behind them.")
                break
            name = _query_name(path)
            if not name or name in current or name in self._reserved_names:
                self._complain(path, "Its name is another one's: rename the file.")
                continue
            try:
                with open_text(path) as file:  # The files are small and local, and rarely read.
                    query = parse(name, file.read(_MAX_BYTES))
                await self._compile(query)
                current[name] = query
                self._complaints.pop(path, None)
            except (Problem, OSError, UnicodeDecodeError) as error:
                complaint = "The file can't be read as UTF-8."
                if isinstance(error, Problem):
                    complaint = str(error)
                self._complain(path, complaint)
                last_good = self.queries.get(name)
                if last_good is not None:
                    current[name] = replace(last_good, complaint=complaint)
        changed = {name for name in {*current, *self.queries} if current.get(name) != self.queries.get(name)}
        self.queries = current
        return changed

    def _complain(self, path: str, complaint: str) -> None:
        if self._complaints.get(path) != complaint:
            self._complaints[path] = complaint
            name = quote(os.path.basename(path))
            logger.warning("The saved query %s is not served as it stands: %s", name, complaint)


def _query_name(path: str) -> str:
    stem, _ = os.path.splitext(os.path.basename(path))
    return re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:30]
