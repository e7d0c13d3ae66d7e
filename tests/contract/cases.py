"""What each server is tried with. A member without a case here fails `test_contract`."""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

from git_server.made import Made
from github_server.oracle import Oracle
from mcp_batteries.testing.case import Case
from postgres.serving import make
from weather.upstream import Upstream

SECRET = "canary-of-the-contract"


def filesystem(scratch: Path) -> Case:
    served, beside = scratch / "served", scratch / "served_not"
    (served / "folder").mkdir(parents=True)
    beside.mkdir()
    (beside / "secret.txt").write_text(SECRET, "utf-8")
    (served / "notes.txt").write_text("first\nsecond\nthird\n", "utf-8")
    (served / ".env").write_text(f"TOKEN={SECRET}", "utf-8")
    if sys.platform != "win32":  # where not everybody may make links
        (served / "way_out").symlink_to(beside)
    return Case(
        package="mcp_fs",
        arguments=[str(served)],
        read=("read_text", {"path": "notes.txt"}),
        uri=(served / "notes.txt").as_uri(),
        refused=[
            ("read_text", {"path": "missing.txt"}),
            ("read_text", {"path": "../served_not/secret.txt"}),
            ("read_text", {"path": "way_out/secret.txt"}),
            ("read_text", {"path": str(beside / "secret.txt")}),
            ("read_text", {"path": ".env"}),
            ("read_text", {"path": "notes.txt", "start_line": -1}),
            ("read_text", {"path": "no\0thing"}),
            ("list_directory", {"path": "/etc"}),
            ("write_file", {"path": "../served_not/new.txt", "content": "x"}),
            ("write_file", {"path": "notes.txt", "content": "x"}),
        ],
        foreign=[str(beside), SECRET, "root:"],
    )


def git(scratch: Path) -> Case:
    made = Made(scratch / "app")
    made.commit("first", {"notes.txt": "one\n", "folder/more.txt": "two\n"})
    made.write("notes.txt", "one\nmore\n")
    (scratch / "secret.txt").write_text("the secret", "utf-8")
    return Case(
        package="mcp_git",
        arguments=[str(made.path)],
        read=("get_status", {}),
        uri="git://app/status",
        refused=[
            ("get_status", {"repo": "other"}),
            ("get_status", {"path": "../secret.txt"}),
            ("list_commits", {"rev": "--output=x"}),
            ("list_commits", {"rev": "nothing"}),
            ("list_commits", {"cursor": "garbage"}),
            ("list_commits", {"regex": True}),
            ("read_diff", {"rev": "HEAD", "only": "staged"}),
            ("read_diff", {"rev": "--no-index..HEAD"}),
            ("read_file", {"path": "../secret.txt"}),
            ("read_file", {"path": str(scratch / "secret.txt")}),
            ("read_file", {"path": ".git/config"}),
            ("read_file", {"path": "missing.txt"}),
            ("read_file", {"path": "folder"}),
            ("read_file", {"path": "notes.txt", "rev": "HEAD:notes.txt"}),
            ("get_blame", {"path": "missing.txt"}),
            ("list_refs", {"kind": "reflog", "name": "-x"}),
            ("list_refs", {"kind": "stashes", "pattern": "x"}),
            ("list_refs", {"contains": "--all"}),
            ("list_refs", {"merged": "nothing"}),
            ("search_text", {"pattern": "a\nb"}),
        ],
        foreign=["the secret", str(scratch)],
    )


def sqlite(scratch: Path) -> Case:
    served, files = scratch / "served", scratch / "files"
    served.mkdir()
    files.mkdir()
    with closing(sqlite3.connect(served / "app.db")) as database:
        database.executescript(
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name); INSERT INTO people VALUES (1, 'Ada')"
        )
    (scratch / "secret.txt").write_text(SECRET, "utf-8")
    return Case(
        package="mcp_sqlite",
        arguments=["--write", "--ddl", "--files", str(files), str(served / "app.db")],
        read=("query_rows", {"sql": "SELECT * FROM people"}),
        uri="sqlite://app/people",
        refused=[
            ("query_rows", {"sql": "DELETE FROM people"}),
            ("query_rows", {"sql": "SELEC 1"}),
            ("query_rows", {"sql": "SELECT * FROM nothing"}),
            ("query_rows", {"sql": f"ATTACH '{scratch / 'other.db'}' AS other"}),
            ("query_rows", {"sql": "SELECT file FROM pragma_database_list"}),
            ("query_rows", {"sql": "SELECT 1", "database": "other"}),
            ("query_rows", {"cursor": "garbage"}),
            ("get_table", {"table": "nothing"}),
            ("write_rows", {"sql": "DROP TABLE people"}),
            ("edit_schema", {"sql": "VACUUM"}),
            ("copy_to_file", {"sql": "SELECT 1", "file": "../new.csv"}),
            ("copy_from_file", {"table": "people", "file": "secret.txt"}),
            ("copy_database", {"file": "missing/copy.db"}),
        ],
        foreign=[SECRET, str(served)],
    )


def github(scratch: Path) -> Case:
    oracle = _github()
    key = scratch / "app.pem"
    key.write_text(SECRET, "utf-8")
    token = scratch / "token"
    token.write_text("ghp_contractsOwnToken", "utf-8")
    return Case(
        package="mcp_github",
        arguments=[
            "--api-url", oracle.url, "--token-file", str(token), "--repos", "octo/*", "--toolsets", "all",
            "--write", "--merge", "--delete", "--releases", "--runs", "--force",
        ],
        read=("get_repository", {"repo": "octo/app"}),
        uri="github://octo/app",
        refused=[
            ("get_repository", {"repo": "other/app"}),
            ("get_repository", {"repo": "octo/app/../other"}),
            ("get_repository", {"repo": "app"}),
            ("get_repository", {"repo": "octo/app", "fields": ["nothing"]}),
            ("read_file", {"repo": "octo/app", "path": "../other/README.md"}),
            ("read_file", {"repo": "octo/app", "path": "README.md", "ref": "main..other"}),
            ("read_diff", {"repo": "octo/app", "number": 0}),
            ("list_issues", {"repo": "octo/app", "cursor": "garbage"}),
            ("search_github", {"kind": "code", "query": "x repo:other/app"}),
            ("search_github", {"kind": "code", "query": "x OR user:other"}),
            ("list_people", {"org": "other"}),
            ("write_files", {"repo": "octo/app", "branch": "main", "message": "m",
                             "files": [{"path": ".github/workflows/x.yml", "content": "x"}]}),
            ("edit_thread", {"repo": "octo/app", "number": 1, "thread": "no id"}),
        ],
        foreign=["ghp_contractsOwnToken", SECRET, str(scratch)],
    )  # fmt: skip


@cache
def _github() -> Oracle:
    oracle = Oracle()
    oracle.answer("GET", "/repos/octo/app-no-such-thing", {"message": "Not Found"}, status=404)
    return oracle


def weather(scratch: Path) -> Case:
    return Case(
        package="mcp_weather",
        arguments=["--cache", str(scratch / "cache"), *_weather_upstream().arguments],
        read=("get_weather", {"place": "Birmingham, Alabama"}),
        uri="weather://47.37,8.55/now",
        refused=[
            ("get_weather", {"place": "Springfield"}),
            ("get_weather", {"place": "Nowhere at all"}),
            ("get_weather", {"place": "91,0"}),
            ("get_weather", {"place": "147.37,8.55"}),
            ("get_forecast", {"place": "Zurich", "source": "nws"}),
            ("get_forecast", {"place": "Zurich", "hours": -1}),
            ("get_history", {"place": "Zurich", "start": "2025-02-30"}),
            ("get_history", {"place": "Zurich", "start": "2999-01-01"}),
            ("get_history", {"place": "Zurich", "start": "2025-01-02", "end": "2025-01-01"}),
            ("get_astronomy", {"place": "Zurich", "date": "soon"}),
        ],
        foreign=[str(scratch)],
    )


@cache
def _weather_upstream() -> Upstream:
    upstream = Upstream()
    upstream.thread.start()
    return upstream


def postgres(scratch: Path) -> Case:
    (scratch / "secret.txt").write_text(SECRET, "utf-8")
    (files := scratch / "files").mkdir()
    base = make()
    return Case(
        package="mcp_postgres",
        arguments=["--write", "--ddl", "--dba", "--files", str(files), f"app={base.url('owner')}"],
        read=("query_rows", {"sql": "SELECT * FROM t"}),
        uri="postgres://app/public/t",
        refused=[
            ("query_rows", {"sql": "DELETE FROM t"}),
            ("query_rows", {"sql": "SELEC 1"}),
            ("query_rows", {"sql": "SELECT * FROM nothing"}),
            ("query_rows", {"sql": "COMMIT; DROP TABLE t"}),
            ("query_rows", {"sql": "SET default_transaction_read_only = off; SELECT 1"}),
            ("query_rows", {"sql": "SET ROLE nobody_here; SELECT 1"}),
            ("query_rows", {"sql": "SELECT writer()"}),
            ("query_rows", {"sql": f"SELECT pg_read_file('{scratch / 'secret.txt'}')"}),
            ("query_rows", {"sql": "SELECT 1", "database": "other"}),
            ("query_rows", {"sql": "SELECT $1", "parameters": ["a\ud800"]}),
            ("query_rows", {"cursor": "garbage"}),
            ("get_table", {"table": "nothing"}),
            ("explain_query", {"sql": "SELECT * FROM t", "indexes": ["t (name)"]}),
            ("write_rows", {"sql": "DROP TABLE t"}),
            ("edit_schema", {"sql": "DELETE FROM t"}),
            ("edit_schema", {"sql": "SET ROLE owner; DROP TABLE t", "dry_run": True}),
            ("copy_to_file", {"sql": "SELECT 1", "file": "../secret.txt"}),
            ("copy_from_file", {"file": "../secret.txt", "table": "t"}),
            ("list_top_queries", {}),
            ("find_indexes", {}),
        ],
        foreign=[SECRET, str(scratch), "owner:owner"],
    )


def example(scratch: Path) -> Case:
    return Case(
        package="mcp_example",
        arguments=[],
        read=("run_calculation", {"expression": "6 * 7"}),
        uri="clock://now",
        refused=[
            ("run_calculation", {"expression": "__import__('os')"}),
            ("run_calculation", {"expression": "9 ** 9 ** 9"}),
            ("run_calculation", {"expression": "1 / 0"}),
            ("get_time", {"zone": "Middle-earth/Shire"}),
        ],
    )


def mount(scratch: Path) -> Case:
    """Two servers as one: what holds for each holds for both."""
    (scratch / "tables").mkdir()
    files, database = filesystem(scratch / "files"), sqlite(scratch / "tables")
    return Case(
        package="mcp_batteries.mount",
        arguments=["fs", *files.arguments, "--", "sqlite", *database.arguments],
        prefixes=("fs", "sqlite"),
        read=(f"fs_{files.read[0]}", files.read[1]),
        uri=files.uri,
        refused=[
            *((f"fs_{name}", arguments) for name, arguments in files.refused),
            *((f"sqlite_{name}", arguments) for name, arguments in database.refused),
        ],
        foreign=[*files.foreign, *database.foreign],
    )


CASES: dict[str, Callable[[Path], Case]] = {
    "mcp_batteries.mount": mount,
    "mcp_fs": filesystem, "mcp_git": git, "mcp_github": github, "mcp_postgres": postgres, "mcp_sqlite": sqlite,
    "mcp_weather": weather, "mcp_example": example,
}  # fmt: skip
