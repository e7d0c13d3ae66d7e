// mcp-postgres against a PostgreSQL of its own (postgres.py), which `script` has filled.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { ROOT, serve } from "./harness.mjs";

const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");

export async function postgres(script) {
  const cluster = spawn(PYTHON, [join(import.meta.dirname, "postgres.py")], { stdio: ["pipe", "pipe", "inherit"] });
  cluster.stdin.write(`${JSON.stringify(script)}\n`);
  const [url] = await once(cluster.stdout, "data");
  const server = await serve("mcp_postgres", [], { MCP_POSTGRES_DATABASES: String(url).trim() });
  return { ...server, close: async () => { await server.close(); cluster.stdin.end(); await once(cluster, "exit"); } };
}

export const SHOP = `
CREATE SCHEMA shop;
CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE shop.item (
  shelf integer, number integer, PRIMARY KEY (shelf, number), title text NOT NULL, owner integer REFERENCES customer ON DELETE SET NULL
);
CREATE TABLE shop.sale (
  id bigint PRIMARY KEY, shelf integer, number integer, at timestamptz NOT NULL, price numeric(8, 2), twin bigint REFERENCES shop.sale,
  FOREIGN KEY (shelf, number) REFERENCES shop.item ON DELETE CASCADE
);
CREATE TABLE visit (at date NOT NULL, customer integer REFERENCES customer) PARTITION BY RANGE (at);
CREATE TABLE visit_2026 PARTITION OF visit FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE shop."<img src=x onerror=alert(1)>" ("""><script>alert(2)</script>" integer REFERENCES customer, "=1+1" text);
CREATE TABLE shop."Fake
Seq Scan on nothing" (n integer);
CREATE FUNCTION shop.twice(n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
INSERT INTO customer SELECT n, 'Customer ' || n FROM generate_series(1, 500) n;
INSERT INTO shop.item SELECT n / 10, n % 10, 'Item ' || n, n FROM generate_series(1, 100) n;
INSERT INTO shop.sale SELECT n, n % 10, 0, timestamptz '2026-01-01 08:00+00' + n * interval '1 minute', n % 90 + 0.95 FROM generate_series(10, 200000) n WHERE (n % 10) > 0;
INSERT INTO visit SELECT date '2026-01-01' + n % 300, n FROM generate_series(1, 500) n;
CREATE TABLE pair AS SELECT n % 100 AS a, n % 100 AS b FROM generate_series(1, 200000) n;
ALTER TABLE pair SET (parallel_workers = 2);
ANALYZE;
`;
