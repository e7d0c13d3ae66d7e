"""Decides which repository's text may lead to a write to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mcp_batteries.errors import Refused, quote
from mcp_github.policy.names import parse_owner_setting

__all__ = ["FlowRules"]

_MAX_QUOTED_KEYS = 3


class FlowRules:
    """Decides what to ask, or refuse, after text that somebody else may have written.

    Args:
        flow: what to do then.
        trusted: the owners whose public text counts as the user's own.
        lockdown: whether text of those who do not belong to a repository is hidden.
    """

    flow_fix = (
        "The user can do it by hand or in a new session, and the operator can name an owner with `--trusted-owner` "
        "whose public text may be read before."
    )

    def __init__(self, flow: Literal["ask", "strict", "off"], trusted: Sequence[str], *, lockdown: bool) -> None:
        self.flow = flow
        self.lockdown = lockdown
        self._trusted = frozenset(parse_owner_setting(login, "--trusted-owner") for login in trusted)

    def trusts(self, key: str) -> bool:
        """Return whether the operator trusts public text of the repository `key` like that of the user's own people."""
        return key.partition("/")[0] in self._trusted

    def flow_question(self, target: str, reads: Mapping[str, bool], *, public: bool, acts: bool) -> str | None:
        """Return what to ask the user before a write to `target`, None if nothing.

        Args:
            target: key of the repository to write to.
            reads: the repositories whose text was shown, by their key; True for a public one.
            public: whether `target` is public.
            acts: whether the write runs or publishes something.

        Raises:
            Refused: the user would have to be asked, and `--flow strict` is set.
        """
        if self.flow == "off":
            return None
        reason = self._reason_to_ask(target, reads, public=public, acts=acts)
        if reason is None:
            return None
        if self.flow == "strict":
            raise Refused(f"Writing to {quote(target)} is refused: {reason}.", self.flow_fix)
        return f"Allow a write to {quote(target)}? {reason[0].upper()}{reason[1:]}."

    def _reason_to_ask(self, target: str, reads: Mapping[str, bool], *, public: bool, acts: bool) -> str | None:
        """Return why a write to `target` may do what its user did not ask for; None if it may not."""
        foreign: list[str] = []
        private: list[str] = []
        for key, is_public in sorted(reads.items()):
            if key == target:
                continue
            if not is_public:
                private.append(key)
            elif not self.trusts(key):
                foreign.append(key)
        if foreign:
            return f"public text of {_quote_some(foreign)} was read before, and could have asked for this"
        if public and private:
            return f"it is public, and text of the private {_quote_some(private)} was read before, which would get out"
        if acts and public and reads.get(target):
            return "it runs or publishes something there, and text that anybody may write there was read before"
        return None

    def require_insider(self, description: str, *, outsider: bool) -> None:
        """With `--lockdown`, raise `Refused` for what has an author who does not belong to the repository."""
        if self.lockdown and outsider:
            raise Refused(
                f"The {description} is of somebody who does not belong to the repository, and `--lockdown` hides it.",
                "A person can look at it on GitHub.",
            )


def _quote_some(keys: Sequence[str]) -> str:
    """Return the first of `keys`, and how many others there are."""
    quoted = quote(", ".join(keys[:_MAX_QUOTED_KEYS]))
    if len(keys) <= _MAX_QUOTED_KEYS:
        return quoted
    return f"{quoted} and {len(keys) - _MAX_QUOTED_KEYS} more"
