// A real server over stdio, a real browser, and between them the host's page. CHROMIUM names the browser.

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { build } from "esbuild";
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const here = import.meta.dirname;
export const ROOT = join(here, "..", "..", "..");
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const MIME = "text/html;profile=mcp-app";
const APPS = { "io.modelcontextprotocol/ui": { mimeTypes: [MIME] } };
// The policy of the specification for a view that declares no origin.
const POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
  + "img-src 'self' data:; media-src 'self' data:; connect-src 'none'";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The server of `module` started with `words`, as a client that announces views sees it. */
export async function serve(module, words = [], env = {}) {
  const client = new Client({ name: "test host", version: "1" }, { capabilities: { extensions: APPS } });
  const python = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");
  await client.connect(new StdioClientTransport({ command: python, args: ["-m", module, ...words], env: { ...process.env, ...env }, stderr: "inherit" }));
  const { tools } = await client.listTools();
  return {
    client,
    tool: (name) => tools.find((tool) => tool.name === name),
    close: () => client.close(),
  };
}

export async function browse() {
  const { outputFiles: [script] } = await build({
    entryPoints: [join(here, "host.js")], bundle: true, write: false, format: "iife", logLevel: "warning",
  });
  const pages = createServer((request, response) => {
    const [type, body] = request.url === "/host.js" ? ["text/javascript", script.text]
      : ["text/html", "<!doctype html><title>Host</title><body><script src='/host.js'></script>"];
    response.writeHead(200, { "content-type": type, "content-security-policy": POLICY }).end(body);
  });
  await new Promise((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
  const address = `http://127.0.0.1:${pages.address().port}/`;
  return {
    open: (server, size) => open(browser, address, server, size),
    close: async () => {
      await browser.close();
      pages.close();
    },
  };
}

async function open(browser, address, server, size = { width: 900, height: 900 }) {
  const context = await browser.newContext({ viewport: size });
  const page = await context.newPage();
  const seen = { calls: [], told: [], opened: [], followed: [], requests: [], errors: [], dialogs: [] };
  // Here comes what a policy has not stopped before.
  await context.route((url) => !url.href.startsWith(address), (route) => {
    seen.requests.push(route.request().url());
    return route.abort();
  });
  page.on("pageerror", (error) => seen.errors.push(String(error)));
  page.on("console", (message) => {
    // A host may refuse the clipboard; views have another way then.
    if (message.type() === "error" && !message.text().includes("Clipboard API")) seen.errors.push(message.text());
  });
  page.on("dialog", (dialog) => { seen.dialogs.push(dialog.message()); void dialog.dismiss(); });
  await page.exposeFunction("callTool", async ({ name, arguments: input }) => {
    seen.calls.push({ name, input });
    return await server.client.callTool({ name, arguments: input });
  });
  await page.exposeFunction("readResource", async ({ uri }) => await server.client.readResource({ uri }));
  await page.exposeFunction("told", ({ content }) => void seen.told.push(content[0].text));
  await page.exposeFunction("opened", ({ url }) => void seen.opened.push(url));
  await page.exposeFunction("subscribed", async ({ method, uri }) => {
    seen.followed.push(uri);
    await server.client.request({ method, params: { uri } });
  });
  await page.goto(address);
  server.client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    void page.evaluate((uri) => window.updated(uri), params.uri).catch(() => {}); // The page may be gone by now.
  });

  return {
    page, seen,
    /** The view of tool `name`, for a call with `input`; `result` instead of the server's own where it is given. */
    async show(name, input, { theme = "light", width = 800, height = 850, result, context = {}, ...more } = {}) {
      const tool = server.tool(name);
      const uri = tool._meta.ui.resourceUri;
      const { contents: [contents] } = await server.client.readResource({ uri });
      assert.equal(contents.mimeType, MIME);
      assert.deepEqual(contents._meta.ui.csp, {});
      result ??= await server.client.callTool({ name, arguments: input });
      const number = await page.evaluate((call) => window.show(call), {
        html: contents.text, tool, input, result, width, height, context: { theme, locale: "en-GB", ...context }, ...more,
      });
      return { number, view: page.frameLocator(`iframe[title="view ${number}"]`) };
    },
    /** What axe finds wrong in the frame of view `number`. */
    async violations(number) {
      const element = await page.locator(`iframe[title="view ${number}"]`).elementHandle();
      const frame = await element.contentFrame();
      await frame.evaluate(axe);
      const { violations } = await frame.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${node.any[0]?.message ?? ""}`).slice(0, 3).join(" | ")}`);
    },
    /** Nothing was loaded, nothing failed, nothing ran that should not. */
    clean() {
      assert.deepEqual(seen.requests, []);
      assert.deepEqual(seen.errors, []);
      assert.deepEqual(seen.dialogs, []);
    },
    close: () => context.close(),
  };
}

/** Wait until `check` holds; what it throws last is the failure. */
export async function until(check, milliseconds = 20_000) {
  const end = Date.now() + milliseconds;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
