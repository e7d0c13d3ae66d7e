import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browse, until } from "./harness.mjs";
import { github } from "./octo.mjs";

let browser, server;
before(async () => { [browser, server] = await Promise.all([browse(), github()]); });
after(() => Promise.all([browser.close(), server.close()]));

test("issues are filtered, paged and opened in place; what they say stays text", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("list_issues", { repo: "octo/app" });
  await view.getByText("30 loaded, more at GitHub").waitFor();
  await view.getByText("<img src=x onerror=alert(1)><script>alert(2)</script>").first().waitFor();
  assert.equal(await view.locator("#view img, #view script, #view a").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: "Load more" }).click();
  await view.getByText("60 loaded, more at GitHub").waitFor();
  await view.getByLabel("Filter").fill("dark theme");
  await view.getByText("15 of 60 loaded").waitFor();
  await view.getByRole("button", { name: "#6 Add a dark theme" }).click();
  await view.getByText("It happens every time.").waitFor();
  await view.getByText("outsider").first().waitFor();
  await view.getByRole("button", { name: "Open at GitHub" }).click();
  await until(() => assert.deepEqual(host.seen.opened, ["https://github.com/octo/app/issues/6"]));
  assert.deepEqual(host.seen.calls.map((call) => call.name), ["list_issues", "get_issue"]);
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("pull requests are a list of the same kind", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("list_pull_requests", { repo: "octo/app" });
  await view.getByText("sort-once").first().waitFor();
  await view.getByRole("button", { name: "#7" }).click();
  await until(() => assert.equal(host.seen.calls.at(-1).name, "get_pull_request"));
  host.clean();
  await host.close();
});

test("a pull request with its checks, files and threads", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("get_pull_request", { repo: "octo/app", number: 7 });
  await view.getByText("✗ failure").waitFor();
  assert.deepEqual(await view.locator("[role=tabpanel] strong").allInnerTexts(), ["tests", "build", "lint"]);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("tab", { name: "Checks" }).focus();
  await host.page.keyboard.press("ArrowRight");
  const rows = view.getByRole("region", { name: "changed: src/rows.py" });
  await rows.getByText("sorted(set(found))").waitFor();
  await view.getByRole("region", { name: "created: page.html" }).getByText("<script>alert(2)</script>").waitFor();
  await view.getByText("logo.png").waitFor();
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("tab", { name: "Conversation" }).click();
  await view.getByText("Why a set?").waitFor();
  await view.getByText("changes requested").waitFor();
  await view.getByText("src/rows.py:3").waitFor();
  assert.equal(await view.locator("#view img, #view script, #view a").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  assert.deepEqual([...new Set(host.seen.calls.map((call) => call.name))], ["list_checks", "read_diff", "list_reviews"]);
  host.clean();
  await host.close();
});
