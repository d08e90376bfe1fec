// Attaches a number to an agent and prints the calls that came in on it.
import { ApiError, createClient, type Schemas } from '../../src/client/index.js';

/** @param url the control API, which `trunkline up` prints. @param apiKey `trunkline key create <org>` */
export async function giveNumberToAgent(url: string, apiKey: string, number: string, prompt: string): Promise<Schemas['SipConfiguration']> {
  const api = createClient({ baseUrl: url, apiKey, timeoutMs: 10_000 });
  const { agent } = await api.POST('/v1/agents', { body: { name: 'Front desk', prompt } });
  try {
    const attached = await api.POST('/sip/attach', {
      body: { phone_number: number, directions: ['inbound'], service: 'sip', agent_id: agent.agent_id },
    });
    return attached.data;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NUMBER_TAKEN')
      await api.DELETE('/v1/agents/{agent_id}', { params: { path: { agent_id: agent.agent_id } } });
    throw error;
  }
}

export async function callsOf(url: string, apiKey: string, number: string): Promise<readonly string[]> {
  const api = createClient({ baseUrl: url, apiKey });
  const { calls } = await api.GET('/v1/calls', { params: { query: { phone_number: number, limit: 20 } } });
  return calls.map(({ started_at: at, from, reason }) => `${at} ${from} ${reason ?? 'in progress'}`);
}
