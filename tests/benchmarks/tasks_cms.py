"""A day of an analyst and one of an administrator, on Wagtail's own tables with a million rows, beside psql and DBHub.

    python tests/benchmarks/tasks_cms.py [--show]

Wagtail's migrations make the tables: 51 of them, which nobody here has named. Each day is one conversation of somebody
who knows PostgreSQL and has never seen the database. The calls are written down here, looks among them, so a run
measures the tools and not a model; psql may do several things in one command line. Bytes are those of arguments and of
answers. DBHub takes no part where files come in and go out, since it has no tool for them: a line sums the tasks that
it can do. An answer that lacks what is known, or a database that is left otherwise than it should be, ends the run.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.table import Table

sys.path[:0] = [str(Path(__file__).parents[1])]

from driver import LEGACY, MODERN, Server  # noqa: E402
from tasks_postgres import Call, size  # noqa: E402

from e2e import npm  # noqa: E402
from postgres import serving  # noqa: E402
from postgres.serving import Base  # noqa: E402

_MIGRATE = """
import sys
from urllib.parse import urlsplit
import django
from django.conf import settings
from django.core.management import call_command
url = urlsplit(sys.argv[1])
wagtail = "contrib.forms contrib.redirects embeds sites users snippets documents images search admin"
own = "admin auth contenttypes sessions messages staticfiles"
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": url.path[1:], "USER": url.username,
                           "PASSWORD": url.password, "HOST": url.hostname, "PORT": url.port}},
    INSTALLED_APPS=[*(f"wagtail.{name}" for name in wagtail.split()), "wagtail", "modelcluster", "taggit",
                    *(f"django.contrib.{name}" for name in own.split())],
    WAGTAIL_SITE_NAME="cms", WAGTAILADMIN_BASE_URL="http://cms", SECRET_KEY="x", STATIC_URL="/s/", USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}],
)
django.setup()
call_command("migrate", verbosity=0)
"""
_ROWS = """
SET synchronous_commit = off;
INSERT INTO wagtailcore_locale (id, language_code) SELECT n + 10, ('{de,fr,es,it}'::text[])[n]
    FROM generate_series(1, 4) n;
INSERT INTO auth_user (id, password, is_superuser, username, first_name, last_name, email, is_staff, is_active,
    date_joined) SELECT n, '!', n = 1, 'user' || n, 'First' || n, 'Last' || n % 700,
    CASE WHEN n IN (777, 1501) THEN 'User' || n - 1 ELSE 'user' || n END || '@example.com', n % 20 = 0, n % 17 <> 0,
    timestamptz '2024-01-01 00:00Z' + n * interval '8 hours' FROM generate_series(1, 2000) n;
INSERT INTO wagtailcore_page (id, path, depth, numchild, title, slug, live, has_unpublished_changes, url_path,
    seo_title, show_in_menus, search_description, expired, content_type_id, owner_id, locked, first_published_at,
    draft_title, translation_key, locale_id)
    SELECT 1000 + n, '00010001' || lpad(((n - 1) / 200 + 1)::text, 4, '0') || CASE WHEN n % 200 = 1 THEN ''
    ELSE lpad((n % 200 + 1)::text, 4, '0') END, CASE WHEN n % 200 = 1 THEN 3 ELSE 4 END, CASE WHEN n % 200 = 1
    THEN 199 ELSE 0 END, 'Page ' || n, 'page-' || n, n % 11 <> 0 AND n NOT IN (4001, 9001), n % 13 = 0,
    '/home/page-' || n || '/', '', false, '', false, 1, n % 2000 + 1, false,
    timestamptz '2025-06-01 00:00Z' + n * interval '20 minutes', 'Page ' || n, md5(n::text)::uuid, CASE WHEN n % 5 = 0
    THEN (SELECT min(id) FROM wagtailcore_locale) ELSE 10 + n % 5 END FROM generate_series(1, 20000) n;
INSERT INTO wagtailcore_pagelogentry (label, action, data, timestamp, content_changed, deleted, content_type_id,
    page_id, user_id, uuid) SELECT 'Page ' || n % 20000 + 1,
    ('{wagtail.edit,wagtail.edit,wagtail.publish,wagtail.edit,wagtail.unpublish,wagtail.publish,wagtail.rename}'
    ::text[])[n % 7 + 1], CASE WHEN n % 7 = 6 THEN jsonb_build_object('title', jsonb_build_object('old', 'Page ' || n,
    'new', 'Page ' || n + 1)) ELSE '{}' END, timestamptz '2025-07-01 00:00Z' + n * interval '42 seconds', n % 3 = 0,
    false, 1, 1001 + n % 20000, (n::bigint * 7919) % 2000 + 1, md5('l' || n / 3)::uuid
    FROM generate_series(1, 700000) n WHERE n % 20000 NOT IN (122, 7342);
INSERT INTO wagtailcore_revision (created_at, content, object_id, user_id, content_type_id, base_content_type_id,
    object_str) SELECT timestamptz '2025-07-01 00:00Z' + n * interval '8 minutes', jsonb_build_object('pk',
    1000 + n % 20000, 'title', 'Page ' || n % 20000 || CASE WHEN n % 9973 = 5 THEN ' (draft)' ELSE '' END, 'body',
    repeat('word ' || n || ' ', 20)), (1000 + n % 20000)::text, n % 2000 + 1, 1, 1, 'Page ' || n % 20000
    FROM generate_series(1, 40000) n WHERE n % 20000 > 0;
UPDATE wagtailcore_page p SET latest_revision_id = r.id FROM (SELECT object_id, max(id) AS id FROM wagtailcore_revision
    GROUP BY 1) r WHERE r.object_id = p.id::text;
INSERT INTO wagtailimages_image (title, file, width, height, created_at, collection_id, file_hash, description)
    SELECT 'Image ' || n, 'original_images/' || n || '.jpg', 800 + n % 400, 600, timestamptz '2025-01-01 00:00Z'
    + n * interval '1 hour', 1, md5((n - (n % 500 = 0)::int)::text), '' FROM generate_series(1, 3000) n;
INSERT INTO wagtailcore_referenceindex (object_id, to_object_id, model_path, content_path, content_path_hash,
    base_content_type_id, content_type_id, to_content_type_id) SELECT (1001 + n % 20000)::text, (SELECT min(id)
    FROM wagtailimages_image) + (n::bigint * n) % 2900 || '', 'body.image', 'body.' || n, md5(n::text)::uuid, 1, 1,
    (SELECT id FROM django_content_type WHERE app_label = 'wagtailimages' AND model = 'image')
    FROM generate_series(1, 240000) n;
"""
_READY = "VACUUM ANALYZE; CREATE EXTENSION pg_stat_statements; GRANT pg_monitor TO owner"
_CSV = "Alter Pfad;Aufrufe;Seit;Ziel;Bemerkung\r\n" + "".join(
    f"/alt/{n};{'1 204' if n == 212 else n * 7 % 900};{n % 28 + 1:02}.{n % 6 + 1:02}.2026;/home/page-{n}/;"
    f"{'N/A' if n % 4 else 'für Größe geprüft'}\r\n"
    for n in range(1, 301)
)
# What the tables, their columns, indexes and rows are, to see that nothing has stayed.
_STATE = """
SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace), (SELECT count(*) FROM
    information_schema.columns WHERE table_schema = 'public'), (SELECT count(*) FROM wagtailredirects_redirect)
"""


@dataclass(frozen=True)
class Task:
    """A step of a day.

    Attributes:
        ours: calls of mcp-postgres.
        psql: command lines.
        hub: statements of DBHub, a call each; None where it can't do it.
        known: patterns that the answers of each side must hold.
    """

    question: str
    ours: list[Call]
    psql: list[str]
    hub: list[str] | None
    known: list[str] = field(default_factory=list[str])


def both(question: str, sql: str, *known: str) -> Task:
    """One that is the same query on each side."""
    return Task(question, [("query_rows", {"sql": sql})], [_psql(sql)], [sql], list(known))


def _psql(*statements: str) -> str:
    return "psql" + "".join(f" -c {json.dumps(statement)}" for statement in statements)


_NEEDED = (
    "wagtailcore_page", "wagtailcore_pagelogentry", "auth_user", "wagtailcore_revision", "wagtailcore_referenceindex",
    "wagtailimages_image",
)  # fmt: skip
_COLUMNS = (
    "SELECT table_name, string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position)"
    " FROM information_schema.columns WHERE table_schema = 'public' GROUP BY 1"
)
_IMPORTED = (
    "INSERT INTO wagtailredirects_redirect (old_path, is_permanent, redirect_link, redirect_page_id,"
    " automatically_created, redirect_page_route_path) SELECT l.{0}, true, '', p.id, false, '' FROM legacy l JOIN"
    " wagtailcore_page p ON p.url_path = l.{1}; SELECT sum(replace({2}, ' ', '')::int) FROM legacy"
)
_ACTIVITY = (
    "SELECT to_char(timestamp, 'YYYY-MM') AS month, action, count(*) FROM wagtailcore_pagelogentry"
    " GROUP BY 1, 2 ORDER BY 1, 2"
)
_OPTIONS = "FORMAT csv, HEADER, DELIMITER ';', ENCODING 'WIN1252', NULL 'N/A'"
_GIVE_BACK = "DROP TABLE legacy; TRUNCATE wagtailredirects_redirect"
ANALYST = [
    Task("a look at what there is", [("list_objects", {})],
         [r"psql -c '\dt'", "psql" + "".join(rf" -c '\d {name}'" for name in _NEEDED)], [_COLUMNS],
         ["wagtailcore_referenceindex.*to_object_id"]),
    both("who published most in the first quarter",
         "SELECT u.username, count(*) AS published FROM wagtailcore_pagelogentry l JOIN auth_user u ON u.id = l.user_id"
         " WHERE l.action = 'wagtail.publish' AND l.timestamp >= '2026-01-01' AND l.timestamp < '2026-04-01'"
         " AND u.is_active GROUP BY u.id ORDER BY published DESC, u.id LIMIT 5", r"user1\W.*user9\W"),
    both("pages that are live and were never published",
         "SELECT p.id, p.title FROM wagtailcore_page p WHERE p.live AND NOT EXISTS (SELECT FROM"
         " wagtailcore_pagelogentry l WHERE l.page_id = p.id AND l.action = 'wagtail.publish') ORDER BY 1",
         r"\b1123\b.*\b8343\b"),
    both("live pages below one that is not",
         "SELECT count(*), min(c.id) FROM wagtailcore_page c JOIN wagtailcore_page p ON p.path = left(c.path, -4)"
         " WHERE c.live AND NOT p.live", r"\b1991\b.*\b2002\b"),
    both("publications and withdrawals by month",
         "SELECT date_trunc('month', timestamp)::date AS month, count(*) FILTER (WHERE action = 'wagtail.publish') AS"
         " published, count(*) FILTER (WHERE action = 'wagtail.unpublish') AS unpublished"
         " FROM wagtailcore_pagelogentry GROUP BY 1 ORDER BY 1", r"18219.*9109"),
    both("accounts with the same address",
         "SELECT lower(email), count(*), array_agg(id) FROM auth_user GROUP BY 1 HAVING count(*) > 1",
         r"user1500@example.com.*user776@example.com"),
    both("the images that are used most",
         "SELECT i.id, i.title, count(*) FROM wagtailcore_referenceindex r JOIN django_content_type t ON"
         " t.id = r.to_content_type_id AND t.app_label = 'wagtailimages' JOIN wagtailimages_image i ON"
         " i.id = r.to_object_id::int GROUP BY i.id ORDER BY 3 DESC, 1 LIMIT 3", r"\b1656\b"),
    both("how many images nobody uses",
         "SELECT count(*) FROM wagtailimages_image i WHERE NOT EXISTS (SELECT FROM wagtailcore_referenceindex"
         " WHERE to_object_id = i.id::text)", r"\b2670\b"),
    both("drafts whose title differs from the page's",
         "SELECT r.id, r.object_id, r.content->>'title' AS title FROM wagtailcore_revision r JOIN wagtailcore_page p"
         " ON p.latest_revision_id = r.id WHERE r.content->>'title' LIKE '%(draft)'", r"Page 9924.*Page 19897"),
    both("how long pages wait to be published, by language",
         "SELECT l.language_code, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY f.first - p.first_published_at)"
         " AS median FROM wagtailcore_page p JOIN wagtailcore_locale l ON l.id = p.locale_id JOIN (SELECT page_id,"
         " min(timestamp) AS first FROM wagtailcore_pagelogentry WHERE action = 'wagtail.publish' GROUP BY 1) f"
         " ON f.page_id = p.id GROUP BY 1 ORDER BY 1", r"\bde\b.*\b4000\b"),
    both("images that were uploaded twice",
         "SELECT file_hash, count(*), array_agg(id) FROM wagtailimages_image GROUP BY 1 HAVING count(*) > 1 ORDER BY 1"
         " LIMIT 5", r"3cf166c6"),
    Task("a CSV in, from Excel, with a number that is none",
         [("copy_from_file", {"file": "redirects.csv", "table": "legacy", "encoding": "cp1252", "nulls": ["N/A"],
                              "dry_run": True}),
          ("copy_from_file", {"file": "redirects.csv", "table": "legacy", "encoding": "cp1252", "nulls": ["N/A"]}),
          ("write_rows", {"sql": _IMPORTED.format('"Alter Pfad"', '"Ziel"', '"Aufrufe"')})],
         ["file -i redirects.csv; head -3 redirects.csv; cut -d';' -f2 redirects.csv | grep -vnE '^[0-9]+.?$'",
          _psql("CREATE TABLE legacy (path text, hits text, since text, target text, note text)",
                rf"\copy legacy FROM 'redirects.csv' ({_OPTIONS})"),
          _psql(_IMPORTED.format("path", "target", "hits"))],
         None, [r"1 204", r"INSERT(?: 0 |: )300", r"\b123170\b"]),
    Task("a result out", [("copy_to_file", {"sql": _ACTIVITY, "file": "activity.csv"})],
         [_psql(rf"\copy ({_ACTIVITY}) TO 'activity.csv' CSV HEADER")], None, [r"\b48\b"]),
    Task("what came in is taken back", [("edit_schema", {"sql": _GIVE_BACK})], [_psql(_GIVE_BACK)], None),
]  # fmt: skip

_SLOW = "SELECT id, page_id, timestamp FROM wagtailcore_pagelogentry WHERE data->'title'->>'new' = 'Page 600005'"
_TOP = (
    "SELECT calls, round(total_exec_time) AS total_ms, round(mean_exec_time::numeric, 1) AS mean_ms, rows, query"
    " FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " ORDER BY total_exec_time DESC LIMIT 3"
)
_INDEX = "CREATE INDEX CONCURRENTLY wagtail_renamed ON wagtailcore_pagelogentry (((data->'title')->>'new'))"
_MIGRATION = (
    "ALTER TABLE wagtailcore_page ADD COLUMN reviewed_at timestamptz, ADD COLUMN reviewer_id integer REFERENCES"
    " auth_user; UPDATE wagtailcore_page SET reviewed_at = first_published_at, reviewer_id = owner_id WHERE live AND"
    " first_published_at < '2025-07-01'; CREATE INDEX wagtailcore_page_reviewer ON wagtailcore_page (reviewer_id)"
)
_LOCKS = "SELECT relation::regclass, mode FROM pg_locks WHERE pid = pg_backend_pid() AND mode LIKE '%Exclusive%'"
_LOOK = "SELECT id, reviewed_at, reviewer_id FROM wagtailcore_page WHERE reviewed_at IS NOT NULL ORDER BY id LIMIT 3"
_BACK = "ALTER TABLE wagtailcore_page DROP COLUMN reviewed_at, DROP COLUMN reviewer_id; DROP INDEX wagtail_renamed"
_SIZES = (
    "SELECT relname, pg_size_pretty(pg_total_relation_size(oid)), reltuples FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = 'public'::regnamespace ORDER BY pg_total_relation_size(oid) DESC LIMIT 10"
)
_KEYS = (
    "SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE confrelid = 'auth_user'::regclass"
    " AND contype = 'f'"
)
ADMINISTRATOR = [
    both("a look: what is large, what refers to users", f"{_SIZES}; {_KEYS}", "wagtailcore_pagelogentry",
         "wagtailcore_comment"),
    Task("which statement costs most", [("list_top_queries", {"limit": 3})], [_psql(_TOP)], [_TOP], [r"data"]),
    Task("why it is slow, and what would help, tried", [("explain_query", {"sql": _SLOW, "analyze": True})],
         [_psql(f"EXPLAIN ANALYZE {_SLOW}", r"\d wagtailcore_pagelogentry"),
          _psql(f"BEGIN; {_INDEX.replace(' CONCURRENTLY', '')}; ANALYZE wagtailcore_pagelogentry; EXPLAIN {_SLOW};"
                " ROLLBACK")],
         [f"EXPLAIN ANALYZE {_SLOW}",
          f"BEGIN; {_INDEX.replace(' CONCURRENTLY', '')}; ANALYZE wagtailcore_pagelogentry; EXPLAIN {_SLOW}; ROLLBACK"],
         ["Seq Scan", "Index Scan"]),
    Task("the index is made, and used", [("edit_schema", {"sql": _INDEX}), ("explain_query", {"sql": _SLOW})],
         [_psql(_INDEX, f"EXPLAIN {_SLOW}")], [_INDEX, f"EXPLAIN {_SLOW}"], ["wagtail_renamed"]),
    Task("a migration rehearsed: rows, locks", [("edit_schema", {"sql": _MIGRATION, "dry_run": True})],
         [_psql(f"BEGIN; {_MIGRATION}; {_LOCKS}; {_LOOK}; ROLLBACK")],
         [f"BEGIN; {_MIGRATION}; {_LOCKS}; {_LOOK}; ROLLBACK"],
         ["wagtailcore_page.*AccessExclusiveLock|AccessExclusiveLock.*wagtailcore_page", r"reviewed_at.*2025-06-01"]),
    Task("made", [("edit_schema", {"sql": f"{_MIGRATION}; {_LOOK}"})], [_psql(f"{_MIGRATION}; {_LOOK}")],
         [f"{_MIGRATION}; {_LOOK}"], [r"2025-06-01"]),
    Task("and all of it taken back", [("edit_schema", {"sql": _BACK})], [_psql(_BACK)], [_BACK]),
]  # fmt: skip


@dataclass
class Sum:
    """Calls and bytes of one side, over the tasks that DBHub can do and over all."""

    calls: int = 0
    spent: int = 0
    shared_calls: int = 0
    shared_spent: int = 0

    def add(self, calls: int, spent: int, *, shared: bool) -> None:
        self.calls += calls
        self.spent += spent
        if shared:
            self.shared_calls += calls
            self.shared_spent += spent


def make_cms() -> Base:
    """Return a database with Wagtail's tables and a million rows, on a PostgreSQL that counts statements."""
    serving.OPTIONS += ["-c", "shared_preload_libraries=pg_stat_statements"]
    base = Base("cms")
    with Base("postgres").connect() as connection:
        connection.execute("CREATE DATABASE cms OWNER owner")
    base.run("ALTER SCHEMA public OWNER TO owner")
    wheels = ["--with", "wagtail==7.4.*", "--with", "psycopg[binary]"]
    subprocess.run(
        ["uv", "run", "-q", "--no-project", *wheels, "python", "-c", _MIGRATE, base.url("owner")], check=True
    )
    base.run(_ROWS, "owner")
    for statement in _READY.split("; "):
        base.run(statement)
    return base


def run_workload(base: Base) -> None:
    """Count statements anew, of which one is slow."""
    base.run("SELECT pg_stat_statements_reset()")
    for _ in range(5):
        base.run(_SLOW, "owner")


def by_psql(lines: list[str], base: Base, folder: str) -> tuple[int, str]:
    """Return what command lines and their answers take, and the answers."""
    parts = urlsplit(base.url("owner"))
    own = {
        "PGHOST": parts.hostname or "", "PGPORT": str(parts.port), "PGUSER": "owner", "PGPASSWORD": "owner",
        "PGDATABASE": base.name, "PAGER": "cat", "PSQLRC": "/dev/null",
    }  # fmt: skip
    spent = 0
    answers: list[str] = []
    for line in lines:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            errors="replace",
        )
        answers.append(done.stdout + done.stderr)
        spent += size({"command": line}) + size(answers[-1])
    return spent, "\n".join(answers)


def by_server(server: Server, calls: list[Call]) -> tuple[int, str]:
    """Return what calls and their answers take, and the answers."""
    spent = 0
    answers: list[str] = []
    for tool, arguments in calls:
        result, _ = server.ask("tools/call", {"name": tool, "arguments": arguments})
        answers.append("".join(item["text"] for item in result["content"]))
        spent += size(arguments) + size(answers[-1])
    return spent, "\n".join(answers)


def run_day(title: str, tasks: list[Task], base: Base, servers: dict[str, Server], folder: str, show: bool) -> None:
    """Do all tasks on each side, and print what they took.

    Raises:
        SystemExit: an answer lacks something that is known, or something has stayed changed.
    """
    table = Table(f"{title}: calls, bytes", "mcp-postgres", "psql", "DBHub")
    cells: dict[str, list[str]] = {task.question: [] for task in tasks}
    sums = {side: Sum() for side in ("ours", "psql", "hub")}
    for side, total in sums.items():
        run_workload(base)
        before = base.rows(_STATE)
        for task in tasks:
            calls: list[Call] | list[str] | None = {"ours": task.ours, "psql": task.psql, "hub": task.hub}[side]
            if calls is None:
                cells[task.question].append("-")
                continue
            if side == "psql":
                spent, said = by_psql(task.psql, base, folder)
            elif side == "ours":
                spent, said = by_server(servers[side], task.ours)
            else:
                spent, said = by_server(servers[side], [("execute_sql", {"sql": sql}) for sql in task.hub or ()])
            if show:
                click.echo(f"=== {side}: {task.question}\n{said}\n[{spent:,} bytes]\n")
            missing = [known for known in task.known if not re.search(known, said, re.DOTALL)]
            if missing:
                raise SystemExit(f"{side}, {task.question}: {missing} not in the answers:\n{said}")
            total.add(len(calls), spent, shared=task.hub is not None)
            cells[task.question].append(f"{len(calls)}, {spent:,}")
        (Path(folder) / "activity.csv").unlink(missing_ok=True)
        if base.rows(_STATE) != before:
            raise SystemExit(f"{side}: something has stayed changed")
    for question, row in cells.items():
        table.add_row(question, *row)
    table.add_section()
    table.add_row("all", *(f"{item.calls}, {item.spent:,}" for item in sums.values()))
    shared = [f"{item.shared_calls}, {item.shared_spent:,}" for item in sums.values()]
    table.add_row("those that DBHub can do", *shared)
    Console(width=140).print(table)


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each answer, too.")
def main(show: bool) -> None:
    base = make_cms()
    name = "@bytebase/dbhub"
    hub = [npm.NODE, npm.program(npm.installed(f"{name}@1.4.0"), name), "--transport", "stdio", "--dsn"]
    hub.append(base.url("owner", more="?sslmode=disable"))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "redirects.csv").write_bytes(_CSV.encode("cp1252"))
        ours = [sys.executable, "-m", "mcp_postgres", "--write", "--ddl", "--dba", "--files", folder, base.url("owner")]
        with Server(ours, revision=MODERN, seconds=120) as one, Server(hub, revision=LEGACY, seconds=120) as other:
            one.open()
            other.open()
            servers = {"ours": one, "hub": other}
            run_day("an analyst's day", ANALYST, base, servers, folder, show)
            run_day("an administrator's day", ADMINISTRATOR, base, servers, folder, show)


if __name__ == "__main__":
    main()
