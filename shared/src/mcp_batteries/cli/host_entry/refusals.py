"""Settings for which no entry is written: the host would start a server in vain."""

from __future__ import annotations

from mcp_batteries.errors import Invalid, quote
from mcp_batteries.settings import Settings

__all__ = ["describe_unusable_paths", "refuse_incomplete", "refuse_unusable"]


def refuse_incomplete(settings: Settings) -> None:
    """Refuse settings with which a host would start a server that has nothing to serve, and so ends at once.

    Raises:
        Invalid: they are such.
    """
    if settings.transport != "stdio":
        return
    for member in _served_members(settings):
        question = member.unanswered_question()
        if question is not None:
            raise Invalid(
                f"The command names no {question.name}, and {member.COMMAND} does not start without one.",
                f"Name one, such as {question.example}.",
            )


def refuse_unusable(host: str, settings: Settings) -> None:
    """Refuse settings that name what is not there or can't be served: `host` would start the server in vain.

    Raises:
        Invalid: they do.
    """
    if settings.transport != "stdio":
        return
    sentences = describe_unusable_paths(settings)
    if sentences:
        raise Invalid(
            sentences, f"Nothing was changed: correct that first. --print-config {host} prints the entry anyway."
        )


def describe_unusable_paths(settings: Settings) -> str:
    """Return sentences about files and folders in the settings that the server can't serve; empty if it can."""
    missing: list[str] = []
    sentences: list[str] = []
    for member in _served_members(settings):
        missing.extend(quote(path) for path in member.absent())
        sentences.extend(member.unusable())
    if missing:
        sentences.insert(0, f"Not there, and the server needs it: {', '.join(missing)}.")
    return "\n".join(sentences)


def _served_members(settings: Settings) -> list[Settings]:
    """Return the settings of each server in the process; of one that stands alone, its own."""
    process, *mounted = settings.parts()
    return mounted or [process]
