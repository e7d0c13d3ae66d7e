"""What tests every server needs, shipped so that a sixth server can use it too.

`contract` is the suite every server passes, `wire` speaks each protocol revision without an SDK, `docs` writes
the generated tables and snapshots.
"""
