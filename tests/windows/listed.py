"""What Wine cannot judge: a pattern of test names (below `tests/`), and why. The Windows runner runs all of these.

Tests that make a link or start a PostgreSQL of their own are found when they try to; they aren't named here.
"""

NO_LINKS = "Wine 8 makes neither symbolic links that Windows calls understand nor junctions"
NO_POSTGRES = "PostgreSQL's programs ask for NtFlushBuffersFileEx, which Wine 8 lacks"
_NO_GIT = "mcp-git makes junctions, which Wine 8 lacks, and runs git, which is not there"
_ASKS_GIT = "asks git, which is not there, what a patch means"
_SLOW_FOLDERS = "for each new name Wine reads the whole folder, in search of another letter case"
_NO_CONSOLE = "Wine gives a process on pipes no console, and without one nobody can press Ctrl-Break"
_LONG_PATHS = "Wine 8 does not tell the path of a handle that is longer than 260 characters"
_LATE_END = "Wine keeps the name of a removed folder while somebody watches it, NTFS since Windows 10 1809 does not"
_SAME_NAME = "Wine 8 takes a rename to another letter case for none at all"
_SCRIPTS = "the packages lie in a folder of their own, which has no programs that start them"
_NO_ROOM = "node.js asks for more room for addresses than Wine 8 can give"
_NO_STAT = "libpq, too, looks at files only where NtFlushBuffersFileEx is at hand, which Wine 8 lacks"

LISTED: dict[str, str] = {
    "filesystem/test_listing.py::test_a_page_of_a_huge_folder_takes_bounded_memory": _SLOW_FOLDERS,
    "filesystem/test_listing.py::test_a_folder_of_many_files_leaves_room_for_the_others": _SLOW_FOLDERS,
    "filesystem/test_listing.py::test_a_large_tree_is_folded_and_what_is_folded_is_not_walked*": _SLOW_FOLDERS,
    "filesystem/test_edit.py::*_that_git_means*": _ASKS_GIT,
    "shared/test_stdio.py::test_ctrl_break_ends_it": _NO_CONSOLE,
    "filesystem/test_search_pages.py::test_a_page_of_paths_ends_where_it_would_be_too_long?own?": _LONG_PATHS,
    "filesystem/test_list_changes.py::test_random_changes*": _LATE_END,
    "filesystem/test_list_changes.py::test_a_subscription_to_a_glob_hears_of_every_file_it_means*": _LATE_END,
    "e2e/test_login.py*": _NO_ROOM,
    "git_server/*": _NO_GIT,
    "*[[]mcp_git[]-]*": _NO_GIT,
    "*[[]mcp-git[]-]*": _NO_GIT,
    "shared/test_hosts.py::test_the_command_is_this_installation_not_a_name_from_an_index": _SCRIPTS,
    "shared/test_file_watcher.py::test_a_parent_made_and_removed_many_times": _LATE_END,
    "postgres/test_demo.py*": NO_POSTGRES,
    "postgres/test_addresses.py::test_a_password_that_changes_is_found_in_its_file?pgpass?": _NO_STAT,
    "postgres/test_addresses.py::test_a_service_that_moves_is_followed*": _NO_STAT,
    "postgres/test_tls.py::test_a_server_whose_private_authority_is_known_is_believed": _NO_STAT,
    "filesystem/test_windows.py::test_a_name_gets_the_letter_case_it_is_moved_to": _SAME_NAME,
    "filesystem/test_windows.py::test_a_long_path_is_written_listed_and_read": _LONG_PATHS,
}


_PROGRAMS = "starts uv, node.js or Docker, which the Windows beneath Wine does not have"
LISTED.update(
    {f"e2e/test_{name}.py*": _PROGRAMS for name in ("bundles", "deploy", "offline", "wheels")}
    | {
        f"outside/test_{name}.py*": _PROGRAMS
        for name in ("conformance", "foreign_clients", "pygithub_recordings", "vscode")
    }
)

_SQLITE = "SQLite answers, which is the same code on every system; files, locks and processes have whole modules here"
_POSTGRES = "the database answers, and it runs on Linux here, too"
_GITHUB = "asks an imitation of GitHub in the same process: no file, no pipe and no program is involved"
_HTTP = "bytes that come by a socket meet the same parser on every system"
_DOCUMENTS = "the same libraries take documents apart on every system; the process they run in has tests here"
_REQUESTS = "requests meet the same checks on every system; both transports and the process have whole modules here"
_SERVICES = "asks an imitation of the services in the same process: no file, no pipe and no program is involved"
_VIEWS = "pages and their cost are the same on every system"
_LINES = "lines meet the same parser on every system; over two hundred of them come through a pipe here"
_LISTS = "what a server says of itself is the same on every system; the rest of the contract starts each one here"
_STARTS = "starts each server often to read what the contract reads, too"
SAME: dict[str, tuple[int, str]] = {
    **{
        f"sqlite/test_{name}.py*": (12, _SQLITE)
        for name in (
            "across", "attacks", "doors", "endless", "guidance", "mistakes", "pages", "queries", "resources",
            "index_advice", "several", "vectors", "virtual",
        )
    },
    "sqlite/test_visible_schema.py::*proof*": (0, _SQLITE),
    "sql/test_imports.py::test_a_sample_of_the_proof[[]postgres*": (0, _POSTGRES),
    **{f"postgres/test_{name}.py*": (1, "") for name in ("policy", "spelling", "urls")},
    "postgres/*": (12, _POSTGRES),
    **{f"github_server/test_{name}.py*": (1, "") for name in ("logs", "policy", "settings", "scrub", "tokens")},
    "github_server/*": (12, _GITHUB),
    "outside/test_pygithub*": (2, _GITHUB),
    "e2e/test_bad_input_http.py*": (12, _HTTP),
    "e2e/test_bad_input_stdio.py::test_bad_line*": (3, _LINES),
    "e2e/test_front.py::test_another_configuration_is_not_answered": (0, _STARTS),
    "e2e/test_run.py*": (2, _STARTS),
    "e2e/test_traffic_http.py*": (2, _REQUESTS),
    "filesystem/test_documents.py::test_damaged*": (8, _DOCUMENTS),
    "filesystem/test_documents.py::test_a_file_made_to_do_harm*": (8, _DOCUMENTS),
    "filesystem/test_documents.py*": (3, _DOCUMENTS),
    **{
        f"shared/test_{name}.py*": (3, _REQUESTS)
        for name in (
            "access", "http", "mount", "observed", "origins", "quota", "rejections", "skills", "uvicorn_server",
        )
    },
    "shared/test_stdio.py::test_*batch*": (2, _LINES),
    "shared/test_views.py*": (8, _VIEWS),
    "weather/test_changes.py*": (2, _SERVICES),
    "weather/test_policy.py*": (1, ""),
    "weather/*": (6, _SERVICES),
    "contract/*": (2, _LISTS),
    "e2e/test_front.py::test_the_front_says_what_the_server_says*": (4, _STARTS),
}  # fmt: skip
"""What no system can change: a pattern of test names (the first that fits counts), of how many of them one runs here
(0: none), and why. `--only whole` runs them all, and so does the job on Windows runners."""

WEEKLY = "a change leaves it to the week's run, on Linux too"
AGAIN = "starts the processes of a test that runs here, with other parameters"
EACH: dict[str, str] = {
    "e2e/test_matrix.py::test_every_server*": "each server starts, answers and leaves",
    "e2e/test_front.py::test_a_second_start*": "each server hands over",
    "e2e/test_bad_input_stdio.py*": "one process reads all the lines",
    "filesystem/test_undo.py*": "each kind of change is made by other calls there",
    "filesystem/test_races.py*": "handles are not descriptors",
}
"""Tests that start processes and run with all their parameters; the others run with one, always the same."""
