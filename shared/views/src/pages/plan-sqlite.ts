// SQLite's plan: lines indented by depth, then what is said of it.

import { adviceOf, type Parsed, type Step } from "./plan-step";

/** What makes a step expensive, in a word; SQLite knows no costs. */
function costly(text: string): string[] {
  if (/^SCAN\b/.test(text) && !/CONSTANT ROW|VIRTUAL TABLE/.test(text)) {
    return [/USING (COVERING )?INDEX/.test(text) ? "reads the whole index" : "reads the whole table"];
  }
  if (/AUTOMATIC/.test(text)) return ["builds an index for this query alone"];
  if (/TEMP B-TREE/.test(text)) return ["sorts or gathers in memory"];
  if (/^CORRELATED/.test(text)) return ["runs again for every row"];
  return [];
}

export function parse(text: string): Parsed {
  const lines = text.replace(/\n$/, "").split("\n");
  const end = lines.findIndex((line) => /^(Reads whole:|With these indexes|No further index|Nothing to plan)/.test(line));
  const rest = end < 0 ? [] : lines.slice(end);
  const top: Step[] = [];
  const path: Step[][] = [top];
  for (const line of lines.slice(0, end < 0 ? lines.length : end)) {
    const words = line.trim();
    const step: Step = { text: words, facts: [], details: [], marks: costly(words), share: null, steps: [] };
    path.length = Math.min(path.length, /^ */.exec(line)![0].length / 2 + 1);
    path[path.length - 1]!.push(step);
    path.push(step.steps);
  }
  // What is read whole is marked in the steps.
  return { steps: top, notes: [], advice: adviceOf(rest.filter((line) => !line.startsWith("Reads whole:"))) };
}
