// Every view as one HTML file, with nothing to load and a policy that lets nothing be loaded:
//     npm ci && npm run build
// writes the pages into the packages that carry them, and `built.json`, which tests hold against sources and pages.
// `node build.mjs <folder>` writes into <folder> instead, to compare.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..", "..");
const target = process.argv[2] ?? root;

/** Which package carries which pages. */
const PACKAGES = {
  "shared/src/mcp_batteries/pages": ["table", "diagram", "plan", "forecast"],
  "servers/filesystem/src/mcp_fs/pages": ["diff", "tree", "media"],
  "servers/git/src/mcp_git/pages": ["changes", "history"],
  "servers/github/src/mcp_github/pages": ["draft", "issues", "pull"],
};
const BUNDLED = ["@dagrejs/dagre", "@tanstack/preact-store", "@tanstack/preact-table", "@tanstack/store",
  "@tanstack/table-core", "devlop", "diff", "highlight.js", "lowlight", "marked", "preact", "uplot"];

const digest = (data, encoding = "hex") => createHash("sha256").update(data).digest(encoding);

async function bundled(page) {
  const done = await build({
    entryPoints: [join(here, "src", "pages", `${page}.tsx`)],
    absWorkingDir: here,
    outdir: "out",
    bundle: true,
    write: false,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "warning",
  });
  const text = (ending) => done.outputFiles.filter((file) => file.path.endsWith(ending)).map((file) => file.text).join("").trim();
  return { script: text(".js"), style: text(".css") };
}

function html({ script, style }) {
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${digest(script, "base64")}'`,
    `style-src 'sha256-${digest(style, "base64")}'`,
    "img-src data:", "media-src data:", "font-src data:",
    "base-uri 'none'", "form-action 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'",
  ].join("; ");
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<title>View</title>
<style>${style}</style>
</head><body><div id="view"></div>
<script>${script}</script>
</body></html>
`;
}

/** The licences of what is bundled: each asks to go with every copy. */
async function licences() {
  const parts = [];
  for (const name of BUNDLED) {
    const home = join(here, "node_modules", name);
    const about = JSON.parse(await readFile(join(home, "package.json"), "utf8"));
    const file = (await readdir(home)).find((item) => /^licen[cs]e/i.test(item));
    const text = file ? await readFile(join(home, file), "utf8") : `${about.license}\n`;
    parts.push(`${name} ${about.version}\n\n${text.replace(/\r\n/g, "\n").trim()}\n`);
  }
  return `The pages in this folder contain these libraries.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}

/** Digest of everything a page is made of, by the names of the files. */
async function sources() {
  const files = (await readdir(join(here, "src"), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => relative(here, join(entry.parentPath, entry.name)).split(sep).join("/"));
  const names = [...files, "build.mjs", "package.json", "package-lock.json"].sort();
  const lines = [];
  for (const name of names) lines.push(`${digest((await readFile(join(here, name), "utf8")).replace(/\r\n/g, "\n"))}  ${name}\n`);
  return digest(lines.join(""));
}

const pages = {};
const notice = await licences();
for (const [folder, names] of Object.entries(PACKAGES)) {
  await mkdir(join(target, folder), { recursive: true });
  await writeFile(join(target, folder, "LICENSES.txt"), notice);
  for (const name of names) {
    const page = html(await bundled(name));
    await writeFile(join(target, folder, `${name}.html`), page);
    pages[`${folder}/${name}.html`] = digest(page);
  }
}
const built = join(target, "shared", "views", "built.json");
await mkdir(dirname(built), { recursive: true });
await writeFile(built, `${JSON.stringify({ sources: await sources(), pages }, null, 2)}\n`);
