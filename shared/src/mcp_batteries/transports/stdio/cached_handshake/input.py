"""Standard input as the front reads it, with a check whether anybody still reads the answers.

Only cheap modules of the standard library, as in `replay`.
"""

from __future__ import annotations

import os
import sys

__all__ = ["Input"]

_CHECK_SECONDS = 2.0
_CHUNK = 65_536

if sys.platform == "win32":
    import _thread
    import time

    class Input:
        """Standard input, read as it comes. The process ends when nobody reads the output, or its parent is gone."""

        def __init__(self) -> None:
            self._check_lock = _thread.allocate_lock()
            self._is_over = False
            # No call waits for a pipe and for something else, unless the host has opened the pipe for that.
            _thread.start_new_thread(self._watch, ())

        def read(self) -> bytes:
            """Wait for input; b"" at its end.

            Called only by the thread that hands over: while one thread waits for a pipe there, whatever another asks
            of it waits, too, even to copy or to close it.
            """
            return os.read(0, _CHUNK)

        def close(self) -> None:
            """Allow standard output to be replaced from here on."""
            with self._check_lock:
                self._is_over = True

        def _watch(self) -> None:
            time.sleep(_CHECK_SECONDS / 20)  # The first answers don't wait for the import.
            from mcp_batteries.transports.stdio import windows

            parent = windows.Parent()
            while True:
                with self._check_lock:
                    if self._is_over:
                        return
                    if not windows.has_reader(1) or not parent.is_alive():
                        os._exit(0)
                time.sleep(_CHECK_SECONDS)

else:
    import select

    class Input:
        """Standard input, read as it comes. The process ends when nobody reads the output, or its parent is gone."""

        def __init__(self) -> None:
            self._poll = select.poll()
            self._poll.register(0, select.POLLIN)
            self._poll.register(1, 0)
            self._parent = os.getppid()

        def read(self) -> bytes:
            """Wait for input; b"" at its end."""
            while True:
                ready = dict(self._poll.poll(_CHECK_SECONDS * 1000))
                # macOS answers with POLLNVAL for a terminal and for /dev/null, which are read all the same.
                if ready.get(1, 0) & (select.POLLERR | select.POLLHUP) or os.getppid() != self._parent:
                    os._exit(0)
                if 0 in ready:
                    return os.read(0, _CHUNK)

        def close(self) -> None:
            """Do nothing."""
