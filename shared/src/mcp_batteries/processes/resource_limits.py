"""What a child process may take of the machine."""

from __future__ import annotations

import os
import sys
import threading
import time

__all__ = ["end_after_work", "limit_resources"]

_LOOK_SECONDS = 1.0


def limit_resources(memory_bytes: int, cpu_seconds: int | None = None) -> None:
    """Limit this process for the rest of its life; it writes no files and leaves no picture of its memory either.

    Windows limits nothing so, and macOS not all of it. On Windows a thread counts the seconds, which can only run where
    the work lets others run.

    Args:
        memory_bytes: Of addresses, whether used or not.
        cpu_seconds: Of work.
    """
    if sys.platform == "win32":
        if cpu_seconds is not None:
            threading.Thread(target=end_after_work, args=(cpu_seconds,), daemon=True).start()
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


def end_after_work(cpu_seconds: float) -> None:
    """End this process once it has worked so long."""
    while time.process_time() < cpu_seconds:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)
