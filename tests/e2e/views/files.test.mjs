import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { crc32, deflateSync } from "node:zlib";

import { folder } from "./databases.mjs";
import { browse, serve, until } from "./harness.mjs";

const served = folder();
const note = join(served, "notes.txt");
const HOSTILE = "<img src=x onerror=alert(1)>\u202e.txt";

/** A picture of one colour. */
function png(width, height) {
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const frame = Buffer.alloc(8 + body.length);
    frame.writeUInt32BE(data.length, 0);
    body.copy(frame, 4);
    frame.writeUInt32BE(crc32(body) >>> 0, 4 + body.length);
    return frame;
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8);
  const rows = Buffer.concat(Array.from({ length: height }, () => Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 120)])));
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", header), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

let browser, server;
before(async () => {
  mkdirSync(join(served, "sub", "deep"), { recursive: true });
  writeFileSync(join(served, "sub", "large.bin"), Buffer.alloc(40_000));
  writeFileSync(join(served, "sub", HOSTILE), "one line\nאחת\n");
  writeFileSync(join(served, "picture.png"), png(320, 200));
  [browser, server] = await Promise.all([browse(), serve("mcp_fs", [served])]);
});
after(() => Promise.all([browser.close(), server.close()]));

const edit = (old_text, new_text) => ({ path: "notes.txt", edits: [{ old_text, new_text }], dry_run: true });

test("a dry run is approved in the view, by the same call", async () => {
  writeFileSync(note, "one\ntwo words here\nthree\n");
  const host = await browser.open(server);
  const { view, number } = await host.show("edit_file", edit("two words here", "two other words here"));
  await view.getByText("dry run, nothing written yet").waitFor();
  assert.equal(await view.locator("tr.added mark").innerText(), "other ");
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("button", { name: "Approve and write" }).click();
  await view.getByRole("status").getByText("Written.").waitFor();
  assert.equal(readFileSync(note, "utf8"), "one\ntwo other words here\nthree\n");
  const [{ name, input: { expected_hash, ...input } }] = host.seen.calls;
  assert.deepEqual([name, input], ["edit_file", { ...edit("two words here", "two other words here"), dry_run: false }]);
  assert.match(expected_hash, /^[0-9a-f]{8,}$/);
  await until(() => assert.match(host.seen.told[0], /approved/));
  await view.getByText("written", { exact: true }).waitFor();
  assert.equal(await view.getByRole("button", { name: "Approve and write" }).count(), 0);
  host.clean();
  await host.close();
});

test("a dry run is dropped in the view, and nothing is called", async () => {
  writeFileSync(note, "one\n");
  const host = await browser.open(server);
  const { view, number } = await host.show("edit_file", edit("one", "two"));
  await view.getByRole("button", { name: "Drop" }).click();
  await view.getByText("Dropped: nothing was written.").waitFor();
  await until(() => assert.match(host.seen.told[0], /dropped/));
  assert.deepEqual(host.seen.calls, []);
  assert.equal(readFileSync(note, "utf8"), "one\n");
  assert.deepEqual(await host.violations(number), []);
  await host.close();
});

test("what the server refuses at the approval is shown", async () => {
  writeFileSync(note, "one\n");
  const host = await browser.open(server);
  const { view } = await host.show("edit_file", edit("one", "two"));
  await view.getByText("dry run, nothing written yet").waitFor();
  writeFileSync(note, "changed meanwhile\n");
  await view.getByRole("button", { name: "Approve and write" }).click();
  await view.getByRole("status").getByText("notes.txt").waitFor();
  assert.equal(readFileSync(note, "utf8"), "changed meanwhile\n");
  await view.getByRole("button", { name: "Approve and write" }).waitFor();
  await host.close();
});

test("a patch of several files, hostile text in them", async () => {
  writeFileSync(note, "one\n");
  const host = await browser.open(server);
  const patch = `--- /dev/null\n+++ b/new.html\n@@ -0,0 +1,2 @@\n+<script>alert(1)</script>\n+--- a\u202eb\n--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-one\n+<img src=x onerror=alert(2)>\n`;
  const { view, number } = await host.show("edit_files", { patch, dry_run: true });
  await view.getByText("<script>alert(1)</script>").waitFor();
  await view.getByText("⟨U+202E⟩").waitFor();
  await view.getByText("2 files").waitFor();
  await view.getByText("created").waitFor();
  assert.equal(await view.locator("#view script, #view img").count(), 0);
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});

test("an edit longer than an answer is shown whole, then approved", async () => {
  const lines = Array.from({ length: 700 }, (_, number) => `line ${number} of a long file`);
  writeFileSync(note, lines.join("\n") + "\n");
  const host = await browser.open(server);
  const { view } = await host.show("edit_file", { ...edit("long", "short"), edits: [{ old_text: "long", new_text: "short", replace_all: true }] });
  assert.equal(await view.locator("tr.added").count(), 700);
  await view.getByText("+700").waitFor();
  await view.getByText("line 699 of a short file").waitFor();
  await view.getByRole("button", { name: "Approve and write" }).click();
  await view.getByRole("status").getByText("Written.").waitFor();
  assert.equal(readFileSync(note, "utf8"), lines.join("\n").replaceAll("long", "short") + "\n");
  host.clean();
  await host.close();
});

/** A patch that replaces every line of new files, long ones, with lines that look like a diff's own. */
function patchOf(names, length) {
  return names.map((name) => {
    const old = Array.from({ length }, (_, number) => `-- a/line ${number}`), fresh = old.map((_, number) => `++ b/line ${number} of a longer text`);
    writeFileSync(join(served, name), old.join("\n") + "\n");
    return `--- a/${name}\n+++ b/${name}\n@@ -1,${length} +1,${length} @@\n${old.map((line) => `-${line}\n`).join("")}${fresh.map((line) => `+${line}\n`).join("")}`;
  }).join("");
}

test("several large files are shown, and what is closed has to be opened before it is approved", async () => {
  const host = await browser.open(server);
  const { view } = await host.show("edit_files", { patch: patchOf(["first.txt", "second.txt", "third.txt"], 700), dry_run: true });
  await view.getByText("3 files", { exact: true }).waitFor();
  const approve = view.getByRole("button", { name: "Approve and write" });
  assert.equal(await view.getByText("+700").count(), 3);
  assert.equal(await approve.isDisabled(), false);
  const longer = await host.show("edit_files", { patch: patchOf(["first.txt", "second.txt", "third.txt"], 3000), dry_run: true });
  await longer.view.getByText("2 files are closed").waitFor();
  const disabled = () => longer.view.getByRole("button", { name: "Approve and write" }).isDisabled();
  assert.equal(await disabled(), true);
  await longer.view.getByRole("heading", { name: "second.txt" }).click();
  await longer.view.getByText("1 file is closed").waitFor();
  assert.equal(await disabled(), true);
  await longer.view.getByRole("heading", { name: "third.txt" }).click();
  await until(async () => assert.equal(await disabled(), false));
  host.clean();
  await host.close();
});

test("what cannot be shown cannot be approved", async () => {
  const lines = Array.from({ length: 5000 }, (_, number) => `old ${number}`);
  writeFileSync(note, lines.join("\n") + "\n");
  const host = await browser.open(server);
  const { view } = await host.show("edit_file", { ...edit("old", "new"), edits: [{ old_text: "old", new_text: "new", replace_all: true }] });
  await view.getByText("It cannot be approved here").waitFor();
  await view.getByText("+5,000").waitFor();
  assert.equal(await view.getByRole("button", { name: "Approve and write" }).count(), 0);
  await view.getByRole("button", { name: "Drop" }).waitFor();
  host.clean();
  await host.close();
});

test("a folder opens level by level, by keyboard, and shows sizes", async () => {
  writeFileSync(note, "one\n");
  const host = await browser.open(server);
  const { view, number } = await host.show("list_tree", {});
  const sub = view.getByRole("treeitem", { name: "sub" }).first();
  await sub.waitFor();
  assert.deepEqual(await host.violations(number), []);
  await view.getByRole("treeitem").first().focus();
  await host.page.keyboard.press("ArrowRight");
  await view.getByRole("treeitem", { name: "large.bin" }).getByText("40.0 kB").waitFor();
  assert.equal(await sub.getAttribute("aria-expanded"), "true");
  await sub.getByText("≥ 40.0 kB").waitFor();
  await view.getByRole("treeitem", { name: "deep" }).click();
  await sub.getByText("40.0 kB", { exact: true }).waitFor();
  await view.getByRole("treeitem", { name: "onerror" }).click();
  await view.getByRole("region", { name: /Preview/ }).or(view.locator("section.preview")).getByText("one line").waitFor();
  assert.equal(await view.locator("#view img").count(), 0);
  await view.getByRole("treeitem", { name: "picture.png" }).click();
  await view.getByRole("img", { name: "picture.png" }).waitFor();
  await view.getByText("320 × 200").waitFor();
  assert.deepEqual(await host.violations(number), []);
  await view.getByLabel("Sort by").selectOption("size");
  await until(() => assert.equal(host.seen.calls.at(-1).input.sort, "size"));
  host.clean();
  await host.close();
});

test("a large folder comes in pages", async () => {
  const large = folder();
  for (let number = 0; number < 620; number++) writeFileSync(join(large, `f${String(number).padStart(4, "0")}.txt`), "x");
  const other = await serve("mcp_fs", [large]);
  const host = await browser.open(other);
  const { view } = await host.show("list_directory", {});
  const more = view.getByRole("treeitem", { name: "more entries" });
  await more.waitFor();
  for (let pages = 0; await more.count(); pages++) {
    assert.ok(pages < 10);
    const shown = await view.getByRole("treeitem").count();
    await more.press("Enter");
    await until(async () => assert.ok((await view.getByRole("treeitem").count()) > shown || !(await more.count())));
  }
  assert.equal(await view.getByRole("treeitem").count(), 620);
  assert.equal(await view.getByRole("treeitem").last().locator(".name").innerText(), "f0619.txt");
  await host.close();
  await other.close();
});

test("a picture is shown from its own bytes", async () => {
  const host = await browser.open(server);
  const { view, number } = await host.show("read_media", { path: "picture.png" });
  const picture = view.getByRole("img", { name: "picture.png" });
  await view.getByText("320 × 200").waitFor();
  assert.match(await picture.getAttribute("src"), /^data:image\/png;base64,/);
  await view.getByRole("button", { name: "Full size" }).click();
  assert.deepEqual(await host.violations(number), []);
  host.clean();
  await host.close();
});
