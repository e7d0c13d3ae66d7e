"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these."""

LISTED: dict[str, str] = {}
