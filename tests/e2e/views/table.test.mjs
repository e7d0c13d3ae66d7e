import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { database, HOSTILE, MEASURED } from "./databases.mjs";
import { browse, serve, until } from "./harness.mjs";

let browser, server, hostile;
before(async () => {
  [browser, server, hostile] = await Promise.all([browse(), serve("mcp_sqlite", [database(MEASURED)]), serve("mcp_sqlite", [database(HOSTILE)])]);
});
after(() => Promise.all([browser.close(), server.close(), hostile.close()]));

const READINGS = { sql: "SELECT id, day, degrees, big FROM reading ORDER BY id" };
const column = async (view, number) => view.locator(`tbody tr td:nth-child(${number})`).allInnerTexts();

test("rows are shown, sorted and filtered", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("query_rows", READINGS);
  await view.getByText("1–50 of 100 loaded, more on the server").waitFor();
  assert.deepEqual((await column(view, 1)).slice(0, 3), ["1", "2", "3"]);

  const degrees = view.getByRole("columnheader", { name: "degrees" });
  await degrees.getByRole("button").click();
  await until(async () => assert.equal(await degrees.getAttribute("aria-sort"), "descending"));
  const shown = (await column(view, 3)).map(Number);
  assert.deepEqual(shown, [...shown].sort((one, other) => other - one));
  await degrees.getByRole("button").click();
  await until(async () => assert.equal(await degrees.getAttribute("aria-sort"), "ascending"));
  assert.equal(Number((await column(view, 3))[0]), 2);
  await view.getByText("Sorted among the rows loaded so far").waitFor();

  await view.getByLabel("Filter rows").fill("2024-02-1");
  await view.getByText("1–10 of 10 matching of 100").waitFor();
  assert.ok((await column(view, 2)).every((day) => day.startsWith("2024-02-1")));
  await view.getByRole("button", { name: "Filter columns" }).click();
  await view.getByLabel("Filter id").fill("4");
  await view.getByText(/of \d matching of 100/).waitFor();
  assert.ok((await column(view, 1)).every((id) => id.includes("4")));
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("integers beyond 2^53 sort as numbers", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("query_rows", { sql: "SELECT big * (id % 3 - 1) AS big FROM reading LIMIT 30" });
  await view.getByRole("columnheader", { name: "big" }).getByRole("button").click();
  await until(async () => {
    const shown = (await column(view, 1)).map(BigInt);
    assert.deepEqual(shown, [...shown].sort((one, other) => (one < other ? 1 : one > other ? -1 : 0)));
  });
  await host.close();
});

test("pages come through the server's cursor, all of one moment", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("query_rows", READINGS);
  await view.getByRole("button", { name: "Next →" }).click();
  await view.getByText("51–100 of 100 loaded").waitFor();
  await view.getByRole("button", { name: "Load more →" }).click();
  await view.getByText("101–150 of 600 loaded, more on the server").waitFor();
  assert.equal((await column(view, 1))[0], "101");
  assert.deepEqual(Object.keys(host.seen.calls[0].input), ["cursor", "limit", "max_bytes"]);
  assert.equal(host.seen.calls[0].name, "query_rows");
  // To the end: 1,200 rows.
  await view.getByLabel("Filter rows").fill("no such row");
  for (const count of ["1,100", "1,200"]) {
    await view.getByRole("button", { name: "Load more →" }).click();
    await view.getByText(`matching of ${count}`).waitFor();
  }
  await view.getByLabel("Filter rows").fill("");
  await view.getByText("1–50 of 1,200").waitFor();
  assert.equal(await view.getByText("more on the server").count(), 0);
  host.clean();
  await host.close();
});

test("a few wide rows become a screenful by themselves, and columns can be left out", async () => {
  const host = await browser.open(server);
  const wide = Array.from({ length: 40 }, (_, number) => `printf('%.*c', 30, 'x') AS c${number}`).join(", ");
  const sql = `WITH RECURSIVE n(id) AS (SELECT 10001 UNION ALL SELECT id + 1 FROM n WHERE id < 10120) SELECT id, id * 1000.5 AS price, ${wide} FROM n`;
  const { view, number } = await host.show("query_rows", { sql });
  await view.getByText("1–50 of ").waitFor();
  assert.equal(await view.locator("tbody tr").count(), 50);
  assert.equal(host.seen.calls.length, 1);
  // An amount is grouped for the eye; a key is one word.
  assert.equal(await view.locator("tbody td").first().innerText(), "10001");
  assert.deepEqual(await view.locator("tbody td").nth(1).locator("span").allInnerTexts(), ["10", "006", "000"]);
  assert.equal(await view.locator("tbody td").nth(1).innerText(), "10006000.5");
  await view.getByRole("button", { name: "Columns", exact: true }).click();
  await view.getByRole("checkbox", { name: "price" }).uncheck();
  await view.getByRole("columnheader", { name: "c0", exact: true }).waitFor();
  assert.equal(await view.getByRole("columnheader", { name: "price" }).count(), 0);
  const box = async () => (await view.locator("tbody td").first().boundingBox()).x;
  const before = await box();
  await view.getByRole("region", { name: "Rows" }).evaluate((element) => { element.scrollLeft = 500; });
  assert.ok(Math.abs((await box()) - before) < 2, "the first column stays");
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("a cursor the server no longer knows is told, and nothing is lost", async () => {
  const host = await browser.open(server);
  const result = await server.client.callTool({ name: "query_rows", arguments: READINGS });
  result.content[0].text = result.content[0].text.replace(/cursor=[\w-]+/, "cursor=garbage");
  const { view } = await host.show("query_rows", READINGS, { result });
  await view.getByRole("button", { name: "Next →" }).click();
  await view.getByRole("button", { name: "Load more →" }).click();
  await view.getByText("was not issued for this listing").waitFor();
  await view.getByText("51–100 of 100 loaded").waitFor();
  await host.close();
});

test("a fitting chart, and another by choice", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("query_rows", READINGS);
  await view.getByRole("button", { name: "Chart" }).click();
  const chart = view.getByRole("img");
  assert.match(await chart.getAttribute("aria-label"), /^Line chart of degrees by day, 100 rows/);
  // Something is drawn: more than one colour on the canvas.
  const colours = await view.locator("canvas").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(Array.from({ length: data.length / 4 }, (_, at) => data.slice(at * 4, at * 4 + 4).join())).size;
  });
  assert.ok(colours > 10, `${colours} colours`);
  await view.getByRole("group", { name: "Chart" }).getByLabel("as").selectOption("points");
  await until(async () => assert.match(await chart.getAttribute("aria-label"), /^Scatter plot/));
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();

  const other = await browser.open(server);
  const bars = await other.show("query_rows", { sql: "SELECT id, name, height FROM station" });
  await bars.view.getByRole("button", { name: "Chart" }).click();
  assert.match(await bars.view.getByRole("img").getAttribute("aria-label"), /^Bar chart of height by name, 2 rows/);
  const none = await other.show("query_rows", { sql: "SELECT name FROM station" });
  await none.view.getByRole("button", { name: "Chart" }).click();
  await none.view.getByText("No column of these rows holds numbers").waitFor();
  other.clean();
  await other.close();
});

test("copies as CSV and Markdown", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("query_rows", { sql: `SELECT 1 AS id, 'a "b", c' AS t, NULL AS n UNION ALL SELECT 2, '=1+1|' || char(10) || '<b>', -5` });
  // The frame has no clipboard of its own here: what it copies is read where it puts it.
  const read = (name, from = view) => from.locator("body").evaluate((body, name) => new Promise((resolve) => {
    body.ownerDocument.defaultView.addEventListener("copy", (event) => resolve(event.clipboardData.getData("text/plain")), { once: true });
    [...body.querySelectorAll("button")].find((button) => button.textContent === name).click();
  }), name);
  assert.equal(await read("Copy CSV"), 'id,t,n\r\n1,"a ""b"", c",\r\n2,"\'=1+1|\n<b>",-5\r\n');
  await view.getByText("Copied 2 rows as CSV").waitFor();
  const formulas = await host.show("query_rows", { sql: `SELECT '+1' AS "=a", '-1.50' AS b, '-1+cmd' AS c, '@x' AS d, char(9) || '=1' AS e, char(0xff1d) || '1' AS f, ' =1' AS g` });
  await formulas.view.getByRole("cell", { name: "@x" }).waitFor();
  assert.equal(await read("Copy CSV", formulas.view), '\'=a,b,c,d,e,f,g\r\n+1,-1.50,\'-1+cmd,\'@x,\'\t=1,\'\uff1d1, =1\r\n');
  assert.equal(await read("Copy Markdown"), '| id | t | n |\n| --- | --- | --- |\n| 1 | a "b", c |  |\n| 2 | =1+1\\| \\<b\\> | -5 |\n');
  await host.close();
});

test("works by keyboard alone", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("query_rows", { sql: "SELECT id, name FROM station" });
  await view.getByLabel("Filter rows").focus();
  for (let presses = 0; presses < 7; presses++) await host.page.keyboard.press("Tab");
  assert.equal(await view.locator(":focus").getAttribute("aria-label"), "Rows");
  await host.page.keyboard.press("Tab");
  await host.page.keyboard.press("Tab");
  await host.page.keyboard.press("Enter");
  await until(async () => assert.equal(await view.getByRole("columnheader", { name: "name" }).getAttribute("aria-sort"), "ascending"));
  await host.close();
});

test("a key leads to the row it names, and values that come again narrow the rows", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("query_rows", { sql: "SELECT id, station_id, day FROM reading ORDER BY id" });
  await view.locator("tbody tr").nth(1).getByRole("button", { name: "2" }).click();
  await view.getByRole("region", { name: "Row that a key names" }).getByText("South").waitFor();
  await view.getByRole("button", { name: "Values" }).click();
  await view.getByRole("group", { name: "Values of station_id" }).getByRole("button", { name: /^1/ }).click();
  await view.getByText("1–50 of 50 matching of 100 loaded").waitFor();
  assert.deepEqual([...new Set(await column(view, 2))], ["1"]);
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("hostile cells stay data", async () => {
  const host = await browser.open(hostile);
  const { view, number } = await host.show("query_rows", { sql: "SELECT * FROM evil" });
  await view.getByText('<script>alert(1)</script>').waitFor();
  await view.getByRole("columnheader", { name: "<img src=x onerror=alert(1)>" }).waitFor();
  assert.equal(await view.locator("tbody script, tbody img, th img").count(), 0);
  await view.getByText("⟨U+202E⟩").waitFor();
  await view.getByText("⟨U+200B⟩").waitFor();
  await view.getByText("⟨U+E0041⟩").waitFor();
  // Joiners that belong where they are: nothing is marked in the last rows.
  assert.equal(await view.locator("tbody tr:nth-child(n+6) .hidden-character").count(), 0);
  assert.equal(await view.locator("tbody tr:nth-child(6) bdi").last().innerText(), "שלום עולם");
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("a page that was tampered with runs nothing and loads nothing", async () => {
  const host = await browser.open(server);
  const { contents: [contents] } = await server.client.readResource({ uri: server.tool("query_rows")._meta.ui.resourceUri });
  const html = contents.text.replace("</body>", "<script>parent.postMessage('ran', '*')</script><img src='data:,' onerror='window.ran=1'><img src='https://attacker.example/x.png'></body>");
  await host.page.evaluate((html) => {
    window.heard = [];
    window.addEventListener("message", (event) => window.heard.push(event.data));
    const frame = document.createElement("iframe");
    frame.sandbox = "allow-scripts";
    frame.srcdoc = html;
    document.body.append(frame);
  }, html);
  await until(async () => assert.ok((await host.page.evaluate(() => window.heard.length)) > 0));
  assert.ok(!(await host.page.evaluate(() => window.heard)).includes("ran"));
  assert.deepEqual(host.seen.requests, []);
  assert.ok(host.seen.errors.some((error) => error.includes("Content Security Policy")));
  await host.close();
});

test("10,000 columns, a cell of a megabyte", async () => {
  const host = await browser.open(server);
  const names = Array.from({ length: 10_000 }, (_, number) => `c${number}`);
  const text = `[2 rows]\n${JSON.stringify(names)}\n${JSON.stringify(names.map((_, number) => number))}\n${JSON.stringify(names.map(() => null))}\n`;
  const wide = await host.show("query_rows", {}, { result: { content: [{ type: "text", text }] } });
  await wide.view.getByText("Columns 1–40 of 10,000").waitFor();
  assert.equal(await wide.view.getByRole("columnheader").count(), 40);
  await wide.view.getByRole("button", { name: "Columns →" }).click();
  await wide.view.getByRole("columnheader", { name: "c41", exact: true }).waitFor();
  await wide.view.getByRole("button", { name: "Chart" }).click();
  await wide.view.locator("canvas").waitFor();

  const long = await host.show("query_rows", { sql: "SELECT printf('%.*c', 999000, 'x') AS long", max_cell: 1_000_000, max_bytes: 1_000_000 });
  await long.view.getByRole("button", { name: "… 999,000 characters" }).click();
  const whole = await long.view.locator("section pre").evaluate((element) => element.textContent.length);
  assert.equal(whole, 999_000);
  host.clean();
  await host.close();
});

test("errors, cancellations and plain texts are shown as such", async () => {
  const host = await browser.open(server);
  const failed = await host.show("query_rows", { sql: "SELEC 1" });
  await failed.view.getByRole("alert").getByText("syntax error").waitFor();
  assert.equal(await failed.view.locator("mark.fault").innerText(), "SELEC");
  const small = Number(await host.page.locator("iframe").getAttribute("data-asked"));
  assert.ok(small > 20 && small < 200, `${small} pixels`);
  const other = await host.show("query_rows", {}, { result: { content: [{ type: "text", text: "<b>not rows</b>" }] } });
  await other.view.getByText("<b>not rows</b>").waitFor();
  host.clean();
  await host.close();
});

test("follows the host's look and what the host tells of changes", async () => {
  const host = await browser.open(server);
  const variables = { "--color-background-primary": "rgb(1, 2, 3)", "--font-sans": "Courier" };
  const { view, number } = await host.show("query_rows", { sql: "SELECT count(*) AS n FROM station" }, { theme: "dark", context: { styles: { variables } } });
  const look = () => view.locator("body").evaluate((body) => [getComputedStyle(body).backgroundColor, getComputedStyle(body).fontFamily, body.ownerDocument.documentElement.style.colorScheme]);
  assert.deepEqual(await look(), ["rgb(1, 2, 3)", "Courier", "dark"]);
  await host.page.evaluate((number) => window.sendContext(number, { theme: "light" }), number);
  await until(async () => assert.equal((await look())[2], "light"));
  await host.page.evaluate((number) => window.sendRaw(number, { method: "notifications/resources/updated", params: { uri: "sqlite://app/station" } }), number);
  await view.getByRole("button", { name: "Show it now" }).click();
  await until(() => assert.deepEqual(host.seen.calls.at(-1), { name: "query_rows", input: { sql: "SELECT count(*) AS n FROM station" } }));
  await host.page.evaluate((number) => window.close(number), number);
  host.clean();
  await host.close();
});
