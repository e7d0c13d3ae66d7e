// A pull request: what it is, its checks, its files, its conversation, each asked for when it is looked at.

import { useEffect, useRef, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { ask, dataOf, list, moment, type Row, rowsOf, text } from "../kit/data";
import { type FileDiff, Files, filesOf } from "../kit/diff";
import { Labels, Link, Said, State, Who } from "../kit/github";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";

const TABS = ["Checks", "Files", "Conversation"] as const;
type Tab = (typeof TABS)[number];

function Pull(call: Call) {
  const item = dataOf(call.result)["data"] as Row;
  const [tab, setTab] = useState<Tab>("Checks");
  const tabs = useRef<HTMLDivElement>(null);
  const at = { repo: call.input["repo"], number: call.input["number"] };
  const key = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? TABS.length - 1 : 0;
    if (!step) return;
    const next = (TABS.indexOf(tab) + step) % TABS.length;
    setTab(TABS[next]!);
    (tabs.current!.children[next] as HTMLElement).focus();
  };
  const mergeable = item["mergeable"] === false ? <span class="badge bad">conflicts</span>
    : item["state"] === "open" && item["mergeable_state"] ? <span class="badge">merge: <Text value={plain(text(item["mergeable_state"]), 30)} /></span> : null;
  return (
    <div class="pull">
      <div class="bar">
        <State item={item} />
        <h2 class="grow"><span class="number">#{Number(item["number"])}</span> <Text value={plain(text(item["title"]), 300)} /></h2>
        {mergeable}
        <Link call={call} url={item["url"]} />
      </div>
      <p class="quiet">
        <Who item={item} />, <code><Text value={plain(text(item["head"]), 100)} /></code> into <code><Text value={plain(text(item["base"]), 100)} /></code>,{" "}
        {Number(item["commits"])} commits, +{Number(item["additions"])} −{Number(item["deletions"])} in {Number(item["changed_files"])} files, updated {moment(item["updated_at"])}
      </p>
      {list(item["labels"]).length > 0 && <p class="bar labels"><Labels item={item} /></p>}
      {text(item["body"]) && <p class="body" tabIndex={0} role="region" aria-label="Description"><Text value={text(item["body"])} /></p>}
      <div role="tablist" aria-label="Parts" ref={tabs} onKeyDown={key}>
        {TABS.map((name) => (
          <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={tab === name} aria-controls={tab === name ? "panel" : undefined}
            tabIndex={tab === name ? 0 : -1} onClick={() => setTab(name)}>{name}</button>
        ))}
      </div>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "Checks" && <Checks key={call.version} call={call} at={at} />}
        {tab === "Files" && <Changes key={call.version} call={call} at={at} />}
        {tab === "Conversation" && <Conversation key={call.version} call={call} at={at} />}
      </div>
    </div>
  );
}

interface Part {
  call: Call;
  at: { repo: unknown; number: unknown };
}

/** Pages of `load`, the first at once; what goes wrong is said. */
function usePages<T>(call: Call, load: (cursor: string | undefined) => Promise<{ page: T; cursor: unknown }>) {
  const [pages, setPages] = useState<T[]>([]);
  const [next, setNext] = useState<string>();
  const more = async (cursor?: string) => {
    call.say("Loading…");
    try {
      const found = await load(cursor);
      setPages((pages) => [...pages, found.page]);
      setNext(found.cursor ? String(found.cursor) : undefined);
      call.say("");
    } catch (error) {
      call.say(plain((error as Error).message, 500));
    }
  };
  useEffect(() => void more(), []);
  const button = next !== undefined && <p class="bar"><button type="button" onClick={() => more(next)}>Load more</button></p>;
  return { pages, button };
}

function rowsFrom(call: Call, tool: string, input: Row) {
  return async (cursor: string | undefined) => {
    const data = await ask(call.host, tool, cursor ? { ...input, cursor } : input);
    return { page: rowsOf(data), cursor: data["cursor"] };
  };
}

const GOOD = ["success", "neutral", "skipped"];
const BAD = ["failure", "error", "timed_out", "action_required", "startup_failure", "cancelled"];

function Checks({ call, at }: Part) {
  const { pages, button } = usePages(call, rowsFrom(call, "list_checks", at));
  const checks = pages.flat().map((check) => ({ check, came: text(check["conclusion"]) || text(check["status"]) }));
  // What failed first.
  const rank = (came: string) => (BAD.includes(came) ? 0 : GOOD.includes(came) ? 2 : 1);
  checks.sort((one, other) => rank(one.came) - rank(other.came));
  return (
    <>
      <ul class="items">
        {checks.map(({ check, came }, number) => (
          <li key={number} class="line">
            <span class={`badge ${["bad", "warn", "good"][rank(came)]}`}>{["✗", "…", "✓"][rank(came)]} <Text value={plain(came.replaceAll("_", " "), 30)} /></span>
            <strong><Text value={plain(text(check["name"]), 120)} /></strong>
            {check["title"] !== check["name"] && <span class="quiet"><Text value={plain(text(check["title"]), 200)} /></span>}
          </li>
        ))}
      </ul>
      {pages.length > 0 && !checks.length && <p class="quiet">No checks.</p>}
      {button}
    </>
  );
}

/** Files of the server's diff: a line with name and state before the hunks of each. */
function changes(body: string): FileDiff[] {
  return body.split(/^(?==== )/m).filter((part) => part.startsWith("=== ")).flatMap((part) => {
    const end = part.indexOf("\n");
    const [, name = "", did = "", added = "0", removed = "0"] = /^=== (.*?) \((.*?)(?:, \+(\d+) -(\d+))?\)/.exec(part.slice(0, end)) ?? [];
    const hunks = part.slice(end + 1);
    const known = { name, did: did.startsWith("added") ? "created" as const : did.startsWith("removed") ? "deleted" as const : "changed" as const };
    try {
      const [file] = filesOf(`--- a/file\n+++ b/file\n${hunks.slice(Math.max(0, hunks.search(/^@@ /m)))}`);
      return [{ ...file!, ...known, added: Number(added), removed: Number(removed), atLeast: false }];
    } catch {
      // Cut, or no text: its name and counts remain.
      return [{ ...known, added: Number(added), removed: Number(removed), hunks: [], missing: "they are not in this answer", atLeast: false }];
    }
  });
}

function Changes({ call, at }: Part) {
  const { pages, button } = usePages(call, async (cursor) => {
    const result = await call.host.callTool("read_diff", cursor ? { ...at, cursor } : { ...at });
    const said = textOf(result);
    if (result.isError) throw new Error(said);
    const end = said.indexOf("\n");
    return { page: changes(said.slice(end + 1)), cursor: /cursor=([\w-]+)/.exec(said.slice(0, end))?.[1] };
  });
  return <><Files files={pages.flat()} />{button}</>;
}

const COMMENT = ["id", "author", "association", "trust", "created_at", "body"];

function Conversation({ call, at }: Part) {
  const reviews = usePages(call, rowsFrom(call, "list_reviews", at));
  const threads = usePages(call, rowsFrom(call, "list_reviews", { ...at, kind: "threads" }));
  const found = threads.pages.flat(), said = reviews.pages.flat();
  return (
    <>
      {said.map((review, number) => (
        <Said key={number} item={{ ...review, created_at: review["submitted_at"] }}>
          <span class={`badge ${review["state"] === "APPROVED" ? "good" : review["state"] === "CHANGES_REQUESTED" ? "bad" : ""}`}>
            <Text value={plain(text(review["state"]).toLowerCase().replaceAll("_", " "), 30)} />
          </span>
        </Said>
      ))}
      {reviews.button}
      {found.map((thread) => (
        <section key={text(thread["thread"])} class="thread" aria-label={`Thread on ${plain(text(thread["path"]))}`}>
          <p class="line">
            <code><Text value={plain(text(thread["path"]), 200)} />{thread["line"] ? `:${thread["line"]}` : ""}</code>{" "}
            <span class={`badge ${thread["resolved"] ? "good" : "warn"}`}>{thread["resolved"] ? "resolved" : "open"}</span>{" "}
            {thread["outdated"] === true && <span class="badge">outdated</span>}
          </p>
          {list(thread["comments"]).map((comment, number) => {
            const parts = list(comment);
            if (parts.length < COMMENT.length) return <p key={number} class="quiet"><Text value={plain(text(parts[0]))} /></p>;
            return <Said key={number} item={Object.fromEntries(COMMENT.map((name, part) => [name, parts[part]]))} />;
          })}
        </section>
      ))}
      {threads.button}
      {reviews.pages.length > 0 && threads.pages.length > 0 && !said.length && !found.length && <p class="quiet">Nothing was said yet.</p>}
    </>
  );
}

mount("Pull request", Pull, ({ result }) => [text(dataOf(result)["uri"])]);
