// Pieces of the GitHub views.

import type { ComponentChildren } from "preact";
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

import { ask, list, moment, type Row, rowsOf, text } from "./data";
import "./github.css";
import { Markdown } from "./markdown";
import type { Call } from "./mount";
import { plain, Text } from "./text";

const SIGNS: Record<string, ComponentChildren> = {
  open: <svg class="ring" width="14" height="14" viewBox="0 0 16 16"><circle cx="8" cy="8" r="6.6" /><circle cx="8" cy="8" r="1" /></svg>, merged: "✔", closed: "✕", draft: "◌",
};

/** `brief`: no word where an item is open, as most are in a list. */
export function State({ item, brief }: { item: Row; brief?: boolean }) {
  const state = item["merged"] === true ? "merged" : item["draft"] === true ? "draft" : text(item["state"]);
  const kind = state === "open" ? "good" : state === "merged" ? "merged" : "";
  const short = brief && state === "open";
  return <span class={short ? "more" : `badge ${kind}`}>{SIGNS[state] && <span aria-hidden="true">{SIGNS[state]} </span>}<span class={short ? "unseen" : ""}><Text value={plain(state, 20)} /></span></span>;
}

/** The colours of the repository's labels, once they are known. */
export const Colours = createContext<Record<string, string>>({});

export function useColours(call: Call, wanted: boolean): Record<string, string> {
  const [colours, set] = useState<Record<string, string>>({});
  useEffect(() => {
    if (!wanted) return;
    ask(call.host, "list_issue_options", { repo: call.input["repo"], kind: "labels", limit: 100 }).then(
      (data) => set(Object.fromEntries(rowsOf(data).filter((row) => /^[0-9a-f]{6}$/i.test(text(row["color"]))).map((row) => [text(row["name"]), `#${text(row["color"])}`]))),
      () => {}, // Labels without their colours are labels all the same.
    );
  }, [call.version, wanted]);
  return colours;
}

/** White on `colour` wherever its contrast is 4.5 (WCAG 2, 1.4.3), black on lighter ones. */
function ink(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.183 ? "#000000" : "#ffffff";
}

export function Labels({ item }: { item: Row }) {
  const colours = useContext(Colours);
  return <>{list(item["labels"]).map((label, at) => {
    const colour = Object.hasOwn(colours, text(label)) ? colours[text(label)]! : undefined;
    return <span key={at} class="badge label" style={colour ? { background: colour, color: ink(colour) } : {}}><Text value={plain(text(label), 60)} /></span>;
  })}</>;
}

/** Who wrote something, and whether they belong to the repository. */
export function Who({ item }: { item: Row }) {
  return (
    <>
      <strong><Text value={plain(text(item["author"]) || "somebody", 60)} /></strong>
      {item["trust"] === "outsider" && <> <span class="badge warn" title="Not a member of this repository">outsider</span></>}
    </>
  );
}

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [["year", 31_536_000], ["month", 2_592_000], ["week", 604_800], ["day", 86_400], ["hour", 3600], ["minute", 60]];

/** How long ago a moment is; the moment itself where one looks closer. */
export function Ago({ value }: { value: unknown }) {
  const stamp = Date.parse(text(value));
  if (Number.isNaN(stamp)) return null;
  const seconds = (stamp - Date.now()) / 1000, locale = document.documentElement.lang || "en";
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  const said = new Intl.RelativeTimeFormat(locale, { numeric: "auto" }).format(Math.trunc(seconds / size), unit);
  return <time dateTime={new Date(stamp).toISOString()} title={`${moment(value)}, ${new Date(stamp).toLocaleTimeString(locale, { timeStyle: "short" })}`}>{said}</time>;
}

/** What somebody wrote: Markdown, as far as it is harmless. */
export function Said({ item, call, children }: { item: Row; call: Call; children?: ComponentChildren }) {
  return (
    <article class="said">
      <p class="quiet"><Who item={item} />{item["created_at"] ? <>, <Ago value={item["created_at"]} /></> : ""} {children}</p>
      <div class="body" tabIndex={0} role="region" aria-label={`What ${plain(text(item["author"]) || "somebody", 60)} wrote`}><Markdown text={text(item["body"])} call={call} /></div>
    </article>
  );
}
