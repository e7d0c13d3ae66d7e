// A pull request: what it is, its checks, its files, its conversation, each asked for when it is looked at.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { ask, dataOf, list, type Row, rowsOf, text } from "../kit/data";
import { type FileDiff, Files, filesOf } from "../kit/diff";
import { Ago, Colours, Labels, Said, State, useColours, Who } from "../kit/github";
import { Link } from "../kit/link";
import { Markdown } from "../kit/markdown";
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
  const colours = useColours(call, list(item["labels"]).length > 0);
  const checks = usePages(call, rowsFrom(call, "list_checks", at)), reviews = usePages(call, rowsFrom(call, "list_reviews", at));
  return (
    <Colours.Provider value={colours}><div class="pull">
      <div class="bar">
        <State item={item} />
        <h2 class="grow"><span class="number">#{Number(item["number"])}</span> <Text value={plain(text(item["title"]), 300)} /></h2>
        <Link call={call} url={item["url"]} />
      </div>
      <p class="quiet">
        <Who item={item} />, <code><Text value={plain(text(item["head"]), 100)} /></code> into <code><Text value={plain(text(item["base"]), 100)} /></code>,{" "}
        {counted(item["commits"], "commit")}, <span class="more">+{Number(item["additions"])}</span> <span class="fewer">−{Number(item["deletions"])}</span> in {counted(item["changed_files"], "file")}, updated <Ago value={item["updated_at"]} />
      </p>
      {list(item["labels"]).length > 0 && <p class="bar labels"><Labels item={item} /></p>}
      {item["state"] === "open" && <Merge item={item} checks={checks.pages.flat()} reviews={reviews.pages.flat()} />}
      {text(item["body"]) && <div class="body" tabIndex={0} role="region" aria-label="Description"><Markdown text={text(item["body"])} call={call} /></div>}
      <div role="tablist" aria-label="Parts" ref={tabs} onKeyDown={key}>
        {TABS.map((name) => (
          <button key={name} type="button" role="tab" id={`tab-${name}`} aria-selected={tab === name} aria-controls={tab === name ? "panel" : undefined}
            tabIndex={tab === name ? 0 : -1} onClick={() => setTab(name)}>{name}</button>
        ))}
      </div>
      <div role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {tab === "Checks" && <Checks call={call} url={item["url"]} found={checks} />}
        {tab === "Files" && <Changes key={call.version} call={call} at={at} />}
        {tab === "Conversation" && <Conversation key={call.version} call={call} at={at} reviews={reviews} />}
      </div>
    </div></Colours.Provider>
  );
}

const counted = (value: unknown, what: string) => `${Number(value)} ${Number(value) === 1 ? what : `${what}s`}`;

const STATES: Record<string, string> = {
  behind: "its branch is behind the one it goes into", draft: "it is a draft", blocked: "the rules of the branch are not met yet",
  unstable: "checks that are not required failed or still run",
};

/** Whether it can be merged, and what stands against it, as far as that is known. */
function Merge({ item, checks, reviews }: { item: Row; checks: Row[]; reviews: Row[] }) {
  const named = (some: Row[]) => some.slice(0, 3).map((check) => plain(text(check["name"]), 60)).join(", ") + (some.length > 3 ? ", …" : "");
  const failed = checks.filter((check) => BAD.includes(cameOf(check))), running = checks.filter((check) => rank(cameOf(check)) === 1);
  // The last word of each reviewer counts; a comment takes back nothing.
  const last = new Map(reviews.filter((review) => text(review["state"]) !== "COMMENTED").map((review) => [text(review["author"]), text(review["state"])]));
  const against = [...last].filter(([, state]) => state === "CHANGES_REQUESTED").map(([author]) => plain(author, 60));
  const approved = [...last].filter(([, state]) => state === "APPROVED").map(([author]) => plain(author, 60));
  const state = text(item["mergeable_state"]);
  const reasons = [
    item["mergeable"] === false || state === "dirty" ? `it conflicts with ${plain(text(item["base"]), 60)}` : "",
    failed.length ? `${counted(failed.length, "check")} failed: ${named(failed)}` : "",
    running.length ? `${counted(running.length, "check")} still ${running.length === 1 ? "runs" : "run"}: ${named(running)}` : "",
    against.length ? `${against.join(", ")} asked for changes` : "",
  ].filter(Boolean);
  if (Object.hasOwn(STATES, state) && (state !== "unstable" || !reasons.length)) reasons.unshift(STATES[state]!);
  const blocked = item["mergeable"] === false || ["dirty", "blocked", "behind", "draft"].includes(state);
  const free = !blocked && ["clean", "has_hooks", "unstable"].includes(state);
  // GitHub works it out some time after a push.
  if (!free && !blocked) return <p class="quiet">GitHub does not say yet whether it can be merged{reasons.length ? <>; <Text value={reasons.join("; ")} /></> : ""}.</p>;
  return (
    <section class={`merge ${free ? "" : "no"}`} aria-label="Merge">
      <strong>{free ? "✓ It can be merged" : "✗ It cannot be merged yet"}</strong>
      {reasons.length > 0 && <ul>{reasons.map((reason) => <li key={reason}><Text value={reason} /></li>)}</ul>}
      {approved.length > 0 && <p>Approved by <Text value={approved.join(", ")} />.</p>}
    </section>
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
  useEffect(() => {
    setPages([]);
    void more();
  }, [call.version]);
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

const cameOf = (check: Row) => text(check["conclusion"]) || text(check["status"]);
/** What failed first. */
const rank = (came: string) => (BAD.includes(came) ? 0 : GOOD.includes(came) ? 2 : 1);

type Pages = { pages: Row[][]; button: ComponentChildren };

function Checks({ call, url, found: { pages, button } }: { call: Call; url: unknown; found: Pages }) {
  const checks = pages.flat().map((check) => ({ check, came: cameOf(check) })).sort((one, other) => rank(one.came) - rank(other.came));
  return (
    <>
      <ul class="items">
        {checks.map(({ check, came }, number) => (
          <li key={number} class="line">
            <span class={`badge ${["bad", "warn", "good"][rank(came)]}`}>{["✗", "…", "✓"][rank(came)]} <Text value={plain(came.replaceAll("_", " "), 30)} /></span>
            <strong><Text value={plain(text(check["name"]), 120)} /></strong>
            {check["title"] !== check["name"] && <span class="quiet"><Text value={plain(text(check["title"]), 200)} /></span>}
            {typeof check["job"] === "number" && <span class="bar end"><Link call={call} url={`${text(url)}/checks?check_run_id=${check["job"]}`} label="Job" about={plain(text(check["name"]), 60)} /></span>}
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

function Conversation({ call, at, reviews }: Part & { reviews: Pages }) {
  const threads = usePages(call, rowsFrom(call, "list_reviews", { ...at, kind: "threads" }));
  const found = threads.pages.flat(), said = reviews.pages.flat();
  return (
    <>
      {said.map((review, number) => (
        <Said key={number} call={call} item={{ ...review, created_at: review["submitted_at"] }}>
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
            return <Said key={number} call={call} item={Object.fromEntries(COMMENT.map((name, part) => [name, parts[part]]))} />;
          })}
        </section>
      ))}
      {threads.button}
      {reviews.pages.length > 0 && threads.pages.length > 0 && !said.length && !found.length && <p class="quiet">Nothing was said yet.</p>}
    </>
  );
}

mount("Pull request", Pull, ({ result }) => [text(dataOf(result)["uri"])]);
