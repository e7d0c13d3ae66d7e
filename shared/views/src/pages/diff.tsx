// What an edit does to files. A dry run can be approved here, which makes the same call for real, or dropped.

import { useMemo, useState } from "preact/hooks";

import { textOf } from "../kit/bridge";
import { Files, filesOf, opened } from "../kit/diff";
import { type Call, mount } from "../kit/mount";
import { plain, Text } from "../kit/text";

/** What was said of the edit, and the diff below it: whole, where the server has sent more than the model was to read. */
function split(text: string, whole: unknown): { dryRun: boolean; said: string[]; diff: string } {
  const start = text.search(/^(?:--- |\[diff cut to )/m);
  const head = (start < 0 ? text : text.slice(0, start)).split("\n").filter(Boolean);
  const dryRun = head[0]?.startsWith("[dry run") ?? false;
  const diff = typeof whole === "string" ? whole : start < 0 ? "" : text.slice(start);
  return { dryRun, said: dryRun ? head.slice(1) : head, diff };
}

function Diff(call: Call) {
  const [result, setResult] = useState(call.result);
  const [decided, decide] = useState<"" | "running" | "approved" | "dropped">("");
  const shown = useMemo(() => split(textOf(result), result._meta?.diff), [result]);
  const files = useMemo(() => filesOf(shown.diff), [shown.diff]);
  const [seen, see] = useState<number[]>([]);
  const closed = useMemo(() => opened(files).flatMap((open, number) => (open ? [] : [number])), [files]);
  const unseen = closed.filter((number) => !seen.includes(number)).length;
  const incomplete = !files.length || files.some((file) => file.missing);
  const names = files.map((file) => plain(file.name)).join(", ");
  const tool = call.host.tool ?? ("patch" in call.input ? "edit_files" : "edit_file");

  const approve = async () => {
    decide("running");
    call.say("Writing…");
    try {
      // What is written is what was shown: the file must still have the content that the dry run read.
      const pinned = tool === "edit_file" && typeof result._meta?.hash === "string" ? { expected_hash: result._meta.hash } : {};
      const answer = await call.host.callTool(tool, { ...call.input, ...pinned, dry_run: false });
      if (answer.isError) throw new Error(textOf(answer));
      const done = split(textOf(answer), answer._meta?.diff);
      setResult(answer);
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
            {!incomplete && <button type="button" class="main" disabled={decided === "running" || unseen > 0} onClick={approve}>Approve and write</button>}
            <button type="button" disabled={decided === "running"} onClick={drop}>Drop</button>
          </>
        )}
        <button type="button" onClick={() => call.copied(shown.diff, "the diff")}>Copy diff</button>
        </span>
      </div>
      {shown.dryRun && decided === "" && incomplete && files.length > 0 && (
        <p class="notice">It cannot be approved here, since not all of its lines can be shown. Ask for it in smaller edits.</p>
      )}
      {shown.dryRun && decided === "" && !incomplete && unseen > 0 && (
        <p class="notice">{unseen === 1 ? "1 file is closed" : `${unseen} files are closed`} because of their length: open them to approve what they show.</p>
      )}
      {shown.said.slice(files.length).map((line) => <p class="quiet"><Text value={line} /></p>)}
      {files.length ? <Files files={files} onSeen={(number) => see((seen) => [...seen, number])} /> : <p class="quiet">{shown.said.map((line) => <Text value={line} />)}</p>}
    </>
  );
}

mount("Edit", (call) => <Diff key={call.text} {...call} />);
