// A folder as a tree with sizes, opened level by level through the server's own listing; a file's beginning below it.
// Where the host passes on updates, the folders that are open are followed, and what changed in them is marked.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { type CallToolResult, textOf } from "../kit/bridge";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";
import "./tree.css";
import { Icon, kindOf } from "./tree-icons";
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
  uri?: string | undefined;
  /** The paths of what came or changed since it was read before. */
  fresh?: ReadonlySet<string>;
}

const uriOf = (result: CallToolResult) => (typeof result._meta?.["uri"] === "string" ? result._meta["uri"] : undefined);

/** `now` with what differs from `before` named. */
function compared(now: Folder, before: Folder | undefined): Folder {
  if (!before) return now;
  const known = new Map(before.entries.map((entry) => [entry.path, `${entry.size} ${entry.modified}`]));
  return { ...now, fresh: new Set(now.entries.filter((entry) => !entry.folder && known.get(entry.path) !== `${entry.size} ${entry.modified}`).map((entry) => entry.path)) };
}

const PAGE = 500;

function parse(text: string): Folder {
  const [head = "", ...lines] = text.split("\n");
  const above = /^\[(.*): [\d,]+ (of [\d,]+ )?entr/.exec(head)?.[1] ?? ".";
  // The day of all entries, or their time, stands in the first line alone.
  const told = /; all changed ([\d-]{10}(?:T[\d:]+Z)?)\]$/.exec(head)?.[1] ?? "";
  const entries = lines.filter(Boolean).map((line): Entry => {
    const [shown = "", ...fields] = line.split("\t");
    const folder = shown.endsWith("/");
    const name = folder && shown.length > 1 ? shown.slice(0, -1) : shown;
    // Names stand below their folder's path; where text would not do they are URIs.
    const path = above === "." || above === "served folders" || name.includes("/") ? name : `${above}/${name}`;
    const size = /^[\d,]+$/.test(fields[0] ?? "") ? Number(fields.shift()!.replaceAll(",", "")) : null;
    const time = /^[\dT:-]+Z$/.test(fields[0] ?? "") ? fields.shift()! : "";
    const modified = told && time ? `${told}T${time}` : told || time;
    return { path, name: path.slice(path.lastIndexOf("/") + 1) || path, folder, size, modified, note: fields.join(" ") };
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
  const [wanted, setWanted] = useState("");
  const [preview, setPreview] = useState<Entry>();
  const list = useRef<HTMLUListElement>(null), first = useRef(call.version);

  const load = async (path: string, cursor: string | null = null, order = sort) => {
    call.say("Loading…");
    try {
      const hidden = { include_hidden: call.input["include_hidden"] ?? true, include_ignored: call.input["include_ignored"] ?? true };
      const result = await call.host.callTool("list_directory", { path, sort: order, limit: PAGE, ...hidden, ...(cursor ? { cursor } : {}) });
      if (result.isError) throw new Error(textOf(result));
      const page = { ...parse(textOf(result)), uri: uriOf(result) };
      setFolders((folders) => ({ ...folders, [path]: cursor ? { ...page, entries: [...folders[path]!.entries, ...page.entries] } : compared(page, folders[path]) }));
      call.say("");
    } catch (error) {
      call.say(plain((error as Error).message, 500));
      // What is gone is not followed any more.
      if (path !== root && !cursor) setFolders(({ [path]: _, ...others }) => others);
    }
  };
  useEffect(() => call.host.follow(Object.values(folders).flatMap(({ uri }) => uri ?? [])), [folders]);
  useEffect(() => {
    if (call.version !== first.current) return Object.keys(folders).forEach((path) => void load(path));
    const shown = call.host.tool === "list_directory" && !call.input["cursor"] ? parse(call.text) : undefined;
    if (shown && !shown.cursor && (call.input["sort"] ?? "name") === sort) setFolders({ [root]: { ...shown, uri: uriOf(call.result) } });
    else void load(root);
  }, [call.version]);

  const rows = useMemo(() => {
    const found: { entry: Entry; level: number; part: number; more?: string; fresh?: boolean }[] = [];
    const named = (entry: Entry) => entry.name.toLowerCase().includes(wanted.toLowerCase());
    // A folder stays for what is known to be in it.
    const shown = (entry: Entry): boolean => !wanted || named(entry) || !!folders[entry.path]?.entries.some(shown);
    // One scale for all bars; a folder below cannot be larger than its own at the root.
    const largest = Math.max(1, ...(folders[root]?.entries ?? []).map((entry) => sizeOf(entry, folders) ?? 0));
    const walk = (path: string, level: number) => {
      const folder = folders[path];
      if (!folder) return;
      // Folders first where names order them; by size and time the server's order is what was asked for.
      const entries = sort === "name" ? [...folder.entries].sort((one, other) => Number(other.folder) - Number(one.folder)) : folder.entries;
      for (const entry of entries) {
        if (!shown(entry)) continue;
        found.push({ entry, level, part: (sizeOf(entry, folders) ?? 0) / largest, fresh: folder.fresh?.has(entry.path) ?? false });
        if (entry.folder && (open[entry.path] || (wanted && folders[entry.path]))) walk(entry.path, level + 1);
      }
      if (folder.cursor && !wanted) {
        found.push({ entry: { path: `${path}/…`, name: "more entries", folder: false, size: null, modified: "", note: "" }, level, part: 0, more: path });
      }
    };
    walk(root, 1);
    return found;
  }, [folders, open, root, sort, wanted]);

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
        <h2><Text value={root === "." ? "Served folder" : root} /></h2>
        <input type="search" class="grow" aria-label="Find in what is open" placeholder="Find in what is open" value={wanted}
          onInput={(event) => { setWanted(event.currentTarget.value); setAt(0); }} />
        <label>Sort by{" "}
          <select value={sort} onChange={(event) => reorder(event.currentTarget.value)}>
            <option value="name">name</option><option value="size">size</option><option value="modified">time</option>
          </select>
        </label>
      </div>
      <ul class="scroll tree" role="tree" aria-label="Files" ref={list}>
        {rows.map(({ entry, level, part, more, fresh }, number) => (
          <li key={fresh ? `${entry.path} ${entry.modified} ${entry.size}` : entry.path} class={fresh ? "fresh" : ""} role="treeitem" aria-level={level} tabIndex={number === at ? 0 : -1} aria-selected={preview?.path === entry.path}
            {...(entry.folder ? { "aria-expanded": !!open[entry.path] } : {})}
            onClick={() => act(number)} onKeyDown={(event) => key(event, number)} style={{ paddingInlineStart: `${level * 16 - 8}px` }}>
            <span class="mark" aria-hidden="true">{entry.folder ? (open[entry.path] ? "▾" : "▸") : ""}</span>
            <Icon kind={more !== undefined ? "more" : entry.folder ? (open[entry.path] ? "open" : "folder") : kindOf(entry.name)} />
            <Name value={entry.name} />
            {entry.note && <span class="quiet"><Text value={entry.note} /></span>}
            <span class="size">{sizeText(entry, folders)}</span>
            <span class="part" aria-hidden="true">{part > 0 && <span style={{ width: `${Math.max(1, Math.round(part * 100))}%` }} />}</span>
            <span class="time quiet">{entry.modified.slice(0, 16).replace("T", " ")}</span>
          </li>
        ))}
      </ul>
      {rows.length === 0 && folders[root] && <p class="quiet">{wanted ? "Nothing that is open has such a name." : "Nothing in it."}</p>}
      {preview && <Preview key={preview.path} call={call} entry={preview} onClose={() => setPreview(undefined)} />}
    </>
  );
}

/** How much of a name's end is kept where the whole has no room: the ending, and what tells numbered names apart. */
const KEPT = 10;

/** A name that is cut in its middle where it is too long. */
function Name({ value }: { value: string }) {
  const letters = Array.from(value), end = letters.length > 2 * KEPT ? letters.slice(-KEPT).join("") : "";
  // What cannot be seen is named, and what turns around belongs together: neither is cut.
  if (!end || plain(value, Infinity) !== value || /[\u0590-\u08ff]/.test(value)) return <span class="name whole-name"><Text value={value} /></span>;
  return (
    <span class="name" title={value}>
      <span class="unseen">{value}</span>
      <span class="start" aria-hidden="true">{value.slice(0, value.length - end.length)}</span><span class="end" aria-hidden="true">{end}</span>
    </span>
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

mount("Files", Tree);
