"""The memo that grows while a model looks at data; it lives as long as the server."""

from __future__ import annotations

from mcp_batteries.errors import TooLarge

__all__ = ["Insights"]

_MOST = 200


class Insights:
    """Notes in the order they were made."""

    def __init__(self) -> None:
        self._notes: list[str] = []

    def add(self, note: str) -> int:
        """How many there are with `note`.

        Raises:
            TooLarge: there are as many as the memo takes.
        """
        if len(self._notes) == _MOST:
            raise TooLarge(f"The memo `memo://insights` has {_MOST} notes, the limit.", "Summarise them for the user.")
        self._notes.append(" ".join(note.split()))
        return len(self._notes)

    def text(self) -> str:
        """The memo as Markdown."""
        return "# Insights\n\n" + ("".join(f"- {note}\n" for note in self._notes) or "None yet.\n")
