// Every view, light and dark, at three widths, as one picture each in docs/views: `npm run pictures [name ...]`.
// `chat` is one of them as a person meets it, below a question in a conversation.

import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { browse, ROOT } from "./harness.mjs";
import { samples } from "./samples.mjs";

const WIDTHS = [320, 640, 1000];
const wanted = process.argv.slice(2);
const taken = [];

const CHAT = `
  body { margin: 0; width: 860px; padding: 20px 24px 24px; box-sizing: border-box; background: #eef0f3; font: 15px/1.45 system-ui, sans-serif; color: #1a1a18 }
  .bubble { margin-inline-start: auto; width: max-content; padding: 8px 14px; border-radius: 16px; background: #dbe8fb }
  .call { margin: 12px 0 8px; color: #66655f; font-size: 13px } .said { margin: 12px 0 0 }
  iframe { border: 1px solid #d5d4cd; border-radius: 10px; background: white; display: block }`;

/** A question, the call that answers it, the view of its result, and what a model says below it. */
async function chat(browser, [, server, tool, input, act, shown]) {
  const host = await browser.open(server, { width: 860, height: 300 });
  await host.page.addStyleTag({ content: CHAT });
  const line = (kind, text) => host.page.evaluate(([kind, text]) => document.body.append(Object.assign(document.createElement("div"), { className: kind, textContent: text })), [kind, text]);
  await line("bubble", "What do our books cost? Draw it.");
  await line("call", `✓ sqlite · ${tool}`);
  const { view } = await host.show(tool, input, { theme: "light", width: 812, height: 460 });
  await act(view);
  await shown(view).waitFor();
  await line("said", "Dead Souls is the dearest at 22.50, Frankenstein the cheapest at 5.50.");
  await host.page.setViewportSize({ width: 860, height: await host.page.evaluate(() => document.documentElement.scrollHeight) });
  await host.page.waitForTimeout(300);
  taken.push(join(ROOT, "docs", "views", "chat.png"));
  await host.page.screenshot({ path: taken.at(-1) });
  await host.close();
}

const browser = await browse();
const { servers, views } = await samples();
if (!wanted.length || wanted.includes("chat")) await chat(browser, views[0]);
for (const [name, server, tool, input, act, shown] of views) {
  if (wanted.length && !wanted.includes(name)) continue;
  const host = await browser.open(server, { width: 2040, height: 300 });
  await host.page.addStyleTag({ content: "body { display: grid; grid-template-columns: repeat(3, max-content); gap: 16px; margin: 16px; background: #8a8a86; width: max-content } iframe { border: 0; border-radius: 8px; max-height: 760px }" });
  for (const theme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      const { view, number } = await host.show(tool, input, { theme, width, height: 0 });
      if (act) await act(view);
      await shown(view).waitFor();
      const faults = await host.violations(number);
      if (faults.length) console.log(name, theme, width, faults);
    }
  }
  // Frames outside the window are neither painted nor measured: it grows until all of them are inside.
  for (let rounds = 0; rounds < 4; rounds++) {
    await host.page.waitForTimeout(300);
    await host.page.setViewportSize({ width: 2040, height: await host.page.evaluate(() => document.documentElement.scrollHeight) });
  }
  taken.push(join(ROOT, "docs", "views", `${name}.png`));
  await host.page.screenshot({ path: taken.at(-1) });
  host.clean();
  await host.close();
}
// Few colours are enough, and a third of the bytes.
const reduce = "import sys\nfrom PIL import Image\nfor path in sys.argv[1:]: Image.open(path).convert('RGB').quantize(48, dither=0).save(path, optimize=True)";
execFileSync("uv", ["run", "--no-project", "--with", "pillow>=12,<13", "python", "-c", reduce, ...taken]);
await browser.close();
await Promise.all(servers.map((server) => server.close()));
