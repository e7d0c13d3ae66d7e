"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these."""

_NO_LINKS = "Wine 8 makes neither symbolic links that Windows calls understand nor junctions"

LISTED: dict[str, str] = {
    "filesystem/test_windows.py::test_a_junction_*": _NO_LINKS,
    "filesystem/test_windows.py::test_a_link_does_not_lead_out": _NO_LINKS,
}
