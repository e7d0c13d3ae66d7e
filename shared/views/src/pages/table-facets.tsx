// The values that come again and again, with how often: a press keeps the rows that have one.

import { type Cell, cellText } from "../kit/rows";
import { plain, Text } from "../kit/text";

const MOST_VALUES = 30, MOST_SHOWN = 8, MOST_FACETS = 8;

/** What is chosen, by column. */
export type Chosen = Readonly<Record<number, ReadonlySet<string>>>;

export const passes = (cells: Cell[], chosen: Chosen): boolean =>
  Object.entries(chosen).every(([column, values]) => !values.size || values.has(cellText(cells[Number(column)])));

export interface Facet { column: number; values: [string, number][] }

/** Columns whose values come again: fewer of them than half of the rows, and none of them long. */
export function facetsOf(columns: string[], rows: Cell[][]): Facet[] {
  return columns.slice(0, 100).flatMap((_, column) => {
    const counts = new Map<string, number>();
    for (const row of rows) {
      const text = cellText(row[column]);
      counts.set(text, (counts.get(text) ?? 0) + 1);
      if (counts.size > MOST_VALUES || text.length > 60) return [];
    }
    if (counts.size < 2 || counts.size * 2 > rows.length) return [];
    return [{ column, values: [...counts].sort((one, other) => other[1] - one[1]) }];
  }).slice(0, MOST_FACETS);
}

export function Facets({ columns, facets, chosen, onChoose }: { columns: string[]; facets: Facet[]; chosen: Chosen; onChoose: (column: number, value: string) => void }) {
  if (!facets.length) return <p class="quiet">No column has values that come again.</p>;
  return (
    <div class="facets">
      {facets.map(({ column, values }) => (
        <div key={column} class="facet" role="group" aria-label={`Values of ${plain(columns[column]!, 60)}`}>
          <h2><Text value={plain(columns[column]!, 60)} /></h2>
          {values.slice(0, MOST_SHOWN).map(([value, count]) => (
            <button key={value} type="button" aria-pressed={chosen[column]?.has(value) ?? false} onClick={() => onChoose(column, value)}>
              {value === "" ? <i>empty</i> : <Text value={plain(value, 40)} />} <span class="count">{count.toLocaleString("en")}</span>
            </button>
          ))}
          {values.length > MOST_SHOWN && <span class="quiet">{values.length - MOST_SHOWN} more</span>}
        </div>
      ))}
    </div>
  );
}
