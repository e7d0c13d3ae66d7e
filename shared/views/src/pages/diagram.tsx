// A schema as a diagram of its tables and the keys between them, drawn on demand by queries of the same server.

import { useEffect, useMemo, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { type Call, mount } from "../kit/mount";
import { type Cell, parsePage } from "../kit/rows";
import { plain, Text } from "../kit/text";
import "./diagram.css";
import { Drawing } from "./diagram-drawing";
import { type Table, tables } from "./diagram-schema";

const MOST_ROWS = 20_000;
const MOST_DRAWN = 60;

/** What asks a database for its columns and keys, by the scheme of its URIs. Both give the same columns. */
const QUERIES: Record<string, { columns: string; keys: string }> = {
  sqlite: {
    columns: `SELECT m.name AS "table", c.name AS "column", c.type, c.pk > 0 AS is_key, c."notnull" AS is_required
FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c
WHERE m.type = 'table' AND c.hidden <> 1 AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!'
  AND NOT EXISTS (SELECT 1 FROM sqlite_master v WHERE v.sql LIKE 'CREATE VIRTUAL%'
    AND m.name <> v.name AND substr(m.name, 1, length(v.name) + 1) = v.name || '_')
ORDER BY m.name, c.cid`,
    keys: `SELECT m.name AS "table", k."from", k."table" AS target, k."to", k.id, k.on_delete
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) k WHERE m.type = 'table' ORDER BY m.name, k.id, k.seq`,
  },
  postgres: {
    columns: `SELECT c.oid::regclass::text AS "table", a.attname AS "column", format_type(a.atttypid, a.atttypmod) AS type,
  EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'p' AND a.attnum = ANY (k.conkey)) AS is_key,
  a.attnotnull AS is_required
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p', 'f') AND NOT c.relispartition
  AND c.relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
  AND ($1::text IS NULL OR c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1))
ORDER BY 1, a.attnum`,
    keys: `SELECT k.conrelid::regclass::text AS "table", a.attname AS "from", k.confrelid::regclass::text AS target,
  b.attname AS "to", k.oid::text AS id, k.confdeltype::text AS on_delete
FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u (here, there, place)
JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.here
JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.there
WHERE k.contype = 'f' AND k.conparentid = 0 ORDER BY 1, 5, u.place`,
  },
};

/** Databases that the list of tables names, each with the scheme of its URIs. */
function databases(text: string): { name: string; scheme: string; uri: string }[] {
  return [...text.matchAll(/^([^\s:]+): .*\b((\w+):\/\/\S+)$/gm)]
    .filter((match) => Object.hasOwn(QUERIES, match[3]!))
    .map((match) => ({ name: match[1]!, scheme: match[3]!, uri: match[2]! }));
}

/** All rows of a query, page by page as the server gives them. */
async function all(call: Call, sql: string, database: string): Promise<Cell[][]> {
  const parameters = sql.includes("$1") ? { parameters: [call.input["schema"] ?? null] } : {};
  const rows: Cell[][] = [];
  let cursor: string | null = null;
  do {
    const size = { limit: 5000, max_bytes: 1_000_000 };
    const result = await call.host.callTool("query_rows", cursor ? { ...size, cursor } : { ...size, sql, database, ...parameters });
    const page = parsePage(textOf(result));
    if (result.isError || !page) throw new Error(textOf(result));
    rows.push(...page.rows);
    cursor = page.cursor;
  } while (cursor && rows.length < MOST_ROWS);
  return rows;
}

function Diagram(call: Call) {
  // Functions, types and the like have no keys to draw.
  const found = useMemo(() => ((call.input["kind"] ?? "tables") === "tables" ? databases(call.text) : []), [call.text]);
  const [name, setName] = useState(found[0]?.name ?? "");
  const [read, setRead] = useState<{ of: string; tables: Table[] }>();
  const [failed, fail] = useState(false);
  const [chosen, choose] = useState<string>();
  const [wanted, setWanted] = useState("");
  const database = found.find((item) => item.name === name);

  useEffect(() => {
    if (!database) return;
    let current = true;
    call.say("Reading the schema…");
    const query = QUERIES[database.scheme]!;
    Promise.all([all(call, query.columns, name), all(call, query.keys, name)])
      .then(([columns, keys]) => {
        if (!current) return;
        setRead({ of: name, tables: tables(columns, keys) });
        fail(false);
        call.say("");
      })
      .catch((error: Error) => {
        if (!current) return;
        fail(true);
        call.say(plain(error.message, 500));
      });
    return () => { current = false; };
  }, [name, call.version]);

  const schema = read?.of === name ? read.tables : undefined;
  const shown = useMemo(() => schema && choice(schema, wanted), [schema, wanted]);
  const selected = schema?.find((table) => table.name === chosen);
  if (!database || (failed && !schema)) return <pre class="scroll listing" tabIndex={0}><Text value={call.text} /></pre>;
  return (
    <>
      <div class="bar">
        {found.length > 1 && (
          <label>Database <select value={name} onChange={(event) => { setName(event.currentTarget.value); choose(undefined); }}>
            {found.map((item) => <option key={item.name} value={item.name}>{plain(item.name, 60)}</option>)}
          </select></label>
        )}
        <input type="search" class="grow" aria-label="Find tables" placeholder="Find tables" onInput={(event) => setWanted(event.currentTarget.value)} />
        {schema && <span class="quiet">{schema.length.toLocaleString("en")} tables</span>}
      </div>
      {shown && schema && shown.length < schema.length && !wanted && (
        <p class="notice">The {shown.length} tables with the most keys are drawn; find others by name.</p>
      )}
      {shown && <Drawing tables={shown} chosen={chosen} onChoose={choose} onCopy={call.copied} />}
      {selected && <Details table={selected} tables={schema!} onChoose={choose} />}
      {schema && (
        <details>
          <summary>All tables as a list</summary>
          <ul class="all">
            {schema.map((table) => (
              <li key={table.name}>
                <button type="button" class="plain" onClick={() => choose(table.name)}><Text value={table.name} /></button>{" "}
                <span class="quiet">
                  {table.columns.length} columns
                  {table.keys.length > 0 && <>, refers to <Text value={[...new Set(table.keys.map((key) => key.target))].join(", ")} /></>}
                </span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/** The tables to draw: those that match, with their neighbours, or those with the most keys. */
function choice(schema: Table[], wanted: string): Table[] {
  if (wanted) {
    const hits = new Set(schema.filter((table) => table.name.toLowerCase().includes(wanted.toLowerCase())).map((table) => table.name));
    const near = (table: Table) => hits.has(table.name) || table.keys.some((key) => hits.has(key.target))
      || schema.some((other) => hits.has(other.name) && other.keys.some((key) => key.target === table.name));
    return schema.filter(near).slice(0, MOST_DRAWN);
  }
  if (schema.length <= MOST_DRAWN) return schema;
  const weight = new Map(schema.map((table) => [table.name, table.keys.length]));
  for (const table of schema) for (const key of table.keys) weight.set(key.target, (weight.get(key.target) ?? 0) + 1);
  return [...schema].sort((one, other) => weight.get(other.name)! - weight.get(one.name)!).slice(0, MOST_DRAWN);
}

function Details({ table, tables, onChoose }: { table: Table; tables: Table[]; onChoose: (name: string | undefined) => void }) {
  const incoming = tables.flatMap((other) => other.keys.filter((key) => key.target === table.name).map((key) => ({ other, key })));
  const link = (name: string) => <button type="button" class="plain link" onClick={() => onChoose(name)}><Text value={name} /></button>;
  return (
    <section class="details" aria-label={`Table ${plain(table.name)}`}>
      <div class="bar">
        <h2 class="grow"><Text value={table.name} /></h2>
        <button type="button" onClick={() => onChoose(undefined)}>Close</button>
      </div>
      <ul>
        {table.columns.map((column) => (
          <li key={column.name}>
            <code><Text value={column.name} /></code>{" "}
            <span class="quiet"><Text value={column.type.toLowerCase()} />{column.required && !column.key ? ", required" : ""}</span>{" "}
            {column.key && <span class="badge">key</span>}
          </li>
        ))}
      </ul>
      {table.keys.map((key) => <p>refers to {link(key.target)} by <Text value={key.columns.join(", ")} />{key.onDelete && <span class="quiet"> (on delete {key.onDelete})</span>}</p>)}
      {incoming.map(({ other, key }) => <p>referred to by {link(other.name)} by <Text value={key.columns.join(", ")} /></p>)}
    </section>
  );
}

mount("Schema", Diagram, ({ text }) => databases(text).map(({ uri }) => uri));
