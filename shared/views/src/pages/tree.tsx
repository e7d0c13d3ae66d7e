// A folder as a tree with sizes, opened level by level through the server's own listing; a file's beginning beside it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";
import "./tree.css";
import { Preview } from "./tree-preview";

export interface Entry {
  /** As tools take it. */
  path: string;
  name: string;
  folder: boolean;
  size: number | null;
  modified: string;
  note: string;
}

interface Folder {
  entries: Entry[];
  cursor: string | null;
}

const PAGE = 500;

function parse(text: string): Folder {
  const [head = "", ...lines] = text.split("\n");
  const entries = lines.filter(Boolean).map((line): Entry => {
    const [shown = "", ...fields] = line.split("\t");
    const folder = shown.endsWith("/");
    const path = folder && shown.length > 1 ? shown.slice(0, -1) : shown;
    const size = /^[\d,]+$/.test(fields[0] ?? "") ? Number(fields.shift()!.replaceAll(",", "")) : null;
    return { path, name: path.slice(path.lastIndexOf("/") + 1) || path, folder, size, modified: fields[0] ?? "", note: fields.slice(1).join(" ") };
  });
  return { entries, cursor: /\bcursor="([\w-]+)"/.exec(head)?.[1] ?? null };
}

export function bytes(size: number): string {
  for (const [unit, factor] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]] as const) {
    if (size >= factor) return `${(size / factor).toFixed(size >= 100 * factor ? 0 : 1)} ${unit}`;
  }
  return `${size} B`;
}

function Tree(call: Call) {
  const root = typeof call.input["path"] === "string" && call.input["path"] ? call.input["path"] : ".";
  const [folders, setFolders] = useState<Record<string, Folder>>({});
  const [open, setOpen] = useState<Record<string, boolean>>({ [root]: true });
  const [sort, setSort] = useState("name");
  const [at, setAt] = useState(0);
  const [preview, setPreview] = useState<Entry>();
  const list = useRef<HTMLUListElement>(null);

  const load = async (path: string, cursor: string | null = null, order = sort) => {
    call.say("Loading…");
    try {
      const hidden = { include_hidden: call.input["include_hidden"] ?? true, include_ignored: call.input["include_ignored"] ?? true };
      const result = await call.host.callTool("list_directory", { path, sort: order, limit: PAGE, ...hidden, ...(cursor ? { cursor } : {}) });
      if (result.isError) throw new Error(textOf(result));
      const page = parse(textOf(result));
      setFolders((folders) => ({ ...folders, [path]: cursor ? { ...page, entries: [...folders[path]!.entries, ...page.entries] } : page }));
      call.say("");
    } catch (error) {
      call.say(plain((error as Error).message, 500));
    }
  };
  useEffect(() => {
    const shown = call.host.tool === "list_directory" && !call.input["cursor"] ? parse(call.text) : undefined;
    if (shown && !shown.cursor && (call.input["sort"] ?? "name") === sort) setFolders({ [root]: shown });
    else void load(root);
  }, [call.text]);

  const rows = useMemo(() => {
    const found: { entry: Entry; level: number; part: number; more?: string }[] = [];
    const walk = (path: string, level: number) => {
      const folder = folders[path];
      if (!folder) return;
      const sizes = folder.entries.map((entry) => sizeOf(entry, folders));
      const largest = Math.max(1, ...sizes.map((size) => size ?? 0));
      folder.entries.forEach((entry, number) => {
        found.push({ entry, level, part: (sizes[number] ?? 0) / largest });
        if (entry.folder && open[entry.path]) walk(entry.path, level + 1);
      });
      if (folder.cursor) {
        found.push({ entry: { path: `${path}/…`, name: "more entries", folder: false, size: null, modified: "", note: "" }, level, part: 0, more: path });
      }
    };
    walk(root, 1);
    return found;
  }, [folders, open, root]);

  const act = (number: number) => {
    const { entry, more } = rows[number]!;
    setAt(number);
    if (more !== undefined) return void load(more, folders[more]!.cursor);
    if (!entry.folder) return setPreview(entry);
    setOpen({ ...open, [entry.path]: !open[entry.path] });
    if (!folders[entry.path] && !open[entry.path]) void load(entry.path);
  };
  const key = (event: KeyboardEvent, number: number) => {
    const { entry, level } = rows[number]!;
    const go = (to: number) => {
      const next = Math.max(0, Math.min(rows.length - 1, to));
      setAt(next);
      (list.current!.children[next] as HTMLElement).focus();
    };
    switch (event.key) {
      case "ArrowDown": go(number + 1); break;
      case "ArrowUp": go(number - 1); break;
      case "Home": go(0); break;
      case "End": go(rows.length - 1); break;
      case "ArrowRight":
        if (entry.folder && !open[entry.path]) act(number);
        else if (entry.folder) go(number + 1);
        break;
      case "ArrowLeft":
        if (entry.folder && open[entry.path]) act(number);
        else go(rows.findLastIndex((row, before) => before < number && row.level < level));
        break;
      case "Enter": case " ": act(number); break;
      default: return;
    }
    event.preventDefault();
  };
  const reorder = (order: string) => {
    setSort(order);
    setFolders({});
    setOpen({ [root]: true });
    void load(root, null, order);
  };

  return (
    <>
      <div class="bar">
        <h2 class="grow"><Text value={root === "." ? "Served folder" : root} /></h2>
        <label>Sort by{" "}
          <select value={sort} onChange={(event) => reorder(event.currentTarget.value)}>
            <option value="name">name</option><option value="size">size</option><option value="modified">time</option>
          </select>
        </label>
      </div>
      <ul class="scroll tree" role="tree" aria-label="Files" ref={list}>
        {rows.map(({ entry, level, part, more }, number) => (
          <li key={entry.path} role="treeitem" aria-level={level} tabIndex={number === at ? 0 : -1} aria-selected={preview?.path === entry.path}
            {...(entry.folder ? { "aria-expanded": !!open[entry.path] } : {})}
            onClick={() => act(number)} onKeyDown={(event) => key(event, number)} style={{ paddingInlineStart: `${level * 16 - 8}px` }}>
            <span class="mark" aria-hidden="true">{entry.folder ? (open[entry.path] ? "▾" : "▸") : more === undefined ? "" : "+"}</span>
            <span class="name"><Text value={entry.name} /></span>
            {entry.note && <span class="quiet"><Text value={entry.note} /></span>}
            <span class="size">{sizeText(entry, folders)}</span>
            <span class="part" aria-hidden="true">{part > 0 && <span style={{ width: `${Math.max(1, Math.round(part * 100))}%` }} />}</span>
            <span class="time quiet">{entry.modified.slice(0, 16).replace("T", " ")}</span>
          </li>
        ))}
      </ul>
      {rows.length === 0 && folders[root] && <p class="quiet">Nothing in it.</p>}
      {preview && <Preview key={preview.path} call={call} entry={preview} onClose={() => setPreview(undefined)} />}
    </>
  );
}

/** A file's size; of a folder what its entries have, once they are known. */
function sizeOf(entry: Entry, folders: Record<string, Folder>): number | null {
  if (!entry.folder) return entry.size;
  const folder = folders[entry.path];
  return folder ? folder.entries.reduce((sum, inner) => sum + (sizeOf(inner, folders) ?? 0), 0) : null;
}

function complete(entry: Entry, folders: Record<string, Folder>): boolean {
  const folder = folders[entry.path];
  return !entry.folder || (!!folder && !folder.cursor && folder.entries.every((inner) => complete(inner, folders)));
}

function sizeText(entry: Entry, folders: Record<string, Folder>): string {
  const size = sizeOf(entry, folders);
  return size === null || (size === 0 && !complete(entry, folders)) ? "" : `${complete(entry, folders) ? "" : "≥ "}${bytes(size)}`;
}

mount("Files", (call) => <Tree key={call.text} {...call} />);
