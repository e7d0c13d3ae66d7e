// A picture or a sound from a file.

import { Media } from "../kit/media";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";

function File(call: Call) {
  const path = String(call.input["path"] ?? "file");
  const [head = "", ...body] = call.text.split("\n");
  const shown = call.result.content.some((block) => block.type === "image" || block.type === "audio");
  const rest = body.join("\n").trim();
  return (
    <>
      <p class="bar quiet"><Text value={head.replace(/^\[|\]$/g, "")} /></p>
      {shown && <Media result={call.result} name={plain(path)} />}
      {rest && <pre class="scroll" tabIndex={0} aria-label="Text of the file"><Text value={rest} /></pre>}
      {!shown && !rest && <p class="quiet">There is nothing to see or hear in this file.</p>}
    </>
  );
}

mount("File", File);
