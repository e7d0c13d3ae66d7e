// An issue or pull request before it is made: the person changes it and sends it, or drops it. Nothing leaves before that.

import { useEffect, useState } from "preact/hooks";

import { ask, dataOf, list, type Row, rowsOf, text } from "../kit/data";
import "../kit/draft.css";
import { Link } from "../kit/link";
import { type Call, mount } from "../kit/mount";
import { plain, revealed, Text } from "../kit/text";

/** The names in a field that takes several, divided by commas. */
const names = (value: string) => value.split(",").map((name) => name.trim()).filter(Boolean);

function Choices({ label, value, known, change }: { label: string; value: string; known: string[]; change: (value: string) => void }) {
  const chosen = names(value);
  const toggle = (name: string) => change((chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]).join(", "));
  return (
    <div class="field">
      <label>{label} <span class="quiet">(divided by commas)</span><input type="text" value={value} onInput={(event) => change(event.currentTarget.value)} /></label>
      {known.length > 0 && (
        <div class="bar choices" role="group" aria-label={`${label} of the repository`}>
          {known.map((name) => (
            <button key={name} type="button" aria-pressed={chosen.includes(name)} onClick={() => toggle(name)}><Text value={plain(name, 60)} /></button>
          ))}
        </div>
      )}
    </div>
  );
}

function Draft(call: Call) {
  const answer = dataOf(call.result);
  const data = (answer["data"] ?? {}) as Row;
  const sends = data["sends"] as Row | undefined;
  const pull = call.host.tool === "create_pull_request" || "head" in call.input;
  const tool = pull ? "create_pull_request" : "create_issue";
  const what = pull ? "pull request" : "issue";
  const people = pull ? "reviewers" : "assignees";
  const first = (name: string) => list(call.input[name]).map(text).join(", ") || text(typeof call.input[name] === "string" ? call.input[name] : "");
  const [title, setTitle] = useState(text(call.input["title"]));
  const [body, setBody] = useState(text(call.input["body"]));
  const [labels, setLabels] = useState(first("labels"));
  const [asked, setAsked] = useState(first(people));
  const [draft, setDraft] = useState(call.input["draft"] === true);
  const [known, setKnown] = useState<{ labels: string[]; assignees: string[] }>({ labels: [], assignees: [] });
  const [done, setDone] = useState<Row | "dropped">();
  const [sending, setSending] = useState(false);
  const repo = text(data["repo"] ?? call.input["repo"]);

  useEffect(() => {
    if (!sends) return;
    const load = async (kind: "labels" | "assignees") => {
      const found = rowsOf(await ask(call.host, "list_issue_options", { repo, kind, limit: 30 }));
      setKnown((known) => ({ ...known, [kind]: found.map((row) => text(row["name"] ?? row["login"])).filter(Boolean) }));
    };
    // The names can be typed all the same.
    if (!pull) load("labels").catch(() => {});
    load("assignees").catch(() => {});
  }, []);

  if (!sends || done) {
    const shown = done === "dropped" ? undefined : (done ?? answer);
    return (
      <>
        <p><span class={`badge ${shown ? "good" : "warn"}`}>{shown ? "sent" : "dropped, nothing was sent"}</span> <Text value={plain(text(shown?.["done"]), 300)} /></p>
        {shown && <Link call={call} url={shown["url"]} />}
      </>
    );
  }
  const hidden = plain(title, Infinity) !== title || plain(body, Infinity) !== body;
  const send = async () => {
    setSending(true);
    call.say("Sending…");
    try {
      const changed: Row = { ...call.input, title, body, [people]: names(asked), ...(pull ? { draft } : { labels: names(labels) }), dry_run: false };
      for (const [name, value] of Object.entries(changed)) if (value === "" || (Array.isArray(value) && !value.length)) delete changed[name];
      const made = await ask(call.host, tool, changed);
      setDone(made);
      call.say("");
      await call.host.tellModel(`The user sent the ${what} in the form, perhaps changed: ${plain(text(made["done"]), 300)} ${plain(text(made["url"]), 200)}`);
    } catch (error) {
      call.say(plain((error as Error).message, 2000));
    } finally {
      setSending(false);
    }
  };
  const drop = async () => {
    setDone("dropped");
    await call.host.tellModel(`The user dropped the ${what} in the form; nothing was sent.`);
  };

  return (
    <div class="draft">
      <div class="bar">
        <h2>New {what} in <Text value={plain(repo, 120)} /></h2>
        <span class={`badge ${data["public"] === false ? "" : "warn"}`}>{data["public"] === false ? "private repository" : "public: everybody can read it"}</span>
      </div>
      {pull && <p class="quiet"><code><Text value={plain(text(call.input["head"]), 120)} /></code> into <code><Text value={plain(text(call.input["base"]), 120)} /></code></p>}
      {list(data["notes"]).length > 0 && (
        <ul class="notice">{list(data["notes"]).map((note, at) => <li key={at}><Text value={plain(text(note), 500)} /></li>)}</ul>
      )}
      <label class="field">Title<input type="text" maxLength={1000} value={title} onInput={(event) => setTitle(event.currentTarget.value)} /></label>
      <label class="field">Text<textarea rows={10} maxLength={65_536} value={body} onInput={(event) => setBody(event.currentTarget.value)} /></label>
      {hidden && (
        <p class="notice">
          It has characters that cannot be seen. <button type="button" onClick={() => { setTitle(revealed(title)); setBody(revealed(body)); }}>Take them out</button>
        </p>
      )}
      {!pull && <Choices label="Labels" value={labels} known={known.labels} change={setLabels} />}
      <Choices label={pull ? "Reviewers" : "Assignees"} value={asked} known={known.assignees} change={setAsked} />
      {pull && <label class="tick"><input type="checkbox" checked={draft} onChange={(event) => setDraft(event.currentTarget.checked)} /> Draft</label>}
      <div class="bar">
        <span class="bar end">
          <button type="button" disabled={sending} onClick={drop}>Drop</button>
          <button type="button" class="main" disabled={sending || !title.trim()} onClick={send}>Send to GitHub</button>
        </span>
      </div>
    </div>
  );
}

mount("Draft", (call) => <Draft key={call.version} {...call} />);
