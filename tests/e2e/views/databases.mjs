// Databases and folders for the views, made by Python: Node 20 has no SQLite, and it is the server's anyway.

import { execFileSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./harness.mjs";

export const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");

export const folder = () => mkdtempSync(join(tmpdir(), "views-"));

/** A database that `script` has filled. */
export function database(script) {
  const path = join(folder(), "app.db");
  const code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.stdin.read()); c.close()";
  execFileSync(PYTHON, ["-c", code, path], { input: script });
  return path;
}

export const MEASURED = `
CREATE TABLE station (id INTEGER PRIMARY KEY, name TEXT NOT NULL, height REAL);
CREATE TABLE reading (
  id INTEGER PRIMARY KEY, station_id INTEGER NOT NULL REFERENCES station ON DELETE CASCADE,
  day TEXT NOT NULL, degrees REAL, big INTEGER, parent INTEGER REFERENCES reading (id)
);
INSERT INTO station VALUES (1, 'North', 12.5), (2, 'South', 840.0);
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1199)
INSERT INTO reading SELECT i + 1, i % 2 + 1, date('2024-01-01', i || ' days'), round(10 + 8 * ((i * 37) % 100 - 50) / 50.0, 1),
  9007199254740993 + i, nullif(i, 0) FROM n;
`;

export const HOSTILE = `
CREATE TABLE evil (id INTEGER PRIMARY KEY, "<img src=x onerror=alert(1)>" TEXT);
INSERT INTO evil VALUES
  (1, '<script>alert(1)</script><img src="https://attacker.example/x.png" onerror="alert(2)">'),
  (2, 'abc' || char(0x202e) || 'txt.exe'),
  (3, 'zero' || char(0x200b) || 'width' || char(0xe0041)),
  (4, '=HYPERLINK("https://attacker.example")'),
  (5, '![x](https://attacker.example/y.png) | a'),
  (6, 'שלום עולם'),
  (7, '👩‍💻 می‌خواهم');
CREATE TABLE "a""]><script>alert(3)</script>" ("x"" onload=alert(4)" REFERENCES evil);
`;
