import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { E164_PATTERN } from '../../../src/gateway/model/e164.js';
import { accountSidOf, callSidOf } from '../../../src/gateway/model/twilio-ids.js';
import { SIP_ENDPOINT_PATTERN } from '../../../src/lib/sip-endpoint.js';
import { testCertificates } from '../../support/certificates.js';
import { FROM, OutboundSite, TO } from '../../support/outbound-site.js';
import { offerSdp } from '../../support/sdp.js';

// schemathesis makes requests of the API's documents, valid ones and invalid ones, and compares each answer with what the document says.

const MANY = '1000000';
const SETTINGS = {
  TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true',
  TRUNKLINE_MEDIA_ALLOW_PLAIN: 'true',
  TRUNKLINE_TOOLS_ALLOW_PRIVATE: 'true',
  TRUNKLINE_WEBHOOKS_ALLOW_PRIVATE: 'true',
  TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE: MANY,
  TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE_PER_ADDRESS: MANY,
  TRUNKLINE_HTTP_MAX_REQUESTS_PER_MINUTE_PER_KEY: MANY,
};
/** Of each operation; the seed of schemathesis.toml makes them the same in each run. `EXAMPLES=300` makes 20,000 requests of both documents. */
const EXAMPLES = Number(process.env['EXAMPLES'] ?? 5);
/** About as long as 20,000 requests take on a busy machine with two cores. */
const TIMEOUT_MS = 30 * 60_000;
const OUTPUT_BYTES = 64 * 1024 * 1024;

let site: OutboundSite;
/** Answers tools, webhooks and callbacks. */
const receiver = createServer((request, response) => {
  request.resume();
  response.setHeader('content-type', 'application/json').end('{}');
});
/** The call and the tool that the hooks name. */
let callId: string;
let toolId: string;
let isAnswering = false;

beforeAll(async () => {
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  site = await OutboundSite.start(false, SETTINGS);
  await site.attach();
  await site.allow('--max-calls-per-day', MANY, '--max-cost-per-day', MANY);
  site.trunk.takeAll((call) => {
    if (isAnswering) call.respond('200 OK', { body: offerSdp() });
    else call.respond('486 Busy Here');
  });
  callId = await placedCall();
  await site.ended(callId);
  const tool = { name: 'Book', description: 'Books a table.', url: receiverUrl() };
  const made = await site.gateway.api('POST', '/v1/tools', { tool });
  toolId = (made.json['tool'] as { readonly tool_id: string }).tool_id;
});
afterAll(async () => {
  await site.destroy();
  receiver.close();
});

const placedCall = async (): Promise<string> => String((await site.place()).json['call_id']);

const receiverUrl = (): string => `http://127.0.0.1:${String((receiver.address() as AddressInfo).port)}/`;

/** The hooks' values, which exist. */
async function values(): Promise<Readonly<Record<string, string>>> {
  const { cert, key } = await testCertificates();
  const { org_id: orgId, agent_id: agentId } = site.gateway.ready;
  return {
    CALLER: FROM,
    CALLEE: TO,
    TRUNK: site.trunk.endpoint,
    RECEIVER: receiverUrl(),
    PHONE_NUMBER: E164_PATTERN,
    ENDPOINT: SIP_ENDPOINT_PATTERN,
    CERTIFICATE: cert,
    KEY: key,
    TOOL_ID: toolId,
    ORG_ID: orgId,
    AGENT_ID: agentId,
    CALL_ID: callId,
    ACCOUNT_SID: accountSidOf(orgId),
    CALL_SID: callSidOf(callId),
  };
}

/** Resolves with the count of requests, and with what schemathesis printed of failures; empty: there were none. */
async function run(document: string, credentials: readonly string[]): Promise<{ requests: number; failures: string }> {
  const python = process.env['CLIENTS_PYTHON'];
  if (python === undefined) throw new Error('CLIENTS_PYTHON is not set: run npm run test:clients, which installs schemathesis');
  const folder = 'test/clients/schemathesis';
  const { http } = site.gateway.ready;
  const args = ['--config-file', join(folder, 'schemathesis.toml'), 'run', `${http}${document}`, '--max-examples', String(EXAMPLES)];
  const env = { ...process.env, ...(await values()), SCHEMATHESIS_HOOKS: 'hooks', PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' };
  const program = join(dirname(python), 'schemathesis');
  const { printed, code } = await new Promise<{ printed: string; code: number }>((resolve) => {
    const child = execFile(program, [...args, ...credentials], { env, maxBuffer: OUTPUT_BYTES }, (_error, stdout, stderr) => {
      resolve({ printed: stdout + stderr, code: child.exitCode ?? 1 });
    });
  });
  const requests = Number(/(\d+) generated/.exec(printed)?.[1] ?? 0);
  console.log(`${document}: ${String(requests)} requests, ${/ in [\d.]+s/.exec(printed)?.[0].trim() ?? ''}`);
  return { requests, failures: code === 0 ? '' : printed };
}

/** Method and route of each request that succeeded. */
async function succeeded(): Promise<readonly string[]> {
  const lines = (await site.gateway.log('gateway')).split('\n').filter((line) => line.includes('"msg":"api.request"'));
  const requests = lines.map((line) => JSON.parse(line) as { readonly method: string; readonly route: string; readonly status: number });
  return requests.filter(({ status }) => status < 300).map(({ method, route }) => `${method} ${route}`);
}

it(
  'the API answers requests of its own form as its document says',
  async () => {
    const { requests, failures } = await run('/openapi.json', ['-H', `authorization: ${site.gateway.ready.api_key}`]);
    expect(failures).toBe('');
    expect(requests).toBeGreaterThan(EXAMPLES);
    // One of them is the call above, which this test placed.
    expect((await succeeded()).filter((operation) => operation === 'POST /v1/calls').length).toBeGreaterThan(1);
  },
  TIMEOUT_MS,
);

it(
  "the API answers requests of Twilio's form as its document says",
  async () => {
    // Only a call in progress can be updated.
    isAnswering = true;
    callId = await placedCall();
    await expect.poll(async () => (await site.callOf(callId)).state).toBe('in_progress');
    isAnswering = false;
    const orgId = site.gateway.ready.org_id;
    const { stdout } = await site.gateway.cli('org', 'twilio-token', orgId);
    const token = /^TWILIO_AUTH_TOKEN=(.+)$/m.exec(stdout)?.[1] ?? '';
    const { requests, failures } = await run('/openapi-twilio.json', ['-a', `${accountSidOf(orgId)}:${token}`]);
    expect(failures).toBe('');
    expect(requests).toBeGreaterThan(EXAMPLES);
    const account = '/2010-04-01/Accounts/:accountSid';
    expect([...new Set(await succeeded())].filter((operation) => operation.includes(account)).sort()).toEqual([
      `GET ${account}.json`,
      `GET ${account}/Calls.json`,
      `GET ${account}/Calls/:callSid.json`,
      `POST ${account}/Calls.json`,
      `POST ${account}/Calls/:callSid.json`,
    ]);
  },
  TIMEOUT_MS,
);
