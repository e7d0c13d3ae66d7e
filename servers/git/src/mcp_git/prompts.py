"""Prompts for people: the most frequent questions about a repository."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from mcp_types import TextResourceContents
from pydantic import Field

from mcp_batteries.errors import quote
from mcp_batteries.server.declaration.decorators import Messages, prompt
from mcp_git.policy import Policy, parse_range

__all__ = ["Prompts"]

RepositoryName = Annotated[str, Field(description="Name of the repository; may be left out where one is served.")]


@dataclass(frozen=True)
class Prompts:
    """The prompts.

    Attributes:
        attach: reads a resource as an attachment.
    """

    policy: Policy
    attach: Callable[[str], Awaitable[TextResourceContents]]

    @prompt("Explain changes")
    async def explain_changes(
        self,
        rev: Annotated[str, Field(description="Commit or range, such as main..HEAD; empty for the uncommitted.")] = "",
        repo: RepositoryName = "",
    ) -> str:
        """Explain what changed and why."""
        topic = "what is not committed"
        if rev:
            topic = f"the change {quote(parse_range(rev).text)}"
        return (
            f"Explain {topic} {self._in(repo)} to a colleague who knows the project. Begin with `read_diff`, whose"
            " first page has all files with their counts, and read what matters; `list_commits` tells why, where there"
            " are commits, and `get_blame` what the lines were for. Say first in two sentences what the change does,"
            " then what belongs together, then what could break, and what you did not look at."
        )

    @prompt("Write a commit message")
    async def write_commit_message(self, repo: RepositoryName = "") -> Messages:
        """Write the message for what is staged, in the project's own style."""
        ask = (
            f"Write the commit message for what is staged {self._in(repo)}. Read it with `read_diff` and `only` as"
            " `staged`; if nothing is staged, take what is not committed and say so. The latest commits are attached:"
            " take their language, length and form. A subject that completes the sentence “this commit will …” unless"
            " they do otherwise, and a body only where the diff does not say why. If it is several changes, say how to"
            " split it. Commit nothing."
        )
        return await self._with(ask, "log", repo)

    @prompt("Prepare a release note")
    async def write_release_note(
        self,
        rev: Annotated[
            str, Field(description="Range, such as v1.2..HEAD; empty for what came since the last tag.")
        ] = "",
        repo: RepositoryName = "",
    ) -> str:
        """Write what users should know of the commits of a release."""
        since = f"of {quote(parse_range(rev).text)}" if rev else "since the latest tag (`list_refs` of `tags`)"
        return (
            f"Write the release note for the commits {since} {self._in(repo)}. List them with `list_commits`, page by"
            " page to the end, and read the diff of what the subject does not explain. Group by what a user notices:"
            " new, changed, mended, removed; leave out what nobody outside notices. One line each, with the hash. Put"
            " first what breaks something and say what to do. If there is a changelog (`list_files`), take its form."
        )

    @prompt("Untangle a conflict")
    async def untangle_conflict(self, repo: RepositoryName = "") -> Messages:
        """Work out how the sides of a conflict belong together."""
        ask = (
            f"Help to resolve the conflict {self._in(repo)}; its status is attached. For each file in conflict read"
            " `read_diff` of its path, and both sides with `read_file` and `rev` as `:2` (ours) and `:3` (theirs), `:1`"
            " what they came from. Find out with `list_commits` why each side changed it. Say what each wanted, then"
            " propose the text that keeps both, and where that is a decision put it to me. Change nothing."
        )
        return await self._with(ask, "status", repo)

    def _in(self, repo: str) -> str:
        return f"in the repository {quote(self.policy.repository(repo).name)}"

    async def _with(self, ask: str, kind: str, repo: str) -> Messages:
        return [ask, await self.attach(self.policy.repository(repo).uri(kind))]
