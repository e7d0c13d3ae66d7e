// An OAuth issuer on loopback, for tests: oidc-provider, with a person who logs in and consents at once.
//
// Started as `node issuer.mjs FOLDER JWKS`, says its URL on standard output. What the person does, how long tokens
// last and which keys sign is told by POST /control {account, grant, seconds, keys}.
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, keys] = process.argv.slice(2);
const require = createRequire(folder + '/');
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const wishes = { account: 'ada', grant: ['read', 'write', 'destroy'], seconds: 600, keys: JSON.parse(keys) };
const scopes = ['openid', 'offline_access', 'read', 'write', 'destroy', 'other'];
// A program that signs for itself does so with the issuer's first key: one pair is enough for tests.
const { d, ...open } = wishes.keys.keys[0];
let url, current;

function provider() {
  const made = new Provider(url, {
    jwks: wishes.keys,
    scopes,
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['for tests'] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    // Documents of clients are on this machine too, which it refuses to look at by itself.
    fetch: (where, { dispatcher, ...options }) => globalThis.fetch(where, options),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    clients: [{ client_id: 'robot', client_secret: 'for tests only', redirect_uris: [], response_types: [],
      grant_types: ['client_credentials'], scope: 'read write destroy other' },
    { client_id: 'signing', jwks: { keys: [open] }, redirect_uris: [], response_types: [],
      token_endpoint_auth_method: 'private_key_jwt', token_endpoint_auth_signing_alg: 'ES256',
      grant_types: ['client_credentials'], scope: 'read write destroy other' }],
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          scope: 'read write destroy other', audience: resource, accessTokenTTL: wishes.seconds,
          accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  });
  made.on('server_error', (_, error) => console.error(error));
  return made;
}

async function interact(req, res) {
  const { prompt, params, session, grantId } = await current.interactionDetails(req, res);
  if (prompt.name === 'login') {
    return current.interactionFinished(req, res, { login: { accountId: wishes.account } });
  }
  const grant = (grantId && await current.Grant.find(grantId))
    || new current.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  for (const scope of missingOIDCScope) {
    if (wishes.grant.includes(scope) || scope === 'openid' || scope === 'offline_access') grant.addOIDCScope(scope);
    else grant.rejectOIDCScope(scope);
  }
  for (const [resource, asked] of Object.entries(missingResourceScopes)) {
    for (const scope of asked) {
      if (wishes.grant.includes(scope)) grant.addResourceScope(resource, scope);
      else grant.rejectResourceScope(resource, scope);
    }
  }
  return current.interactionFinished(req, res, { consent: { grantId: await grant.save() } });
}

async function control(req, res) {
  let body = '';
  for await (const chunk of req) body += chunk;
  const told = JSON.parse(body);
  Object.assign(wishes, told);
  if (told.keys) current = provider(); // It forgets who registered.
  res.writeHead(204).end();
}

const server = http.createServer((req, res) => {
  const done = req.url.startsWith('/interaction/') ? interact(req, res)
    : req.url === '/control' ? control(req, res) : current.callback()(req, res);
  Promise.resolve(done).catch((error) => { console.error(error); res.writeHead(500).end(); });
});
server.listen(0, '127.0.0.1', () => {
  url = `http://127.0.0.1:${server.address().port}`;
  current = provider();
  console.log(url);
});
