import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browse, until } from "./harness.mjs";
import { github } from "./octo.mjs";

let browser, server;
before(async () => { [browser, server] = await Promise.all([browse(), github("evil")]); });
after(() => Promise.all([browser.close(), server.close()]));

test("issues are filtered, paged and opened in place; what they say stays text", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("list_issues", { repo: "octo/app" });
  await view.getByText("30 loaded, more at GitHub").waitFor();
  await view.getByText("<img src=x onerror=alert(1)><script>alert(2)</script>").first().waitFor();
  assert.equal(await view.locator("#view img, #view script, #view a").count(), 0);
  await until(async () => assert.equal(await view.locator(".label", { hasText: "bug" }).first().evaluate((label) => getComputedStyle(label).backgroundColor), "rgb(215, 58, 74)"));
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
  assert.deepEqual(host.seen.calls.map((call) => call.name), ["list_issue_options", "list_issues", "get_issue"]);
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
  const merge = view.getByRole("region", { name: "Merge" });
  for (const reason of ["It cannot be merged yet", "1 check failed: tests", "1 check still runs: build", "octocat asked for changes"]) await merge.getByText(reason).waitFor();
  await view.getByRole("button", { name: "Job: tests" }).click();
  await until(() => assert.deepEqual(host.seen.opened, ["https://github.com/octo/app/pull/7/checks?check_run_id=1"]));
  assert.deepEqual(await view.locator("[role=tabpanel] strong").allInnerTexts(), ["tests", "build", "lint"]);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("tab", { name: "Checks" }).focus();
  await host.page.keyboard.press("ArrowRight");
  const rows = view.getByRole("region", { name: "changed: src/rows.py" });
  await rows.getByText("sorted(set(found))").waitFor();
  await view.getByRole("region", { name: "created: page.html" }).getByText("<script>alert(2)</script>").waitFor();
  await view.getByRole("region", { name: "changed: logo.png" }).waitFor();
  await view.getByRole("navigation", { name: "Files" }).getByRole("button", { name: "rows.py" }).first().click();
  assert.equal(await rows.locator("summary").evaluate((element) => element === element.ownerDocument.activeElement), true);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("tab", { name: "Conversation" }).click();
  await view.getByText("Why a set?").waitFor();
  await view.getByText("changes requested").waitFor();
  await view.getByText("src/rows.py:3").waitFor();
  assert.equal(await view.locator("#view img, #view script, #view a").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  assert.deepEqual([...new Set(host.seen.calls.map((call) => call.name))], ["list_issue_options", "list_checks", "list_reviews", "read_diff"]);
  host.clean();
  await host.close();
});

test("an issue is changed in the form, sent once, and told to the model", async () => {
  const host = await browser.open(server);
  const input = { repo: "octo/app", title: "Crash\u202e now", body: "see https://attacker.example/x", labels: ["bug"], assignees: "hubot", dry_run: true };
  const { view, number } = await host.show("create_issue", input);
  await view.getByText("public: everybody can read it").waitFor();
  await view.getByText("it links to `attacker.example`").waitFor();
  await view.getByRole("button", { name: "<img src=x onerror=alert(1)><script>alert(2)</script>" }).waitFor();
  assert.equal(await view.locator("#view img, #view script, #view a").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: "Take them out" }).click();
  await view.getByLabel("Text").fill("Now with steps.\n\n1. open");
  await view.getByRole("button", { name: "bug", exact: true }).click();
  await view.getByRole("button", { name: "feature" }).click();
  await view.getByRole("button", { name: "octocat" }).click();
  await view.getByRole("button", { name: "Send to GitHub" }).click();
  await view.getByText("Created issue #71.").waitFor();
  const made = host.seen.calls.filter((call) => call.name === "create_issue" && !call.input.dry_run);
  assert.deepEqual(made.map((call) => call.input), [{
    repo: "octo/app", title: "Crash now", body: "Now with steps.\n\n1. open", labels: ["feature"], assignees: ["hubot", "octocat"], dry_run: false,
  }]);
  host.clean();
  await host.close();
});

test("a pull request that is dropped is not sent; without a title none can be", async () => {
  const host = await browser.open(server);
  const input = { repo: "octo/app", title: "T", head: "x", base: "main", reviewers: ["hubot"], dry_run: true };
  const { view, number } = await host.show("create_pull_request", input);
  await view.getByLabel("Title").fill(" ");
  assert.equal(await view.getByRole("button", { name: "Send to GitHub" }).isDisabled(), true);
  await view.getByRole("button", { name: "Drop" }).click();
  await view.getByText("dropped, nothing was sent").waitFor();
  assert.deepEqual(await host.violations(number), []);
  assert.deepEqual(host.seen.calls.filter((call) => call.input.dry_run === false), []);
  host.clean();
  await host.close();
});
