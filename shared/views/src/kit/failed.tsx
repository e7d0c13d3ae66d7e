// A call that failed: what the server said, and below it the statement with the place that it spoke of.

import { Text } from "./text";

const LONGEST = 20_000;

/** From where to where in `sql` the fault is, as far as `said` tells; null where that could be several places. */
export function placeOf(said: string, sql: string): [number, number] | null {
  const at = /, at character (\d+)\b/.exec(said);
  if (at) {
    // PostgreSQL counts characters, and JavaScript UTF-16 units.
    const start = Array.from(sql).slice(0, Number(at[1]) - 1).join("").length;
    const word = /^(?:[\p{L}\p{N}_$]+|"[^"]*"|'[^']*'|\S)/u.exec(sql.slice(start));
    return word ? [start, start + word[0].length] : null;
  }
  const near = /\bnear "([^"]+)"/.exec(said)?.[1];
  const start = near ? sql.indexOf(near) : -1;
  return near && start >= 0 && sql.indexOf(near, start + 1) < 0 ? [start, start + near.length] : null;
}

export function Failed({ said, sql }: { said: string; sql: unknown }) {
  const shown = typeof sql === "string" && sql.length <= LONGEST ? sql : "";
  const place = shown ? placeOf(said, shown) : null;
  return (
    <>
      <p class="error" role="alert"><Text value={said} /></p>
      {shown && (
        <pre class="scroll statement" tabIndex={0} role="region" aria-label="Statement">
          {place
            ? <><Text value={shown.slice(0, place[0])} /><mark class="fault"><Text value={shown.slice(...place)} /></mark><Text value={shown.slice(place[1])} /></>
            : <Text value={shown} />}
        </pre>
      )}
    </>
  );
}
