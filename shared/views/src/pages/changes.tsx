// What changed: a commit, a range, or what is not committed yet.

import { ChangeView, changeOf, hunksOf } from "../kit/change";
import "../kit/change.css";
import { type Call, mount } from "../kit/mount";

function Changes(call: Call) {
  return (
    <>
      <ChangeView key={call.version} host={call.host} input={call.input} result={call.result} say={call.say} />
      <p class="bar pager"><button type="button" onClick={() => call.copied(hunksOf(changeOf(call.result).patch), "the patch")}>Copy patch</button></p>
    </>
  );
}

mount("Changes", Changes, ({ result }) => (typeof result._meta?.["uri"] === "string" ? [result._meta["uri"]] : []));
