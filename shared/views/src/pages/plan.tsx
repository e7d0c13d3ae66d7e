// How a database would run a statement: the steps as a tree, the expensive ones marked, the indexes that would help.

import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";
import "./plan.css";

interface Step {
  text: string;
  steps: Step[];
  costly: string | null;
}

/** What makes a step of SQLite's plan expensive, in a word; null where nothing does. */
function costly(text: string): string | null {
  if (/^SCAN\b/.test(text) && !/CONSTANT ROW|VIRTUAL TABLE/.test(text)) {
    return /USING (COVERING )?INDEX/.test(text) ? "reads the whole index" : "reads the whole table";
  }
  if (/AUTOMATIC/.test(text)) return "builds an index for this query alone";
  if (/TEMP B-TREE/.test(text)) return "sorts or gathers in memory";
  if (/^CORRELATED/.test(text)) return "runs again for every row";
  return null;
}

/** The plan's steps, from lines indented by depth, and what is said below them. */
function parse(text: string): { steps: Step[]; remarks: string[]; indexes: string[] } {
  const lines = text.replace(/\n$/, "").split("\n");
  const end = lines.findIndex((line) => /^(Reads whole:|With these indexes|No further index|Nothing to plan)/.test(line));
  const rest = end < 0 ? [] : lines.slice(end);
  const root: Step = { text: "", steps: [], costly: null };
  const path = [root];
  for (const line of lines.slice(0, end < 0 ? lines.length : end)) {
    const indent = /^ */.exec(line)![0].length / 2;
    const step: Step = { text: line.trim(), steps: [], costly: costly(line.trim()) };
    path.length = Math.min(path.length, indent + 1);
    path[path.length - 1]!.steps.push(step);
    path.push(step);
  }
  const indexes = rest.filter((line) => /^CREATE INDEX/.test(line));
  return { steps: root.steps, remarks: rest.filter((line) => !indexes.includes(line)), indexes };
}

function Plan(call: Call) {
  const { steps, remarks, indexes } = parse(call.text);
  const sql = typeof call.input["sql"] === "string" ? call.input["sql"] : "";
  const count = (steps: Step[]): number => steps.reduce((sum, step) => sum + (step.costly ? 1 : 0) + count(step.steps), 0);
  const marked = count(steps);
  return (
    <>
      {sql && <pre class="scroll sql" tabIndex={0} aria-label="Statement"><Text value={sql.slice(0, 20_000)} /></pre>}
      {steps.length > 0 && (
        <p class="bar">
          {marked ? <span class="badge warn">⚠ {marked} expensive</span> : <span class="badge good">✓ nothing expensive</span>}
        </p>
      )}
      <Steps steps={steps} />
      {remarks.map((line) => <p class="quiet"><Text value={line} /></p>)}
      {indexes.map((line) => (
        <div class="bar advice">
          <code class="grow"><Text value={line} /></code>
          <button type="button" aria-label={`Copy ${plain(line)}`} onClick={() => call.copied(`${line}\n`, "the index")}>Copy</button>
        </div>
      ))}
    </>
  );
}

function Steps({ steps }: { steps: Step[] }) {
  if (!steps.length) return null;
  return (
    <ol class="steps">
      {steps.map((step) => (
        <li class={step.costly ? "costly" : ""}>
          <span class="step">
            <code><Text value={step.text} /></code>
            {step.costly && <span class="badge warn">⚠ {step.costly}</span>}
          </span>
          <Steps steps={step.steps} />
        </li>
      ))}
    </ol>
  );
}

mount("Query plan", Plan);
