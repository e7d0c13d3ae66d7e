// A step of a plan, of whichever database, and what a server says behind the plan.

export const FACTS = ["Cost", "Time", "Rows", "Width", "Buffers"] as const;
export type Fact = (typeof FACTS)[number];

export interface Step {
  text: string;
  /** What is known of it, each in a few words. */
  facts: { kind: Fact; text: string }[];
  /** Conditions and keys, a line each. */
  details: string[];
  /** What makes it expensive, in a few words each. */
  marks: string[];
  /** How much of the whole is spent in this step itself, from 0 to 1; null where nothing says so. */
  share: number | null;
  steps: Step[];
}

export interface Parsed {
  steps: Step[];
  /** What the server says before the plan, and behind it. */
  notes: string[];
  advice: Advice;
}

export interface Advice {
  /** What stands out, a sentence each. */
  remarks: string[];
  /** What the indexes bring; empty where the server does not say. */
  gain: string;
  indexes: string[];
  /** The steps with the indexes. */
  plan: string[];
}

/** What a server says behind a plan, by its parts. */
export function adviceOf(lines: string[]): Advice {
  const advice: Advice = { remarks: [], gain: "", indexes: [], plan: [] };
  const then = lines.findIndex((line) => /^The plan then:/.test(line));
  for (const line of then < 0 ? lines : lines.slice(0, then)) {
    if (/^CREATE (UNIQUE )?INDEX/.test(line)) advice.indexes.push(line);
    else if (/, with:$/.test(line)) advice.gain = line.replace(/, with:$/, "").replace(" -> ", " → ");
    else if (line !== "With these indexes:") advice.remarks.push(line);
  }
  if (then < 0) return advice;
  const named = lines[then]!.replace(/^The plan then: ?/, "");
  // One server names the steps in a line, the other draws them below it.
  advice.plan = [...(named ? named.split(/, (?=[A-Z])/) : []), ...lines.slice(then + 1)];
  return advice;
}

/** The step that costs most by itself among those that are marked, with how it is reached. */
export function culprit(steps: Step[]): Step | null {
  const marked = every(steps).filter((step) => step.marks.length);
  return marked.reduce<Step | null>((worst, step) => (worst === null || (step.share ?? 0) > (worst.share ?? 0) ? step : worst), null);
}

/** `steps` and all below them. */
export function every(steps: Step[]): Step[] {
  return steps.flatMap((step) => [step, ...every(step.steps)]);
}
