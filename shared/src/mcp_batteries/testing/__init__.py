"""The tests that every server needs, shipped so that your server can use them too.

`contract` is the suite every server passes, `wire` speaks each protocol revision without an SDK, `docs` writes
the generated tables and snapshots.
"""
