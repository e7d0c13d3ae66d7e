// What data tools answer: an object, structured or as the JSON of the text, for hosts that pass on only one of them.

import { type CallToolResult, type Host, textOf } from "./bridge";

export type Row = Record<string, unknown>;

/** The object a tool answered. */
export function dataOf(result: CallToolResult): Row {
  if (result.structuredContent) return result.structuredContent as Row;
  const value: unknown = JSON.parse(textOf(result));
  if (typeof value !== "object" || value === null) throw new Error("The answer is no object.");
  return value as Row;
}

/** Call a data tool. Throws what the server says when it refuses. */
export async function ask(host: Host, tool: string, input: Row): Promise<Row> {
  const result = await host.callTool(tool, input);
  if (result.isError) throw new Error(textOf(result));
  return dataOf(result);
}

/** Columns and rows as objects. */
export function rowsOf(data: Row): Row[] {
  const columns = list(data["columns"]).map(String);
  return list(data["rows"]).map((row) => Object.fromEntries(columns.map((name, at) => [name, list(row)[at]])));
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A value as text; nothing where there is none. */
export function text(value: unknown): string {
  return value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A moment as the person writes it; nothing where it is none. */
export function moment(value: unknown, locale = document.documentElement.lang): string {
  const stamp = Date.parse(text(value));
  if (Number.isNaN(stamp)) return "";
  return new Date(stamp).toLocaleDateString(locale, { year: "numeric", month: "short", day: "numeric" });
}
