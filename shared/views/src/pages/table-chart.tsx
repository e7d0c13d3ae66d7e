// The chart that fits the columns, and the choice of another.

import { useMemo, useState } from "preact/hooks";

import { Bars } from "../kit/bars";
import { Chart, type Series } from "../kit/chart";
import { type Cell, cellText, kindOf, seconds } from "../kit/rows";
import { plain } from "../kit/text";

const MOST_BARS = 60;
const MOST_POINTS = 5000;
const MOST_COLUMNS = 200;
/** How many times larger the values of one line are where another looks flat beside it. */
const FLAT = 20;
/** Of a chart, in pixels: the rows it is drawn from stay in sight. */
const HIGH = 190;

interface Choice {
  x: number | null;
  y: number[];
  kind: "line" | "bars" | "points";
}

/** Time against numbers as lines, names against a number as bars, two numbers as points, one over its rows. */
function fitting(kinds: string[], names: string[], rows: Cell[][]): Choice | null {
  const every = kinds.flatMap((kind, column) => (kind === "number" ? [column] : []));
  const time = kinds.indexOf("time");
  const name = kinds.indexOf("text");
  if (!every.length) return null;
  // Keys say nothing in a picture; measures with fractions say most.
  const telling = every.filter((column) => !/(^|[^a-z])id$/i.test(names[column]!) && !(every.length > 1 && column === 0));
  const fraction = (column: number) => Number(rows.some((row) => typeof row[column] === "number" && !Number.isInteger(row[column])));
  const numbers = (telling.length ? telling : every).sort((one, other) => fraction(other) - fraction(one));
  if (time >= 0) return { x: time, y: comparable(numbers, rows).slice(0, 3), kind: "line" };
  if (name >= 0) return { x: name, y: numbers.slice(0, 1), kind: "bars" };
  if (every.length > 1) return { x: every.find((column) => column !== numbers[0])!, y: numbers.slice(0, 1), kind: "points" };
  return { x: null, y: numbers, kind: "line" };
}

/** Of `columns`, those that the first does not make flat, nor they it, where one axis is for all. */
function comparable(columns: number[], rows: Cell[][]): number[] {
  const largest = (column: number) => rows.reduce((most, row) => Math.max(most, Math.abs(Number(row[column] ?? 0)) || 0), 0);
  const first = largest(columns[0]!);
  return columns.filter((column) => largest(column) <= first * FLAT && first <= largest(column) * FLAT);
}

export function RowsChart({ columns, rows, theme }: { columns: string[]; rows: Cell[][]; theme: string }) {
  const names = useMemo(() => columns.slice(0, MOST_COLUMNS).map((name) => plain(name, 60)), [columns]);
  const kinds = useMemo(() => names.map((_, column) => kindOf(rows, column)), [names, rows]);
  const fit = useMemo(() => fitting(kinds, names, rows), [kinds]);
  const [chosen, choose] = useState<Partial<Choice>>({});
  const choice = fit && { ...fit, ...chosen };
  const drawn = useMemo(
    () => choice && points(choice, names, kinds, rows),
    [names, kinds, rows, choice?.x, choice?.kind, choice?.y.join()],
  );
  if (!choice || !drawn) return <p class="quiet chart">No column of these rows holds numbers to draw.</p>;
  const select = (label: string, value: string, options: [string, string][], onPick: (value: string) => void) => (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => onPick(event.currentTarget.value)}>
        {options.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
      </select>
    </label>
  );
  const numeric = kinds.flatMap((kind, column): [string, string][] => (kind === "number" ? [[String(column), names[column]!]] : []));
  const every = names.map((name, column): [string, string] => [String(column), name]);
  return (
    <>
      <div class="bar sentence" role="group" aria-label="Chart">
        {select("Show", String(choice.y[0]), numeric, (y) => choose({ ...chosen, y: [Number(y)] }))}
        {select("by", String(choice.x ?? ""), [["", "row number"], ...every], (x) => choose({ ...chosen, x: x === "" ? null : Number(x) }))}
        {select("as", choice.kind, [["line", "lines"], ["bars", "bars"], ["points", "points"]], (kind) => choose({ ...chosen, kind: kind as Choice["kind"] }))}
      </div>
      {choice.kind === "bars" && drawn.x.kind === "names"
        ? <Bars label={drawn.label} names={drawn.x.names} series={drawn.series} />
        : <Chart label={drawn.label} x={drawn.x} series={drawn.series} height={HIGH} theme={theme} />}
    </>
  );
}

function points(choice: Choice, names: string[], kinds: string[], rows: Cell[][]) {
  const kind = choice.x === null ? "number" : kinds[choice.x]!;
  const across = choice.x === null ? "row" : names[choice.x]!;
  const most = kind === "text" || choice.kind === "bars" ? MOST_BARS : MOST_POINTS;
  const named = kind === "text" || (choice.kind === "bars" && kind !== "number") || (choice.kind === "bars" && choice.x !== null);
  let taken = rows.slice(0, most).map((row, number) => ({
    row,
    name: choice.x === null ? String(number + 1) : plain(cellText(row[choice.x]), 60),
    x: named ? number : choice.x === null ? number + 1 : kind === "time" ? seconds(row[choice.x]!) : Number(row[choice.x] ?? NaN),
  })).filter((point): point is { row: Cell[]; name: string; x: number } => point.x !== null && !Number.isNaN(point.x));
  if (!named) taken = taken.sort((one, other) => one.x - other.x);
  const series = choice.y.map((column): Series => ({
    label: names[column]!,
    kind: choice.kind,
    values: taken.map(({ row }) => (row[column] === null || row[column] === "" ? null : Number(row[column]))),
  }));
  const words = { line: "Line chart", bars: "Bar chart", points: "Scatter plot" }[choice.kind];
  const cut = rows.length > taken.length ? `, the first ${taken.length} of ${rows.length} rows` : `, ${taken.length} rows`;
  return {
    label: `${words} of ${choice.y.map((column) => names[column]).join(", ")} by ${across}${cut}. The table has the values.`,
    x: {
      label: across,
      kind: named ? "names" as const : kind === "time" ? "time" as const : "number" as const,
      values: taken.map((point) => point.x),
      names: taken.map((point) => point.name),
    },
    series,
  };
}
