"""How a process ended that was not asked to."""

from __future__ import annotations

import signal

__all__ = ["crash_name"]

_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGSYS")
_WINDOWS_CRASHES = {
    0xC0000005: "access violation",
    0xC000001D: "illegal instruction",
    0xC00000FD: "stack overflow",
    0xC0000374: "heap corruption",
    0xC0000409: "stack buffer overrun",
}


def crash_name(exit_code: int) -> str:
    """Return the name of the crash that a process ended by; empty when it ended otherwise."""
    if exit_code >= 0:
        return _WINDOWS_CRASHES.get(exit_code, "")
    return next((name for name in _SIGNALS if getattr(signal, name, None) == -exit_code), "")
