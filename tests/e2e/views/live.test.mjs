import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { database, folder, MEASURED, PYTHON } from "./databases.mjs";
import { browse, serve, until } from "./harness.mjs";
import { weather } from "./weather.mjs";

// A host that passes subscriptions on, as proposed; the specification of 2026-01-26 has no such thing.
const FOLLOWING = { serverTools: {}, serverResources: { subscribe: true } };
const path = database(MEASURED);

/** What another program commits. */
const commit = (sql) => execFileSync(PYTHON, ["-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.close()", path, sql]);

let browser, server;
before(async () => { [browser, server] = await Promise.all([browse(), serve("mcp_sqlite", [path])]); });
after(() => Promise.all([browser.close(), server.close()]));

test("a schema follows what another program changes, and keeps what was chosen", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("list_tables", {}, { capabilities: FOLLOWING });
  await view.getByRole("button", { name: /^station / }).click();
  await until(() => assert.deepEqual(host.seen.followed, ["sqlite://app/.schema"]));
  commit("CREATE TABLE observer (id INTEGER PRIMARY KEY, station_id REFERENCES station)");
  await view.getByRole("button", { name: /^observer / }).waitFor();
  await view.getByRole("region", { name: "Table station" }).getByText("referred to by observer").waitFor();
  assert.equal(host.seen.calls.filter((call) => call.name === "list_tables").length, 1);
  host.clean();
  await host.close();
});

test("a host that passes nothing on is asked for nothing", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("list_tables", {});
  await view.getByRole("button", { name: /^station / }).waitFor();
  assert.deepEqual(host.seen.followed, []);
  // A list that changed may concern the view or not: the person decides.
  await host.page.evaluate((number) => window.sendRaw(number, { method: "notifications/resources/list_changed" }), number);
  await view.getByRole("button", { name: "Show it now" }).click();
  await until(() => assert.ok(host.seen.calls.some((call) => call.name === "list_tables")));
  await until(async () => assert.equal(await view.getByText("The data has changed.").count(), 0));
  host.clean();
  await host.close();
});

test("a tree follows the folders that are open, and marks what comes", async () => {
  const served = folder();
  mkdirSync(join(served, "sub"));
  writeFileSync(join(served, "sub", "old.txt"), "x");
  const files = await serve("mcp_fs", [served]);
  const host = await browser.open(files);
  const { view } = await host.show("list_directory", {}, { capabilities: FOLLOWING });
  await view.getByRole("treeitem", { name: "sub" }).click();
  await until(() => assert.equal(host.seen.followed.length, 2));
  writeFileSync(join(served, "sub", "new.txt"), "x");
  await view.locator("li.fresh", { hasText: "new.txt" }).waitFor();
  assert.equal(await view.locator("li.fresh").count(), 1);
  host.clean();
  await host.close();
  await files.close();
});

test("an update that nobody followed does not call the server by itself", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("query_rows", { sql: "SELECT 1 AS one" }, { capabilities: FOLLOWING });
  await view.getByRole("cell", { name: "1" }).waitFor();
  await host.page.evaluate((number) => window.sendRaw(number, { method: "notifications/resources/updated", params: { uri: "sqlite://app/.schema" } }), number);
  await view.getByText("The data has changed.").waitFor();
  assert.deepEqual(host.seen.calls, []);
  host.clean();
  await host.close();
});

test("a forecast is renewed in the units that were chosen", async () => {
  const sky = await weather();
  const host = await browser.open(sky);
  const { view } = await host.show("get_weather", { place: "Birmingham" }, { capabilities: FOLLOWING });
  await until(() => assert.equal(host.seen.followed.length, 3));
  await view.getByRole("button", { name: "Imperial" }).click();
  const measured = view.getByRole("region", { name: "Measured at KBHM" });
  await measured.getByText("57 °F").waitFor();
  const calls = () => host.seen.calls.filter((call) => call.name === "get_weather"), before = calls().length;
  await host.page.evaluate((uri) => window.updated(uri), host.seen.followed[0]);
  await until(() => assert.equal(calls().length, before + 2));
  await measured.getByText("57 °F").waitFor();
  assert.deepEqual(calls().at(-1).input, { place: "Birmingham", units: "imperial" });
  host.clean();
  await host.close();
  await sky.close();
});
