// A host's page: the official bridge to each view in a sandboxed frame. Tools are called by the test behind the page.

import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

const NAME = { name: "test host", version: "1" };
const CAPABILITIES = { serverTools: {}, serverResources: {}, updateModelContext: { text: {} }, openLinks: {}, logging: {} };
const bridges = [];

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

window.sendContext = (number, context) => bridges[number].setHostContext(context);
window.sendRaw = (number, message) => bridges[number].notification(message);
window.close = (number) => bridges[number].teardownResource({});
