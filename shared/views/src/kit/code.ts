// Source text in pieces by what they are, found by highlight.js as a tree: no markup is made of it.

import type { LanguageFn } from "highlight.js";
import { createLowlight } from "lowlight";

export interface Piece {
  text: string;
  /** A class of kit/code.css; empty for text that is nothing special. */
  kind: string;
}

export type Coloured = (code: string, language: string) => Piece[][] | null;

/** What is coloured at most: a text longer than this, or a line. */
const LONGEST = 60_000, LONGEST_LINE = 2000;

const KINDS: [RegExp, string][] = [
  [/^(keyword|operator|selector-(tag|pseudo)|tag|name|section)/, "c-keyword"],
  [/^(string|regexp|char|quote|link|symbol|addition)/, "c-string"],
  [/^(comment|doctag)/, "c-comment"],
  [/^(number|literal|variable|template-variable|selector-(id|class|attr)|attr|attribute|bullet|property)/, "c-number"],
  [/^(title|built_in|type|class|meta|function)/, "c-title"],
];

type Node = { type: string; value?: string; children?: Node[]; properties?: { className?: unknown } };

/** What colours texts in these languages, named as files end. Null for a text in no language it knows. */
export function colourer(languages: Record<string, LanguageFn>): Coloured {
  const lowlight = createLowlight(languages);
  return (code, language) => {
    if (!language || !lowlight.registered(language) || code.length > LONGEST) return null;
    const lines: Piece[][] = [[]];
    const walk = (nodes: Node[], kind: string) => {
      for (const node of nodes) {
        if (node.type !== "text") {
          const name = String((node.properties?.className as unknown[] | undefined)?.[0] ?? "").replace("hljs-", "");
          walk(node.children ?? [], KINDS.find(([pattern]) => pattern.test(name))?.[1] ?? kind);
          continue;
        }
        (node.value ?? "").split("\n").forEach((text, number) => {
          if (number) lines.push([]);
          if (text) lines[lines.length - 1]!.push({ text, kind });
        });
      }
    };
    walk(lowlight.highlight(language, code).children as Node[], "");
    return lines.map((line) => {
      const text = line.map((piece) => piece.text).join("");
      return text.length > LONGEST_LINE ? [{ text, kind: "" }] : line;
    });
  };
}
