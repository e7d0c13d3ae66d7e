"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these."""

_NO_LINKS = "Wine 8 makes neither symbolic links that Windows calls understand nor junctions"
_SLOW_FOLDERS = "for each new name Wine reads the whole folder, in search of another letter case"
_POSIX_NAMES = "uses names that NTFS does not take, or takes for others"

LISTED: dict[str, str] = {
    "filesystem/test_windows.py::test_a_junction_*": _NO_LINKS,
    "filesystem/test_windows.py::test_a_link_does_not_lead_out": _NO_LINKS,
    "filesystem/test_policy.py::test_both_spellings_of_a_linked_folder": _NO_LINKS,
    "filesystem/test_policy.py::TestNarrowed::test_nothing_in_common?root/link?": _NO_LINKS,
    "filesystem/test_listing.py::test_a_small_tree_is_shown_whole": _NO_LINKS,
    "filesystem/test_read.py::test_facts_about_an_entry": _NO_LINKS,
    "filesystem/test_read.py::test_media_are_content_blocks": _POSIX_NAMES,
    "filesystem/test_read.py::test_a_name_in_another_case_is_suggested": _POSIX_NAMES,
    "filesystem/test_properties_read.py::test_a_glob_means_names_in_all_their_spellings": _POSIX_NAMES,
    "filesystem/test_listing.py::test_a_page_of_a_huge_folder_takes_bounded_memory": _SLOW_FOLDERS,
}
