"""The process in which SQLite runs, and that can be killed.

SQLite can't be interrupted inside one opcode: `printf`, `replace` or `instr` on big values run for minutes. So no
statement runs in the server's own process. A worker starts in the time an interpreter takes: it imports the standard
library and this package, nothing else.

The server sends a request as a frame (four bytes of length, big-endian, then JSON) and gets frames back, the last of
them with `"end": true`. `{"cancel": true}` interrupts what runs; the end of the stream ends the process at once.
"""
