// The drawing: places by dagre, boxes and lines in SVG, every box a button for keyboards and screen readers. It fits its frame
// at first; it is moved by dragging, by arrow keys and on the map of the whole.

import * as dagre from "@dagrejs/dagre";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { plain } from "../kit/text";
import { mermaid, svg } from "./diagram-export";
import type { Table } from "./diagram-schema";

const LINE = 18, HEAD = 28, LETTER = 7.2, MOST_LINES = 14, LONGEST = 26;
const HIGHEST = 620, SMALLEST = 0.1, LARGEST = 3;

interface Box {
  table: Table;
  name: string;
  lines: { column: string; name: string; type: string; key: boolean; refers: boolean }[];
  more: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

interface Drawn {
  boxes: Box[];
  edges: { id: string; from: string; to: string; label: string; path: string }[];
  width: number;
  height: number;
}

function laidOut(tables: Table[]): Drawn {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 24, ranksep: 76, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  const boxes = new Map<string, Box>();
  for (const table of tables) {
    const refers = new Set(table.keys.flatMap((key) => key.columns));
    // Keys first where not all columns fit.
    const columns = table.columns.length <= MOST_LINES ? table.columns
      : [...table.columns].sort((one, other) => Number(other.key || refers.has(other.name)) - Number(one.key || refers.has(one.name))).slice(0, MOST_LINES);
    const lines = columns.map((column) => ({
      column: column.name, name: plain(column.name, LONGEST), type: plain(column.type.toLowerCase(), 14), key: column.key, refers: refers.has(column.name),
    }));
    const name = plain(table.name, LONGEST + 6);
    const longest = Math.max(name.length + 2, ...lines.map((line) => line.name.length + line.type.length + 5));
    const more = table.columns.length - lines.length;
    const box = {
      table, name, lines, more, x: 0, y: 0,
      width: Math.max(110, longest * LETTER + 16), height: HEAD + (lines.length + (more ? 1 : 0)) * LINE + 10,
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
  /** Where a line leaves a box: at the row of its column, at the head where the row is not drawn. */
  const rowOf = (box: Box, column: string | undefined) => {
    const at = box.lines.findIndex((line) => line.column === column);
    return box.y + (at < 0 ? HEAD / 2 : HEAD + 4 + (at + 0.5) * LINE);
  };
  const edges = drawn.map(({ table, key, number }) => {
    const label = `${table.name}.${key.columns.join(", ")} → ${key.target}.${key.to.filter(Boolean).join(", ") || "key"}`;
    const here = boxes.get(table.name)!, there = boxes.get(key.target)!;
    const first = rowOf(here, key.columns[0]), last = rowOf(there, key.to[0] || there.lines.find((line) => line.key)?.column);
    const edge = { id: `${table.name} ${number}`, from: table.name, to: key.target, label };
    if (here === there) {
      const right = here.x + here.width;
      return { ...edge, path: `M ${right} ${first} C ${right + 38} ${first} ${right + 38} ${last} ${right} ${last}` };
    }
    const forward = here.x + here.width / 2 < there.x + there.width / 2;
    const start = { x: forward ? here.x + here.width : here.x, y: first }, end = { x: forward ? there.x : there.x + there.width, y: last };
    const { points } = graph.edge(table.name, key.target, String(number)) as unknown as { points: { x: number; y: number }[] };
    // Between neighbours a curve is enough; past others it goes where dagre has left room.
    const between = points.length > 3 ? points.slice(1, -1).filter((point) => forward ? point.x > start.x && point.x < end.x : point.x < start.x && point.x > end.x) : [];
    const way = [start, ...between, end];
    const curves = way.slice(1).map((to, at) => {
      const from = way[at]!, middle = (from.x + to.x) / 2;
      return `C ${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
    });
    return { ...edge, path: `M ${start.x} ${start.y} ${curves.join(" ")}` };
  });
  const { width, height } = graph.graph() as { width: number; height: number };
  return { boxes: [...boxes.values()], edges, width: Math.max(width, 120) + 44, height: Math.max(height, 60) };
}

interface Props {
  tables: Table[];
  chosen: string | undefined;
  onChoose: (name: string) => void;
  onCopy: (text: string, what: string) => void;
}

/** The part that is seen: its upper left corner, and how large it is drawn. */
interface Look { x: number; y: number; zoom: number }

export function Drawing({ tables, chosen, onChoose, onCopy }: Props) {
  const drawn = useMemo(() => laidOut(tables), [tables]);
  const frame = useRef<HTMLDivElement>(null), picture = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(0);
  const [look, setLook] = useState<Look>();
  const drag = useRef<{ x: number; y: number; look: Look; moved: boolean }>(undefined);
  const near = useMemo(() => new Set(drawn.edges.flatMap((edge) => (edge.from === chosen || edge.to === chosen ? [edge.from, edge.to] : []))), [drawn, chosen]);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, [!tables.length]);
  useEffect(() => setLook(undefined), [drawn]);
  if (!tables.length) return <p class="quiet">No tables.</p>;

  // All of it, not larger than it is.
  const fit = Math.min(1, (width || drawn.width) / drawn.width, HIGHEST / drawn.height);
  const zoomed = look?.zoom ?? fit;
  const height = Math.max(140, Math.min(HIGHEST, drawn.height * Math.max(fit, Math.min(zoomed, 1))));
  const centred = (zoom: number): Look => ({ zoom, x: (drawn.width - width / zoom) / 2, y: (drawn.height - height / zoom) / 2 });
  const { x, y, zoom } = look ?? centred(fit);
  const seen = { width: (width || drawn.width) / zoom, height: height / zoom };
  const whole = seen.width >= drawn.width - 1 && seen.height >= drawn.height - 1;
  const bounded = (to: Look): Look => {
    const [wide, high] = [width / to.zoom, height / to.zoom];
    const inside = (at: number, size: number, all: number) => (size >= all ? (all - size) / 2 : Math.max(0, Math.min(all - size, at)));
    return { zoom: to.zoom, x: inside(to.x, wide, drawn.width), y: inside(to.y, high, drawn.height) };
  };
  const move = (right: number, down: number) => setLook(bounded({ zoom, x: x + right, y: y + down }));
  const scale = (factor: number) => {
    const to = Math.max(SMALLEST, Math.min(LARGEST, zoom * factor));
    setLook(bounded({ zoom: to, x: x + (seen.width - width / to) / 2, y: y + (seen.height - height / to) / 2 }));
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => move(-seen.width / 8, 0), ArrowRight: () => move(seen.width / 8, 0), ArrowUp: () => move(0, -seen.height / 8),
    ArrowDown: () => move(0, seen.height / 8), "+": () => scale(1.25), "-": () => scale(0.8), "0": () => setLook(undefined),
  };
  const dragged = (event: PointerEvent) => {
    const from = drag.current;
    if (!from) return;
    const [right, down] = [event.clientX - from.x, event.clientY - from.y];
    if (!from.moved && Math.hypot(right, down) < 4) return;
    if (!from.moved) (event.currentTarget as Element).setPointerCapture(event.pointerId);
    from.moved = true;
    setLook(bounded({ zoom, x: from.look.x - right / zoom, y: from.look.y - down / zoom }));
  };
  return (
    <>
      <div class="bar" role="group" aria-label="The drawing">
        <button type="button" aria-label="Smaller" onClick={() => scale(0.8)}>−</button>
        <button type="button" aria-label="Larger" onClick={() => scale(1.25)}>+</button>
        <button type="button" onClick={() => setLook(undefined)}>Fit</button>
        <span class="quiet">{Math.round(zoom * 100)} %</span>
        <span class="bar end">
          <button type="button" onClick={() => onCopy(mermaid(tables), "the diagram for Mermaid")}>Copy Mermaid</button>
          <button type="button" onClick={() => onCopy(svg(picture.current!, drawn), "the picture as SVG")}>Copy SVG</button>
        </span>
      </div>
      <div class={`drawing ${whole ? "" : "part"}`} role="region" aria-label="Diagram of tables and keys" tabIndex={0} ref={frame} style={{ height: `${height}px` }}
        onKeyDown={(event) => { if (keys[event.key] && event.target === event.currentTarget) { event.preventDefault(); keys[event.key]!(); } }}
        onPointerDown={(event) => { if (event.button === 0) drag.current = { x: event.clientX, y: event.clientY, look: { x, y, zoom }, moved: false }; }}
        onPointerMove={dragged} onPointerUp={() => setTimeout(() => { drag.current = undefined; })} onPointerCancel={() => { drag.current = undefined; }}
        onWheel={(event) => { if (event.ctrlKey) { event.preventDefault(); scale(event.deltaY < 0 ? 1.1 : 1 / 1.1); } }}>
        <svg ref={picture} width="100%" height={height} viewBox={`${x} ${y} ${seen.width} ${seen.height}`}>
          <defs>
            <marker id="one" viewBox="0 0 8 10" refX="8" refY="5" markerWidth="8" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M 0 1 L 8 5 L 0 9 z" class="tip" />
            </marker>
            <marker id="many" viewBox="0 0 10 10" refX="0" refY="5" markerWidth="10" markerHeight="10" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M 0 0 L 9 5 L 0 10" class="foot" />
            </marker>
          </defs>
          {drawn.edges.map((edge) => (
            <path key={edge.id} d={edge.path} marker-start="url(#many)" marker-end="url(#one)"
              class={edge.from === chosen || edge.to === chosen ? "edge near" : "edge"}><title>{plain(edge.label)}</title></path>
          ))}
          {drawn.boxes.map((box) => {
            const choose = () => { if (!drag.current?.moved) onChoose(box.table.name); };
            const state = box.table.name === chosen ? "chosen" : near.has(box.table.name) ? "near" : "";
            return (
              <g key={box.table.name} class={`box ${state}`} transform={`translate(${box.x} ${box.y})`} role="button" tabindex={0}
                aria-pressed={box.table.name === chosen} onClick={choose}
                onFocus={() => { if (!drag.current) setLook((look) => look && reach(look)); }}
                onKeyDown={(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); onChoose(box.table.name); } }}>
                <rect width={box.width} height={box.height} rx="6" class="back" />
                <path d={`M 0 ${HEAD} V 6 A 6 6 0 0 1 6 0 H ${box.width - 6} A 6 6 0 0 1 ${box.width} 6 V ${HEAD} z`} class="head" />
                <line x1="0" x2={box.width} y1={HEAD} y2={HEAD} class="rule" />
                <text x="8" y="19" class="name">{box.name}</text>
                {box.lines.map((line, number) => (
                  <g transform={`translate(8 ${HEAD + 17 + number * LINE})`} key={number}>
                    <text class={line.key ? "column key" : "column"}>{line.key ? "◆ " : line.refers ? "→ " : "  "}{line.name}</text>
                    <text x={box.width - 16} class="type" text-anchor="end">{line.type}</text>
                  </g>
                ))}
                <rect width={box.width} height={box.height} rx="6" class="frame" />
                {box.more > 0 && <text x="8" y={HEAD + 17 + box.lines.length * LINE} class="type">… {box.more.toLocaleString("en")} more</text>}
              </g>
            );

            /** The part that is seen, moved as far as the box needs to be in it. */
            function reach(look: Look): Look {
              const [wide, high] = [width / look.zoom, height / look.zoom];
              const shift = (at: number, size: number, start: number, length: number) => Math.max(start + length - size, Math.min(at, start));
              return { zoom: look.zoom, x: shift(look.x, wide, box.x, box.width), y: shift(look.y, high, box.y, box.height) };
            }
          })}
        </svg>
        {!whole && width > 0 && <Overview drawn={drawn} seen={{ x, y, ...seen }} onGo={(toX, toY) => setLook(bounded({ zoom, x: toX - seen.width / 2, y: toY - seen.height / 2 }))} />}
      </div>
    </>
  );
}

/** The whole in small, and what is seen of it. */
function Overview({ drawn, seen, onGo }: { drawn: Drawn; seen: { x: number; y: number; width: number; height: number }; onGo: (x: number, y: number) => void }) {
  const scale = Math.min(130 / drawn.width, 90 / drawn.height);
  const go = (event: PointerEvent) => {
    event.stopPropagation();
    if (event.type === "pointermove" && !event.buttons) return;
    const place = (event.currentTarget as Element).getBoundingClientRect();
    onGo((event.clientX - place.left) / scale, (event.clientY - place.top) / scale);
  };
  return (
    <svg class="map" width={drawn.width * scale} height={drawn.height * scale} viewBox={`0 0 ${drawn.width} ${drawn.height}`} aria-hidden="true" onPointerDown={go} onPointerMove={go}>
      {drawn.boxes.map((box) => <rect key={box.table.name} x={box.x} y={box.y} width={box.width} height={box.height} class="small" />)}
      <rect x={seen.x} y={seen.y} width={seen.width} height={seen.height} class="window" />
    </svg>
  );
}
