// The TypeScript SDK's second generation, in either era: subscriptions by request, or a held listen stream.

import { day, packages, task } from "./day.mjs";

const { Client, StreamableHTTPClientTransport } = packages("@modelcontextprotocol/client");
const { StdioClientTransport } = packages("@modelcontextprotocol/client/stdio");

const modern = task.era === "modern";
const client = new Client(
  { name: "typescript-v2", version: "1" },
  { versionNegotiation: { mode: modern ? "auto" : "legacy" } },
);
await client.connect(
  task.url ? new StreamableHTTPClientTransport(new URL(task.url)) : new StdioClientTransport(task),
);
const revision = client.getNegotiatedProtocolVersion();
if ((revision >= "2026-07-28") !== modern) throw new Error(`negotiated ${revision}`);
await day(client, {
  onUpdated: (handle) =>
    client.setNotificationHandler("notifications/resources/updated", (notice) => handle(notice.params.uri)),
  subscribe: async (uri) => {
    if (modern) {
      const subscription = await client.listen({ resourceSubscriptions: [uri] });
      return () => subscription.close();
    }
    await client.subscribeResource({ uri });
    return () => client.unsubscribeResource({ uri });
  },
});
