"""A TOML file that is reloaded when it changes; if it breaks, the last good version stays."""

from __future__ import annotations

import logging
import tomllib
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from mcp_batteries.errors import describe_os_error
from mcp_batteries.settings import open_text

__all__ = ["ConfigFile"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ConfigFile(ABC, Generic[T]):
    """The entries of the file `path`; none if there is no file.

    Args:
        title: its name in the log.

    Attributes:
        problem: why the current file cannot be used; None if it can.
    """

    def __init__(self, path: str | None, title: str) -> None:
        self.path = path
        self._title = title
        self.problem: str | None = None
        self._entries: dict[str, T] = {}
        self.refresh()

    def all(self) -> dict[str, T]:
        """Return the entries of the last good version."""
        return self._entries

    def refresh(self) -> bool:
        """Read the file again; return whether anything that a client can see has changed. Blocks for a moment."""
        if self.path is None:
            return False
        entries_before = self._entries
        problem_before = self.problem
        try:
            with open_text(self.path) as file:
                self._entries = self.entries(tomllib.loads(file.read()))
            self.problem = None
        except FileNotFoundError:
            self.problem = "it does not exist."
        except OSError as error:
            self.problem = f"it cannot be read: {describe_os_error(error)}."
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            self.problem = f"it is not TOML: {error}."
        except ValueError as error:
            self.problem = str(error)
        has_changed = self._entries != entries_before or self.problem != problem_before
        if has_changed and self.problem:
            logger.warning("%s is not used: %s", self._title, self.problem)
        return has_changed

    @abstractmethod
    def entries(self, content: dict[str, Any]) -> dict[str, T]:
        """Return the entries of the file, from its tables and values.

        Raises:
            ValueError: It makes no sense; with the reason as a sentence.
        """
