// What an edit does to files. A dry run can be approved here, which makes the same call for real, or dropped.

import { useMemo, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { Files, filesOf } from "../kit/diff";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";

/** What was said of the edit, and the diff below it. */
function split(text: string): { dryRun: boolean; said: string[]; diff: string } {
  const start = text.search(/^--- /m);
  const head = (start < 0 ? text : text.slice(0, start)).split("\n").filter(Boolean);
  const dryRun = head[0]?.startsWith("[dry run") ?? false;
  return { dryRun, said: dryRun ? head.slice(1) : head, diff: start < 0 ? "" : text.slice(start) };
}

function Diff(call: Call) {
  const [text, setText] = useState(call.text);
  const [decided, decide] = useState<"" | "running" | "approved" | "dropped">("");
  const shown = useMemo(() => split(text), [text]);
  const files = useMemo(() => filesOf(shown.diff), [shown.diff]);
  const names = files.map((file) => plain(file.name)).join(", ");
  const tool = call.host.tool ?? ("patch" in call.input ? "edit_files" : "edit_file");

  const approve = async () => {
    decide("running");
    call.say("Writing…");
    try {
      const result = await call.host.callTool(tool, { ...call.input, dry_run: false });
      if (result.isError) throw new Error(textOf(result));
      const done = split(textOf(result));
      setText(textOf(result));
      decide("approved");
      call.say(done.diff === shown.diff ? "Written." : "Written; the file had changed since the dry run, what is shown now was done.");
      await call.host.tellModel(`The user approved the dry run in the view; the edit is now written: ${done.said.join("; ")}`);
    } catch (error) {
      decide("");
      call.say(plain((error as Error).message, 1000));
    }
  };
  const drop = async () => {
    decide("dropped");
    call.say("Dropped: nothing was written.");
    await call.host.tellModel(`The user dropped the dry run of ${tool} on ${names} in the view; nothing was written.`);
  };

  return (
    <>
      <div class="bar">
        {shown.dryRun
          ? <span class="badge warn">{decided === "dropped" ? "dropped, nothing written" : "dry run, nothing written yet"}</span>
          : <span class="badge good">written</span>}
        <span class="quiet">{files.length === 1 ? "1 file" : `${files.length} files`}</span>
        <span class="bar end">
        {shown.dryRun && decided !== "dropped" && (
          <>
            <button type="button" class="main" disabled={decided === "running"} onClick={approve}>Approve and write</button>
            <button type="button" disabled={decided === "running"} onClick={drop}>Drop</button>
          </>
        )}
        <button type="button" onClick={() => call.copied(shown.diff, "the diff")}>Copy diff</button>
        </span>
      </div>
      {shown.said.slice(files.length).map((line) => <p class="quiet"><Text value={line} /></p>)}
      {files.length ? <Files files={files} /> : <p class="quiet">{shown.said.map((line) => <Text value={line} />)}</p>}
    </>
  );
}

mount("Edit", (call) => <Diff key={call.text} {...call} />);
