// What the pictures show: real servers, each view with a call and what a person does next.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder } from "./databases.mjs";
import { ROOT, serve } from "./harness.mjs";
import { github } from "./octo.mjs";
import { weather } from "./weather.mjs";

function files() {
  const served = folder();
  execFileSync("git", ["-C", ROOT, "archive", "--output", join(served, "all.tar"), "HEAD", "shared/src", "examples", "README.md"]);
  execFileSync("tar", ["-xf", "all.tar"], { cwd: served });
  rmSync(join(served, "all.tar"));
  mkdirSync(join(served, "pictures"));
  copyFileSync(join(ROOT, "docs", "views", "table.png"), join(served, "pictures", "table.png"));
  writeFileSync(join(served, "report.py"), 'def total(rows):\n    """Sum of the prices."""\n    result = 0\n    for row in rows:\n        result += row.price\n    return result\n\n\ndef main():\n    print(total(load()))\n');
  return served;
}

/** A repository with branches that part and meet, the same at each call. */
export function repository() {
  const made = join(folder(), "app");
  let minute = 0;
  const git = (...words) => {
    const when = `2026-11-20T12:${String(minute++).padStart(2, "0")}:00+00:00`;
    const who = { GIT_AUTHOR_DATE: when, GIT_COMMITTER_DATE: when };
    for (const role of ["AUTHOR", "COMMITTER"]) Object.assign(who, { [`GIT_${role}_NAME`]: "Ada Lovelace", [`GIT_${role}_EMAIL`]: "ada@example.org" });
    execFileSync("git", ["-C", made, "-c", "init.defaultBranch=main", "-c", "commit.gpgSign=false", ...words], { env: { ...process.env, ...who, GIT_CONFIG_GLOBAL: "/dev/null" } });
  };
  const commit = (subject, name, text) => {
    writeFileSync(join(made, name), text);
    git("add", "--all");
    git("commit", "--quiet", "--message", subject);
  };
  mkdirSync(made);
  git("init", "--quiet");
  commit("Add the report", "report.py", "def total(rows):\n    result = 0\n    for row in rows:\n        result += row.price\n    return result\n");
  commit("Say what it is for", "README.md", "# Report\n\nSums up prices.\n");
  git("tag", "v1.0");
  git("switch", "--quiet", "--create", "decimal");
  commit("Prices are decimals", "report.py", "def total(rows: Iterable[Row]) -> Decimal:\n    result = Decimal(0)\n    for row in rows:\n        result += row.price\n    return result\n");
  git("switch", "--quiet", "main");
  git("switch", "--quiet", "--create", "guide");
  commit("Begin a guide", "guide.md", "# Guide\n");
  git("switch", "--quiet", "main");
  commit("Name the licence, which everybody who copies the report has to know before they do so", "LICENSE", "MIT\n");
  git("merge", "--quiet", "--no-ff", "--message", "Merge the decimals", "decimal");
  git("switch", "--quiet", "guide");
  commit("Explain the columns", "guide.md", "# Guide\n\nColumns are named.\n");
  git("switch", "--quiet", "main");
  git("merge", "--quiet", "--no-ff", "--message", "Merge the guide", "guide");
  commit("Sum up in one line", "report.py", "def total(rows: Iterable[Row]) -> Decimal:\n    return sum((row.price for row in rows), Decimal(0))\n");
  writeFileSync(join(made, "report.py"), "def total(rows: Iterable[Row]) -> Decimal:\n    return sum((row.price for row in rows if row.paid), Decimal(0))\n");
  writeFileSync(join(made, "picture.bin"), Buffer.from([0, 1, 2]));
  git("add", "picture.bin");
  return made;
}

const edit = {
  path: "report.py", dry_run: true,
  edits: [
    { old_text: "def total(rows):", new_text: "def total(rows: Iterable[Row]) -> Decimal:" },
    { old_text: "    result = 0\n    for row in rows:\n        result += row.price\n    return result", new_text: "    return sum((row.price for row in rows), Decimal(0))" },
  ],
};
const DRAFT = {
  repo: "octo/app", title: "Sort rows once, not twice", head: "sort-once", base: "main", reviewers: ["octocat"], dry_run: true,
  body: "The rows were sorted in place, then once more for the answer.\n\n- one sort\n- a test that counts comparisons\n\nSee https://example.org/rows for the measurements.",
};
const chart = (view) => view.getByRole("button", { name: "Chart" }).dispatchEvent("click");

const VISITS = `SELECT country, count(*), max(last) FROM (
  SELECT country, (SELECT max(visited) FROM visits WHERE customer_id = customers.id) AS last FROM customers WHERE joined < '2024-03-01'
) seen GROUP BY country ORDER BY 2 DESC`;

/** [picture, server, tool, arguments, what a person does then, what to wait for] */
export async function samples() {
  const sqlite = await serve("mcp_sqlite", ["--demo"]);
  const postgres = await serve("mcp_postgres", ["--demo"]);
  const fs = await serve("mcp_fs", [files()]);
  const git = await serve("mcp_git", [repository()]);
  const octo = await github();
  const sky = await weather();
  const sql = "SELECT title, authors.name AS author, published, price, copies FROM books JOIN authors ON authors.id = author_id ORDER BY published";
  return {
    servers: [sqlite, postgres, fs, git, octo, sky],
    views: [
      ["table", sqlite, "query_rows", { sql }, chart, (view) => view.locator(".bars")],
      ["diagram", sqlite, "list_tables", {}, (view) => view.getByRole("button", { name: /^loans / }).dispatchEvent("click"), (view) => view.locator(".details")],
      ["plan", postgres, "explain_query", { sql: VISITS, analyze: true }, null, (view) => view.locator(".steps").first()],
      ["diff", fs, "edit_file", edit, null, (view) => view.locator("mark").first()],
      ["tree", fs, "list_directory", {}, async (view) => {
        for (const name of ["shared", "src", "mcp_batteries", "remote"]) await view.getByRole("treeitem", { name }).first().dispatchEvent("click");
      }, (view) => view.getByRole("treeitem", { name: "memory.py" })],
      ["media", fs, "read_media", { path: "pictures/table.png" }, null, (view) => view.getByText(" × ").first()],
      ["changes", git, "read_diff", {}, null, (view) => view.locator("mark").first()],
      ["history", git, "list_commits", { all_branches: true }, (view) => view.getByRole("button", { name: "Sum up in one line" }).dispatchEvent("click"), (view) => view.locator(".opened .file")],
      ["issues", octo, "list_issues", { repo: "octo/app", limit: 8 }, (view) => view.getByRole("button", { name: /^#2 / }).dispatchEvent("click"), (view) => view.locator(".whole")],
      ["pull", octo, "get_pull_request", { repo: "octo/app", number: 7 }, null, (view) => view.getByText("✗ failure")],
      ["draft", octo, "create_pull_request", DRAFT, null, (view) => view.getByRole("button", { name: "hubot" })],
      ["forecast", sky, "get_weather", { place: "Birmingham", days: 7 }, null, (view) => view.locator("canvas").nth(2)],
    ],
  };
}
