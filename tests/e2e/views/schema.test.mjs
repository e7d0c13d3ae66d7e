import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { database, HOSTILE, MEASURED } from "./databases.mjs";
import { browse, serve, until } from "./harness.mjs";

let browser, server, hostile;
before(async () => {
  [browser, server, hostile] = await Promise.all([
    browse(), serve("mcp_sqlite", ["--demo", database(MEASURED)]), serve("mcp_sqlite", [database(HOSTILE)]),
  ]);
});
after(() => Promise.all([browser.close(), server.close(), hostile.close()]));

test("a schema is drawn with its keys, chosen by keyboard", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("list_tables", {});
  await view.getByRole("button", { name: /^books / }).waitFor();
  assert.equal(await view.locator("path.edge").count(), 3);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: /^loans/ }).focus();
  await host.page.keyboard.press("Enter");
  const details = view.getByRole("region", { name: "Table loans" });
  await details.getByText("(on delete cascade)").waitFor();
  assert.equal(await view.locator("path.edge.near").count(), 2);
  await details.getByRole("button", { name: "books" }).click();
  await view.getByRole("region", { name: "Table books" }).getByText("referred to by").waitFor();

  const box = () => view.locator(".drawing > svg").first().getAttribute("viewBox");
  assert.equal(await view.locator("svg.map").count(), 0, "all of it is seen at first");
  for (let presses = 0; presses < 4; presses++) await view.getByRole("button", { name: "Larger" }).click();
  await view.locator("svg.map").waitFor();
  const start = await box();
  await view.getByRole("region", { name: "Diagram of tables and keys" }).press("ArrowRight");
  await until(async () => assert.notEqual(await box(), start));
  await view.getByRole("button", { name: "Copy Mermaid" }).click();
  await view.getByText("Copied the diagram for Mermaid.").waitFor();
  await view.getByRole("button", { name: "Copy SVG" }).click();
  await view.getByText("Copied the picture as SVG.").waitFor();

  await view.getByLabel("Database").selectOption("app");
  await view.getByRole("button", { name: /^reading/ }).click();
  await view.getByRole("region", { name: "Table reading" }).getByText("parent", { exact: true }).first().waitFor();
  assert.equal(await view.locator("path.edge").count(), 2);
  await view.getByLabel("Find tables").fill("nothing like it");
  await view.getByText("No tables.").waitFor();
  assert.deepEqual(await host.violations(number), []);
  assert.ok(host.seen.calls.every((call) => call.name === "query_rows"));
  host.clean();
  await host.close();
});

test("hostile names stay names", async () => {
  const host = await browser.open(hostile);
  const { view, number } = await host.show("list_tables", {});
  await view.getByRole("button", { name: /<script>alert/ }).first().click();
  await view.getByRole("region", { name: /Table a"/ }).getByText('x" onload=alert(4)').first().waitFor();
  assert.equal(await view.locator("path.edge").count(), 1);
  assert.equal(await view.locator("#view script, #view img").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("a plan marks what is expensive and offers the index", async () => {
  const host = await browser.open(server);
  const sql = "SELECT * FROM books JOIN authors ON authors.id = author_id WHERE price > 3 ORDER BY title";
  const { view, number } = await host.show("explain_query", { sql, database: "demo" });
  await view.getByText("2 expensive").waitFor();
  await view.locator("li.costly", { hasText: "SCAN books" }).getByText("reads the whole table").waitFor();
  await view.getByText("sorts or gathers in memory").waitFor();
  assert.equal(await view.locator("li:not(.costly)", { hasText: "SEARCH authors" }).count(), 1);
  await view.getByRole("button", { name: /^Copy CREATE INDEX/ }).click();
  await view.getByText("Copied the index").waitFor();
  assert.deepEqual(await host.violations(number), []);
  const cheap = await host.show("explain_query", { sql: "SELECT * FROM books WHERE id = 1", database: "demo" });
  await cheap.view.getByText("nothing expensive").waitFor();
  const deep = await host.show("explain_query", { sql: "SELECT (SELECT max(name) FROM authors a WHERE a.born < books.published) FROM books", database: "demo" });
  await deep.view.locator("li li", { hasText: "SEARCH a" }).waitFor();
  await deep.view.getByText("runs again for every row").waitFor();
  host.clean();
  await host.close();
});

test("a large schema draws its best connected part and finds the rest", async () => {
  const names = Array.from({ length: 150 }, (_, number) => `t${number}`);
  const script = names.map((name, number) => `CREATE TABLE ${name} (id INTEGER PRIMARY KEY, up REFERENCES t${Math.floor(number / 2)});`).join("\n");
  const large = await serve("mcp_sqlite", [database(script)]);
  const host = await browser.open(large);
  const { view } = await host.show("list_tables", {});
  await view.getByText("The 60 tables with the most keys are drawn").waitFor();
  await view.getByLabel("Find tables").fill("t149");
  await until(async () => assert.equal(await view.locator("g.box").count(), 2));
  host.clean();
  await host.close();
  await large.close();
});
