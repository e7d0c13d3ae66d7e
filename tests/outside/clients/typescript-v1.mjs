// The TypeScript SDK's first generation: one package, a handshake, subscriptions by request.

import { day, packages, task } from "./day.mjs";

const { Client } = packages("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = packages("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = packages("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ResourceUpdatedNotificationSchema } = packages("@modelcontextprotocol/sdk/types.js");

const client = new Client({ name: "typescript-v1", version: "1" });
await client.connect(
  task.url ? new StreamableHTTPClientTransport(new URL(task.url)) : new StdioClientTransport(task),
);
await day(client, {
  onUpdated: (handle) =>
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, (notice) => handle(notice.params.uri)),
  subscribe: async (uri) => {
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
