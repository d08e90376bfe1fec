import { beforeEach, describe, expect, it } from 'vitest';
import type { E164 } from '../../../../src/gateway/model/e164.js';
import { newUuid } from '../../../../src/lib/ids.js';
import { begun } from '../../../support/begun-call.js';
import { toolOf } from '../../../support/tool.js';
import { agentOf, callOf, endedCall, freshNumber, inboundSetting } from '../store/store-contract.js';
import { openApi, type ApiFixture } from './api-fixture.js';

interface Listed {
  readonly [list: string]: unknown;
  readonly next?: string | null;
}

describe('an operator key', () => {
  let api: ApiFixture;
  let operator: string;
  let otherId: string;
  const made: Record<string, { number: E164; agentId: string; toolId: string; batchId: string; callId: string; liveId: string }> = {};
  let strayId: string;
  beforeEach(async () => {
    api = await openApi();
    operator = (await api.stores.keys.create(null, 'ops')).key;
    otherId = (await api.stores.orgs.create({ name: 'other', sip_enabled: false })).org_id;
    for (const orgId of [api.orgId, otherId]) {
      const [agent, tool, number] = [agentOf(orgId), toolOf(orgId), freshNumber()];
      await api.stores.agents.put(agent);
      await api.stores.tools.put(tool);
      await api.stores.numbers.attach(orgId, number, { inbound: inboundSetting() });
      const batch = await api.stores.batches.create({ orgId, name: 'b' });
      const call = callOf(orgId, api.clock.wallMs() - 1_000, { sip_call_id: 'same@carrier' });
      await api.stores.calls.write({
        ...endedCall(call),
        trace: [{ at: 'now', source: 'sip', direction: 'in', summary: orgId, text: null }],
      });
      const live = begun(newUuid(), { started_at: '2026-01-01T00:00:00.000Z' });
      await api.stores.routes.lookup(number, live);
      await api.stores.audit.append(orgId, { by: { key_id: null, name: 'cli:x' }, action: 'a', record: 'r', fields: [] });
      made[orgId] = {
        number,
        agentId: agent.agent_id,
        toolId: tool.tool_id,
        batchId: batch.batch_id,
        callId: call.call_id,
        liveId: live.call_id,
      };
    }
    const stray = callOf(null, api.clock.wallMs(), { reason: 'NUMBER_NOT_ATTACHED', sip_call_id: 'same@carrier' });
    await api.stores.calls.write(endedCall(stray));
    strayId = stray.call_id;
  });

  const ids = async (path: string, list: string, id: string, key = operator): Promise<string[]> => {
    const answer = await api.get(path, key);
    expect(answer.status, answer.text).toBe(200);
    const found = (answer.body as unknown as Listed)[list] as readonly Record<string, string>[];
    return found.map((one) => one[id] ?? '').sort();
  };
  const both = (field: 'number' | 'agentId' | 'toolId' | 'batchId' | 'callId' | 'liveId') =>
    [made[api.orgId]![field], made[otherId]![field]].sort();

  it.each([
    ['/v1/agents', 'agents', 'agent_id', 'agentId'],
    ['/v1/tools', 'tools', 'tool_id', 'toolId'],
    ['/sip', 'data', 'phone_number', 'number'],
    ['/v2/batches', 'data', 'batch_id', 'batchId'],
    ['/v1/calls?state=live', 'calls', 'call_id', 'liveId'],
  ] as const)('lists with %s the records of all organizations, and with org_id those of one', async (path, list, id, field) => {
    expect(await ids(path, list, id)).toEqual(both(field));
    const one = `${path}${path.includes('?') ? '&' : '?'}org_id=${otherId}`;
    expect(await ids(one, list, id)).toEqual([made[otherId]![field]]);
  });

  it('reads calls of all organizations and those of none, which it finds by Call-ID', async () => {
    expect(await ids('/v1/calls', 'calls', 'call_id')).toEqual([...both('callId'), strayId].sort());
    expect(await ids('/v1/calls?sip_call_id=same%40carrier', 'calls', 'call_id')).toEqual([...both('callId'), strayId].sort());
    expect(await ids('/v1/calls?org_id=none', 'calls', 'call_id')).toEqual([strayId]);
    expect(await ids('/v1/calls?sip_call_id=same%40carrier', 'calls', 'call_id', api.key)).toEqual([made[api.orgId]!.callId]);
    for (const id of [strayId, ...both('callId'), ...both('liveId')])
      expect((await api.get(`/v1/calls/${id}`, operator)).status, id).toBe(200);
    const trace = await api.get(`/v1/calls/${made[otherId]!.callId}/trace`, operator);
    expect((trace.body as unknown as { trace: { summary: string }[] }).trace[0]?.summary).toBe(otherId);
    expect((await api.get(`/v1/calls/${strayId}`)).status).toBe(404);
  });

  it('reads every single record, and the audit log and the throughput of all', async () => {
    const { agentId, batchId, number } = made[otherId]!;
    for (const path of [`/v1/agents/${agentId}`, `/v2/batches/${batchId}/logs`, `/sip?inbound_id=${number}`, '/v1/webhooks/dead-letters'])
      expect((await api.get(path, operator)).status, path).toBe(200);
    expect(await ids('/v1/audit', 'entries', 'org_id')).toEqual([api.orgId, otherId].sort());
    expect((await api.get('/v1/throughput', operator)).body).toMatchObject({ in_progress: 2 });
    expect(await ids('/v1/organizations', 'organizations', 'name')).toEqual(['acme', 'other']);
    expect((await api.get('/v1/organizations')).body).toMatchObject({ operator: false, organizations: [{ org_id: api.orgId }] });
  });

  it('pages through all organizations by one cursor', async () => {
    for (const orgId of [api.orgId, otherId])
      for (let at = 0; at < 4; at += 1) await api.stores.agents.put(agentOf(orgId, { created_at: new Date(at).toISOString() }));
    const seen: string[] = [];
    for (let before: string | null | undefined; before !== null;) {
      const { body } = await api.get(`/v1/agents?limit=3${before === undefined ? '' : `&before=${before}`}`, operator);
      const page = body as unknown as { agents: { agent_id: string }[]; next: string | null };
      seen.push(...page.agents.map((agent) => agent.agent_id));
      before = page.next;
    }
    expect([seen.length, new Set(seen).size]).toEqual([10, 10]);
    const first = (await api.get('/v1/calls?limit=2', operator)).body as unknown as { next: string };
    expect(await ids(`/v1/calls?limit=2&before=${first.next}`, 'calls', 'call_id')).toHaveLength(1);
  });

  it('changes nothing: each method but GET gets 403 with the cause, before the body is checked', async () => {
    const document = JSON.parse((await api.get('/openapi.json')).text) as { readonly paths: Readonly<Record<string, object>> };
    let asked = 0;
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const method of Object.keys(methods).filter((one) => one !== 'get' && !path.startsWith('/2010'))) {
        const url = path.replace(/\{\w+\}/g, newUuid());
        const answer = await api.send({
          method: method.toUpperCase(),
          url,
          headers: { authorization: operator, 'content-type': 'application/json' },
          payload: '{}',
        });
        expect([path, answer.status, answer.failure.errors[0]?.error]).toEqual([path, 403, 'READ_ONLY_KEY']);
        asked += 1;
      }
    }
    expect(asked).toBeGreaterThan(8);
    expect((await api.post('/sip/attach', {}, operator)).failure.message).toContain('changes nothing');
  });

  it('gets 404 for an organization that does not exist; the key of an organization may name its own only', async () => {
    expect((await api.get(`/v1/agents?org_id=${newUuid()}`, operator)).status).toBe(404);
    expect((await api.get(`/v1/agents?org_id=${api.orgId}`)).status).toBe(200);
    const foreign = await api.get(`/v1/agents?org_id=${otherId}`);
    expect([foreign.status, foreign.failure.errors[0]?.path]).toEqual([400, 'org_id']);
  });

  it('is stored as a digest, and refused once it is revoked', async () => {
    const [record] = await api.stores.keys.list(null);
    expect([record?.org_id, record?.name]).toEqual([null, 'ops']);
    expect(await api.stores.keys.list(api.orgId)).toHaveLength(1);
    await api.stores.keys.revoke(record!.key_id);
    expect((await api.get('/v1/calls', operator)).status).toBe(401);
  });
});
