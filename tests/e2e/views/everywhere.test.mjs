// What holds of every view: no fault that axe finds and nothing beyond the edge, at three widths, light and dark; all of it by keyboard.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { browse } from "./harness.mjs";
import { samples } from "./samples.mjs";

const NAMES = [
  "table", "diagram", "plan", "diff", "tree", "media", "changes", "history", "issues", "pull", "draft", "forecast",
];

let browser, servers, views;
before(async () => {
  browser = await browse();
  ({ servers, views } = await samples());
});
after(() => Promise.all([browser.close(), ...servers.map((server) => server.close())]));

/** What the Tab key must reach, each marked with its number. */
function reachable(root) {
  const all = [...root.querySelectorAll("button, input, select, textarea, summary, audio, [tabindex]")];
  const shown = all.filter((element) => !element.disabled && element.tabIndex >= 0 && element.checkVisibility());
  shown.forEach((element, number) => element.setAttribute("data-number", number));
  return shown.length;
}

/** Where the focus is, and whether that can be seen. */
function focused(root) {
  const element = root.ownerDocument.activeElement;
  const frame = element.querySelector(":scope > .frame");
  const seen = getComputedStyle(element).outlineStyle !== "none" || (frame && getComputedStyle(frame).strokeWidth === "3px");
  return { number: element.getAttribute("data-number"), seen, what: element.outerHTML.slice(0, 100) };
}

for (const name of NAMES) {
  test(`${name} at three widths, light and dark, by keyboard`, async () => {
    assert.deepEqual(views.map((view) => view[0]), NAMES);
    const [, server, tool, input, act, shown] = views.find((view) => view[0] === name);
    for (const width of [320, 640, 1000]) {
      const host = await browser.open(server, { width: width + 20, height: 900 });
      for (const theme of ["light", "dark"]) {
        const { view, number } = await host.show(tool, input, { theme, width, height: 800 });
        if (act) await act(view);
        await shown(view).waitFor();
        assert.deepEqual(await host.violations(number), [], `${theme}, ${width} wide`);
        assert.deepEqual(await view.locator("html").evaluate((page) => [page.scrollWidth - page.clientWidth, page.getAttribute("data-theme")]), [0, theme]);
        if (theme === "dark" || width !== 640) continue;
        const root = view.locator("#view");
        const count = await root.evaluate(reachable);
        assert.ok(count > 0);
        await root.evaluate((element) => element.querySelector("[data-number='0']").focus());
        const reached = new Set();
        for (let presses = 0; presses < count; presses++) {
          const at = await root.evaluate(focused);
          assert.ok(presses === 0 || at.seen, `the focus is not seen: ${at.what}`);
          reached.add(at.number);
          await host.page.keyboard.press("Tab");
        }
        assert.equal(reached.size, count);
      }
      host.clean();
      await host.close();
    }
  });
}
