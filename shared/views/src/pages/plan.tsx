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
import { culprit, every, type Fact, FACTS, type Step } from "./plan-step";

const coloured = colourer({ sql: sqlLanguage });

function Sql({ value }: { value: string }) {
  const lines = coloured(value, "sql");
  if (!lines) return <Text value={value} />;
  return <>{lines.map((line, number) => <span key={number}>{number > 0 && "\n"}{line.map((piece, at) => <Text key={at} value={piece.text} kind={piece.kind} />)}</span>)}</>;
}

/** A server's sentence: what it quotes is code. */
function Sentence({ value }: { value: string }) {
  return <>{value.split(/`([^`]+)`/).map((piece, number) => (number % 2 ? <code key={number}><Text value={piece} /></code> : <Text key={number} value={piece} />))}</>;
}

function Plan(call: Call) {
  const [left, leave] = useState<ReadonlySet<Fact>>(new Set(["Width", "Buffers"]));
  const { steps, notes, advice } = postgres.isPlan(call.text) ? postgres.parse(call.text, call.result._meta?.["widths"]) : sqlite.parse(call.text);
  const sql = typeof call.input["sql"] === "string" ? call.input["sql"] : "";
  const all = every(steps);
  const kinds = FACTS.filter((fact) => all.some((step) => step.facts.some(({ kind }) => kind === fact)));
  const toggle = (fact: Fact) => leave(new Set(left.has(fact) ? [...left].filter((one) => one !== fact) : [...left, fact]));
  const marked = all.filter((step) => step.marks.length).length, measured = steps.some((step) => step.share !== null);
  const worst = culprit(steps);
  return (
    <>
      {sql && <pre class="scroll sql" tabIndex={0} role="region" aria-label="Statement"><Sql value={sql.slice(0, 20_000)} /></pre>}
      {steps.length > 0 && (
        <p class="bar">
          {marked ? <span class="badge warn">⚠ {marked} expensive</span> : <span class="badge good">✓ nothing expensive</span>}
          {notes.map((note) => <span class="quiet"><Text value={note} /></span>)}
        </p>
      )}
      {(worst || advice.remarks.length > 0 || advice.indexes.length > 0) && (
        <section class="findings" aria-label="What stands out">
          {worst && <p class="worst"><code><Text value={worst.text} /></code> {worst.marks.join(", ")}</p>}
          {advice.remarks.map((line) => <p><Sentence value={line} /></p>)}
          {advice.indexes.length > 0 && <p class="gain">{advice.gain ? <Sentence value={`${advice.gain}, with`} /> : `Faster with ${advice.indexes.length > 1 ? "these indexes" : "this index"}`}:</p>}
          {advice.indexes.map((line) => (
            <div class="bar advice">
              <code class="grow"><Sql value={line} /></code>
              <button type="button" aria-label={`Copy ${plain(line)}`} onClick={() => call.copied(`${line}\n`, "the index")}>Copy</button>
            </div>
          ))}
          {advice.plan.length > 0 && (
            <details>
              <summary>The plan with {advice.indexes.length > 1 ? "them" : "it"}</summary>
              <ol class="then">{advice.plan.map((line) => <li style={{ marginInlineStart: `${indentOf(line)}ch` }}><code><Text value={line.trim()} /></code></li>)}</ol>
            </details>
          )}
        </section>
      )}
      <Steps steps={steps} left={left} worst={worst} />
      {kinds.length > 1 && (
        <div class="bar shows" role="group" aria-label="What the steps show">
          <span class="quiet">Show</span>
          {kinds.map((fact) => <label key={fact}><input type="checkbox" checked={!left.has(fact)} onChange={() => toggle(fact)} /> {fact.toLowerCase()}</label>)}
          {measured && <span class="quiet">A bar is the part of the whole that a step takes by itself, without those below it.</span>}
        </div>
      )}
    </>
  );
}

const indentOf = (line: string) => line.length - line.trimStart().length;

function Steps({ steps, left, worst }: { steps: Step[]; left: ReadonlySet<Fact>; worst: Step | null }) {
  if (!steps.length) return null;
  return (
    <ol class="steps">
      {steps.map((step) => (
        <li class={step.marks.length ? "costly" : ""}>
          <div class={step === worst ? "step is-worst" : "step"}>
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
          <Steps steps={step.steps} left={left} worst={worst} />
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
