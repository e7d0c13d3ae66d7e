// Pieces of the GitHub views.

import type { ComponentChildren } from "preact";

import { list, moment, type Row, text } from "./data";
import "./github.css";
import type { Call } from "./mount";
import { plain, Text } from "./text";

export function State({ item }: { item: Row }) {
  const state = item["merged"] === true ? "merged" : item["draft"] === true ? "draft" : text(item["state"]);
  return <span class={`badge ${state === "open" ? "good" : state === "merged" ? "warn" : ""}`}><Text value={plain(state, 20)} /></span>;
}

export function Labels({ item }: { item: Row }) {
  return <>{list(item["labels"]).map((label, at) => <span key={at} class="badge label"><Text value={plain(text(label), 60)} /></span>)}</>;
}

/** Who wrote something, and whether they belong to the repository. */
export function Who({ item }: { item: Row }) {
  return (
    <>
      <Text value={plain(text(item["author"]) || "somebody", 60)} />
      {item["trust"] === "outsider" && <> <span class="badge warn" title="Not a member of this repository">outsider</span></>}
    </>
  );
}

/** What somebody wrote, as text: nothing in it is markup here. */
export function Said({ item, children }: { item: Row; children?: ComponentChildren }) {
  return (
    <article class="said">
      <p class="quiet"><Who item={item} />{item["created_at"] ? `, ${moment(item["created_at"])}` : ""} {children}</p>
      <p class="body"><Text value={text(item["body"])} /></p>
    </article>
  );
}

/** A button that opens `url` at GitHub, through the host. */
export function Link({ call, url }: { call: Call; url: unknown }) {
  if (!call.host.capabilities.openLinks || !/^https:\/\//.test(text(url))) return null;
  return (
    <button type="button" onClick={() => call.host.openLink(text(url)).catch((error: Error) => call.say(error.message))}>
      Open at GitHub
    </button>
  );
}
