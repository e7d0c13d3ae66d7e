"""Decides which repository's text may lead to a write to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mcp_batteries.errors import Refused, quote
from mcp_github.policy.served import parse_owner_setting

__all__ = ["FlowRules"]


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
        self.flow, self.lockdown = flow, lockdown
        self._trusted = frozenset(parse_owner_setting(login, "--trusted-owner") for login in trusted)

    def trusts(self, key: str) -> bool:
        """Whether the operator trusts public text of the repository `key` like that of the user's own people."""
        return key.partition("/")[0] in self._trusted

    def flow_question(self, target: str, seen: Mapping[str, bool], *, public: bool, acts: bool) -> str | None:
        """What to ask the user before a write to `target`, None if nothing.

        Args:
            target: key of the repository to write to.
            seen: the repositories whose text was shown, by their key; True for a public one.
            public: whether `target` is public.
            acts: whether the write runs or publishes something.

        Raises:
            Refused: the user would have to be asked, and `--flow strict` is set.
        """
        if self.flow == "off":
            return None
        foreign = sorted(key for key, is_public in seen.items() if is_public and key != target and not self.trusts(key))
        private = sorted(key for key, is_public in seen.items() if not is_public and key != target)
        if foreign:
            why = f"public text of {_quote_some(foreign)} was read before, and could have asked for this"
        elif public and private:
            why = f"it is public, and text of the private {_quote_some(private)} was read before, which would get out"
        elif acts and public and seen.get(target):
            why = "it runs or publishes something there, and text that anybody may write there was read before"
        else:
            return None
        if self.flow == "strict":
            raise Refused(f"Writing to {quote(target)} is refused: {why}.", self.flow_fix)
        return f"Allow a write to {quote(target)}? {why[0].upper()}{why[1:]}."

    def require_insider(self, what: str, *, outsider: bool) -> None:
        """With `--lockdown`, raise `Refused` for `what` if its author does not belong to the repository."""
        if self.lockdown and outsider:
            raise Refused(
                f"The {what} is of somebody who does not belong to the repository, and `--lockdown` hides it.",
                "A person can look at it on GitHub.",
            )


def _quote_some(keys: Sequence[str]) -> str:
    return quote(", ".join(keys[:3])) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
