"""A client that stands between a test and a server: `python relay.py COMMAND...` passes on what either says.

To kill it is to kill the server's client: then nobody closes the server's pipes but the system.
"""

import os
import subprocess
import sys
import threading

CHUNK_BYTES = 65_536


def copy(source: int, sink: int) -> None:
    """Pass on every byte until the end, then close the sink."""
    while chunk := os.read(source, CHUNK_BYTES):
        unwritten = memoryview(chunk)
        while unwritten:
            unwritten = unwritten[os.write(sink, unwritten) :]
    os.close(sink)


def main() -> int:
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    threading.Thread(target=copy, args=(0, server.stdin.fileno()), daemon=True).start()
    copy(server.stdout.fileno(), 1)
    return server.wait()


if __name__ == "__main__":
    status = main()
    # The thread may wait for more input, and its pipe would wait with it.
    os._exit(status)
