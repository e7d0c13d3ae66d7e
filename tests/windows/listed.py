"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these.

Tests that make a link are found when they try to; they aren't named here.
"""

NO_LINKS = "Wine 8 makes neither symbolic links that Windows calls understand nor junctions"
_SLOW_FOLDERS = "for each new name Wine reads the whole folder, in search of another letter case"
_NO_CONSOLE = "Wine gives a process on pipes no console, and without one nobody can press Ctrl-Break"
_LONG_PATHS = "Wine 8 does not tell the path of a handle that is longer than 260 characters"

LISTED: dict[str, str] = {
    "filesystem/test_listing.py::test_a_page_of_a_huge_folder_takes_bounded_memory": _SLOW_FOLDERS,
    "shared/test_stdio.py::test_ctrl_break_ends_it": _NO_CONSOLE,
    "filesystem/test_search.py::test_a_page_of_paths_ends_where_it_would_be_too_long?own?": _LONG_PATHS,
    "filesystem/test_windows.py::test_a_long_path_is_written_listed_and_read": _LONG_PATHS,
}

SAME: dict[str, tuple[int, str]] = {}
"""What no system can change: a pattern of test names, of how many of them one runs here, and why."""
