// A way out of a view, through the host.

import { text } from "./data";
import type { Call } from "./mount";

/** A button that opens `url` at GitHub, through the host. */
export function Link({ call, url, label = "Open at GitHub", about }: { call: Call; url: unknown; label?: string; about?: string }) {
  if (!call.host.capabilities.openLinks || !/^https:\/\//.test(text(url))) return null;
  return (
    <button type="button" {...(about ? { "aria-label": `${label}: ${about}` } : {})}
      onClick={() => call.host.openLink(text(url)).catch((error: Error) => call.say(error.message))}>
      {label}
    </button>
  );
}
