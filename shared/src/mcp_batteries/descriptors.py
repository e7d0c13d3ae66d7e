"""The limit on the file descriptors that this process may open."""

from __future__ import annotations

import sys
from contextlib import suppress

__all__ = ["raise_descriptor_limit"]


def raise_descriptor_limit(desired: int) -> int | None:
    """Return how many descriptors this process may open, raised to `desired` or as near to it as the system allows.

    None if the system does not count. On macOS, a process started from a terminal may open only 256.
    """
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return None
    if soft >= desired:
        return soft
    raised = desired
    if hard != resource.RLIM_INFINITY:
        raised = min(desired, hard)
    while raised > soft:
        # macOS refuses more than the kernel allows a process, whatever the hard limit says.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            return raised
        raised //= 2
    return soft
