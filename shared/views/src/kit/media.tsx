// Pictures and sounds of a result, from its own bytes and from nowhere else.

import { useState } from "preact/hooks";

import type { CallToolResult } from "./bridge";
import "./media.css";
import { plain } from "./text";

export function Media({ result, name }: { result: CallToolResult; name: string }) {
  return <>{result.content.map((block, number) => {
    // The kind of a data URL is the server's word; only these two are ever made, and neither runs anything.
    if (block.type === "image" && /^image\/[\w.+-]+$/.test(block.mimeType)) return <Picture key={number} source={`data:${block.mimeType};base64,${block.data}`} name={name} />;
    if (block.type === "audio" && /^audio\/[\w.+-]+$/.test(block.mimeType)) {
      return <audio key={number} controls src={`data:${block.mimeType};base64,${block.data}`} aria-label={plain(name)} />;
    }
    return null;
  })}</>;
}

function Picture({ source, name }: { source: string; name: string }) {
  const [whole, setWhole] = useState(false);
  const [size, setSize] = useState("");
  return (
    <figure class="picture">
      <div class={whole ? "scroll whole" : "scroll"} role="region" aria-label="Picture" tabIndex={0}>
        <img src={source} alt={plain(name)} onLoad={({ currentTarget: { naturalWidth, naturalHeight } }) => setSize(`${naturalWidth} × ${naturalHeight}`)} />
      </div>
      <figcaption class="bar">
        <button type="button" aria-pressed={whole} onClick={() => setWhole(!whole)}>Full size</button>
        <span class="quiet">{size}</span>
      </figcaption>
    </figure>
  );
}
