// Bars that lie: names stand beside them whole, however many there are. A chart of names is never higher than its frame.

import "./bars.css";
import type { Series } from "./chart";
import { plain } from "./text";

const MOST_DIGITS = 4;

interface BarsProps {
  /** What the chart shows, for those who can't see it. */
  label: string;
  names: string[];
  series: Series[];
}

export function Bars({ label, names, series }: BarsProps) {
  const values = series.flatMap((item) => item.values).filter((value) => value !== null);
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  const part = (value: number) => (high > low ? (100 * value) / (high - low) : 0);
  const digits = Math.min(MOST_DIGITS, Math.max(0, ...values.map((value) => String(value).split(".")[1]?.length ?? 0)));
  const shown = (value: number | null | undefined) => {
    if (value === null || value === undefined) return "–";
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  return (
    <figure class="chart">
      <div class="lying" role="region" aria-label="Bars" tabIndex={0}>
        <div class="bars" role="img" aria-label={label}>
          {names.map((name, row) => (
            <div class="bar-row" key={row}>
              <span class="name"><bdi>{plain(name, 120)}</bdi></span>
              <span class="lanes">
                {series.map((item, number) => {
                  const value = item.values[row] ?? 0;
                  const start = part(Math.min(value, 0) - low);
                  return <span key={number} class={`lane-bar of${number % 3}`} style={{ marginInlineStart: `${start}%`, width: `${part(Math.abs(value))}%` }} />;
                })}
              </span>
              <span class="amount">{series.map((item, number) => <span key={number}>{shown(item.values[row])}</span>)}</span>
            </div>
          ))}
        </div>
      </div>
      {series.length > 1 && (
        <figcaption>
          <ul class="legend">{series.map((item, number) => <li key={number}><span class={`key of${number % 3}`} />{item.label}</li>)}</ul>
        </figcaption>
      )}
    </figure>
  );
}
