// mcp-github against a GitHub of its own on loopback (octo.py).

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { ROOT, serve } from "./harness.mjs";

const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");

export async function github(...words) {
  const octo = spawn(PYTHON, [join(import.meta.dirname, "octo.py"), ...words], { stdio: ["pipe", "pipe", "inherit"] });
  const [url] = await once(octo.stdout, "data");
  const server = await serve("mcp_github", ["--api-url", String(url).trim(), "--flow", "off", "--write", "--write-interval", "0"], { GITHUB_TOKEN: "ghp_nobodysOwnTokenForThePictures" });
  return { ...server, close: async () => { await server.close(); octo.stdin.end(); await once(octo, "exit"); } };
}
