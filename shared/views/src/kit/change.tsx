// A change as mcp-git tells it, page by page: who made it and why, its files, and the patch.

import { useMemo, useState } from "preact/hooks";

import { type CallToolResult, type Host, textOf } from "./bridge";
import { Files, filesOf } from "./diff";
import { plain, Text } from "./text";

/** Where in the lines of an answer the message, the list of files and the patch begin. */
interface Parts { message: number; files: number; patch: number }

const CURSOR = /; continue with cursor="([^"]+)"\]$/;

export interface Change {
  /** What is compared and how much differs. */
  title: string;
  message: string[];
  files: string[];
  patch: string[];
  cursor: string | undefined;
}

export function changeOf(result: CallToolResult): Change {
  const [head = "", ...lines] = textOf(result).replace(/\n$/, "").split("\n");
  const at = (result._meta?.["parts"] ?? { message: 0, files: 0, patch: 0 }) as Parts;
  return {
    title: head.replace(CURSOR, "]").replace(/^\[|\]$/g, "").replace(/; the patch of [^;]*$/, ""),
    message: lines.slice(at.message, at.files),
    files: whole(lines.slice(at.files, at.patch).filter(Boolean)),
    patch: lines.slice(at.patch),
    cursor: CURSOR.exec(head)?.[1],
  };
}

/** What stands before a path: whether the file is new or deleted, and how many lines came and went. */
const COUNTS = /(?:(?:new|deleted) )?(?:binary|\+\d+ -\d+) /.source;
const BEFORE_NAME = new RegExp(`^${COUNTS}(?:.* -> )?`);
const IN_FOLDER = new RegExp(`^ (${COUNTS}(?:.* -> )?)`);
const WITHOUT_FOLDER = new RegExp(`^${COUNTS}|^… and `);

/** Each line with its whole path, where a folder stands once above the files in it. */
function whole(lines: string[]): string[] {
  let folder = "";
  return lines.flatMap((line) => {
    if (line.startsWith(" ")) return [line.replace(IN_FOLDER, `$1${folder.replaceAll("$", "$$$$")}`)];
    folder = line;
    return WITHOUT_FOLDER.test(line) ? [line] : [];
  });
}

/** The lines that a parser of diffs knows: hunks and the names above them, without what git says of modes and renames. */
export function hunksOf(lines: string[]): string {
  const kept: string[] = [];
  let old = 0, fresh = 0;
  for (const line of lines) {
    const inside = old > 0 || fresh > 0, hunk = inside ? null : /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (inside) {
      if (line[0] !== "+" && line[0] !== "\\") old--;
      if (line[0] !== "-" && line[0] !== "\\") fresh--;
    } else if (hunk) [old, fresh] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    else if (!/^(?:--- |\+\+\+ |\\)/.test(line)) continue;
    kept.push(line);
  }
  return kept.length ? `${kept.join("\n")}\n` : "";
}

/** What was compared, how many files differ, and by how many lines. */
const TITLE = /^(.*); ([\d,]+ files?), \+([\d,]+) -([\d,]+)(.*)$/;
const COMMIT = /^[0-9a-f]{40,64}\b/;
const AUTHOR = /^(.+) <[^<>]*> (\d{4}-\d\d-\d\dT\S+)$/;

/** Above a change: of a commit its subject, who made it and when; of another comparison what was compared. */
function Head({ change, untitled }: { change: Change; untitled: boolean }) {
  const [, what = "", files = "", added = "", removed = "", rest = ""] = TITLE.exec(change.title) ?? [];
  const counts = files && (
    <>
      <span class="quiet">{files}</span>
      <span class="badge good">+{added}</span>
      <span class="badge bad">−{removed}</span>
      {rest && <span class="quiet"><Text value={rest.replace(/^; /, "")} /></span>}
    </>
  );
  const [first = "", by = "", ...lines] = change.message;
  const author = AUTHOR.exec(by), id = COMMIT.exec(first)?.[0];
  const blank = lines.indexOf("");
  if (!author || !id || blank < 0) {
    return (
      <>
        <div class="bar change-head"><h2><Text value={capital(what || change.title)} /></h2>{counts}</div>
        {change.message.some(Boolean) && <pre class="commit-message"><Text value={change.message.join("\n").trim()} /></pre>}
      </>
    );
  }
  const body = lines.slice(blank + 2).join("\n").trim();
  return (
    <>
      {!untitled && <h2><Text value={lines[blank + 1] ?? ""} /></h2>}
      <div class="bar change-head">
        <span><Text value={author[1]!} /></span>
        <time class="quiet" dateTime={author[2]!}>{day(author[2]!)}</time>
        <code class="quiet">{id.slice(0, 9)}</code>
        {counts}
      </div>
      {lines.slice(0, blank).map((line) => <p class="quiet"><Text value={line} /></p>)}
      {body && <pre class="commit-message"><Text value={body} /></pre>}
    </>
  );
}

function capital(text: string): string {
  return /^[a-z]+ /.test(text) ? text[0]!.toUpperCase() + text.slice(1) : text;
}

/** A time in the host's language, as it was where the commit was made. */
function day(text: string): string {
  const moment = new Date(`${text.slice(0, 16)}Z`);
  if (Number.isNaN(moment.getTime())) return text;
  return moment.toLocaleString(document.documentElement.lang || "en", { dateStyle: "medium", timeStyle: "short", timeZone: "UTC" });
}

interface Shown {
  host: Host;
  /** The arguments of `read_diff`. */
  input: Record<string, unknown>;
  result: CallToolResult;
  say: (message: string) => void;
  /** Leave the subject out: it stands above. */
  untitled?: boolean;
}

export function ChangeView({ host, input, result, say, untitled = false }: Shown) {
  const first = useMemo(() => changeOf(result), [result]);
  const [more, setMore] = useState<Change[]>([]);
  const [loading, setLoading] = useState(false);
  const cursor = (more.length ? more[more.length - 1]! : first).cursor;
  const patch = useMemo(() => hunksOf([first, ...more].flatMap((page) => page.patch)), [first, more]);
  const files = useMemo(() => filesOf(patch), [patch]);
  const drawn = new Set(files.map((file) => file.name));
  // What has no lines: binary files, renames alone, modes; and what is on a page to come.
  const others = first.files.filter((line) => !drawn.has(line.replace(BEFORE_NAME, "")));
  const next = async () => {
    setLoading(true);
    say("Loading…");
    try {
      const page = await host.callTool("read_diff", { ...input, cursor });
      if (page.isError) throw new Error(textOf(page));
      setMore([...more, changeOf(page)]);
      say("");
    } catch (error) {
      say(plain((error as Error).message, 500));
    } finally {
      setLoading(false);
    }
  };
  return (
    <>
      <Head change={first} untitled={untitled} />
      {files.length > 0 && <Files files={files} />}
      {others.length > 0 && (
        <ul class="others">{others.map((line) => <li class="quiet"><Text value={line} /></li>)}</ul>
      )}
      {!files.length && !others.length && <p class="quiet">Nothing differs.</p>}
      {cursor !== undefined && (
        <nav class="bar pager" aria-label="Pages"><button type="button" disabled={loading} onClick={next}>Load more of the patch</button></nav>
      )}
    </>
  );
}
