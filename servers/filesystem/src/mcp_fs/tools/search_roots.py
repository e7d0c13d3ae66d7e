"""Arguments of what walks through folders."""

from __future__ import annotations

from mcp_fs.policy import Policy, Readable

__all__ = ["starts"]


def starts(policy: Policy, path: str) -> list[Readable]:
    """Where a walk begins: at `path`, or in every served folder when it names them all.

    Raises:
        Problem: `path` is none that may be read.
    """
    if path in ("", ".", "./", "/") and len(policy.roots) > 1:
        return [policy.top(root) for root in policy.roots]
    return [policy.readable(path or ".")]
