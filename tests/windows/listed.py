"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these.

Tests that make a link are found when they try to; they aren't named here.
"""

NO_LINKS = "Wine 8 makes neither symbolic links that Windows calls understand nor junctions"
_SLOW_FOLDERS = "for each new name Wine reads the whole folder, in search of another letter case"
_NO_CONSOLE = "Wine gives a process on pipes no console, and without one nobody can press Ctrl-Break"
_LONG_PATHS = "Wine 8 does not tell the path of a handle that is longer than 260 characters"
_LATE_END = "Wine keeps the name of a removed folder while somebody watches it, NTFS since Windows 10 1809 does not"
_NO_STAT = "libpq looks at files with NtFlushBuffersFileEx at hand, which Wine 8 lacks"

LISTED: dict[str, str] = {
    "filesystem/test_listing.py::test_a_page_of_a_huge_folder_takes_bounded_memory": _SLOW_FOLDERS,
    "shared/test_stdio.py::test_ctrl_break_ends_it": _NO_CONSOLE,
    "filesystem/test_search.py::test_a_page_of_paths_ends_where_it_would_be_too_long?own?": _LONG_PATHS,
    "filesystem/test_list_changes.py::test_random_changes*": _LATE_END,
    "filesystem/test_list_changes.py::test_a_subscription_to_a_glob_hears_of_every_file_it_means*": _LATE_END,
    "postgres/test_addresses.py::test_a_password_that_changes_is_found_in_its_file?pgpass?": _NO_STAT,
    "postgres/test_addresses.py::test_a_service_that_moves_is_followed*": _NO_STAT,
    "filesystem/test_windows.py::test_a_long_path_is_written_listed_and_read": _LONG_PATHS,
}

SAME: dict[str, tuple[int, str]] = {}
"""What no system can change: a pattern of test names, of how many of them one runs here, and why."""
