import createClient from 'openapi-fetch';
import type { paths } from './trunkline.js';

// Plays the story of test/clients/stories.test.ts with the types that openapi-typescript makes. scripts/test-clients compiles it beside them.

const { API_URL = '', API_KEY = '', NUMBER = '', CALLER = '', CALLEE = '' } = process.env;
/** How often a state is read that comes by itself. */
const POLL_MS = 100;

const client = createClient<paths>({ baseUrl: API_URL, headers: { authorization: API_KEY } });

/** The answer to a request. Throws where it failed. */
async function answer<T>(request: Promise<{ readonly data?: T; readonly error?: unknown }>): Promise<T> {
  const { data, error } = await request;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

/** Reads until the state is there. The test that runs this program ends one that never comes. */
async function until<T>(read: () => Promise<T>, isThere: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (isThere(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

const service = 'sip' as const;
const attached = await answer(client.POST('/sip/attach', { body: { phone_number: NUMBER, directions: ['inbound'], service } }));
console.log('attach', attached.data.phone_number);

/** The configuration of the number; null: it has none. */
async function configuration() {
  const { data } = await answer(client.GET('/sip', { params: { query: { inbound_id: NUMBER } } }));
  return Array.isArray(data) ? null : data;
}
console.log('read', (await configuration())?.inbound?.options.media_encryption);
const updates = { type: 'inbound' as const, options: { max_concurrent_calls: 7 } };
const updated = await answer(client.POST('/sip/update', { body: { phone_number: NUMBER, updates } }));
console.log('update', updated.data.inbound?.options.max_concurrent_calls);

const { agent } = await answer(client.POST('/v1/agents', { body: { name: 'Desk of typescript', prompt: 'Be brief.' } }));
const path = { agent_id: agent.agent_id };
const changed = await answer(client.POST('/v1/agents/{agent_id}', { params: { path }, body: { max_duration: 5, language: 'DEU' } }));
console.log('agent', agent.agent_id, changed.updates['max_duration']);
const definition = { name: 'Book', description: 'Books a table.', url: 'https://example.com/book' };
const { tool } = await answer(client.POST('/v1/tools', { body: { tool: definition, label: 'typescript' } }));
console.log('tool', tool.tool_id);

const call = { from: CALLER, phone_number: CALLEE, agent_id: agent.agent_id, metadata: { client: 'typescript' } };
const { call_id } = await answer(client.POST('/v1/calls', { body: call }));
const readCall = async () => (await answer(client.GET('/v1/calls/{call_id}', { params: { path: { call_id } } }))).call;
await until(readCall, ({ state }) => state === 'in_progress');
await answer(client.POST('/v1/calls/{call_id}/stop', { params: { path: { call_id } } }));
const ended = await until(readCall, ({ state }) => state === 'ended');
console.log('call', ended.call_id, ended.reason);

const { data: batch } = await answer(client.POST('/v2/batches', { body: { name: 'typescript', from: CALLER, numbers: [CALLEE] } }));
const { batch_id } = batch;
const readBatch = async () => (await answer(client.GET('/v2/batches/{batch_id}', { params: { path: { batch_id } } }))).data;
await until(readBatch, ({ state }) => state === 'ready');
const { data: stopped } = await answer(client.POST('/v2/batches/{batch_id}/stop', { params: { path: { batch_id } } }));
console.log('batch', batch_id, stopped.state);

await answer(client.POST('/sip/detach', { body: { phone_number: NUMBER, directions: 'inbound', service } }));
console.log('detach', (await configuration())?.phone_number ?? 'none');
