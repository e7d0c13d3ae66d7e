// mcp-weather against upstreams of its own on loopback (skies.py), which judge every request.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

import { ROOT, serve } from "./harness.mjs";

const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");

export async function weather(...words) {
  const upstream = spawn(PYTHON, [join(import.meta.dirname, "skies.py"), ...words], { stdio: ["pipe", "pipe", "inherit"] });
  const [said] = await once(upstream.stdout, "data");
  const server = await serve("mcp_weather", [...JSON.parse(said), "--cache", "memory"]);
  return {
    ...server,
    close: async () => {
      await server.close();
      upstream.stdin.end();
      const [status] = await once(upstream, "exit");
      assert.equal(status, 0, "the upstreams were asked what they do not answer");
    },
  };
}
