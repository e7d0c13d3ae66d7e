"""What a child process may take of the machine."""

from __future__ import annotations

import sys

__all__ = ["limit_resources"]


def limit_resources(memory_bytes: int, cpu_seconds: int | None = None) -> None:
    """Limit this process for the rest of its life; it writes no files and leaves no picture of its memory either.

    Windows limits nothing so, and macOS not all of it.

    Args:
        memory_bytes: Of addresses, whether used or not.
        cpu_seconds: Of work.
    """
    if sys.platform == "win32":
        return
    import resource

    limits = {resource.RLIMIT_AS: memory_bytes, resource.RLIMIT_FSIZE: 0, resource.RLIMIT_CORE: 0}
    if cpu_seconds is not None:
        limits[resource.RLIMIT_CPU] = cpu_seconds
    for limit, value in limits.items():
        try:
            resource.setrlimit(limit, (value, value))
        except (ValueError, OSError):  # macOS knows some of them by name only
            continue
