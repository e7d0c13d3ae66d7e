// What a key in a result leads to: the row of another table, found by the foreign keys of the tables that the statement names.

import { useEffect, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import type { Call } from "../kit/mount";
import { type Cell, cellText, parsePage } from "../kit/rows";
import { plain, Text } from "../kit/text";

/** A table, and the column of it that a key names. */
export interface Target { table: string; column: string }

const LOOKS_LIKE_A_KEY = /(_id|[a-z]Id)$/;
const MOST_KEYS = 500;

/** Both give (table, its last name, column, target, target's column); the database that is asked knows one of them. */
const QUERIES = [
  `SELECT m.name AS "table", m.name AS short, k."from", '"' || replace(k."table", '"', '""') || '"' AS target, coalesce(k."to", 'rowid') AS "to"
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) k WHERE m.type = 'table' ORDER BY 1, k.id, k.seq`,
  `SELECT k.conrelid::regclass::text AS "table", (SELECT relname FROM pg_class WHERE oid = k.conrelid)::text AS short, a.attname::text AS "from",
  k.confrelid::regclass::text AS target, b.attname::text AS "to"
FROM pg_constraint k JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1] WHERE k.contype = 'f' AND cardinality(k.conkey) = 1 ORDER BY 1, 3`,
];

const at = (call: Call) => (call.input["database"] === undefined ? {} : { database: call.input["database"] });

/** By column of the result, where its values lead. Asked for only where a column looks like a key. */
export function useTargets(call: Call, columns: string[]): Record<number, Target> {
  const [targets, set] = useState<Record<number, Target>>({});
  const sql = call.input["sql"];
  useEffect(() => {
    if (typeof sql !== "string" || !columns.some((name) => LOOKS_LIKE_A_KEY.test(name))) return;
    void (async () => {
      for (const query of QUERIES) {
        const result = await call.host.callTool("query_rows", { sql: query, limit: MOST_KEYS, ...at(call) });
        const page = result.isError ? null : parsePage(textOf(result));
        if (page) return set(targetsOf(sql, columns, page.rows));
      }
    })().catch(() => {}); // A key that leads nowhere is a number all the same.
  }, [sql]);
  return targets;
}

function targetsOf(sql: string, columns: string[], keys: Cell[][]): Record<number, Target> {
  const words = new Set(sql.toLowerCase().match(/[\p{L}\p{N}_$]+/gu) ?? []);
  const found: Record<number, Target> = {};
  columns.forEach((name, column) => {
    const leads = keys.map((key) => key.map(cellText)).filter(([, short, from]) => from === name && words.has(short!.toLowerCase()));
    const places = new Set(leads.map(([, , , table, to]) => JSON.stringify([table, to])));
    const [first] = leads;
    // Two tables of the statement whose keys have one name, and lead to different places, tell nothing.
    if (places.size === 1) found[column] = { table: first![3]!, column: first![4]! };
  });
  return found;
}

const literal = (cell: Cell) => (typeof cell === "number" ? String(cell) : `'${cellText(cell).replaceAll("'", "''")}'`);

/** The row that a key names. */
export function Led({ call, target, cell, onClose }: { call: Call; target: Target; cell: Cell; onClose: () => void }) {
  const [row, setRow] = useState<{ columns: string[]; cells: Cell[] }>();
  const [said, say] = useState("Loading…");
  useEffect(() => {
    let current = true;
    const sql = `SELECT * FROM ${target.table} WHERE "${target.column.replaceAll('"', '""')}" = ${literal(cell)} LIMIT 1`;
    call.host.callTool("query_rows", { sql, ...at(call) }).then((result) => {
      const page = parsePage(textOf(result));
      if (!current) return;
      if (result.isError || !page) say(plain(textOf(result), 500));
      else if (!page.rows.length) say("There is no such row.");
      else setRow({ columns: page.columns, cells: page.rows[0]! });
    }, (error: Error) => current && say(error.message));
    return () => { current = false; };
  }, [target, cell]);
  return (
    <section class="whole led" aria-label="Row that a key names">
      <div class="bar">
        <h2 class="grow"><Text value={plain(target.table, 120)} />, <Text value={plain(`${target.column} ${cellText(cell)}`, 120)} /></h2>
        <button type="button" onClick={onClose}>Close</button>
      </div>
      {row ? <dl>{row.columns.map((name, number) => <div key={number}><dt><Text value={plain(name, 100)} /></dt><dd><Text value={plain(cellText(row.cells[number]), 300)} /></dd></div>)}</dl>
        : <p class="quiet"><Text value={said} /></p>}
    </section>
  );
}
