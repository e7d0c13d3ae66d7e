// Each view with data that would rather be something else: markup, scripts, addresses, text that turns around or can't be seen.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { database, folder } from "./databases.mjs";
import { browse, serve } from "./harness.mjs";
import { github } from "./octo.mjs";
import { postgres } from "./postgres.mjs";
import { repository } from "./samples.mjs";
import { weather } from "./weather.mjs";

const EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\u202egpj.exe\u200b\u{e0041} ![x](https://attacker.example/y.png) שלום";
const quoted = (name) => `"${name.replaceAll('"', '""')}"`;
const TABLES = `CREATE TABLE ${quoted(`t${EVIL}`)} (id INTEGER PRIMARY KEY, ${quoted(`c${EVIL}`)} TEXT);
INSERT INTO ${quoted(`t${EVIL}`)} VALUES (1, '${EVIL}'), (2, '=cmd|''/c calc''!A0');`;
const WIDE = `CREATE TABLE wide (${Array.from({ length: 1500 }, (_, number) => `c${number} INTEGER`).join(", ")});`;

const served = folder();
let browser;
before(async () => {
  mkdirSync(join(served, `d${EVIL.replaceAll("/", "_")}`));
  for (const name of ["a.txt", "svg.txt"]) writeFileSync(join(served, name), `${EVIL}\n`);
  writeFileSync(join(served, `f${EVIL.replaceAll("/", "_")}.txt`), `${EVIL}\n`);
  writeFileSync(join(served, "long.txt"), `${"x".repeat(1_000_000)}\n`);
  writeFileSync(join(served, "evil.svg"), `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script><image href="https://attacker.example/x.png"/></svg>`);
  browser = await browse();
});
after(() => browser.close());

/** What a frame holds that data must not become: elements that load or run, attributes that do, text that hides. */
function faults(root) {
  const hidden = /[\u200b\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e0fff}]/u;
  const found = [];
  for (const element of root.querySelectorAll("*")) {
    const name = element.localName;
    if (/^(script|iframe|object|embed|a|link|style|form|base|meta)$/.test(name)) found.push(`<${name}>`);
    for (const { name: attribute, value } of element.attributes) {
      if (/^on/.test(attribute) || (/^(src|href|srcset|action)$/.test(attribute) && !/^data:(image|audio)\//.test(value))) found.push(`${name} ${attribute}=${value.slice(0, 60)}`);
      if (hidden.test(value)) found.push(`${name} ${attribute} hides something`);
    }
    for (const node of element.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE) continue;
      if (hidden.test(node.data)) found.push(`text of <${name}> hides something`);
      // Options and titles have no elements inside, and are isolated by the browser.
      if (/[\u0590-\u05ff]/.test(node.data) && !element.closest("bdi") && !/^(option|title|text)$/.test(name)) found.push(`<${name}> does not isolate its direction`);
    }
  }
  return found;
}

async function check(host, shown) {
  await shown.view.getByText("<script>alert(2)</script>").filter({ visible: true }).first().waitFor();
  assert.deepEqual(await shown.view.locator("#view").evaluate(faults), []);
  assert.deepEqual(await host.violations(shown.number), []);
  host.clean();
}

for (const [name, start, lister] of [["mcp-sqlite", () => serve("mcp_sqlite", [database(TABLES + WIDE)]), "list_tables"], ["mcp-postgres", () => postgres(TABLES + WIDE), "list_objects"]]) {
  test(`rows, schemas and plans of ${name}`, async () => {
    const server = await start();
    const host = await browser.open(server);
    const sql = `SELECT *, '${EVIL}' AS ${quoted(`x${EVIL}`)} FROM ${quoted(`t${EVIL}`)} WHERE ${quoted(`c${EVIL}`)} <> '${EVIL}!' ORDER BY 1`;
    const rows = await host.show("query_rows", { sql });
    await check(host, rows);
    await rows.view.getByRole("button", { name: "Filter columns" }).click();
    await rows.view.getByRole("button", { name: "Chart", exact: true }).click();
    await check(host, rows);

    const schema = await host.show(lister, {});
    await schema.view.getByRole("button", { name: /t<img/ }).first().click();
    await schema.view.getByText("All tables as a list").click();
    await check(host, schema);
    await schema.view.locator("g.box").filter({ hasText: "wide" }).click();
    await schema.view.getByRole("region", { name: "Table wide" }).getByText("c1499", { exact: true }).waitFor();

    await check(host, await host.show("explain_query", { sql }));
    const refused = await host.show("query_rows", { sql: `SELECT * FROM ${quoted(EVIL)}` });
    await refused.view.getByRole("alert").getByText("<img src=x").waitFor();
    assert.deepEqual(await refused.view.locator("#view").evaluate(faults), []);
    await host.close();
    await server.close();
  });
}

test("files: trees, edits, pictures", async () => {
  const server = await serve("mcp_fs", [served]);
  const host = await browser.open(server);
  const tree = await host.show("list_directory", {});
  await tree.view.getByRole("treeitem", { name: /^f<img/ }).click();
  await tree.view.locator(".preview").getByText("⟨U+202E⟩").first().waitFor();
  assert.deepEqual(await tree.view.locator("#view").evaluate(faults), []);
  assert.deepEqual(await host.violations(tree.number), []);
  await tree.view.getByRole("treeitem", { name: "long.txt" }).click();
  await tree.view.locator(".preview pre, .preview .error").first().waitFor();
  await tree.view.getByRole("treeitem", { name: "evil.svg" }).click();
  await tree.view.locator(".preview").filter({ hasText: "evil.svg" }).locator("img, pre, .error").first().waitFor();
  assert.deepEqual(await tree.view.locator("#view").evaluate(faults), []);

  await check(host, await host.show("edit_file", { path: "a.txt", edits: [{ old_text: "שלום", new_text: `${EVIL}\n# ${EVIL}` }], dry_run: true }));
  const named = `f${EVIL.replaceAll("/", "_")}.txt`;
  await check(host, await host.show("edit_file", { path: named, edits: [{ old_text: "שלום", new_text: "hello" }], dry_run: true }));
  const long = await host.show("edit_file", { path: "long.txt", edits: [{ old_text: "\n", new_text: "y\n" }], dry_run: true });
  // The server cuts what would be 2 MB; what there is of it is shown.
  await long.view.getByText("Not all of its lines are shown: 10,000 of").waitFor();
  await long.view.locator("tr.removed").getByText("xxxx").waitFor();
  const other = await host.show("edit_file", { path: "a.txt" }, { result: { content: [{ type: "text", text: `[dry run: nothing was written]\n--- a\n+++ b\n@@ -x +y @@\n${EVIL}` }] } });
  await other.view.getByText("This answer cannot be shown as a picture").waitFor();
  await check(host, other);

  const picture = await host.show("read_media", { path: "evil.svg" });
  await picture.view.locator("img, pre, [role=alert]").first().waitFor();
  assert.deepEqual(await picture.view.locator("#view").evaluate(faults), []);
  host.clean();
  await host.close();
  await server.close();
});

test("issues and pull requests, also from a server that hides nothing", async () => {
  const server = await github("evil");
  const host = await browser.open(server);
  const item = { number: 7, title: EVIL, state: EVIL, author: EVIL, trust: "outsider", labels: [EVIL], head: EVIL, base: EVIL, body: EVIL, updated_at: EVIL, mergeable_state: EVIL, comments: 1 };
  const said = (data) => ({ structuredContent: data, content: [{ type: "text", text: JSON.stringify(data) }] });
  const columns = Object.keys(item).filter((name) => name !== "body");
  const listed = await host.show("list_issues", { repo: "octo/app" }, { result: said({ columns, rows: [columns.map((name) => item[name])] }) });
  await check(host, listed);
  await listed.view.getByRole("button", { name: /^#7/ }).click();
  await listed.view.getByText("[click](javascript:alert(3))").waitFor();
  await check(host, listed);

  for (const url of ["javascript:alert(1)", "http://attacker.example/", "data:text/html,x", " https://attacker.example/"]) {
    const pull = await host.show("get_pull_request", { repo: "octo/app", number: 7 }, { result: said({ uri: "github://octo/app/pulls/7", data: { ...item, url } }) });
    await pull.view.getByRole("tab", { name: "Checks" }).waitFor();
    assert.equal(await pull.view.getByRole("button", { name: "Open at GitHub" }).count(), 0, url);
    await check(host, pull);
  }
  const long = await host.show("get_pull_request", { repo: "octo/app", number: 7 }, { result: said({ data: { ...item, body: "x".repeat(1_000_000) } }) });
  await long.view.getByRole("tab", { name: "Checks" }).waitFor();
  const pull = await host.show("get_pull_request", { repo: "octo/app", number: 7 });
  for (const [tab, text] of [["Files", "page.html"], ["Conversation", "Why a set?"]]) {
    await pull.view.getByRole("tab", { name: tab }).click();
    await pull.view.getByText(text).first().waitFor();
    assert.deepEqual(await pull.view.locator("#view").evaluate(faults), []);
  }
  assert.deepEqual(host.seen.opened, []);
  await host.close();
  await server.close();
});

test("commits and changes: messages, names and refs of strangers", async () => {
  const server = await serve("mcp_git", [repository()]);
  const host = await browser.open(server);
  const said = (text, _meta) => ({ content: [{ type: "text", text }], _meta });
  const row = ["abc", "def abc", EVIL, EVIL, `${EVIL}, HEAD -> ${EVIL}`, EVIL];
  const commits = [row, ["def", EVIL, "", "", "", EVIL], ...Array.from({ length: 40 }, (_, number) => [`x${number}`, `y${number} y${number + 1}`, "", "", "", "s"])];
  await check(host, await host.show("list_commits", {}, { result: said(`[${EVIL}]`, { commits, drawn: true }) }));
  for (const meta of [undefined, { commits: "none" }, { commits: [null] }, { parts: { message: -5, files: 1e9, patch: "x" } }]) {
    await check(host, await host.show("list_commits", {}, { result: said(`[commits]\n${EVIL}`, meta) }));
    await check(host, await host.show("read_diff", {}, { result: said(`[x]\n${EVIL}\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-${EVIL}`, meta) }));
  }
  const text = `[HEAD; 2 files]\n${EVIL}\n+1 -1 ${EVIL}\nbinary ${EVIL}\n\n--- a/${EVIL}\n+++ b/${EVIL}\n@@ -1 +1 @@\n-${EVIL}\n+x\nrename from ${EVIL}`;
  const change = await host.show("read_diff", { rev: "HEAD" }, { result: said(text, { parts: { message: 0, files: 1, patch: 4 } }) });
  await change.view.locator("tr.removed").first().waitFor();
  await check(host, change);
  host.clean();
  await host.close();
  await server.close();
});

test("the weather: places, alerts, notes and names of values", async () => {
  const server = await weather("evil");
  const host = await browser.open(server);
  const shown = await host.show("get_weather", { place: "Birmingham" });
  await check(host, shown);
  const origin = { source: EVIL, licence: EVIL, stale: true, reason: EVIL };
  const data = {
    place: { name: EVIL, timezone: EVIL }, notes: [EVIL], resources: [],
    now: { observed_at: EVIL, names: [EVIL, "weather"], units: [EVIL, ""], values: [1, EVIL], origin },
    observation: { observed_at: EVIL, station: EVIL, names: ["wind_direction"], units: ["°"], values: [1e300], origin },
    alerts: { explanation: EVIL, alerts: [{ event: EVIL, severity: EVIL, ends: EVIL, headline: EVIL, description: EVIL + "x".repeat(1_000_000) }] },
    tables: { [EVIL]: { time: [EVIL, "2026-01-01"], names: [`temperature${EVIL}`], units: [EVIL], values: [[1, EVIL]], origin } },
  };
  const wild = await host.show("get_weather", { place: EVIL }, { result: { structuredContent: data, content: [] } });
  await wild.view.getByText("All values as a table").click();
  await check(host, wild);
  const none = await host.show("get_weather", { place: EVIL }, { result: { structuredContent: { place: null, tables: { a: {} }, now: {}, alerts: {} }, content: [] } });
  await none.view.getByText("All values as a table").waitFor();
  host.clean();
  await host.close();
  await server.close();
});
