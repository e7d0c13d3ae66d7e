// The drawing: places by dagre, boxes and lines in SVG, every box a button for keyboards and screen readers.

import * as dagre from "@dagrejs/dagre";
import { useMemo, useState } from "preact/hooks";

import { plain } from "../kit/text";
import type { Table } from "./diagram-schema";

const LINE = 18, HEAD = 26, LETTER = 7.2, MOST_LINES = 14, LONGEST = 26;

interface Box {
  table: Table;
  name: string;
  lines: { name: string; type: string; key: boolean; refers: boolean }[];
  more: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Drawn {
  boxes: Box[];
  edges: { from: string; to: string; label: string; path: string }[];
  width: number;
  height: number;
}

function laidOut(tables: Table[]): Drawn {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 64, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const boxes = new Map<string, Box>();
  for (const table of tables) {
    const refers = new Set(table.keys.flatMap((key) => key.columns));
    // Keys first where not all columns fit.
    const columns = table.columns.length <= MOST_LINES ? table.columns
      : [...table.columns].sort((one, other) => Number(other.key || refers.has(other.name)) - Number(one.key || refers.has(one.name))).slice(0, MOST_LINES);
    const lines = columns.map((column) => ({
      name: plain(column.name, LONGEST), type: plain(column.type.toLowerCase(), 14), key: column.key, refers: refers.has(column.name),
    }));
    const name = plain(table.name, LONGEST + 6);
    const longest = Math.max(name.length + 2, ...lines.map((line) => line.name.length + line.type.length + 5));
    const more = table.columns.length - lines.length;
    const box = {
      table, name, lines, more, x: 0, y: 0,
      width: Math.max(110, longest * LETTER + 16), height: HEAD + (lines.length + (more ? 1 : 0)) * LINE + 8,
    };
    boxes.set(table.name, box);
    graph.setNode(table.name, { width: box.width, height: box.height });
  }
  const drawn = tables.flatMap((table) => table.keys.filter((key) => boxes.has(key.target)).map((key, number) => ({ table, key, number })));
  for (const { table, key, number } of drawn) {
    if (key.target !== table.name) graph.setEdge(table.name, key.target, {}, String(number));
  }
  dagre.layout(graph);
  for (const box of boxes.values()) {
    const place = graph.node(box.table.name) as { x: number; y: number };
    box.x = place.x - box.width / 2;
    box.y = place.y - box.height / 2;
  }
  const edges = drawn.map(({ table, key, number }) => {
    const label = `${key.columns.join(", ")} → ${key.target}.${key.to.filter(Boolean).join(", ") || "key"}`;
    if (key.target === table.name) {
      const { x, y, width } = boxes.get(table.name)!;
      return { from: table.name, to: table.name, label, path: `M ${x + width} ${y + 34} c 26 0 26 -24 0 -24` };
    }
    const { points } = graph.edge(table.name, key.target, String(number)) as unknown as { points: { x: number; y: number }[] };
    const [start, ...rest] = points;
    return { from: table.name, to: key.target, label, path: `M ${start!.x} ${start!.y} ${rest.map((point) => `L ${point.x} ${point.y}`).join(" ")}` };
  });
  const { width, height } = graph.graph() as { width: number; height: number };
  return { boxes: [...boxes.values()], edges, width: Math.max(width, 120) + 24, height: Math.max(height, 60) };
}

interface Props {
  tables: Table[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
}

export function Drawing({ tables, chosen, onChoose }: Props) {
  const drawn = useMemo(() => laidOut(tables), [tables]);
  const [zoom, setZoom] = useState(1);
  const near = useMemo(() => new Set(drawn.edges.flatMap((edge) => (edge.from === chosen || edge.to === chosen ? [edge.from, edge.to] : []))), [drawn, chosen]);
  if (!tables.length) return <p class="quiet">No tables.</p>;
  return (
    <>
      <div class="bar" role="group" aria-label="Size of the drawing">
        <button type="button" aria-label="Smaller" onClick={() => setZoom(Math.max(0.25, zoom / 1.25))}>−</button>
        <button type="button" aria-label="Larger" onClick={() => setZoom(Math.min(3, zoom * 1.25))}>+</button>
        <span class="quiet">{Math.round(zoom * 100)} %</span>
      </div>
      <div class="scroll drawing" role="region" aria-label="Diagram of tables and keys" tabIndex={0}>
        <svg width={drawn.width * zoom} height={drawn.height * zoom} viewBox={`0 0 ${drawn.width} ${drawn.height}`}>
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto-start-reverse">
              <path d="M 0 0 L 8 4 L 0 8 z" class="tip" />
            </marker>
          </defs>
          {drawn.edges.map((edge) => (
            <path key={`${edge.from} ${edge.label}`} d={edge.path} marker-end="url(#tip)"
              class={edge.from === chosen || edge.to === chosen ? "edge near" : "edge"}><title>{plain(edge.label)}</title></path>
          ))}
          {drawn.boxes.map((box) => {
            const choose = () => onChoose(box.table.name);
            const state = box.table.name === chosen ? "chosen" : near.has(box.table.name) ? "near" : "";
            return (
              <g key={box.table.name} class={`box ${state}`} transform={`translate(${box.x} ${box.y})`} role="button" tabindex={0}
                aria-pressed={box.table.name === chosen} onClick={choose}
                onKeyDown={(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } }}>
                <rect width={box.width} height={box.height} rx="5" class="frame" />
                <text x="8" y="18" class="name">{box.name}</text>
                <line x1="0" x2={box.width} y1={HEAD} y2={HEAD} class="rule" />
                {box.lines.map((line, number) => (
                  <g transform={`translate(8 ${HEAD + 15 + number * LINE})`} key={number}>
                    <text class={line.key ? "column key" : "column"}>{line.key ? "◆ " : line.refers ? "→ " : "  "}{line.name}</text>
                    <text x={box.width - 16} class="type" text-anchor="end">{line.type}</text>
                  </g>
                ))}
                {box.more > 0 && <text x="8" y={HEAD + 15 + box.lines.length * LINE} class="type">… {box.more.toLocaleString("en")} more</text>}
              </g>
            );
          })}
        </svg>
      </div>
    </>
  );
}
