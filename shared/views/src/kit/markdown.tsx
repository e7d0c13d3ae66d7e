// Markdown of strangers as elements of ours: read by marked as a tree of tokens, and of these only what is named here is shown
// as what it is. HTML stays text, a picture is never loaded, a link is a button that says where it leads and asks the host.

import { lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import "./code.css";
import { coloured } from "./languages";
import "./markdown.css";
import type { Call } from "./mount";
import { plain, Text } from "./text";

const LONGEST = 30_000, DEEPEST = 12;
/** Lists and quotes inside each other, deeper than anybody writes. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+]|\d+[.)])){16}/m;
const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", "#39": "'" };

const decoded = (text: string) => text.replace(/&(amp|lt|gt|quot|apos|nbsp|#39);/g, (_, name: string) => NAMED[name]!);

function tokens(text: string): Token[] | null {
  if (text.length > LONGEST || TOO_DEEP.test(text)) return null;
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch {
    return null;
  }
}

type Open = ((url: string) => void) | undefined;

export function Markdown({ text, call }: { text: string; call: Call }) {
  const found = useMemo(() => tokens(text), [text]);
  if (!found) return <p class="as-written"><Text value={text} /></p>;
  const open: Open = call.host.capabilities.openLinks
    ? (url) => void call.host.openLink(url).catch((error: Error) => call.say(error.message)) : undefined;
  return <div class="markdown"><Tokens all={found} open={open} deep={0} /></div>;
}

function Tokens({ all, open, deep }: { all: Token[]; open: Open; deep: number }) {
  return <>{all.map((token, number) => <One key={number} token={token} open={open} deep={deep} />)}</>;
}

function One({ token, open, deep }: { token: Token; open: Open; deep: number }) {
  const inside = (all: Token[] | undefined): ComponentChildren => (
    deep < DEEPEST ? <Tokens all={all ?? []} open={open} deep={deep + 1} /> : <Text value={token.raw} />
  );
  switch (token.type) {
    case "space": case "def": return null;
    case "paragraph": return <p>{inside(token.tokens)}</p>;
    case "heading": return <p class={`heading level${Math.min(4, (token as Tokens.Heading).depth)}`}>{inside(token.tokens)}</p>;
    case "blockquote": return <blockquote>{inside(token.tokens)}</blockquote>;
    case "hr": return <hr />;
    case "list": return <List list={token as Tokens.List} inside={inside} />;
    case "code": return <Block code={token as Tokens.Code} />;
    case "table": return <Table table={token as Tokens.Table} inside={inside} />;
    case "strong": return <strong>{inside(token.tokens)}</strong>;
    case "em": return <em>{inside(token.tokens)}</em>;
    case "del": return <del>{inside(token.tokens)}</del>;
    case "codespan": return <code><Text value={(token as Tokens.Codespan).text} /></code>;
    case "br": return <br />;
    case "checkbox": return null;
    case "link": case "image": return <Place token={token as Tokens.Link | Tokens.Image} open={open} />;
    case "text": return token.tokens ? <>{inside(token.tokens)}</> : <Text value={decoded((token as Tokens.Text).text)} />;
    case "escape": return <Text value={(token as Tokens.Escape).text} />;
    // HTML, and what a newer marked may bring.
    default: return <Text value={token.raw} />;
  }
}

function List({ list, inside }: { list: Tokens.List; inside: (all: Token[]) => ComponentChildren }) {
  const items = list.items.map((item, number) => (
    <li key={number} class={item.task ? "task" : ""}>{item.task && <span>{item.checked ? "☑" : "☐"} </span>}{inside(item.tokens)}</li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Block({ code }: { code: Tokens.Code }) {
  const lines = coloured(code.text, /^[\w+#-]+/.exec(code.lang ?? "")?.[0].toLowerCase() ?? "");
  return (
    <pre class="scroll" tabIndex={0} role="region" aria-label="Code">
      {lines ? lines.map((line, number) => <span key={number}>{line.map((piece, at) => <Text key={at} value={piece.text} kind={piece.kind} />)}{"\n"}</span>)
        : <Text value={code.text} />}
    </pre>
  );
}

function Table({ table, inside }: { table: Tokens.Table; inside: (all: Token[]) => ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label="Table" tabIndex={0}>
      <table>
        <thead><tr>{table.header.map((cell, number) => <th key={number} scope="col">{inside(cell.tokens)}</th>)}</tr></thead>
        <tbody>{table.rows.map((row, number) => <tr key={number}>{row.map((cell, at) => <td key={at}>{inside(cell.tokens)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

function Place({ token, open }: { token: Tokens.Link | Tokens.Image; open: Open }) {
  let host = "";
  try {
    const url = new URL(token.href);
    if (url.protocol === "https:" && !url.username) host = url.host;
  } catch { /* An address without a host is shown as it was written. */ }
  if (!host) return <Text value={token.raw} />;
  const text = decoded(token.text) || (token.type === "image" ? "picture" : token.href), same = token.href.includes(text.replace(/^https:\/\//, ""));
  return (
    <>
      {open ? <button type="button" class="plain place" onClick={() => open(token.href)}>{token.type === "image" && "🖼 "}<Text value={plain(text, 300)} /></button> : <Text value={plain(text, 300)} />}
      {(!same || !open) && <span class="quiet"> (<Text value={plain(open ? host : token.href, 200)} />)</span>}
    </>
  );
}
