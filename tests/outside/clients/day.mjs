// What a TypeScript client does in a day with mcp-fs, whatever the SDK's generation; the test judges the report.
//
//   node typescript-vN.mjs NODE_MODULES_PARENT '{"url" | "command" + "args", "era", "folder", "notes", "note"}'
//
// `notes` is the URI of the file at path `note`, directly in `folder`.

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

export const packages = createRequire(join(process.argv[2], "package.json"));
export const task = JSON.parse(process.argv[3]);

export const wait = (promise, what, milliseconds = 20_000) =>
  Promise.race([
    promise,
    new Promise((_, reject) => setTimeout(() => reject(new Error(`no ${what} in time`)), milliseconds).unref()),
  ]);

// `onUpdated(handler)` registers for update notices; `subscribe(uri)` resolves to what takes the subscription back.
export async function day(client, { onUpdated, subscribe }) {
  const report = { server: client.getServerVersion().name, capabilities: client.getServerCapabilities() };
  const names = (things) => things.map((thing) => thing.name);
  report.tools = names((await client.listTools()).tools);
  // Checked by the client against the tool's output schema, which it has seen above.
  report.information = await client.callTool({ name: "get_info", arguments: { path: "notes.txt" } });
  report.read = await client.callTool({ name: "read_text", arguments: { path: "notes.txt" } });
  report.refused = await client.callTool({ name: "read_text", arguments: { path: "../outside.txt" } });
  report.resources = (await client.listResources()).resources.map((resource) => resource.uri);
  report.templates = (await client.listResourceTemplates()).resourceTemplates.map((item) => item.uriTemplate);
  report.contents = (await client.readResource({ uri: task.notes })).contents;
  report.prompts = names((await client.listPrompts()).prompts);
  report.prompt = (await client.getPrompt({ name: "review_file", arguments: { path: "notes.txt" } })).messages;
  report.completion = (
    await client.complete({
      ref: { type: "ref/prompt", name: "review_file" },
      argument: { name: "path", value: "not" },
    })
  ).completion.values;

  const heard = [];
  let wake = () => {};
  onUpdated((uri) => {
    heard.push(uri);
    wake();
  });
  const notice = async (uri) => {
    while (!heard.includes(uri)) await new Promise((resolve) => (wake = resolve));
  };
  const folder = pathToFileURL(task.folder).href;
  const stop = await subscribe(task.notes);
  const stopFolder = await subscribe(folder);
  writeFileSync(task.note, "two\n");
  await wait(notice(task.notes), "update notice");
  report.updated = (await client.readResource({ uri: task.notes })).contents[0].text;

  await stop();
  heard.length = 0;
  writeFileSync(task.note, "three\n");
  writeFileSync(join(task.folder, "child.txt"), "");
  await wait(notice(folder), "notice about the folder");
  report.afterwards = [...new Set(heard)];
  await stopFolder();
  await client.close();
  process.stdout.write(JSON.stringify(report));
}
