// Commits with the lines between them, paged through the server's own cursor; each opens its change in place.

import { useMemo, useState } from "preact/hooks";

import { type CallToolResult, textOf } from "../kit/bridge";
import { ChangeView } from "../kit/change";
import "../kit/change.css";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";
import "./history.css";
import { type Commit, type Drawn, lanes } from "./history-lanes";

const WIDE = 14, HIGH = 30, MOST = 12;

interface Page { commits: Commit[]; drawn: boolean; cursor: string | undefined }

function pageOf(result: CallToolResult): Page {
  const head = textOf(result).split("\n", 1)[0] ?? "";
  const rows = result._meta?.["commits"];
  if (!Array.isArray(rows)) throw new Error("it has no commits to draw");
  const commits = rows.map((row): Commit => {
    const [id = "", parents = "", date = "", author = "", refs = "", subject = ""] = (row as unknown[]).map(String);
    return { id, parents: parents.split(" ").filter(Boolean), date, author, refs, subject };
  });
  return {
    commits, drawn: result._meta?.["drawn"] === true, cursor: /cursor="([^"]+)"\]$/.exec(head)?.[1],
  };
}

/** Which commits were asked for, in a person's words. */
function titleOf(input: Record<string, unknown>, count: number): string {
  const words = (name: string) => (typeof input[name] === "string" ? input[name] : "");
  let title = `${count.toLocaleString("en")} ${count === 1 ? "commit" : "commits"}`;
  if (input["all_branches"] === true) title += " of all branches";
  else if (words("rev") && words("rev") !== "HEAD") title += ` of ${words("rev")}`;
  if (words("path")) title += ` to ${words("path")}`;
  if (words("lines")) title += `, lines ${words("lines")}`;
  return title;
}

const CONDITIONS = { author: "by", message: "message has", text: "changes", since: "since", until: "until" };

function conditionsOf(input: Record<string, unknown>): string[] {
  return Object.entries(CONDITIONS).flatMap(([name, words]) => (typeof input[name] === "string" && input[name] ? [`${words} ${input[name]}`] : []));
}

const x = (lane: number) => Math.min(lane, MOST) * WIDE + WIDE / 2 + 1;
const colour = (lane: number) => `lane lane${lane % 6}`;

function Lines({ row, width }: { row: Drawn; width: number }) {
  const half = HIGH / 2;
  const line = (from: number, to: number, start: number, end: number, lane: number) => (
    <path class={colour(lane)} d={from === to ? `M${x(from)} ${start}V${end}` : `M${x(from)} ${start}C${x(from)} ${(start + end) / 2} ${x(to)} ${(start + end) / 2} ${x(to)} ${end}`} />
  );
  return (
    <svg width={width} height={HIGH} aria-hidden="true">
      {row.above.map(([from, to]) => line(from, to, 0, half, from))}
      {row.below.map(([from, to]) => line(from, to, half, HIGH, to))}
      <circle class={colour(row.lane)} cx={x(row.lane)} cy={half} r={row.commit.parents.length > 1 ? 3 : 4.5} />
    </svg>
  );
}

function History(call: Call) {
  const [pages, setPages] = useState<Page[]>([pageOf(call.result)]);
  const [open, setOpen] = useState<{ id: string; result?: CallToolResult }>();
  const [loading, setLoading] = useState(false);
  const drawn = pages.every((page) => page.drawn);
  const rows = useMemo(() => lanes(pages.flatMap((page) => page.commits.map((commit) => (drawn ? commit : { ...commit, parents: [] })))), [pages]);
  const width = x(Math.min(MOST, Math.max(0, ...rows.flatMap((row) => [row.lane, ...row.open])))) + WIDE / 2;
  const cursor = pages[pages.length - 1]!.cursor;
  const tool = call.host.tool ?? "list_commits";
  const repo = call.input["repo"] === undefined ? {} : { repo: call.input["repo"] };

  const attempt = async (name: string, input: Record<string, unknown>, then: (result: CallToolResult) => void) => {
    setLoading(true);
    call.say("Loading…");
    try {
      const result = await call.host.callTool(name, input);
      if (result.isError) throw new Error(textOf(result));
      then(result);
      call.say("");
    } catch (error) {
      call.say(plain((error as Error).message, 500));
    } finally {
      setLoading(false);
    }
  };
  const more = () => attempt(tool, { ...call.input, cursor }, (result) => setPages([...pages, pageOf(result)]));
  const show = (id: string) => {
    if (open?.id === id) return setOpen(undefined);
    setOpen({ id });
    void attempt("read_diff", { ...repo, rev: id }, (result) => setOpen({ id, result }));
  };

  return (
    <>
      <div class="bar">
        <h2><Text value={plain(titleOf(call.input, rows.length))} /></h2>
        {cursor !== undefined && <span class="quiet">more below</span>}
        {conditionsOf(call.input).map((condition) => <span class="badge"><Text value={plain(condition, 80)} /></span>)}
      </div>
      <ol class="scroll history">
        {rows.map((row) => {
          const { id, date, author, refs, subject } = row.commit;
          return (
            <li key={id}>
              <div class="commit">
                <Lines row={row} width={width} />
                <button type="button" class="plain subject" aria-expanded={open?.id === id} onClick={() => show(id)}><Text value={plain(subject, 300)} /></button>
                {refs && refs.split(", ").map((name) => <span class={/^HEAD/.test(name) ? "badge good" : "badge"}><Text value={plain(name.replace(/^HEAD -> /, ""), 60)} /></span>)}
                <span class="quiet who"><Text value={plain(author, 40)} /></span>
                <span class="quiet when"><Text value={plain(date, 20)} /></span>
                <code class="quiet"><Text value={plain(id, 12)} /></code>
              </div>
              {open?.id === id && open.result && (
                <svg class="through" width={width} aria-hidden="true">{row.open.map((lane) => <path class={colour(lane)} d={`M${x(lane)} 0V99999`} />)}</svg>
              )}
              {open?.id === id && open.result && (
                <div class="opened" style={{ marginInlineStart: `${width}px` }}>
                  <ChangeView key={id} host={call.host} input={{ ...repo, rev: id }} result={open.result} say={call.say} untitled />
                </div>
              )}
            </li>
          );
        })}
      </ol>
      {rows.length === 0 && <p class="quiet">There are no commits.</p>}
      {cursor !== undefined && (
        <nav class="bar pager" aria-label="Pages"><button type="button" disabled={loading} onClick={more}>Load more</button></nav>
      )}
    </>
  );
}

mount("Commits", (call) => <History key={call.version} {...call} />, ({ result }) => (typeof result._meta?.["uri"] === "string" ? [result._meta["uri"]] : []));
