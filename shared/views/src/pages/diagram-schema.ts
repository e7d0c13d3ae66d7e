// Tables and keys from the rows of the two queries.

import { type Cell, cellText } from "../kit/rows";

export interface Column {
  name: string;
  type: string;
  key: boolean;
  required: boolean;
}

export interface Key {
  columns: string[];
  target: string;
  to: string[];
  onDelete: string;
}

export interface Table {
  name: string;
  columns: Column[];
  keys: Key[];
}

// PostgreSQL says it in a letter.
const ACTIONS: Record<string, string> = { c: "cascade", n: "set null", d: "set default", r: "restrict", a: "", "NO ACTION": "" };

const truth = (cell: Cell | undefined) => cell === true || cell === 1;

/** Rows of (table, column, type, is_key, is_required) and (table, from, target, to, id, on_delete). */
export function tables(columns: Cell[][], keys: Cell[][]): Table[] {
  const found = new Map<string, Table>();
  for (const [table, name, type, key, required] of columns) {
    const entry = found.get(cellText(table)) ?? { name: cellText(table), columns: [], keys: [] };
    entry.columns.push({ name: cellText(name), type: cellText(type), key: truth(key), required: truth(required) });
    found.set(entry.name, entry);
  }
  // SQLite knows tables in any case.
  const spelt = new Map([...found.keys()].map((name) => [name.toLowerCase(), name]));
  const joined = new Map<string, Key>();
  for (const [table, from, target, to, id, onDelete] of keys) {
    const owner = found.get(cellText(table));
    if (!owner) continue;
    const which = JSON.stringify([table, id]);
    const known = joined.get(which);
    if (known) {
      known.columns.push(cellText(from));
      known.to.push(cellText(to));
      continue;
    }
    const name = cellText(target), action = cellText(onDelete);
    const key: Key = {
      columns: [cellText(from)],
      target: found.has(name) ? name : spelt.get(name.toLowerCase()) ?? name,
      to: [cellText(to)],
      onDelete: ACTIONS[action] ?? action.toLowerCase(),
    };
    joined.set(which, key);
    owner.keys.push(key);
  }
  return [...found.values()];
}
