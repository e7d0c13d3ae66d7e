// The TypeScript SDK's server over stdio with one tool, both eras: `node typescript-stdio.mjs FOLDER`.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.argv[2] + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer } = await load('@modelcontextprotocol/server');
const { serveStdio } = await load('@modelcontextprotocol/server/stdio');

serveStdio(() => {
  const server = new McpServer({ name: 'typescript', version: '1' });
  server.registerTool('test_simple_text', { description: 'Return a simple text.' }, async () => ({
    content: [{ type: 'text', text: 'This is a simple text response for testing.' }],
  }));
  return server;
});
