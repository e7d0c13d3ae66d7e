// A step of a plan, of whichever database.

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
  remarks: string[];
  indexes: string[];
}
