// The moving picture of the README, from real output: mcp-fs is added to a host, a chat shows a folder, and the view follows it.
//     npm run film
// writes docs/first-{light,dark}.webp and, for people who want no motion, docs/first-{light,dark}.png.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { folder } from "./databases.mjs";
import { browse, ROOT, serve, until } from "./harness.mjs";

const WIDTH = 1120, HEIGHT = 520, TERMINAL = 500;
const FOLLOWING = { serverTools: {}, serverResources: { subscribe: true } };
const LOOKS = {
  light: { page: "#eef0f3", paper: "#ffffff", ink: "#1a1a18", soft: "#66655f", bubble: "#dbe8fb", line: "#d5d4cd" },
  dark: { page: "#0d1117", paper: "#1f1f1e", ink: "#f2f1ec", soft: "#a9a8a0", bubble: "#25406b", line: "#3d3d3a" },
};

const css = (look) => `
  body { margin: 0; width: ${WIDTH}px; height: ${HEIGHT}px; background: ${look.page}; font: 14px/1.45 system-ui, sans-serif; overflow: hidden; position: relative; color: ${look.ink} }
  .pane { position: absolute; top: 14px; bottom: 14px; border-radius: 10px; overflow: hidden; border: 1px solid ${look.line} }
  .terminal { left: 14px; width: ${TERMINAL}px; background: #16181d; color: #e4e4df; font: 13px/1.6 ui-monospace, monospace }
  .chat { left: ${TERMINAL + 28}px; right: 14px; background: ${look.paper} }
  .title { padding: 7px 12px; font: 600 12px system-ui, sans-serif; color: ${look.soft}; border-bottom: 1px solid ${look.line} }
  .terminal .title { color: #a9a8a0; border-color: #33363d }
  .said { padding: 10px 14px; white-space: pre-wrap; overflow-wrap: anywhere }
  .said b { color: #8fd9a4; font-weight: 400 } .said i { font-style: normal; background: #e4e4df }
  .bubble { margin: 12px 14px 0 auto; width: max-content; padding: 7px 12px; border-radius: 14px; background: ${look.bubble} }
  .call { margin: 10px 14px 0; color: ${look.soft}; font-size: 12px }
  .note { position: absolute; bottom: 12px; left: 14px; right: 14px; color: ${look.soft}; font-size: 12.5px }
  iframe { position: absolute; border: 1px solid ${look.line}; border-radius: 8px; left: ${TERMINAL + 42}px; top: 132px }`;

/** What a person has in a folder before a journey. */
function trip() {
  const home = folder(), place = join(home, "trip");
  mkdirSync(join(place, "photos"), { recursive: true });
  const file = (name, size, day) => {
    writeFileSync(join(place, name), Buffer.alloc(size, "x"));
    const at = new Date(`2026-11-${day}T18:20:00Z`);
    utimesSync(join(place, name), at, at);
  };
  file("photos/beach.jpg", 2_412_000, "14");
  file("photos/market.jpg", 1_870_000, "15");
  file("budget.csv", 4_100, "12");
  file("flights.pdf", 188_000, "02");
  file("packing.md", 640, "16");
  file("route.json", 21_300, "09");
  writeFileSync(join(home, "tickets.pdf"), Buffer.alloc(96_000, "x"));
  writeFileSync(join(home, "reef.jpg"), Buffer.alloc(2_950_000, "x"));
  return { home, place };
}

async function film(browser, theme) {
  const { home, place } = trip();
  const server = await serve("mcp_fs", [place]);
  const host = await browser.open(server, { width: WIDTH, height: HEIGHT });
  const { page } = host;
  await page.addStyleTag({ content: css(LOOKS[theme]) });
  await page.evaluate(() => {
    document.body.insertAdjacentHTML("beforeend", `<div class="pane terminal"><div class="title">Terminal</div><div class="said"></div></div>
      <div class="pane chat"><div class="title">Chat</div><div class="talk"></div><div class="note"></div></div>`);
  });
  const frames = [], durations = [];
  const take = async (milliseconds) => {
    frames.push(join(home, `${frames.length}.png`));
    durations.push(milliseconds);
    await page.screenshot({ path: frames.at(-1) });
  };
  let said = "";
  const terminal = (text) => page.evaluate(([text]) => {
    const place = document.querySelector(".said");
    place.replaceChildren(...text.split(/^(\$ )/m).map((part) => part === "$ " ? Object.assign(document.createElement("b"), { textContent: part }) : part), document.createElement("i"));
    place.lastChild.textContent = " ";
  }, [text]);
  const type = async (command) => {
    for (let at = 0; at < command.length; at += Math.ceil(command.length / 6)) {
      await terminal(`${said}$ ${command.slice(0, at)}`);
      await take(110);
    }
    await terminal(`${said}$ ${command}`);
    await take(350);
    said += `$ ${command}\n`;
  };
  const answered = async (text, milliseconds) => {
    said += text;
    await terminal(`${said}$ `);
    await take(milliseconds);
  };
  const chat = (kind, text) => page.evaluate(([kind, text]) => {
    const line = Object.assign(document.createElement("div"), { className: kind, textContent: text });
    document.querySelector(kind === "note" ? ".note" : ".talk").append(line);
  }, [kind, text]);

  await terminal("$ ");
  await take(700);
  await type("uvx --from ./servers/filesystem mcp-fs --install vscode ~/trip");
  const installed = execFileSync(join(ROOT, ".venv", "bin", "mcp-fs"), ["--install", "vscode", place], { env: { PATH: process.env.PATH, HOME: home }, encoding: "utf8" });
  await answered(`${installed.replaceAll(home, "~").trim()}\n\n`, 1800);
  await chat("bubble", "What is in my folder for the trip?");
  await take(900);
  await chat("call", "✓ fs · list_directory");
  const { view, number } = await host.show("list_directory", {}, { theme, width: WIDTH - TERMINAL - 70, height: 318, capabilities: FOLLOWING });
  await view.getByRole("treeitem", { name: "photos" }).click();
  await view.getByRole("treeitem", { name: "market.jpg" }).waitFor();
  await until(() => { if (host.seen.followed.length < 2) throw new Error("nothing is followed yet"); });
  await page.mouse.move(5, 5);
  await take(2200);
  await type("cp tickets.pdf ~/trip/");
  cpSync(join(home, "tickets.pdf"), join(place, "tickets.pdf"));
  await view.locator(".fresh", { hasText: "tickets.pdf" }).waitFor();
  await chat("note", "The view follows the folder by itself: nobody asked again.");
  await answered("", 1500);
  await type("cp reef.jpg ~/trip/photos/");
  cpSync(join(home, "reef.jpg"), join(place, "photos", "reef.jpg"));
  await view.locator(".fresh", { hasText: "reef.jpg" }).waitFor();
  await answered("", 4000);
  host.clean();
  await host.close();
  await server.close();
  const made = join(ROOT, "docs", `first-${theme}`);
  const join_ = "import json, sys\nfrom PIL import Image\nframes, durations, made = json.loads(sys.argv[1])\n"
    + "images = [Image.open(frame).convert('RGB') for frame in frames]\n"
    + "images[-1].quantize(96, dither=0).save(made + '.png', optimize=True)\n"
    // It begins with its end: where a picture does not move, or before it does, the result is seen.
    + "images[-1].save(made + '.webp', save_all=True, append_images=images, duration=[1500, *durations], loop=0, lossless=True, method=6, quality=100)";
  execFileSync("uv", ["run", "--no-project", "--with", "pillow>=12,<13", "python", "-c", join_, JSON.stringify([frames, durations, made])]);
}

const browser = await browse();
for (const theme of process.argv.length > 2 ? process.argv.slice(2) : Object.keys(LOOKS)) await film(browser, theme);
await browser.close();
