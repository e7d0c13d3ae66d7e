"""Seven everyday tasks on SQLite and PostgreSQL, by an expert with sqlite3 and psql and with our servers.

python tests/benchmarks/tasks_sql.py [--show] [--only PART]...
"""

import sqlite3
import sys
from pathlib import Path
from urllib.parse import urlsplit

import click

sys.path[:0] = [str(Path(__file__).parents[1])]

from beside_shell import Place, Task, run  # noqa: E402

from postgres.serving import make  # noqa: E402

_LITE = """
CREATE TABLE artist (artist_id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE album (album_id INTEGER PRIMARY KEY, title TEXT NOT NULL, artist_id INTEGER NOT NULL REFERENCES artist);
CREATE TABLE track (track_id INTEGER PRIMARY KEY, name TEXT NOT NULL, album_id INTEGER REFERENCES album,
    milliseconds INTEGER NOT NULL, unit_price NUMERIC NOT NULL);
CREATE TABLE customer (customer_id INTEGER PRIMARY KEY, first_name TEXT NOT NULL, last_name TEXT NOT NULL,
    country TEXT, email TEXT NOT NULL);
CREATE TABLE invoice (invoice_id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer,
    invoice_date TEXT NOT NULL, total NUMERIC NOT NULL);
CREATE TABLE invoice_line (invoice_line_id INTEGER PRIMARY KEY, invoice_id INTEGER NOT NULL REFERENCES invoice,
    track_id INTEGER NOT NULL REFERENCES track, quantity INTEGER NOT NULL);
CREATE TABLE playlist_track (playlist_id INTEGER, track_id INTEGER REFERENCES track,
    PRIMARY KEY (playlist_id, track_id));
CREATE INDEX invoice_customer ON invoice (customer_id);
CREATE INDEX line_invoice ON invoice_line (invoice_id);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
    INSERT INTO artist SELECT i, 'Artist ' || i FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 150)
    INSERT INTO album SELECT i, 'Album ' || i, i % 60 + 1 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
    INSERT INTO track SELECT i, 'Track ' || i, i % 150 + 1, 100000 + i * 7919 % 300000, 0.99 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80)
    INSERT INTO customer SELECT i, 'First' || i, 'Last' || i, CASE i % 9 WHEN 0 THEN 'germany' WHEN 1 THEN 'Germany '
        WHEN 2 THEN 'France' WHEN 3 THEN 'Brazil' ELSE 'Germany' END, 'c' || i || '@example.com' FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
    INSERT INTO invoice SELECT i, i * 13 % 80 + 1, date('2026-01-01', (i * 17 % 300) || ' days'), i % 7 + 0.99 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
    INSERT INTO invoice_line SELECT i, i % 900 + 1, i * 37 % 2000 + 1, i % 3 + 1 FROM n;
CREATE TABLE customer_old AS SELECT * FROM customer WHERE customer_id NOT IN (7, 19);
UPDATE customer_old SET email = 'old' || customer_id || '@example.com' WHERE customer_id IN (3, 30, 33);
INSERT INTO customer_old VALUES (99, 'Gone', 'Away', 'Chile', 'gone@example.com');
"""
_CSV = "return_date,invoice_id,reason,amount\n" + "".join(
    f"2026-{n % 6 + 1:02}-{n % 28 + 1:02},{n * 7 % 900 + 1},{['damaged', 'late', 'wrong item'][n * n % 3]},{n % 9}.50\n"
    for n in range(1, 241)
)
_POST = """
CREATE TABLE departments (id integer PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE employees (id integer PRIMARY KEY, name text NOT NULL,
    department_id integer NOT NULL REFERENCES departments, hired date NOT NULL,
    salary numeric(10, 2) NOT NULL CHECK (salary > 0));
CREATE TABLE projects (id integer PRIMARY KEY, title text NOT NULL, budget numeric(12, 2) NOT NULL,
    status text NOT NULL DEFAULT 'planned');
CREATE TABLE time_entries (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, employee_id integer NOT NULL
    REFERENCES employees, project_id integer NOT NULL REFERENCES projects, day date NOT NULL,
    hours numeric(4, 2) NOT NULL, note text);
CREATE TABLE absences (employee_id integer NOT NULL REFERENCES employees, day date NOT NULL, kind text NOT NULL,
    PRIMARY KEY (employee_id, day));
CREATE INDEX employees_department ON employees (department_id);
INSERT INTO departments SELECT n, 'Department ' || n FROM generate_series(1, 8) n;
INSERT INTO employees SELECT n, 'Employee ' || n, n * 3 % 8 + 1, date '2015-01-01' + n * 11, 2500 + n * 37 % 4000
    FROM generate_series(1, 300) n;
INSERT INTO projects SELECT n, 'Project ' || n, 10000 + n * 977 % 90000, ('{planned,running,done}'::text[])[n % 3 + 1]
    FROM generate_series(1, 40) n;
INSERT INTO time_entries (employee_id, project_id, day, hours, note) SELECT n % 300 + 1, n * 7 % 40 + 1,
    date '2026-01-01' + n % 200, n % 8 + 0.5, CASE WHEN n % 50 = 0 THEN 'on site' END FROM generate_series(1, 60000) n;
INSERT INTO absences SELECT n, date '2026-03-01' + n % 20, 'leave' FROM generate_series(1, 120) n;
"""


def _lite(folder: Path) -> Place:
    place = folder / "data"
    place.mkdir()
    with sqlite3.connect(place / "music.db") as base:
        base.executescript(_LITE)
    base.close()
    (place / "returns.csv").write_text(_CSV)
    served = ["--write", "--ddl", "--files", str(place), str(place / "music.db")]
    state = {"XDG_STATE_HOME": str(folder / "state")}
    return Place(place, {"sqlite": [sys.executable, "-m", "mcp_sqlite", *served]}, state)


def _post(folder: Path) -> Place:
    url = make(_POST).url("owner")
    parts = urlsplit(url)
    words = {"PGHOST": parts.hostname, "PGPORT": str(parts.port), "PGUSER": parts.username,
             "PGPASSWORD": parts.password, "PGDATABASE": parts.path[1:]}  # fmt: skip
    state = {"XDG_STATE_HOME": str(folder / "state"), **{name: value or "" for name, value in words.items()}}
    return Place(folder, {"postgres": [sys.executable, "-m", "mcp_postgres", "--write", "--ddl", url]}, state)


_BEST = (
    "SELECT a.name, round(sum(l.quantity * t.unit_price), 2) AS revenue FROM invoice i JOIN invoice_line l USING"
    " (invoice_id) JOIN track t USING (track_id) JOIN album b USING (album_id) JOIN artist a USING (artist_id)"
    " WHERE i.invoice_date BETWEEN '2026-03-01' AND '2026-03-31' GROUP BY a.artist_id ORDER BY revenue DESC LIMIT 5"
)
_COUNTRIES = "SELECT country, count(*) FROM customer GROUP BY country"
_MEND = "UPDATE customer SET country = 'Germany' WHERE trim(lower(country)) = 'germany' AND country <> 'Germany'"
_REASONS = (
    "SELECT reason, count(*) AS n, sum(amount) AS amount, min(return_date), max(return_date) FROM returns"
    " GROUP BY reason ORDER BY n DESC"
)
_APART = (
    "SELECT count(*) AS only_new FROM customer WHERE customer_id NOT IN (SELECT customer_id FROM customer_old);"
    " SELECT * FROM customer_old WHERE customer_id NOT IN (SELECT customer_id FROM customer);"
    " SELECT n.customer_id, n.email, o.email AS old FROM customer n JOIN customer_old o USING (customer_id)"
    " WHERE (n.first_name, n.last_name, n.country, n.email) IS NOT (o.first_name, o.last_name, o.country, o.email)"
)
_HOURS = (
    "SELECT d.name, p.status, sum(t.hours) AS hours, round(sum(t.hours * e.salary / 160)) AS cost FROM time_entries t"
    " JOIN employees e ON e.id = t.employee_id JOIN departments d ON d.id = e.department_id JOIN projects p ON"
    " p.id = t.project_id WHERE t.day >= '2026-06-01' AND t.day < '2026-07-01' GROUP BY 1, 2 ORDER BY 4 DESC LIMIT 10"
)
_SPENT = (
    "ALTER TABLE projects ADD COLUMN spent numeric(12, 2) NOT NULL DEFAULT 0; UPDATE projects p SET spent = s.cost FROM"
    " (SELECT t.project_id, sum(t.hours * e.salary / 160) AS cost FROM time_entries t JOIN employees e"
    " ON e.id = t.employee_id GROUP BY 1) s WHERE s.project_id = p.id"
)
_PROOF = "SELECT count(*), count(*) FILTER (WHERE spent = 0) AS none, round(sum(spent)) AS spent FROM projects"
_SLOW = "SELECT day, hours, note FROM time_entries WHERE employee_id = 42 AND day >= '2026-03-01' ORDER BY day"
_INDEX = "CREATE INDEX ON time_entries (employee_id, day)"

TASKS = [
    Task("SQLite, an unknown schema: which artists earned most in March", _lite,
         ["sqlite3 music.db .schema", f'sqlite3 -header music.db "{_BEST}"'],
         [("list_tables", {}), ("query_rows", {"sql": _BEST})],
         [r"Artist 20\W"]),
    Task("SQLite: countries that are spelled otherwise, mended", _lite,
         [f'sqlite3 music.db ".schema customer" "{_COUNTRIES}"',
          f'sqlite3 music.db "{_MEND}; SELECT changes(); {_COUNTRIES}"'],
         [("query_rows", {"sql": _COUNTRIES}), ("write_rows", {"sql": f"{_MEND}; {_COUNTRIES}"})],
         ["Germany"], f'sqlite3 music.db "{_COUNTRIES}"', [r"^Brazil\|9\nFrance\|9\nGermany\|\d+\n$"]),
    Task("SQLite: a CSV imported, returns by reason", _lite,
         ["head -3 returns.csv; wc -l returns.csv",
          "sqlite3 -header music.db 'CREATE TABLE returns (return_date TEXT, invoice_id INTEGER, reason TEXT,"
          f" amount NUMERIC)' '.import --csv --skip 1 returns.csv returns' '{_REASONS}'"],
         [("copy_from_file", {"file": "returns.csv", "table": "returns"}), ("query_rows", {"sql": _REASONS})],
         ["damaged"], "sqlite3 music.db 'SELECT count(*), sum(amount) FROM returns'", [r"^240\|"]),
    Task("SQLite: in what a table and its old copy differ", _lite,
         ["sqlite3 music.db '.schema customer' '.schema customer_old'", f'sqlite3 -header music.db "{_APART}"'],
         [("get_table", {"table": "customer", "compare_with": "customer_old"})],
         ["gone@example.com", "old30@example.com"]),
    Task("PostgreSQL, an unknown schema: hours and costs of June by department and status", _post,
         ["psql -c '\\d' -c '\\d employees' -c '\\d projects' -c '\\d time_entries' -c '\\d departments'",
          f'psql -c "{_HOURS}"'],
         [("list_objects", {}), ("query_rows", {"sql": _HOURS})],
         ["Department 4"]),
    Task("PostgreSQL: a column with its backfill", _post,
         ["psql -c '\\d projects' -c '\\d time_entries' -c '\\d employees'",
          f'psql -c "BEGIN; {_SPENT}; {_PROOF}; COMMIT"'],
         [("list_objects", {}), ("edit_schema", {"sql": f"{_SPENT}; {_PROOF}"})],
         [], f'psql -Atc "{_PROOF}"', ["40"]),
    Task("PostgreSQL: why a query is slow, and the index that helps, made", _post,
         [f'psql -c "EXPLAIN ANALYZE {_SLOW}" -c "\\d time_entries"',
          f'psql -c "{_INDEX}" -c "EXPLAIN ANALYZE {_SLOW}"'],
         [("explain_query", {"sql": _SLOW, "analyze": True}), ("edit_schema", {"sql": _INDEX})],
         ["Seq Scan on time_entries", "Index"],
         "psql -Atc \"SELECT indexdef FROM pg_indexes WHERE tablename = 'time_entries'\"", [r"\(employee_id, day\)"]),
]  # fmt: skip


@click.command(help=__doc__)
@click.option("--show", is_flag=True, help="Each call with its answer, too.")
@click.option("--only", multiple=True, help="Tasks whose question holds this; repeatable.")
def main(show: bool, only: tuple[str, ...]) -> None:
    run("databases", TASKS, only, show)


if __name__ == "__main__":
    main()
