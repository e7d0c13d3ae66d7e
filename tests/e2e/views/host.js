// A host's page: the official bridge to each view in a sandboxed frame. Tools are called by the test behind the page.

import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const NAME = { name: "test host", version: "1" };
const CAPABILITIES = { serverTools: {}, serverResources: {}, updateModelContext: { text: {} }, openLinks: {}, logging: {} };
const bridges = [];
/** URIs that views follow, each with the numbers of those views. */
const followed = new Map();

/** Open a view for one call of a tool; returns the number of its frame. */
window.show = async ({ html, tool, input, result, context, width, height, capabilities = CAPABILITIES }) => {
  const number = bridges.length;
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.title = `view ${number}`;
  frame.style.width = `${width}px`;
  if (height) frame.style.height = `${height}px`;
  frame.style.colorScheme = context.theme;
  document.body.append(frame);
  const bridge = new AppBridge(null, NAME, capabilities, { hostContext: { ...context, toolInfo: { tool } } });
  bridges.push(bridge);
  bridge.oncalltool = (params) => window.callTool(params);
  bridge.onreadresource = (params) => window.readResource(params);
  bridge.onupdatemodelcontext = async (params) => (await window.told(params), {});
  bridge.onopenlink = async (params) => (await window.opened(params), {});
  // What is proposed for subscriptions (ext-apps issue 659); the official bridge has no name for it yet.
  bridge.fallbackRequestHandler = async ({ method, params: { uri } }) => {
    if (method === "resources/subscribe") followed.set(uri, [...(followed.get(uri) ?? []), number]);
    else if (method === "resources/unsubscribe") followed.set(uri, followed.get(uri).filter((other) => other !== number));
    else throw new Error(`No method ${method}`);
    await window.subscribed({ method, uri });
    return {};
  };
  bridge.onsizechange = (size) => {
    frame.dataset.asked = size.height;
    if (!height) frame.style.height = `${size.height}px`;
  };
  const ready = new Promise((resolve) => { bridge.oninitialized = resolve; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
  await ready;
  await bridge.sendToolInput({ arguments: input });
  if (result) await bridge.sendToolResult(result);
  return number;
};

/** What the server says of a resource, for the views that follow it. */
window.updated = (uri) => {
  for (const number of followed.get(uri) ?? []) bridges[number].notification({ method: "notifications/resources/updated", params: { uri } });
};
window.sendContext = (number, context) => bridges[number].setHostContext(context);
window.sendRaw = (number, message) => bridges[number].notification(message);
window.close = (number) => bridges[number].teardownResource({});
