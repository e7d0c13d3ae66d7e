// A unified diff as tables, in colours, changed words marked; parsing and comparing by `diff`.

import { diffWordsWithSpace, parsePatch } from "diff";
import { useMemo, useRef, useState } from "preact/hooks";

import type { Piece } from "./code";
import "./code.css";
import "./diff.css";
import { FileTree } from "./file-tree";
import { coloured, languageOf } from "./languages";
import { plain, Text } from "./text";

const LONGEST_COMPARED = 2000;
/** Files from which on a tree of them stands above. */
const MANY_FILES = 4;
/** Lines that are shown unasked; the files beyond them open by a click. */
const MOST_LINES = 5000;

interface Line {
  sign: string;
  text: string;
  old: number | null;
  new: number | null;
  /** The line it replaces or is replaced by. */
  other?: string;
  pieces?: Piece[] | undefined;
}

export interface FileDiff {
  name: string;
  did: "created" | "deleted" | "changed";
  added: number;
  removed: number;
  hunks: { from: number; lines: Line[] }[];
  /** Why lines of it are not here; empty if all are. */
  missing: string;
  /** Whether more may be added and removed than was counted. */
  atLeast: boolean;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

const CUT = /^\[diff cut to ([\d,]+) of ([\d,]+) characters\]$/;
const COUNTED = /^([\d,]+) lines from line [\d,]+ on became ([\d,]+)$/m;
const amount = (text: string | undefined) => Number((text ?? "").replaceAll(",", ""));

/** Where the first file of `diff` ends. A line that looks like a head inside a hunk is one of the hunk's: it counts them. */
function extent(diff: string): number {
  let at = 0, old = 0, fresh = 0, heads = 0;
  while (at < diff.length) {
    const end = diff.indexOf("\n", at), line = diff.slice(at, end < 0 ? diff.length : end);
    if (old > 0 || fresh > 0) {
      if (line[0] !== "+" && line[0] !== "\\") old--;
      if (line[0] !== "-" && line[0] !== "\\") fresh--;
    } else if (line.startsWith("--- ") || CUT.test(line)) {
      if (heads++) return at;
    } else {
      const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      if (hunk) [old, fresh] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    }
    at = end < 0 ? diff.length : end + 1;
  }
  return at;
}

/** The files of a unified diff, each whole or with the reason why it is not. */
export function filesOf(diff: string): FileDiff[] {
  const files: FileDiff[] = [];
  for (let rest = diff; rest.trim(); ) {
    const line = rest.slice(0, rest.indexOf("\n") < 0 ? rest.length : rest.indexOf("\n"));
    const cut = CUT.exec(line);
    if (cut) {
      // The server counts characters, and JavaScript UTF-16 units.
      const begin = line.length + 1, most = amount(cut[1]);
      const text = Array.from(rest.slice(begin, begin + 2 * most)).slice(0, most).join("");
      files.push(fileOf(mended(text), `${cut[1]} of ${cut[2]} characters are here`));
      rest = rest.slice(begin + text.length).replace(/^\n/, "");
    } else {
      const size = extent(rest);
      files.push(fileOf(rest.slice(0, size), ""));
      rest = rest.slice(size);
    }
  }
  return files;
}

/** A diff that was cut in its last hunk, with that hunk's counts as they are now. */
function mended(patch: string): string {
  const start = patch.lastIndexOf("\n@@ ") + 1;
  const [head = "", ...lines] = patch.slice(start).split("\n");
  const found = HUNK.exec(head);
  if (!found) return patch;
  const kept = lines.filter((line) => /^[-+ \\]/.test(line));
  const count = (signs: string) => kept.filter((line) => signs.includes(line[0]!)).length;
  return `${patch.slice(0, start)}@@ -${found[1]},${count("- ")} +${found[2]},${count("+ ")} @@\n${kept.join("\n")}\n`;
}

function parsed(text: string, missing: string) {
  try {
    return [parsePatch(text)[0], missing] as const;
  } catch {
    return [parsePatch(mended(text))[0], missing || "its end is cut"] as const;
  }
}

function fileOf(text: string, missing: string): FileDiff {
  const counted = COUNTED.exec(text);
  // Such a line stands where hunks would, and no line of a hunk begins with a digit.
  const [file, why] = parsed(counted ? text.slice(0, counted.index) : text, missing);
  if (!file) throw new Error("it is not a diff");
  const bare = (name: string | undefined) => (name ?? "").replace(/^[ab]\//, "");
  const created = file.oldFileName === "/dev/null", deleted = file.newFileName === "/dev/null";
  const hunks = file.hunks.map((hunk) => ({ from: hunk.newStart, lines: numbered(hunk) }));
  const count = (sign: string) => hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.sign === sign).length, 0);
  return {
    name: bare(deleted ? file.oldFileName : file.newFileName),
    did: created ? "created" : deleted ? "deleted" : "changed",
    added: counted ? amount(counted[2]) : count("+"),
    removed: counted ? amount(counted[1]) : count("-"),
    hunks,
    missing: counted ? "it is too long to compare" : why,
    atLeast: why !== "",
  };
}

function numbered(hunk: { oldStart: number; newStart: number; lines: string[] }): Line[] {
  let old = hunk.oldStart, fresh = hunk.newStart;
  const lines = hunk.lines.map((line): Line => {
    const sign = line[0] ?? " ", text = line.slice(1);
    if (sign === "\\") return { sign, text: text.trim(), old: null, new: null };
    return { sign, text, old: sign === "+" ? null : old++, new: sign === "-" ? null : fresh++ };
  });
  // A run of removed lines before added ones: replaced line by line from the first on, as far as they resemble each other.
  for (let at = 0; at < lines.length; at++) {
    let removed = at;
    while (lines[removed]?.sign === "-") removed++;
    let added = removed;
    while (lines[added]?.sign === "+") added++;
    for (let number = 0; number < Math.min(removed - at, added - removed); number++) {
      lines[at + number]!.other = lines[removed + number]!.text;
      lines[removed + number]!.other = lines[at + number]!.text;
    }
    at = Math.max(at, added - 1);
  }
  return lines;
}

const linesOf = (file: FileDiff) => file.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);

/** Which of `files` are shown unasked. */
export function opened(files: FileDiff[]): boolean[] {
  let left = MOST_LINES;
  return files.map((file) => {
    const shown = left > 0;
    left -= linesOf(file);
    return shown;
  });
}

/** `onSeen` is told of each file that was closed and is opened. */
export function Files({ files, onSeen = () => {} }: { files: FileDiff[]; onSeen?: (number: number) => void }) {
  const shown = useMemo(() => opened(files), [files]);
  const all = useRef<HTMLDivElement>(null);
  const go = (number: number) => {
    const summary = all.current!.children[number]!.querySelector("summary")!;
    (summary.parentElement as HTMLDetailsElement).open = true;
    summary.scrollIntoView({ block: "start" });
    summary.focus();
  };
  return (
    <div class={files.length < MANY_FILES ? "" : "with-tree"}>
      {files.length >= MANY_FILES && <FileTree files={files} onGo={go} />}
      <div ref={all}>{files.map((file, number) => <File key={number} file={file} open={shown[number]!} onSeen={() => onSeen(number)} />)}</div>
    </div>
  );
}

function File({ file, open, onSeen }: { file: FileDiff; open: boolean; onSeen: () => void }) {
  const [drawn, draw] = useState(open);
  const least = file.atLeast ? "≥ " : "";
  const count = (number: number) => number.toLocaleString("en");
  const toggled = (event: Event) => {
    if ((event.currentTarget as HTMLDetailsElement).open && !drawn) {
      draw(true);
      onSeen();
    }
  };
  return (
    <section class="file" aria-label={`${file.did}: ${plain(file.name)}`}>
    <details open={open} onToggle={toggled}>
      <summary>
        <h2 class="bar">
          <span class="grow"><Text value={file.name} /></span>
          {file.did !== "changed" && <span class={file.did === "created" ? "badge good" : "badge bad"}>{file.did}</span>}
          <span class="badge good">+{least}{count(file.added)}<span class="unseen"> lines added</span></span>
          <span class="badge bad">−{least}{count(file.removed)}<span class="unseen"> lines removed</span></span>
        </h2>
      </summary>
      {drawn && file.hunks.length > 0 && (
        <div class="scroll" role="region" aria-label={`Changes of ${plain(file.name)}`} tabIndex={0}><Hunks hunks={file.hunks} language={languageOf(file.name)} /></div>
      )}
      {file.missing && <p class="notice">Not all of its lines are shown: {file.missing}.</p>}
    </details>
    </section>
  );
}

/** `lines` with the pieces of their colours: each side is read as a text of its own. */
function painted(lines: Line[], language: string): Line[] {
  const pieces = new Map<Line, Piece[]>();
  for (const side of ["-", "+"]) {
    const here = lines.filter((line) => line.sign === " " || line.sign === side);
    coloured(here.map((line) => line.text).join("\n"), language)?.forEach((found, number) => here[number] && pieces.set(here[number], found));
  }
  return lines.map((line) => ({ ...line, pieces: pieces.get(line) }));
}

function Hunks({ hunks, language }: { hunks: FileDiff["hunks"]; language: string }) {
  const shown = useMemo(() => hunks.map((hunk) => ({ ...hunk, lines: painted(hunk.lines, language) })), [hunks, language]);
  return (
    <table class="diff">
      <thead class="unseen"><tr><th scope="col">Old line</th><th scope="col">New line</th><th scope="col">Change</th><th scope="col">Text</th></tr></thead>
      {shown.map((hunk, number) => (
        <tbody key={number}>
          {number > 0 && <tr class="gap"><td colSpan={4}>{between(hunks[number - 1]!, hunk)}</td></tr>}
          {hunk.lines.map((line, index) => <Row key={index} line={line} />)}
        </tbody>
      ))}
    </table>
  );
}

/** What stands between two hunks. */
function between(before: FileDiff["hunks"][number], hunk: FileDiff["hunks"][number]): string {
  const last = before.lines.findLast((line) => line.old !== null)?.old, first = hunk.lines.find((line) => line.old !== null)?.old;
  const left = first && last ? first - last - 1 : 0;
  return left > 0 ? `${left.toLocaleString("en")} unchanged ${left === 1 ? "line" : "lines"}` : `line ${hunk.from}`;
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
  const { text, other, sign, pieces = [{ text, kind: "" }] } = line;
  const marks = useMemo(() => {
    if (other === undefined || text.length > LONGEST_COMPARED || other.length > LONGEST_COMPARED) return [];
    const compared = sign === "-" ? diffWordsWithSpace(text, other) : diffWordsWithSpace(other, text);
    const same = compared.filter((part) => !part.added && !part.removed).reduce((sum, part) => sum + part.value.length, 0);
    // Lines that share little are replaced, not edited.
    if (same * 3 < Math.max(text.length, other.length)) return [];
    return compared.filter((part) => (sign === "-" ? !part.added : !part.removed));
  }, [text, other, sign]);
  const show = (pieces: Piece[]) => pieces.map(({ text, kind }, number) => <Text key={number} value={text} kind={kind} />);
  if (!marks.length) return <>{show(pieces)}</>;
  let at = 0;
  return (
    <>
      {marks.map((part, number) => {
        const here = within(pieces, at, (at += part.value.length));
        return part.added || part.removed ? <mark key={number}>{show(here)}</mark> : show(here);
      })}
    </>
  );
}

/** What is between two places of the text that `pieces` are. */
function within(pieces: Piece[], from: number, to: number): Piece[] {
  let start = 0;
  return pieces.flatMap(({ text, kind }) => {
    const part = text.slice(Math.max(0, from - start), Math.max(0, to - start));
    start += text.length;
    return part ? [{ text: part, kind }] : [];
  });
}
