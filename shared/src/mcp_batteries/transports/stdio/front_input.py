"""Standard input as the front reads it, with a check whether anybody still reads the answers.

Only cheap modules of the standard library, as in `front`.
"""

from __future__ import annotations

import os
import sys

__all__ = ["Input"]

_LOOK_SECONDS = 2.0
_CHUNK = 65_536

if sys.platform == "win32":
    import _thread
    import _winapi
    import msvcrt
    import time

    class Input:
        """Standard input, read as it comes. The process ends when nobody reads the output, or its parent is gone."""

        def __init__(self) -> None:
            self._handle = msvcrt.get_osfhandle(0)
            self._looks, self._is_over = _thread.allocate_lock(), False
            # No call waits for a pipe and for something else, unless the host has opened the pipe for that.
            _thread.start_new_thread(self._watch, ())

        def read(self, *, wait: bool) -> bytes | None:
            """What has come, b"" at the end; None if nothing has, with `wait` it is waited for."""
            return os.read(0, _CHUNK) if wait or self._has_come() else None

        def close(self) -> None:
            """Allow standard output to be replaced from here on."""
            with self._looks:
                self._is_over = True

        def _has_come(self) -> bool:
            try:
                return _winapi.PeekNamedPipe(self._handle, 0)[0] > 0
            except OSError:  # the end, or not a pipe, which does not keep us waiting
                return True

        def _watch(self) -> None:
            time.sleep(_LOOK_SECONDS / 20)  # The first answers don't wait for the import.
            from mcp_batteries.transports.stdio import windows

            parent = windows.Parent()
            while True:
                with self._looks:
                    if self._is_over:
                        return
                    if not windows.has_reader(1) or not parent.is_alive():
                        os._exit(0)
                time.sleep(_LOOK_SECONDS)

else:
    import select

    class Input:
        """Standard input, read as it comes. The process ends when nobody reads the output, or its parent is gone."""

        def __init__(self) -> None:
            self._poll = select.poll()
            self._poll.register(0, select.POLLIN)
            self._poll.register(1, 0)
            self._parent = os.getppid()

        def read(self, *, wait: bool) -> bytes | None:
            """What has come, b"" at the end; None if nothing has, with `wait` it is waited for."""
            while True:
                ready = dict(self._poll.poll(_LOOK_SECONDS * 1000 if wait else 0))
                # macOS answers with POLLNVAL for a terminal and for /dev/null, which are read all the same.
                if ready.get(1, 0) & (select.POLLERR | select.POLLHUP) or os.getppid() != self._parent:
                    os._exit(0)
                if 0 in ready:
                    return os.read(0, _CHUNK)
                if not wait:
                    return None

        def close(self) -> None:
            """Do nothing."""
