// A unified diff as tables, changed words marked; parsing and comparing by `diff`.

import { diffWordsWithSpace, parsePatch } from "diff";
import { useMemo } from "preact/hooks";

import "./diff.css";
import { plain, Text } from "./text";

const LONGEST_COMPARED = 2000;
const MOST_LINES = 5000;

interface Line {
  sign: string;
  text: string;
  old: number | null;
  new: number | null;
  /** The line it replaces or is replaced by. */
  other?: string;
}

export interface FileDiff {
  name: string;
  did: "created" | "deleted" | "changed";
  added: number;
  removed: number;
  hunks: { from: number; lines: Line[] }[];
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

/** A diff that was cut in its last hunk, with that hunk's counts as they are now. */
function mended(patch: string): string {
  const start = patch.lastIndexOf("\n@@ ") + 1;
  const [head = "", ...lines] = patch.slice(start).replace(/\n$/, "").split("\n");
  const found = HUNK.exec(head);
  if (!found) return patch;
  const kept = lines.filter((line) => /^[-+ \\]/.test(line));
  const count = (signs: string) => kept.filter((line) => signs.includes(line[0]!)).length;
  return `${patch.slice(0, start)}@@ -${found[1]},${count("- ")} +${found[2]},${count("+ ")} @@\n${kept.join("\n")}\n`;
}

function parsed(patch: string) {
  try {
    return parsePatch(patch);
  } catch {
    return parsePatch(mended(patch));
  }
}

/** The files of a unified diff, also of one whose end is missing. Throws where it is none. */
export function filesOf(patch: string): FileDiff[] {
  return parsed(patch).map((file) => {
    const bare = (name: string | undefined) => (name ?? "").replace(/^[ab]\//, "");
    const created = file.oldFileName === "/dev/null", deleted = file.newFileName === "/dev/null";
    const hunks = file.hunks.map((hunk) => ({ from: hunk.newStart, lines: numbered(hunk) }));
    const count = (sign: string) => hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.sign === sign).length, 0);
    return {
      name: bare(deleted ? file.oldFileName : file.newFileName),
      did: created ? "created" : deleted ? "deleted" : "changed",
      added: count("+"), removed: count("-"), hunks,
    };
  });
}

function numbered(hunk: { oldStart: number; newStart: number; lines: string[] }): Line[] {
  let old = hunk.oldStart, fresh = hunk.newStart;
  const lines = hunk.lines.map((line): Line => {
    const sign = line[0] ?? " ", text = line.slice(1);
    if (sign === "\\") return { sign, text: text.trim(), old: null, new: null };
    return { sign, text, old: sign === "+" ? null : old++, new: sign === "-" ? null : fresh++ };
  });
  // A run of removed lines before as many added ones: line by line replaced.
  for (let at = 0; at < lines.length; at++) {
    let removed = at;
    while (lines[removed]?.sign === "-") removed++;
    let added = removed;
    while (lines[added]?.sign === "+") added++;
    if (removed > at && added - removed === removed - at) {
      for (let number = 0; number < removed - at; number++) {
        lines[at + number]!.other = lines[removed + number]!.text;
        lines[removed + number]!.other = lines[at + number]!.text;
      }
    }
    at = Math.max(at, added - 1);
  }
  return lines;
}

export function Files({ files }: { files: FileDiff[] }) {
  let left = MOST_LINES;
  return (
    <>
      {files.map((file, number) => {
        const lines = file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
        left -= lines;
        return (
          <section key={number} class="file" aria-label={`${file.did}: ${plain(file.name)}`}>
            <h2 class="bar">
              <span class="grow"><Text value={file.name} /></span>
              {file.did !== "changed" && <span class={file.did === "created" ? "badge good" : "badge bad"}>{file.did}</span>}
              <span class="badge good">+{file.added}<span class="unseen"> lines added</span></span>
              <span class="badge bad">−{file.removed}<span class="unseen"> lines removed</span></span>
            </h2>
            {left + lines > 0
              ? <div class="scroll" role="region" aria-label={`Changes of ${plain(file.name)}`} tabIndex={0}><Hunks hunks={file.hunks} /></div>
              : <p class="quiet">Too long to show here: {lines.toLocaleString("en")} lines.</p>}
          </section>
        );
      })}
    </>
  );
}

function Hunks({ hunks }: { hunks: FileDiff["hunks"] }) {
  return (
    <table class="diff">
      <thead class="unseen"><tr><th scope="col">Old line</th><th scope="col">New line</th><th scope="col">Change</th><th scope="col">Text</th></tr></thead>
      {hunks.map((hunk, number) => (
        <tbody key={number}>
          {number > 0 && <tr class="gap"><td colSpan={4}>line {hunk.from}</td></tr>}
          {hunk.lines.slice(0, MOST_LINES).map((line, index) => <Row key={index} line={line} />)}
        </tbody>
      ))}
    </table>
  );
}

const WORDS: Record<string, string> = { "+": "added", "-": "removed", " ": "", "\\": "" };

function Row({ line }: { line: Line }) {
  return (
    <tr class={line.sign === "+" ? "added" : line.sign === "-" ? "removed" : line.sign === "\\" ? "gap" : ""}>
      <td class="number">{line.old}</td>
      <td class="number">{line.new}</td>
      <td class="sign"><span aria-hidden="true">{line.sign === "\\" ? "" : line.sign}</span><span class="unseen">{WORDS[line.sign]}</span></td>
      <td class="text"><Words line={line} /></td>
    </tr>
  );
}

function Words({ line }: { line: Line }) {
  const { text, other, sign } = line;
  const parts = useMemo(() => {
    if (other === undefined || text.length > LONGEST_COMPARED || other.length > LONGEST_COMPARED) return null;
    const compared = sign === "-" ? diffWordsWithSpace(text, other) : diffWordsWithSpace(other, text);
    const same = compared.filter((part) => !part.added && !part.removed).reduce((sum, part) => sum + part.value.length, 0);
    // Lines that share little are replaced, not edited.
    return same * 3 < Math.max(text.length, other.length) ? null : compared.filter((part) => (sign === "-" ? !part.added : !part.removed));
  }, [text, other, sign]);
  if (!parts) return <Text value={text} />;
  return <>{parts.map((part, number) => (part.added || part.removed ? <mark key={number}><Text value={part.value} /></mark> : <Text key={number} value={part.value} />))}</>;
}
