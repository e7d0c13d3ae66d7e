// What every view has: the connection, the host's look, the states before and beside a result, one place for messages.

import { render, type ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type CallToolResult, Host, textOf } from "./bridge";
import { copy } from "./copy";
import "./kit.css";
import { Text } from "./text";
import { dress } from "./theme";

export interface Call {
  host: Host;
  /** The arguments of the call that opened the view. */
  input: Record<string, unknown>;
  result: CallToolResult;
  /** The result's text, as the model reads it. */
  text: string;
  /** "dark" or "light", for what CSS does not reach. */
  theme: string;
  /** Say something to the person, screen readers included. */
  say: (message: string) => void;
  /** Put `text` on the clipboard and say so. */
  copied: (text: string, what: string) => void;
}

interface State {
  input: Record<string, unknown>;
  result?: CallToolResult;
  cancelled?: string;
  theme: string;
  changed: boolean;
}

/** Show `View` for the call that the host tells of. `title` names the page for screen readers. */
export function mount(title: string, View: ComponentType<Call>): void {
  document.title = title;
  render(<Frame title={title} View={View} />, document.getElementById("view")!);
}

function Frame({ title, View }: { title: string; View: ComponentType<Call> }) {
  const [state, setState] = useState<State>({ input: {}, theme: "light", changed: false });
  const [message, say] = useState("");
  const [byHand, setByHand] = useState("");
  const merge = (more: Partial<State>) => setState((state) => ({ ...state, ...more }));
  const host = useRef<Host>(undefined);
  host.current ??= new Host({
    input: (params) => merge({ input: params.arguments ?? {} }),
    result: (result) => merge({ result, changed: false }),
    cancelled: (cancelled) => merge({ cancelled }),
    changed: () => merge({ changed: true }),
    context: (context) => {
      dress(context);
      merge({ theme: context.theme ?? "light" });
    },
  });
  useEffect(() => {
    host.current!.connect(title).catch((error: Error) => say(error.message));
  }, []);

  const again = async () => {
    say("Loading…");
    try {
      merge({ result: await host.current!.callTool(host.current!.tool!, state.input), changed: false });
      say("");
    } catch (error) {
      say((error as Error).message);
    }
  };
  const copied = async (text: string, what: string) => {
    const done = await copy(text);
    setByHand(done ? "" : text);
    say(done ? `Copied ${what}.` : "This host does not let views copy; here it is to copy by hand:");
  };

  let body = <p class="quiet">{state.cancelled ?? "Waiting for the result…"}</p>;
  if (state.result?.isError) body = <p class="error" role="alert"><Text value={textOf(state.result)} /></p>;
  else if (state.result) {
    const text = textOf(state.result);
    body = (
      <View host={host.current!} input={state.input} result={state.result} text={text} theme={state.theme} say={say}
        copied={copied} />
    );
  }
  return (
    <main>
      <h1 class="unseen">{title}</h1>
      {state.changed && host.current!.tool && (
        <p class="notice">
          The data has changed. <button type="button" onClick={again}>Show it now</button>
        </p>
      )}
      {body}
      <p class="message" role="status">{message}</p>
      {byHand && <textarea class="by-hand" aria-label="To copy" readOnly rows={6} value={byHand} />}
    </main>
  );
}
