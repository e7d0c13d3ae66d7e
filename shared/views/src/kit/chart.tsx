// Charts by uPlot: lines over time or numbers, bars over names, points. The table beside it is its text alternative.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { Text } from "./text";

export interface Series {
  label: string;
  values: (number | null)[];
  kind: "line" | "bars" | "points";
  /** Series of one scale share an axis. */
  scale?: string;
  unit?: string;
  /** What the axis shows at least. */
  from?: number;
  to?: number;
}

export interface ChartProps {
  /** What the chart shows, for those who can't see it. */
  label: string;
  x: { label: string; values: number[]; kind: "number" | "time" | "names"; names?: string[] };
  series: Series[];
  height?: number;
  theme: string;
  locale?: string;
  /** The time zone of the x axis; UTC where there is none. */
  timeZone?: string;
  /** Shown where a value is read off the chart. */
  format?: (value: number, series: Series) => string;
}

const LIGHT = ["#1a5fb4", "#b5480a", "#1b7a3d", "#8a2f8f", "#7a5a00", "#a51d4d"];
const DARK = ["#7fb3ff", "#ffab70", "#7ad69a", "#e2a1e6", "#e8cf6a", "#ff9dba"];
const DAY = 86_400;
/** Days, months and years between two marks, where the values are of days. */
const DAYS = [...[1, 2, 3, 4, 5, 7, 10, 15], ...[1, 2, 3, 4, 6].map((months) => months * 30), ...[1, 2, 5, 10, 25, 50, 100].map((years) => years * 365)]
  .map((days) => days * DAY);
const DASHES: number[][] = [[], [7, 4], [2, 3], [10, 4, 2, 4], [4, 2], [1, 2]];

export function Chart({ label, x, series, height = 260, theme, timeZone, format }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const read = useRef<HTMLParagraphElement>(null);
  const colours = theme === "dark" ? DARK : LIGHT;
  const shown = format ?? ((value: number) => value.toLocaleString("en", { maximumFractionDigits: 4 }));

  useEffect(() => {
    const place = box.current!;
    const css = getComputedStyle(document.documentElement);
    const ink = css.getPropertyValue("color") || "#888";
    const grid = { stroke: theme === "dark" ? "#444" : "#e2e2dd", width: 1 };
    const font = `12px ${getComputedStyle(document.body).fontFamily || "sans-serif"}`;
    const scales = [...new Set(series.map((item) => item.scale ?? "y"))];
    const zone = timeZone ?? "UTC";
    const bars = series.some((item) => item.kind === "bars");
    const step = x.values.reduce((least, value, at) => (at && value > x.values[at - 1]! ? Math.min(least, value - x.values[at - 1]!) : least), Infinity);
    const crowded = () => x.values.length * 105 > place.clientWidth - 40;
    const options: uPlot.Options = {
      width: Math.max(place.clientWidth, 200),
      height,
      // Slanting names reach beyond the first bar.
      padding: [null, null, null, x.kind === "names" && crowded() ? 26 : null],
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      tzDate: (stamp) => uPlot.tzDate(new Date(stamp * 1000), zone),
      scales: {
        x: x.kind === "time" ? { time: true } : {
          time: false,
          ...(x.kind === "names" ? { range: () => [-0.6, x.values.length - 0.4] as uPlot.Range.MinMax } : {}),
        },
        // Half a bar is no bar.
        ...(bars && x.kind === "time" ? { x: { time: true, range: (_: uPlot, low: number, high: number) => [low - step / 2, high + step / 2] as uPlot.Range.MinMax } } : {}),
        ...Object.fromEntries(scales.map((scale) => [scale, {
          range: (_: uPlot, low: number, high: number) => around(low, high, series, scale),
        }])),
      },
      axes: [
        {
          stroke: ink, font, grid, ticks: grid,
          ...(x.kind === "names" ? {
            splits: () => everyNth(x.values, place.clientWidth, crowded() ? 26 : 105),
            values: (_: uPlot, splits: number[]) => splits.map((at) => short(x.names?.[at] ?? "")),
            rotate: () => (crowded() ? 40 : 0),
            size: () => (crowded() ? 76 : 32),
          } : x.kind === "time" ? {
            size: 32,
            ...(step >= DAY ? { incrs: DAYS } : {}),
            values: (_: uPlot, splits: number[], __: number, ___: number, gap: number) => splits.map((at) => mark(at, gap, zone)),
          } : { size: 32 }),
        },
        ...scales.map((scale, number) => ({
          scale, stroke: ink, font, ticks: grid,
          size: (_: uPlot, values: string[] | null) => 16 + 7 * Math.max(2, ...(values ?? []).map((value) => value?.length ?? 0)),
          side: number === 0 ? 3 : 1,
          grid: number === 0 ? grid : { show: false },
        } satisfies uPlot.Axis)),
      ],
      series: [
        {},
        ...series.map((item, number): uPlot.Series => {
          const colour = colours[number % colours.length]!;
          return {
            label: item.label,
            scale: item.scale ?? "y",
            stroke: colour,
            width: 2,
            ...(item.kind === "bars" ? { fill: `${colour}aa`, width: 1, paths: uPlot.paths.bars!({ size: [0.7, 60] }), points: { show: false } } : {}),
            ...(item.kind === "points" ? { paths: () => null, points: { show: true, size: 6, fill: colour } } : {}),
            ...(item.kind === "line" ? { dash: DASHES[number % DASHES.length]!, points: { show: x.values.length < 40, size: 5, fill: colour } } : {}),
          };
        }),
      ],
      hooks: {
        setCursor: [(plot) => {
          const at = plot.cursor.idx;
          if (!read.current) return;
          read.current.textContent = at === null || at === undefined ? "" : [
            named(x, at, zone),
            ...series.map((item) => {
              const value = item.values[at];
              return `${item.label}: ${value === null || value === undefined ? "–" : shown(value, item)}`;
            }),
          ].join(" · ");
        }],
      },
    };
    const plot = new uPlot(options, [x.values, ...series.map((item) => item.values)], place);
    const observer = new ResizeObserver(() => plot.setSize({ width: Math.max(place.clientWidth, 200), height }));
    observer.observe(place);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [label, x, series, height, theme, timeZone, format]);

  return (
    <figure class="chart">
      <div ref={box} role="img" aria-label={label} />
      <figcaption>
        <ul class="legend">
          {series.map((item, number) => (
            <li key={number}>
              <svg width="22" height="10" aria-hidden="true">
                {item.kind === "line"
                  ? <line x1="0" x2="22" y1="5" y2="5" stroke={colours[number % colours.length]} stroke-width="2" stroke-dasharray={DASHES[number % DASHES.length]!.join(" ")} />
                  : <rect x="6" width="10" height="10" rx={item.kind === "points" ? 5 : 0} fill={colours[number % colours.length]} />}
              </svg>
              <Text value={item.label} />{item.unit ? <> (<Text value={item.unit} />)</> : ""}
            </li>
          ))}
        </ul>
        <p class="read" aria-hidden="true" ref={read} />
      </figcaption>
    </figure>
  );
}

function around(low: number, high: number, series: Series[], scale: string): uPlot.Range.MinMax {
  if (low === null || high === null) return [0, 1];
  const here = series.filter((item) => (item.scale ?? "y") === scale);
  const least = here.flatMap((item) => item.from ?? (item.kind === "bars" ? 0 : [])), most = here.flatMap((item) => item.to ?? (item.kind === "bars" ? 0 : []));
  const from = Math.min(low, ...least), to = Math.max(high, ...most);
  const edge = (to - from || Math.abs(to) || 1) * 0.06;
  // An end that was asked for is the end; any other has some room.
  return [least.includes(from) ? from : from - edge, most.includes(to) ? to : to + edge];
}

/** A mark of a time axis: as much of the date as tells it from the next, in the host's language. */
function mark(at: number, gap: number, timeZone: string): string {
  const moment = new Date(at * 1000);
  const as = (options: Intl.DateTimeFormatOptions) => moment.toLocaleString(document.documentElement.lang || "en", { ...options, timeZone });
  if (gap >= 365 * DAY) return as({ year: "numeric" });
  if (gap >= 28 * DAY) return as({ month: "short", year: "2-digit" });
  const time = as({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  return gap >= DAY || time === "00:00" ? as({ day: "numeric", month: "short" }) : time;
}

function everyNth(values: number[], width: number, space: number): number[] {
  const step = Math.max(1, Math.ceil(values.length / Math.max(1, Math.floor((width - 80) / space))));
  return values.filter((_, number) => number % step === 0);
}

function named(x: ChartProps["x"], at: number, zone: string): string {
  if (x.kind === "names") return x.names?.[at] ?? "";
  const value = x.values[at]!;
  if (x.kind === "number") return `${x.label} ${value.toLocaleString("en")}`;
  return new Date(value * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short", timeZone: zone });
}

function short(text: string): string {
  return text.length > 13 ? `${text.slice(0, 12)}…` : text;
}
