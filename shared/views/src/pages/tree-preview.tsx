// The beginning of a file, or the picture in it.

import { useEffect, useState } from "preact/hooks";

import { type CallToolResult, textOf } from "../kit/bridge";
import "../kit/code.css";
import { coloured, languageOf } from "../kit/languages";
import { Media } from "../kit/media";
import type { Call } from "../kit/mount";
import { plain, Text } from "../kit/text";
import type { Entry } from "./tree";

const PICTURES = /\.(png|jpe?g|gif|webp|bmp|avif|svg|ico|mp3|wav|ogg|flac|m4a|pdf)$/i;
const LINES = 60;

export function Preview({ call, entry, onClose }: { call: Call; entry: Entry; onClose: () => void }) {
  const [result, setResult] = useState<CallToolResult>();
  const [failure, setFailure] = useState("");
  useEffect(() => {
    const ask = PICTURES.test(entry.path) ? call.host.callTool("read_media", { path: entry.path })
      : call.host.callTool("read_text", { path: entry.path, head: LINES });
    ask.then((result) => (result.isError ? setFailure(textOf(result)) : setResult(result)), (error: Error) => setFailure(error.message));
  }, [entry.path]);
  const [head = "", ...lines] = result ? textOf(result).split("\n") : [];
  const pieces = coloured(lines.join("\n"), languageOf(entry.name));
  return (
    <section class="preview" aria-label={`Preview of ${plain(entry.name)}`}>
      <div class="bar">
        <h2 class="grow"><Text value={entry.path} /></h2>
        <button type="button" onClick={onClose}>Close</button>
      </div>
      {failure && <p class="error" role="alert"><Text value={failure} /></p>}
      {result && <p class="quiet"><Text value={head.replace(/^\[|\]$/g, "")} /></p>}
      {result && (result.content.some((block) => block.type !== "text")
        ? <Media result={result} name={entry.name} />
        : <pre class="scroll" tabIndex={0} aria-label="Beginning of the file">{pieces
          ? pieces.map((line, number) => <span key={number}>{line.map((piece, at) => <Text key={at} value={piece.text} kind={piece.kind} />)}{"\n"}</span>)
          : <Text value={lines.join("\n")} />}</pre>)}
    </section>
  );
}
