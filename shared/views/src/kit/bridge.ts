// The view's side of MCP Apps (2026-01-26): JSON-RPC with the host over postMessage.
//
// The official `App` class brings the whole protocol library and its validators, 146 kB compressed, which is more than
// a view may weigh. Its types are used here, its counterpart `AppBridge` is the host of the browser tests.

import type {
  McpUiHostCapabilities, McpUiHostContext, McpUiInitializeResult, McpUiToolInputNotification,
} from "@modelcontextprotocol/ext-apps";
import type { CallToolResult } from "@modelcontextprotocol/client";

export type { CallToolResult, McpUiHostContext };

type Params = Record<string, unknown>;
type Message = { id?: unknown; method?: string; params?: unknown; result?: unknown; error?: { message?: unknown } };
type Answer = { resolve: (result: never) => void; reject: (error: Error) => void };

export interface Listener {
  input(params: McpUiToolInputNotification["params"]): void;
  result(result: CallToolResult): void;
  cancelled(reason: string): void;
  context(context: McpUiHostContext): void;
  /** Something the host passes on from the server: the resource at `uri` was updated, or, without one, a list changed. */
  changed(uri: string | undefined): void;
}

/** What no revision has yet, but its proposal: a host that passes on subscriptions (ext-apps issue 659). */
type Capabilities = McpUiHostCapabilities & { serverResources?: { subscribe?: boolean } };

const VERSION = "2026-01-26";

export class Host {
  capabilities: Capabilities = {};
  context: McpUiHostContext = {};
  #waiting = new Map<number, Answer>();
  #last = 0;
  #followed = new Set<string>();

  constructor(private readonly listener: Listener) {}

  /** Shake hands; what the host says of the call comes to the listener from then on. */
  async connect(name: string): Promise<void> {
    window.addEventListener("message", (event) => {
      if (event.source === window.parent) this.#receive(event.data);
    });
    const said = await this.#request<McpUiInitializeResult>("ui/initialize", {
      appInfo: { name, version: "1" },
      appCapabilities: { availableDisplayModes: ["inline", "fullscreen"] },
      protocolVersion: VERSION,
    });
    this.capabilities = said.hostCapabilities;
    this.context = said.hostContext;
    this.listener.context(this.context);
    this.#notify("ui/notifications/initialized", {});
    this.#reportSize();
  }

  /** The name of the tool whose call opened this view, where the host says it. */
  get tool(): string | undefined {
    return this.context.toolInfo?.tool.name;
  }

  /** Call a tool of the view's own server, with the rights and limits the model has. */
  callTool(name: string, args: Params): Promise<CallToolResult> {
    return this.#request("tools/call", { name, arguments: args });
  }

  /** Be told when one of `uris` is updated, and of no other any more; hosts that do not offer that are left alone. */
  follow(uris: string[]): void {
    if (!this.capabilities.serverResources?.subscribe) return;
    const wanted = new Set(uris);
    const send = (method: string, uri: string) => this.#request(method, { uri }).catch(() => this.#followed.delete(uri));
    for (const uri of this.#followed) if (!wanted.has(uri)) void send("resources/unsubscribe", uri);
    for (const uri of wanted) if (!this.#followed.has(uri)) void send("resources/subscribe", uri);
    this.#followed = wanted;
  }

  /** Whether an update of `uri` is one of those that are followed. */
  follows(uri: string | undefined): boolean {
    return uri !== undefined && this.#followed.has(uri);
  }

  /** Tell the model what the person did here; it reads it with its next turn. Hosts without that are left alone. */
  async tellModel(text: string): Promise<void> {
    if (this.capabilities.updateModelContext) {
      await this.#request("ui/update-model-context", { content: [{ type: "text", text }] });
    }
  }

  async openLink(url: string): Promise<void> {
    await this.#request("ui/open-link", { url });
  }

  #post(message: Params): void {
    window.parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }

  #notify(method: string, params: Params): void {
    this.#post({ method, params });
  }

  #request<T>(method: string, params: Params): Promise<T> {
    const id = ++this.#last;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ id, method, params });
    });
  }

  #receive(message: unknown): void {
    if (typeof message !== "object" || message === null) return;
    const { id, method, params, result, error } = message as Message;
    if (method === undefined) {
      const answer = this.#waiting.get(Number(id));
      this.#waiting.delete(Number(id));
      if (error) answer?.reject(new Error(String(error.message)));
      else answer?.resolve(result as never);
    } else if (id === undefined) {
      this.#hear(method, params as never);
    } else if (method === "ping" || method === "ui/resource-teardown") {
      this.#post({ id, result: {} });
    } else {
      this.#post({ id, error: { code: -32601, message: `This view has no method ${method}` } });
    }
  }

  #hear(method: string, params: never): void {
    switch (method) {
      case "ui/notifications/tool-input":
        return this.listener.input(params);
      case "ui/notifications/tool-result":
        return this.listener.result(params);
      case "ui/notifications/tool-cancelled":
        return this.listener.cancelled(String((params as { reason?: unknown })?.reason ?? "The call was cancelled."));
      case "ui/notifications/host-context-changed":
        this.context = { ...this.context, ...(params as McpUiHostContext) };
        return this.listener.context(this.context);
      case "notifications/resources/updated":
        return this.listener.changed(String((params as { uri?: unknown })?.uri));
      case "notifications/resources/list_changed":
        return this.listener.changed(undefined);
    }
  }

  #reportSize(): void {
    const root = document.documentElement;
    let told = 0;
    new ResizeObserver(() => {
      const height = Math.ceil(document.body.getBoundingClientRect().height);
      if (height === told) return;
      told = height;
      this.#notify("ui/notifications/size-changed", { width: root.clientWidth, height });
    }).observe(document.body);
  }
}

/** The text blocks of a result, as one. */
export function textOf(result: CallToolResult): string {
  return result.content.map((block) => (block.type === "text" ? block.text : "")).join("");
}
