// Rows as the SQL servers send them: lines in brackets about the page, the columns as a JSON array, a JSON array a row.

export type Cell = null | boolean | number | string | { base64?: string; more_bytes?: number } | object;

export interface Page {
  columns: string[];
  rows: Cell[][];
  /** For the next page; null on the last. */
  cursor: string | null;
  /** What else the server says of the page, without its brackets. */
  notes: string[];
}

/** The page in `text`, or null where the text is none. */
export function parsePage(text: string): Page | null {
  const lines = text.split("\n");
  const notes: string[] = [];
  let cursor: string | null = null;
  for (let number = 0; number < lines.length; number++) {
    const line = lines[number]!;
    const columns = array(line);
    if (columns) {
      const rows = lines.slice(number + 1).map(array).filter((row) => row !== null);
      return { columns: columns.map(String), rows, cursor, notes };
    }
    if (!line.startsWith("[")) return null;
    const note = line.replace(/^\[|\]$/g, "");
    const next = /\bcursor="?([\w-]+)/.exec(note);
    if (number === 0) cursor = next?.[1] ?? null;
    else notes.push(note);
  }
  return null;
}

function array(line: string): Cell[] | null {
  if (!line.startsWith("[")) return null;
  try {
    const value: unknown = JSON.parse(line);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** A cell as text; null as nothing. */
export function cellText(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell !== "object") return String(cell);
  if ("base64" in cell && typeof cell.base64 === "string") {
    const bytes = Math.floor((cell.base64.length * 3) / 4) - (cell.base64.match(/=+$/)?.[0].length ?? 0);
    return `${(bytes + (cell.more_bytes ?? 0)).toLocaleString("en")} bytes`;
  }
  return JSON.stringify(cell);
}

// A spreadsheet would run a text that begins like a formula, some also in full width; a decimal that came as text is none.
const FORMULA = /^(?![+-]?\d+(\.\d+)?$)[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

export function csv(columns: string[], rows: Cell[][]): string {
  const field = (cell: Cell) => {
    const text = typeof cell === "string" && FORMULA.test(cell) ? `'${cell}` : cellText(cell);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

export function markdown(columns: string[], rows: Cell[][]): string {
  const field = (cell: Cell) => cellText(cell).replace(/[\\`*_{}[\]<>()#!|~&]/g, "\\$&").replace(/\s*[\r\n]+\s*/g, " ");
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return [line(columns.map(field)), line(columns.map(() => "---")), ...rows.map((row) => line(row.map(field)))].join("\n") + "\n";
}

/** A whole number or a decimal, with its sign, its whole part and its places. */
export const EXACT = /^(-?)(\d{1,40})(?:\.(\d{1,40}))?$/;

/** Places beyond which numbers of a column are not lined up: the room for them would be empty in most rows. */
const MOST_DIGITS = 8;

/** How many places after the point the numbers of a column have at most. */
export function fractionDigits(rows: Cell[][], column: number): number {
  const digits = rows.map((row) => EXACT.exec(cellText(row[column]))?.[3]?.length ?? 0);
  const most = digits.reduce((one, other) => Math.max(one, other), 0);
  return most <= MOST_DIGITS ? most : 0;
}

export type Kind = "number" | "time" | "text";

const TIME = /^\d{4}-\d\d(-\d\d)?([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$/;

/** What a column holds, judged by its values. */
export function kindOf(rows: Cell[][], column: number): Kind {
  let numbers = 0, times = 0, all = 0;
  for (const row of rows) {
    const cell = row[column];
    if (cell === null || cell === undefined || cell === "") continue;
    all++;
    if (typeof cell === "number") numbers++;
    else if (typeof cell === "string" && TIME.test(cell)) times++;
    else if (typeof cell === "string" && cell.length < 40 && /^-?\d+(\.\d+)?$/.test(cell)) numbers++;
  }
  if (!all) return "text";
  return numbers === all ? "number" : times === all ? "time" : "text";
}

/** Seconds since 1970 of an ISO time, taken as UTC where it names no zone. */
export function seconds(cell: Cell): number | null {
  if (typeof cell !== "string") return null;
  const text = cell.replace(" ", "T");
  const value = Date.parse(/T/.test(text) && !/(Z|[+-]\d\d:?\d\d)$/.test(text) ? `${text}Z` : text);
  return Number.isNaN(value) ? null : value / 1000;
}
