// What every view has: the connection, the host's look, the states before and beside a result, one place for messages.

import { Component, render, type ComponentType, type RenderableProps } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { type CallToolResult, Host, textOf } from "./bridge";
import { copy } from "./copy";
import { Failed } from "./failed";
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
  /** How often the result has been replaced by a newer one; what a view loads beside it is to be loaded again. */
  version: number;
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
  version: number;
}

/** The URIs of what a call shows: when one of them is updated, the call is made again. */
type Live = (call: Pick<Call, "input" | "result" | "text">) => string[];

/** Show `View` for the call that the host tells of. `title` names the page for screen readers. */
export function mount(title: string, View: ComponentType<Call>, live?: Live): void {
  document.title = title;
  render(<Frame title={title} View={View} live={live} />, document.getElementById("view")!);
}

/** A view of an answer that is not what it expects: the answer as it is. */
class Guarded extends Component<{ text: string; version: number }, { failure: string; version: number }> {
  override state = { failure: "", version: -1 };
  override componentDidCatch(error: Error) {
    this.setState({ failure: error.message, version: this.props.version });
  }
  override render({ children, text, version }: RenderableProps<{ text: string; version: number }>) {
    const { failure, version: failed } = this.state;
    if (failed !== version) return children;
    return (
      <>
        <p class="notice">This answer cannot be shown as a picture: <Text value={failure} /></p>
        <pre class="scroll as-text" tabIndex={0} role="region" aria-label="Answer"><Text value={text} /></pre>
      </>
    );
  }
}

function Frame({ title, View, live }: { title: string; View: ComponentType<Call>; live: Live | undefined }) {
  const [state, setState] = useState<State>({ input: {}, theme: "light", changed: false, version: 0 });
  const [message, say] = useState("");
  const [byHand, setByHand] = useState("");
  const merge = (more: Partial<State>) => setState((state) => ({ ...state, ...more }));
  const replace = (result: CallToolResult) => setState((state) => ({ ...state, result, changed: false, version: state.version + 1 }));
  const refresh = useRef<(uri: string | undefined) => void>(() => {});
  const calls = useRef(0);
  const host = useRef<Host>(undefined);
  host.current ??= new Host({
    input: (params) => merge({ input: params.arguments ?? {} }),
    result: replace,
    cancelled: (cancelled) => merge({ cancelled }),
    changed: (uri) => refresh.current(uri),
    context: (context) => {
      dress(context);
      merge({ theme: context.theme ?? "light" });
    },
  });
  useEffect(() => {
    host.current!.connect(title).catch((error: Error) => say(error.message));
  }, []);

  const again = async () => {
    const number = ++calls.current;
    say("Loading…");
    try {
      const result = await host.current!.callTool(host.current!.tool!, state.input);
      if (number !== calls.current) return;
      // What is shown is worth more than why it could not be renewed.
      if (result.isError && !state.result?.isError) throw new Error(textOf(result));
      replace(result);
      say("");
    } catch (error) {
      if (number === calls.current) say((error as Error).message);
    }
  };
  // What is followed is renewed by itself, where that changes nothing; of the rest the person decides.
  refresh.current = (uri) => {
    const reads = host.current!.context.toolInfo?.tool.annotations?.readOnlyHint === true;
    if (host.current!.follows(uri) && reads) void again();
    else merge({ changed: true });
  };
  useEffect(() => {
    const { input, result } = state;
    if (result && !result.isError && live) host.current!.follow(live({ input, result, text: textOf(result) }));
  }, [state.version]);
  const copied = async (text: string, what: string) => {
    const done = await copy(text);
    setByHand(done ? "" : text);
    say(done ? `Copied ${what}.` : "This host does not let views copy; here it is to copy by hand:");
  };

  let body = <p class="quiet"><Text value={state.cancelled ?? "Waiting for the result…"} /></p>;
  if (state.result?.isError) body = <Failed said={textOf(state.result)} sql={state.input["sql"]} />;
  else if (state.result) {
    const text = textOf(state.result);
    body = (
      <Guarded text={text} version={state.version}><View host={host.current!} input={state.input} result={state.result} text={text} version={state.version}
        theme={state.theme} say={say} copied={copied} /></Guarded>
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
      <p class="message" role="status">{message && <Text value={message} />}</p>
      {byHand && <textarea class="by-hand" aria-label="To copy" readOnly rows={6} value={byHand} />}
    </main>
  );
}
