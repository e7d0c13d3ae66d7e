// How a database would run a statement, or ran it: the steps as a tree, the expensive ones marked, indexes to copy.

import sqlLanguage from "highlight.js/lib/languages/sql";
import { useState } from "preact/hooks";

import { colourer } from "../kit/code";
import "../kit/code.css";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";
import "./plan.css";
import * as postgres from "./plan-postgres";
import * as sqlite from "./plan-sqlite";
import { type Fact, FACTS, type Step } from "./plan-step";

const coloured = colourer({ sql: sqlLanguage });

function Sql({ value }: { value: string }) {
  const lines = coloured(value, "sql");
  if (!lines) return <Text value={value} />;
  return <>{lines.map((line, number) => <span key={number}>{number > 0 && "\n"}{line.map((piece, at) => <Text key={at} value={piece.text} kind={piece.kind} />)}</span>)}</>;
}

function Plan(call: Call) {
  const [left, leave] = useState<ReadonlySet<Fact>>(new Set());
  const { steps, notes, remarks, indexes } = postgres.isPlan(call.text) ? postgres.parse(call.text, call.result._meta?.["widths"]) : sqlite.parse(call.text);
  const sql = typeof call.input["sql"] === "string" ? call.input["sql"] : "";
  const count = (steps: Step[]): number => steps.reduce((sum, step) => sum + (step.marks.length ? 1 : 0) + count(step.steps), 0);
  const known = (fact: Fact, steps: Step[]): boolean => steps.some((step) => step.facts.some(({ kind }) => kind === fact) || known(fact, step.steps));
  const kinds = FACTS.filter((fact) => known(fact, steps));
  const toggle = (fact: Fact) => leave(new Set(left.has(fact) ? [...left].filter((one) => one !== fact) : [...left, fact]));
  const marked = count(steps), measured = steps.some((step) => step.share !== null);
  return (
    <>
      {sql && <pre class="scroll sql" tabIndex={0} role="region" aria-label="Statement"><Sql value={sql.slice(0, 20_000)} /></pre>}
      {steps.length > 0 && (
        <p class="bar">
          {marked ? <span class="badge warn">⚠ {marked} expensive</span> : <span class="badge good">✓ nothing expensive</span>}
          {notes.map((note) => <span class="quiet"><Text value={note} /></span>)}
        </p>
      )}
      {measured && remarks.map((line) => <p class="notice"><Text value={line} /></p>)}
      {kinds.length > 1 && (
        <div class="bar" role="group" aria-label="What the steps show">
          <span class="quiet">Show</span>
          {kinds.map((fact) => <button key={fact} type="button" aria-pressed={!left.has(fact)} onClick={() => toggle(fact)}>{fact}</button>)}
        </div>
      )}
      <Steps steps={steps} left={left} />
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

function Steps({ steps, left }: { steps: Step[]; left: ReadonlySet<Fact> }) {
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
            <Facts step={step} left={left} />
            {step.details.map((line) => <Detail key={line} line={line} />)}
            {step.share !== null && (
              <svg class="share" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">
                <rect width={Math.max(0.5, 100 * step.share)} height="1" />
              </svg>
            )}
          </div>
          <Steps steps={step.steps} left={left} />
        </li>
      ))}
    </ol>
  );
}

function Detail({ line }: { line: string }) {
  const end = line.indexOf(": ") + 1;
  return <code class="quiet detail"><Text value={line.slice(0, end)} /><Sql value={line.slice(end)} /></code>;
}

function Facts({ step, left }: { step: Step; left: ReadonlySet<Fact> }) {
  const shown = step.facts.filter(({ kind }) => !left.has(kind));
  return shown.length ? <span class="facts quiet">{shown.map(({ text }) => <span key={text}>{text}</span>)}</span> : null;
}

mount("Query plan", Plan);
