import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browse, until } from "./harness.mjs";
import { postgres, SHOP } from "./postgres.mjs";

let browser, server;
before(async () => { [browser, server] = await Promise.all([browse(), postgres(SHOP)]); });
after(() => Promise.all([browser.close(), server.close()]));

test("a schema is drawn with the keys of all its schemas", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("list_objects", {});
  await view.getByRole("button", { name: /^shop\.sale / }).waitFor();
  // Keys of several columns are one line; a key to the table itself; partitions are their table's.
  assert.equal(await view.locator("path.edge").count(), 5);
  assert.equal(await view.getByRole("button", { name: /visit_2026/ }).count(), 0);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: /^shop\.sale / }).focus();
  await host.page.keyboard.press("Enter");
  const details = view.getByRole("region", { name: "Table shop.sale" });
  await details.getByText("by shelf, number").waitFor();
  await details.getByText("(on delete cascade)").waitFor();
  await details.getByText("numeric(8,2)").waitFor();
  await details.getByRole("button", { name: "shop.item" }).click();
  await view.getByRole("region", { name: "Table shop.item" }).getByText("(on delete set null)").waitFor();
  assert.ok(host.seen.calls.every((call) => call.name === "query_rows"));

  const one = await host.show("list_objects", { schema: "public" });
  await one.view.getByRole("button", { name: /^customer / }).waitFor();
  assert.equal(await one.view.locator("g.box").count(), 3);
  const functions = await host.show("list_objects", { kind: "functions", schema: "shop" });
  await functions.view.getByText("shop.twice").waitFor();
  assert.equal(await functions.view.locator("svg").count(), 0);
  host.clean();
  await host.close();
});

test("hostile names stay names", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("list_objects", { schema: "shop" });
  await view.getByRole("button", { name: /<img src=x/ }).first().click();
  await view.getByRole("region", { name: /<img src=x/ }).getByText('"><script>alert(2)</script>').first().waitFor();
  assert.equal(await view.locator("#view script, #view img").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  const plan = await host.show("explain_query", { sql: 'SELECT * FROM shop."Fake\nSeq Scan on nothing"' });
  await plan.view.getByText("Seq Scan on Fake Seq Scan on nothing").waitFor();
  assert.equal(await plan.view.locator("li").count(), 1);
  host.clean();
  await host.close();
});

test("a statement that failed is shown with the place of its fault", async () => {
  const host = await browser.open(server);
  for (const [sql, fault] of [["SELECT 'שלום 😀' AS a, nothing FROM shop.sale", "nothing"], ["SELECT id\nFROM shop.sale\nWHER id = 1", "id"]]) {
    const { view, number } = await host.show("query_rows", { sql });
    await view.getByRole("alert").waitFor();
    assert.equal(await view.locator("mark.fault").innerText(), fault);
    assert.equal(await view.locator(".statement").evaluate((element) => element.textContent), sql);
    assert.deepEqual(await host.violations(number), []);
  }
  host.clean();
  await host.close();
});

test("a plan says where the cost is", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("explain_query", { sql: "SELECT * FROM shop.sale WHERE price < 1.5 ORDER BY at LIMIT 3" });
  const scan = view.locator("li.costly", { hasText: "Seq Scan on sale" }).last();
  await scan.getByText(/⚠ \d+ % of the cost/).waitFor();
  await scan.getByText("filter: (sale.price < 1.5)").waitFor();
  await scan.getByText(/^cost [\d,]+$/).waitFor();
  assert.deepEqual(await host.violations(number), []);
  const cheap = await host.show("explain_query", { sql: "SELECT * FROM shop.sale WHERE id = $1", parameters: [10] });
  await cheap.view.getByText("✓ nothing expensive").waitFor();
  // What a LIMIT stops early does not cost what all of it would.
  const early = await host.show("explain_query", { sql: "SELECT * FROM shop.sale LIMIT 1" });
  await early.view.getByText("✓ nothing expensive").waitFor();
  host.clean();
  await host.close();
});

test("a plan that was run says where the time went and which estimates were wrong", async () => {
  const host = await browser.open(server);
  const sql = "SELECT (SELECT count(*) FROM shop.sale s WHERE s.shelf = c.id AND s.price > 0) FROM customer c WHERE c.id < 4";
  const { view, number } = await host.show("explain_query", { sql, analyze: true });
  const scan = view.locator("li.costly", { hasText: "Seq Scan on sale" }).last();
  await scan.getByText(/⚠ \d+ % of the time/).waitFor();
  // The total that the bar shows is what is named, and it is what its runs come to.
  const [, total, each] = /^([\d.,]+) ms \(3 × ([\d.,]+) ms\)$/.exec(await scan.getByText(/ms \(3 × /).innerText());
  assert.ok(Math.abs(3 * Number(each) - Number(total)) <= 0.005 * Number(total) + 0.02, `${total} is not 3 × ${each}`);
  await view.getByText(/ms of it itself$/).first().waitFor();
  await view.getByText("it was run, and rolled back").waitFor();
  await view.getByText(/^execution /).waitFor();
  assert.deepEqual(await host.violations(number), []);
  const wrong = await host.show("explain_query", { sql: "SELECT * FROM pair WHERE a = 1 AND b = 1 AND a + b = 2", analyze: true });
  await wrong.view.getByText(/times more rows than expected/).first().waitFor();
  const never = await host.show("explain_query", { sql: "SELECT * FROM customer WHERE false AND id IN (SELECT owner FROM shop.item)", analyze: true });
  await never.view.getByText("✓ nothing expensive").waitFor();
  host.clean();
  await host.close();
});

test("workers run beside each other: their times do not add up to more than the whole", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("explain_query", { sql: "SELECT count(*) FROM pair WHERE a + b > 0", analyze: true });
  await view.locator("li", { hasText: /^Gather/ }).first().waitFor();
  const shares = await view.locator("svg.share rect").evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("width"))));
  const sum = shares.reduce((all, share) => all + share, 0);
  assert.ok(sum <= 100 + 0.5 * shares.length + 5, `${shares}`);
  assert.ok(Math.max(...shares) > 5, `${shares}`);
  const text = (await server.client.callTool({ name: "explain_query", arguments: { sql: "SELECT count(*) FROM pair WHERE a + b > 0", analyze: true } })).content[0].text;
  assert.match(text, /^ +Gather: .*, 2 workers/m);
  host.clean();
  await host.close();
});

test("rows are paged through the server's own cursor", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("query_rows", { sql: "SELECT id, at, price FROM shop.sale ORDER BY id" });
  await view.getByText("1–50 of 100 loaded, more on the server").waitFor();
  await view.getByRole("button", { name: "Next →" }).click();
  await view.getByRole("button", { name: "Load more →" }).click();
  await view.getByText("101–150 of 600 loaded, more on the server").waitFor();
  // numeric is text, and sorts as the numbers it holds.
  await view.getByRole("columnheader", { name: "price" }).getByRole("button").click();
  await until(async () => assert.equal(await view.locator("tbody tr td:nth-child(3)").first().innerText(), "89.95"));
  host.clean();
  await host.close();
});
