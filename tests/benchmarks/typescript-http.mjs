// The TypeScript SDK's server over HTTP with one tool, both eras: `node typescript-http.mjs FOLDER`, says its URL.
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.argv[2] + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer, createMcpHandler } = await load('@modelcontextprotocol/server');
const { toNodeHandler } = await load('@modelcontextprotocol/node');

function make() {
  const server = new McpServer({ name: 'typescript', version: '1' });
  server.registerTool('test_simple_text', { description: 'Return a simple text.' }, async () => ({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  }));
  return server;
}

const handler = toNodeHandler(createMcpHandler(make));
const listener = http.createServer((req, res) => handler(req, res));
listener.keepAliveTimeout = 65_000;
listener.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${listener.address().port}/mcp`));
