"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these."""

_NO_LINKS = "Wine 8 makes neither symbolic links that Windows calls understand nor junctions"
_SLOW_FOLDERS = "for each new name Wine reads the whole folder, in search of another letter case"

LISTED: dict[str, str] = {
    "filesystem/test_windows.py::test_a_junction_*": _NO_LINKS,
    "filesystem/test_windows.py::test_a_link_does_not_lead_out": _NO_LINKS,
    "filesystem/test_policy.py::test_both_spellings_of_a_linked_folder": _NO_LINKS,
    "filesystem/test_policy.py::TestNarrowed::test_nothing_in_common?root/link?": _NO_LINKS,
    "filesystem/test_listing.py::test_a_page_of_a_huge_folder_takes_bounded_memory": _SLOW_FOLDERS,
}
