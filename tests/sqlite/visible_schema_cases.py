"""What `prove_visible_schema` tries: a database with hidden tables and masked columns, and every form of using them."""

from __future__ import annotations

from typing import NamedTuple

SCENE = """
CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, n INTEGER CHECK (n > 0),
    made TEXT GENERATED ALWAYS AS (lower("email")) VIRTUAL, again TEXT GENERATED ALWAYS AS (made || '!') STORED,
    plain TEXT GENERATED ALWAYS AS (upper(name)) STORED);
CREATE INDEX by_both ON person (name, email, id);
CREATE INDEX by_upper ON person (upper(email), n);
CREATE INDEX by_part ON person (n, id) WHERE email > 'canary-m';
CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, person INTEGER REFERENCES person (id), note TEXT,
    email TEXT);
INSERT INTO orders VALUES (1, 1, 'a', 'canary-k'), (2, 2, 'b', 'x'), (3, 3, 'a', 'y');
CREATE TABLE copy (id INTEGER PRIMARY KEY, x TEXT);
CREATE TABLE mails (id INTEGER PRIMARY KEY, email TEXT, note TEXT) WITHOUT ROWID;
CREATE TABLE secret (id INTEGER PRIMARY KEY, x TEXT);
CREATE TABLE child (id INTEGER PRIMARY KEY, secret INTEGER REFERENCES secret (id) ON DELETE CASCADE, x TEXT);
CREATE TABLE "odd ""name" (id INTEGER PRIMARY KEY, x TEXT);
CREATE TABLE watched (id INTEGER PRIMARY KEY, name TEXT, email TEXT);
CREATE TABLE logged (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE log (id INTEGER PRIMARY KEY, x TEXT);
CREATE TRIGGER watch AFTER UPDATE ON watched BEGIN INSERT INTO copy (x) VALUES (OLD.email); END;
CREATE TRIGGER loud BEFORE DELETE ON watched BEGIN SELECT RAISE(ABORT, 'no') WHERE OLD.email > 'canary-m'; END;
CREATE TRIGGER quiet AFTER UPDATE ON logged BEGIN INSERT INTO log (x) SELECT x FROM secret; END;
CREATE VIEW bare AS SELECT id, name, email, n FROM person;
CREATE VIEW twofold (id, name, email, n) AS SELECT id, name, email, n FROM Bare WHERE id > 0;
CREATE VIEW upper_mail AS SELECT id, upper(email) AS name, n FROM [person];
CREATE VIEW filtered AS SELECT id, name FROM person WHERE email > 'canary-m';
CREATE VIEW joined AS SELECT p.id, p.name FROM person p JOIN orders USING (email);
CREATE VIEW sorted AS SELECT id, name FROM person ORDER BY email LIMIT 2;
CREATE VIEW through AS SELECT p.id, p.name FROM main.person p NATURAL JOIN mails;
CREATE VIEW report AS WITH c AS (SELECT id FROM inner_view) SELECT count(*) AS count, min(id) AS least FROM c;
CREATE VIEW inner_view AS SELECT id, x FROM secret;
CREATE VIEW hidden AS SELECT id, x FROM secret;
CREATE VIEW counted AS SELECT count(*) AS id FROM orders;
CREATE VIRTUAL TABLE docs USING fts5 (x);
INSERT INTO docs VALUES ('a word');
CREATE VIRTUAL TABLE found USING fts5 (name, email, content='person', content_rowid='id');
CREATE VIRTUAL TABLE words USING fts5vocab ('found', 'instance');
CREATE VIRTUAL TABLE private USING fts5 (x);
CREATE VIRTUAL TABLE of_private USING fts5vocab (private, 'row');
"""
ONLY = (
    "Person", "orders", "copy", "mails", "watched", "logged", "bare", "twofold", "upper_mail", "filtered", "joined",
    "sorted", "through", "report", "docs", "found", "words",
)  # fmt: skip
MASK = (("person", "EMAIL"), ("mails", "email"), ("watched", "email"))
SERVED_BUT_LEADING = ("found", "words", "through")
"""Listed, and not served because of what they hold or name."""
ROWS = 6


class Source(NamedTuple):
    """Something to select a masked column from: what stands before SELECT, the FROM item `p`, and the column."""

    before: str
    items: str
    column: str = "p.email"


SOURCES = {
    "table": Source("", "person p"),
    "quoted": Source("", '"PERSON" AS [p]'),
    "text as a name": Source("", "'person' p"),
    "without rowid": Source("", "(SELECT id, note AS name, email, id AS n FROM mails) p"),
    "generated": Source("", "person p", "p.made"),
    "generated twice": Source("", "person p", "p.again"),
    "view": Source("", "bare p"),
    "view of a view": Source("", "twofold p"),
    "subquery": Source("", "(SELECT * FROM person LIMIT -1) p"),
    "renamed": Source("", "(SELECT id, name, n, email AS z FROM person) p", "p.z"),
    "table expression": Source("WITH c AS (SELECT * FROM person) ", "c p"),
    "of a view's name": Source("WITH report AS (SELECT * FROM person) ", "report p"),
    "of its own name": Source("WITH person AS (SELECT * FROM bare) ", "person p"),
    "materialized": Source("WITH c AS MATERIALIZED (SELECT * FROM twofold) ", "c p"),
    "join": Source("", "(SELECT q.* FROM orders o JOIN person q ON o.person = q.id) p"),
    "left join": Source("", "orders o LEFT JOIN person p ON o.person = p.id"),
    "united": Source("", "(SELECT id, name, email, n FROM bare UNION ALL SELECT id, note, note, id FROM orders) p"),
    "recursive": Source(
        "WITH RECURSIVE r(id, name, email, n) AS (SELECT id, name, email, n FROM person UNION ALL "
        "SELECT id + 10, name, email, n FROM r WHERE id < 7) ",
        "r p",
    ),
}  # fmt: skip
USES = (
    "SELECT {c} FROM {f}", "SELECT p.id, {c}, p.name FROM {f} ORDER BY p.id", "SELECT upper({c}) FROM {f}",
    "SELECT {c} || '' FROM {f}", "SELECT length({c}) FROM {f}", "SELECT CAST({c} AS BLOB) FROM {f}",
    "SELECT {c} COLLATE NOCASE FROM {f}", "SELECT {c} IS NULL FROM {f}", "SELECT {c} = 'canary-k' FROM {f}",
    "SELECT p.id FROM {f} WHERE {c} LIKE 'canary-%'", "SELECT count(*) FROM {f} WHERE {c} > 'canary-m'",
    "SELECT p.id FROM {f} WHERE {c} IN ('canary-k', 'canary-b')",
    "SELECT p.id FROM {f} WHERE {c} GLOB 'canary-[a-m]*'",
    "SELECT p.id FROM {f} WHERE upper({c}) > 'CANARY-M' AND p.n > 0",
    "SELECT p.id FROM {f} WHERE p.n > 0 AND {c} > 'canary-m'",
    "SELECT p.id FROM {f} WHERE (p.id, {c}) > (0, 'canary-m')",
    "SELECT p.id FROM {f} WHERE {c} BETWEEN 'canary-a' AND 'canary-m' OR p.id = 2",
    "SELECT p.id FROM {f} ORDER BY {c}, p.id", "SELECT {c} FROM {f} ORDER BY 1",
    "SELECT p.id FROM {f} ORDER BY {c} DESC, p.id LIMIT 1", "SELECT p.id FROM {f} ORDER BY upper({c}), p.id",
    "SELECT DISTINCT {c} FROM {f}", "SELECT count(DISTINCT {c}) FROM {f}",
    "SELECT min(p.id), count(*) FROM {f} GROUP BY {c}",
    "SELECT max(p.id) FROM {f} GROUP BY p.name HAVING min({c}) > 'canary-m'", "SELECT max({c}) FROM {f}",
    "SELECT max({c}), min(p.id) FROM {f}", "SELECT group_concat({c}) FROM {f}", "SELECT sum({c}) FROM {f}",
    "SELECT count(*) FILTER (WHERE {c} > 'canary-m') FROM {f}", "SELECT total({c} > 'canary-m') FROM {f}",
    "SELECT json_object('a', {c}) FROM {f}", "SELECT json_group_array({c}) FROM {f}",
    "SELECT p.id, rank() OVER (ORDER BY {c}) FROM {f} ORDER BY p.id", "SELECT lag({c}) OVER (ORDER BY p.id) FROM {f}",
    "SELECT sum(1) OVER (PARTITION BY {c}) FROM {f}", "SELECT first_value(p.id) OVER (ORDER BY {c}, p.id) FROM {f}",
    "SELECT CASE WHEN {c} > 'canary-m' THEN 1 ELSE 2 END FROM {f}", "SELECT coalesce({c}, 'x') FROM {f}",
    "SELECT iif({c} > 'canary-m', 1, 2) FROM {f}", "SELECT max({c}, 'a') FROM {f}",
    "SELECT nullif({c}, 'canary-k') FROM {f}", "SELECT unicode(substr({c}, -1)) FROM {f}",
    "SELECT instr({c}, 'k') FROM {f}", "SELECT hex({c}) FROM {f}", "SELECT printf('%s', {c}) FROM {f}",
    "SELECT typeof({c}) FROM {f}", "SELECT quote({c}) FROM {f}", "SELECT (SELECT {c}) FROM {f}",
    "SELECT (SELECT y FROM (SELECT {c} AS y)) FROM {f}",
    "SELECT p.id FROM {f} WHERE EXISTS (SELECT 1 FROM orders x WHERE x.email = {c})",
    "SELECT p.id FROM {f} WHERE {c} IN (SELECT x.email FROM orders x)",
    "SELECT x.id FROM orders x WHERE x.email IN (SELECT {c} FROM {f})",
    "SELECT x.id FROM orders x WHERE x.email NOT IN (SELECT {c} FROM {f})",
    "SELECT 'canary-k' IN (SELECT {c} FROM {f})",
    "SELECT x.id FROM orders x JOIN (SELECT {c} AS y FROM {f}) ON x.email = y",
    "SELECT p.id, x.id FROM {f} JOIN orders x ON x.email = {c}",
    "SELECT p.id FROM {f} LEFT JOIN orders x ON x.email = {c} AND x.id = 1 WHERE x.id IS NOT NULL",
    "SELECT x.id FROM (SELECT {c} AS email FROM {f}) JOIN orders x USING (email)",
    "SELECT x.id FROM (SELECT {c} AS email FROM {f}) NATURAL JOIN (SELECT email, id FROM orders) x",
    "SELECT {c} FROM {f} UNION SELECT 'canary-k'", "SELECT {c} FROM {f} INTERSECT SELECT email FROM orders",
    "SELECT email FROM orders EXCEPT SELECT {c} FROM {f}", "SELECT value FROM {f}, json_each(json_array({c}))",
    "SELECT p.id FROM {f} WHERE p.id = CASE {c} WHEN 'canary-k' THEN p.id END", "VALUES ((SELECT min({c}) FROM {f}))",
    "SELECT p.id FROM {f} LIMIT (SELECT count(*) FROM {f} WHERE {c} > 'canary-m')",
    "SELECT y, count(*) FROM (SELECT {c} AS y FROM {f}) GROUP BY y",
    "SELECT count(*) FROM (SELECT DISTINCT {c} FROM {f})",
    "SELECT min(y) FROM (SELECT {c} || 'z' AS y FROM {f} ORDER BY y LIMIT 3)",
)  # fmt: skip
ORDERLESS = (
    "SELECT id FROM person", "SELECT name, id FROM person", "SELECT id FROM person WHERE name = 'n'",
    "SELECT id FROM person WHERE n > 0", "SELECT id, n FROM person WHERE name > ''", "SELECT id FROM bare LIMIT 2",
    "SELECT id FROM twofold WHERE name = 'n' OR n = 3", "SELECT name FROM person GROUP BY name LIMIT 1",
    "SELECT group_concat(id) FROM person WHERE name IN ('n', 'm')", "SELECT id FROM mails",
    "SELECT max(id), name FROM person", "SELECT q.id FROM orders o JOIN person q ON q.name = 'n'",
    "SELECT count(*) FROM person",
)  # fmt: skip
"""Nothing masked is named, and an index with masked columns would answer."""
COMPARED = (
    "SELECT p.id FROM person p JOIN orders USING (email)",
    "SELECT p.id FROM person p NATURAL JOIN (SELECT 'canary-k' AS email)",
    "SELECT email FROM person FULL JOIN (SELECT 'z' AS email) USING (email)",
    "SELECT * FROM (SELECT 'canary-k' AS email) LEFT JOIN person USING (email)",
    "SELECT y.email FROM person p RIGHT JOIN (SELECT 'canary-k' AS email) y USING (email)",
    "SELECT a.id FROM person a JOIN mails b USING (email)", "SELECT count(*) FROM person a NATURAL JOIN bare b",
    "SELECT id FROM joined", "SELECT id, name FROM filtered", "SELECT * FROM upper_mail", "SELECT * FROM sorted",
    "SELECT p.rowid, p.oid FROM person p", "SELECT * FROM person", "SELECT p.* FROM mails p",
    "SELECT * FROM bare, orders", "SELECT id FROM person INDEXED BY by_part WHERE n > 0",
    "SELECT id FROM person INDEXED BY by_upper", "SELECT report.x FROM (SELECT 1 AS x) AS report",
    "WITH joined AS (SELECT id FROM person JOIN orders USING (email)) SELECT * FROM joined",
    "SELECT 'canary-k' IN bare", "SELECT (1, 'canary-k') IN (SELECT id, email FROM person)",
    "SELECT * FROM pragma_table_info('person')",
    "SELECT * FROM person WHERE id = 1 OR email = 'canary-k' OR made = 'canary-k'",
)  # fmt: skip
HIDDEN = (
    "SELECT x FROM secret", "SELECT count(*) FROM secret", 'SELECT * FROM "secret"', "SELECT 1 FROM [Secret] LIMIT 1",
    "SELECT * FROM main.secret", 'SELECT * FROM "main" . secret', "SELECT * FROM 'main'/**/.secret",
    "SELECT * FROM main--\n.secret", "SELECT * FROM [main]\ufeff.secret", "SELECT * FROM MAIN.person",
    "SELECT email FROM `main`.person", "SELECT main.person.email FROM person", "SELECT * FROM hidden",
    "SELECT count(*) FROM hidden", "SELECT 1 WHERE EXISTS (SELECT 1 FROM hidden)", "SELECT count(*) FROM inner_view",
    "WITH report AS (SELECT x FROM secret) SELECT * FROM report",
    "WITH c AS (SELECT x FROM secret) SELECT * FROM c, report",
    "WITH quiet AS (SELECT x FROM secret) SELECT * FROM quiet",
    "SELECT x FROM secret FULL JOIN (SELECT 1 AS x) USING (x)", "SELECT c.x FROM copy c NATURAL JOIN secret",
    "SELECT 'canary' IN secret", "SELECT 1 WHERE (1, 'canary') IN secret",
    "SELECT id FROM copy UNION ALL SELECT id FROM secret", "SELECT (SELECT group_concat(x) FROM secret)",
    "SELECT * FROM orders WHERE note IN (SELECT x FROM secret)", 'SELECT * FROM "odd ""name"', "SELECT * FROM counted",
    "SELECT * FROM found", "SELECT * FROM found WHERE found MATCH 'canary'", "SELECT * FROM found_data",
    "SELECT * FROM found_docsize", "SELECT * FROM words",
    "SELECT term FROM words FULL JOIN (SELECT 1 AS term) USING (term)", "SELECT * FROM private",
    "SELECT * FROM private_content", "SELECT * FROM private('canary')", "SELECT * FROM of_private",
    "SELECT * FROM docs_data", "SELECT * FROM through", "SELECT name FROM sqlite_master",
    "SELECT sql FROM sqlite_schema FULL JOIN (SELECT 1 AS sql) USING (sql)", "SELECT * FROM sqlite_temp_master",
    "SELECT * FROM sqlite_stat1", "SELECT sample FROM sqlite_stat4", "SELECT * FROM sqlite_sequence",
    "SELECT name FROM dbstat", "SELECT name FROM dbstat FULL JOIN (SELECT 1 AS name) USING (name)",
    "SELECT name FROM x.dbstat", "SELECT * FROM bytecode('SELECT 1')", "SELECT * FROM tables_used('SELECT 1')",
    "SELECT data FROM sqlite_dbpage", "PRAGMA table_list", "SELECT name FROM pragma_table_list",
    "PRAGMA table_info(secret)", "PRAGMA main.table_info(secret)", "SELECT * FROM pragma_table_info('secret', 'main')",
    "PRAGMA index_info(by_part)", "PRAGMA integrity_check", "PRAGMA foreign_key_check",
    "SELECT * FROM pragma_foreign_key_check", "PRAGMA quick_check(secret)", "PRAGMA index_xinfo('by_both')",
    "PRAGMA database_list(1)", "SELECT * FROM log", "SELECT * FROM child", "SELECT * FROM temp.secret",
    "SELECT * FROM temp.sqlite_master",
)  # fmt: skip
SHOWN = (
    "SELECT count FROM report", "SELECT count(*) FROM report", "SELECT 1 FROM report",
    "SELECT * FROM report, report r", "WITH c AS (SELECT 1) SELECT least FROM report, c",
    "SELECT x FROM docs WHERE docs MATCH 'word'", "SELECT name FROM logged",
    "SELECT note, 'the main thing.' FROM orders", "SELECT sqlite_version() <> ''",
    "SELECT n AS domain FROM person ORDER BY id",
    "SELECT o.note, p.name FROM orders o JOIN person p ON p.id = o.person",
    "SELECT id, n FROM person JOIN orders USING (id)", "SELECT plain FROM person ORDER BY id",
    "SELECT rowid, note FROM orders", "SELECT value FROM json_each('[1, 2]')",
)  # fmt: skip
"""Let through, with what it gives where everything is served."""
WRITES = (
    "INSERT INTO copy SELECT * FROM secret", "INSERT INTO copy SELECT id, x FROM main.secret",
    "REPLACE INTO copy SELECT * FROM hidden", "INSERT INTO copy (x) SELECT x FROM secret RETURNING x",
    "UPDATE copy SET x = secret.x FROM secret", "DELETE FROM secret", "INSERT INTO secret VALUES (99, 'a')",
    "UPDATE secret SET x = x RETURNING x", "INSERT INTO main.copy SELECT * FROM secret",
    "DELETE FROM copy WHERE EXISTS (SELECT 1 FROM secret WHERE x > 'canary-m')", "INSERT INTO hidden VALUES (1, 'a')",
    "INSERT INTO copy (x) SELECT email FROM person", "INSERT INTO copy SELECT id, email FROM mails",
    "INSERT INTO copy (x) SELECT email FROM bare", "UPDATE person SET name = email",
    "UPDATE person SET n = 1 WHERE email > 'canary-m'", "DELETE FROM person WHERE email = 'canary-k'",
    "UPDATE person SET n = n RETURNING email", "UPDATE person SET n = n RETURNING *",
    "UPDATE person SET n = n RETURNING upper(made)",
    "UPDATE person SET n = (SELECT count(*) FROM person q WHERE q.email > 'canary-m') WHERE id = 1",
    "UPDATE person SET name = (WITH t AS (SELECT person.email AS e) SELECT e FROM t) RETURNING name",
    "UPDATE person SET name = (WITH watch AS (SELECT person.email AS e) SELECT e FROM watch) RETURNING name",
    "UPDATE person AS p SET n = n WHERE p.again > 'canary-m' RETURNING id", "DELETE FROM person RETURNING email",
    "UPDATE orders SET note = p.email FROM person p WHERE p.id = person RETURNING note",
    "INSERT INTO person (id, email) VALUES (50, 'q') ON CONFLICT (email) DO UPDATE SET name = 'hit'",
    "INSERT INTO person (id, name) VALUES (1, 'q') ON CONFLICT (id) DO UPDATE SET name = person.email RETURNING name",
    "INSERT INTO person (id, name) VALUES (1, 'q') ON CONFLICT (id) DO UPDATE SET n = 5 WHERE email >"
    " 'canary-m' RETURNING id",
    "WITH c AS (SELECT * FROM person) UPDATE person SET n = 1 FROM c WHERE c.email > 'canary-m'",
    "UPDATE watched SET name = 'a'", "DELETE FROM watched", "UPDATE bare SET name = 'x'",
    "INSERT INTO found (found) VALUES ('rebuild')", "INSERT INTO private VALUES ('a')",
    "INSERT INTO docs_content VALUES (9, 'a')", "SELECT x FROM secret", "SELECT email FROM person",
    "UPDATE orders SET note = (SELECT x FROM secret LIMIT 1) RETURNING note",
    "UPDATE orders SET note = x FROM orders o NATURAL JOIN secret",
    "INSERT INTO copy (x) SELECT sql FROM sqlite_schema", "UPDATE sqlite_sequence SET seq = 1",
    "DELETE FROM main.secret", "INSERT INTO child (secret) VALUES (1)",
    "DELETE FROM person WHERE id IN (SELECT id FROM secret)",
)  # fmt: skip
"""Refused; what SQLite reads of other rows on its own account is asked for as a missing table or a masked column."""
QUIET = (
    "UPDATE person SET name = 'x' WHERE id = 1 RETURNING id, name",
    "UPDATE person AS p SET n = p.n + 1 WHERE p.name = 'n'", "UPDATE person SET n = n WHERE name = 'n' RETURNING id",
    'DELETE FROM "person" WHERE id = 5 RETURNING id', "DELETE FROM orders RETURNING id",
    "insert /* a */ into person (id, name, n) values (70, 'z', 1) returning id, name, plain",
    "UPDATE person SET email = 'new' WHERE id = 2",
    "INSERT INTO person (id, name) VALUES (1, 'q') ON CONFLICT (id) DO UPDATE SET name = excluded.name",
    " RETURNING id, name",
    "INSERT INTO person (id, email) VALUES (1, 'q') ON CONFLICT (id) DO UPDATE SET name = excluded.email",
    " RETURNING name", "INSERT OR IGNORE INTO [person] (id, name) VALUES (1, 'z')",
    "REPLACE INTO person (id, name) VALUES (1, 'z')", "UPDATE person SET n = -1 WHERE id = 1",
    "INSERT INTO mails VALUES (50, 'a', 'b')", "UPDATE mails SET note = 'c' RETURNING id",
    "INSERT INTO copy (x) SELECT name FROM person", "INSERT INTO copy SELECT id, note FROM orders RETURNING *",
    "UPDATE logged SET name = 'b'", "INSERT INTO docs VALUES ('new word')",
    "UPDATE orders SET note = p.name FROM person p WHERE p.id = person RETURNING note",
    "WITH c AS (SELECT 1 AS y) INSERT INTO copy (x) SELECT y FROM c RETURNING x",
    "UPDATE person SET n = 9 WHERE id IN (SELECT person FROM orders)",
    "DELETE FROM person WHERE name = 'm' AND id > 2 RETURNING id, name",
    "INSERT INTO copy (x) SELECT count FROM report",
)  # fmt: skip
"""Changes that are made, or refused by a constraint, as if everything were served."""
