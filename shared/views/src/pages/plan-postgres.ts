// PostgreSQL's plan: lines of steps with their costs or times, conditions below them, then what stands out.

import { adviceOf, type Fact, type Parsed, type Step } from "./plan-step";

/** The end of a step's line. What is before it may hold any name, so it is looked for at the end alone. */
const STEP = /^( *)([A-Z].*): (?:cost (\d+), ([\d,]+) rows|(?:([\d.]+) ms, ([\d,]+) of|never run,) ([\d,]+) rows expected(?:, ([\d,]+) times)?(?:, (\d+) workers)?(?:, ([\d,]+) blocks read)?)$/;
const DETAIL = /^ *(?:(?:index|hash|merge|recheck) cond|join filter|filter|sort key|group key): /;

/** From these on it's worth a mark: units of cost, milliseconds, rows, a part of the whole, how far off an estimate was. */
const MUCH_COST = 1000, MUCH_TIME = 5, MUCH_ROWS = 1000, MUCH_SHARE = 0.25, FAR_OFF = 10;

interface Known extends Step {
  /** Cost, or milliseconds of all its runs, with all below it. */
  whole: number;
  timed: boolean;
  ran: boolean;
  /** Of one run, and how many there were. */
  each: number;
  loops: number;
  actual: number;
  expected: number;
  steps: Known[];
}

export function isPlan(text: string): boolean {
  return STEP.test(text.split("\n").find((line) => !line.startsWith("[")) ?? "");
}

/** `widths`: bytes of a row of each step, in the order of their lines; the server sends them for this view. */
export function parse(text: string, widths?: unknown): Parsed {
  const wide = Array.isArray(widths) ? widths : [];
  let steps = 0;
  const notes: string[] = [], remarks: string[] = [], top: Known[] = [];
  const path: { steps: Known[]; step?: Known; workers: number }[] = [{ steps: top, workers: 0 }];
  for (const line of text.replace(/\n$/, "").split("\n")) {
    const found = STEP.exec(line);
    if (found && !(found[1] === "" && top.length)) {
      path.length = Math.max(1, Math.min(path.length, found[1]!.length / 2 + 1));
      const parent = path[path.length - 1]!;
      const step = known(found, parent.workers), width: unknown = wide[steps++];
      if (typeof width === "number" && width > 0) step.facts.push({ kind: "Width", text: `${said(width)} bytes a row` });
      // A step stopped early, as below a LIMIT, takes no more than what is above it.
      if (parent.step) step.whole = Math.min(step.whole, parent.step.whole);
      parent.steps.push(step);
      path.push({ steps: step.steps, step, workers: Number(found[9] ?? parent.workers) });
    } else if (DETAIL.test(line) && path.length > 1 && line.startsWith(" ")) path[path.length - 1]!.step!.details.push(line.trim());
    else if (!top.length && line.startsWith("[")) notes.push(line.replace(/^\[|\]$/g, ""));
    else if (/^(Planning|Execution) Time: [\d.]+ ms$/.test(line)) notes.push(line.replace(" Time:", "").toLowerCase());
    else remarks.push(line);
  }
  const all = top.reduce((sum, step) => sum + step.whole, 0);
  for (const step of top) judge(step, all);
  return { steps: top, notes, advice: adviceOf(remarks) };
}

const number = (text: string | undefined) => Number((text ?? "0").replaceAll(",", ""));
const said = (value: number) => value.toLocaleString("en");
const ms = (value: number) => `${value.toLocaleString("en", { maximumSignificantDigits: value < 100 ? 3 : 6 })} ms`;

function known([, , text, cost, planned, time, rows, expected, times, , blocks]: RegExpExecArray, workers: number): Known {
  const timed = cost === undefined, ran = time !== undefined, loops = times ? number(times) : 1;
  const counted = (count: string) => `${count} ${count === "1" ? "row" : "rows"}`;
  const as = (kind: Fact, text: string) => ({ kind, text });
  const facts = !timed ? [as("Cost", `cost ${said(number(cost))}`), as("Rows", counted(planned!))]
    : ran ? [as("Rows", `${counted(rows!)}, ${rows === expected ? "as" : expected} expected${loops > 1 ? " each time" : ""}`)]
      : [as("Time", "never run"), as("Rows", `${counted(expected!)} expected`)];
  if (blocks) facts.push(as("Buffers", `${blocks} blocks read`));
  return {
    text: text!, facts, details: [], marks: [], share: null, steps: [], timed, ran,
    // Times are those of one run; workers run beside each other, so theirs do not add up.
    whole: timed ? (number(time) * loops) / (workers && loops > 1 ? Math.min(loops, workers + 1) : 1) : number(cost),
    each: number(time), loops,
    actual: number(rows), expected: number(timed ? expected : planned),
  };
}

function judge(step: Known, all: number): void {
  for (const below of step.steps) judge(below, all);
  const own = Math.max(0, step.whole - step.steps.reduce((sum, below) => sum + below.whole, 0));
  if (step.timed && step.ran) {
    // What is named is what the bar and the marks are made of, and how it comes about.
    const parts = step.loops > 1 ? ` (${said(step.loops)} × ${ms(step.each)}${step.whole < step.each * step.loops * 0.999 ? ", beside each other" : ""})` : "";
    const times = [`${ms(step.whole)}${parts}`, ...(step.steps.length ? [`${ms(own)} of it itself`] : [])];
    step.facts.unshift(...times.map((text) => ({ kind: "Time" as const, text })));
  }
  step.share = all > 0 ? Math.min(1, own / all) : null;
  if (step.share !== null && step.share >= MUCH_SHARE && own >= (step.timed ? MUCH_TIME : MUCH_COST)) {
    step.marks.push(`${Math.round(step.share * 100)} % of the ${step.timed ? "time" : "cost"}`);
  }
  const [most, least] = [Math.max(step.actual, step.expected, 1), Math.max(Math.min(step.actual, step.expected), 1)];
  if (step.ran && most >= MUCH_ROWS && most / least >= FAR_OFF) {
    step.marks.push(`${said(Math.round(most / least))} times ${step.actual > step.expected ? "more" : "fewer"} rows than expected`);
  }
}
