// The diagram to take along: as text for Mermaid, and as a picture that needs nothing of this page.

import { plain } from "../kit/text";
import type { Table } from "./diagram-schema";

/** A name as Mermaid's diagrams of entities take it. */
const named = (name: string) => `"${plain(name, 80).replaceAll('"', "'")}"`;
const word = (text: string) => text.replace(/[^\p{L}\p{N}_]+/gu, "_") || "_";

export function mermaid(tables: Table[]): string {
  const here = new Set(tables.map((table) => table.name));
  const lines = ["erDiagram"];
  for (const table of tables) {
    const refers = new Set(table.keys.flatMap((key) => key.columns));
    lines.push(`  ${named(table.name)} {`);
    for (const column of table.columns) {
      const marks = [column.key ? "PK" : "", refers.has(column.name) ? "FK" : ""].filter(Boolean).join(", ");
      lines.push(`    ${word(column.type.toLowerCase() || "any")} ${word(column.name)}${marks && ` ${marks}`}`);
    }
    lines.push("  }");
    for (const key of table.keys) if (here.has(key.target)) lines.push(`  ${named(table.name)} }o--|| ${named(key.target)} : ${named(key.columns.join(", "))}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Properties that the sheets of this page give to parts of a drawing. */
const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "white-space"];

export function svg(picture: SVGSVGElement, size: { width: number; height: number }): string {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const shown = [...picture.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((element, number) => {
    const look = getComputedStyle(shown[number]!);
    for (const name of LOOKS) element.setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "style", "role", "tabindex", "aria-pressed"]) element.removeAttribute(name);
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
  copy.setAttribute("width", String(size.width));
  copy.setAttribute("height", String(size.height));
  return new XMLSerializer().serializeToString(copy);
}
