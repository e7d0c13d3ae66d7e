// How a database would run a statement, or ran it: the steps as a tree, the expensive ones marked, indexes to copy.

import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";
import "./plan.css";
import * as postgres from "./plan-postgres";
import * as sqlite from "./plan-sqlite";
import type { Step } from "./plan-step";

function Plan(call: Call) {
  const { steps, notes, remarks, indexes } = (postgres.isPlan(call.text) ? postgres : sqlite).parse(call.text);
  const sql = typeof call.input["sql"] === "string" ? call.input["sql"] : "";
  const count = (steps: Step[]): number => steps.reduce((sum, step) => sum + (step.marks.length ? 1 : 0) + count(step.steps), 0);
  const marked = count(steps), measured = steps.some((step) => step.share !== null);
  return (
    <>
      {sql && <pre class="scroll sql" tabIndex={0} role="region" aria-label="Statement"><Text value={sql.slice(0, 20_000)} /></pre>}
      {steps.length > 0 && (
        <p class="bar">
          {marked ? <span class="badge warn">⚠ {marked} expensive</span> : <span class="badge good">✓ nothing expensive</span>}
          {notes.map((note) => <span class="quiet"><Text value={note} /></span>)}
        </p>
      )}
      {measured && remarks.map((line) => <p class="notice"><Text value={line} /></p>)}
      <Steps steps={steps} />
      {!measured && remarks.map((line) => <p class="quiet remark"><Text value={line} /></p>)}
      {measured && <p class="quiet remark">A bar is the part of the whole that a step takes by itself, without those below it.</p>}
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
        <li class={step.marks.length ? "costly" : ""}>
          <div class="step">
            <span class="head">
              <code><Text value={step.text} /></code>
              {step.marks.map((mark) => <span class="badge warn">⚠ {mark}</span>)}
            </span>
            {step.facts.length > 0 && <span class="facts quiet">{step.facts.map((fact) => <span>{fact}</span>)}</span>}
            {step.details.map((line) => <code class="quiet detail"><Text value={line} /></code>)}
            {step.share !== null && (
              <svg class="share" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
                <rect width={Math.max(0.5, 100 * step.share)} height="1" />
              </svg>
            )}
          </div>
          <Steps steps={step.steps} />
        </li>
      ))}
    </ol>
  );
}

mount("Query plan", Plan);
