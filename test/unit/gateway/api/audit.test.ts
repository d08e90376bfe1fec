import { describe, expect, it } from 'vitest';
import { auditCommand } from '../../../../src/cli/audit.js';
import { keyCommand } from '../../../../src/cli/key.js';
import { orgCommand } from '../../../../src/cli/org.js';
import { StoreUnavailableError } from '../../../../src/gateway/ports/ports.js';
import type { AuditEntry } from '../../../../src/gateway/model/audit-entry.js';
import { openApi, type ApiFixture } from './api-fixture.js';

const NUMBER = '+15551234567';

async function entriesOf(api: ApiFixture, query = ''): Promise<readonly AuditEntry[]> {
  return ((await api.get(`/v1/audit${query}`)).body as unknown as { entries: readonly AuditEntry[] }).entries;
}

/** Every change that there is over HTTP, once. */
async function changeAll(api: ApiFixture): Promise<string> {
  const secret = { stream: { url: 'wss://bot.example/', bearer_token: 'secret-token' } };
  const made = await api.post('/v1/agents', { prompt: 'Be kind.', ...secret });
  const { agent_id: id } = (made.body as unknown as { agent: { agent_id: string } }).agent;
  await api.post(`/v1/agents/${id}`, { prompt: 'Be brief.', language: 'ENG', name: 'desk' });
  await api.post('/sip/attach', { phone_number: NUMBER, directions: ['inbound'], service: 'sip', agent_id: id });
  await api.post('/sip/update', { phone_number: NUMBER, updates: { type: 'inbound', agent_id: null } });
  await api.post('/sip/detach', { phone_number: NUMBER, directions: 'inbound', service: 'sip' });
  await api.delete(`/v1/agents/${id}`);
  const tool = { name: 'book', description: 'Books.', url: 'https://customer.example', headers: { 'x-key': 'tool-secret' } };
  const answer = await api.post('/v1/tools', { tool });
  await api.delete(`/v1/tools/${(answer.body as unknown as { tool: { tool_id: string } }).tool.tool_id}`);
  return id;
}

describe('the audit log', () => {
  it('records who changed what, with the names of the fields but not their values', async () => {
    const api = await openApi();
    const id = await changeAll(api);
    // What failed, or only read, changed nothing.
    await api.post('/v1/agents', {});
    await api.get('/v1/agents');
    const entries = [...(await entriesOf(api))].reverse();
    expect(entries.map(({ action, record, fields }) => [action, record, fields.length > 8 ? 'many' : fields])).toEqual([
      ['agent.create', id, ['prompt', 'stream']],
      ['agent.update', id, ['prompt', 'name']],
      ['number.attach', NUMBER, ['inbound']],
      ['number.update', NUMBER, ['inbound.agent_id']],
      ['number.detach', NUMBER, ['inbound']],
      ['agent.delete', id, []],
      ['tool.create', expect.stringMatching(/^TL-/), 'many'],
      ['tool.delete', expect.stringMatching(/^TL-/), []],
    ]);
    const [key] = await api.stores.keys.list(api.orgId);
    expect(entries[0]).toMatchObject({ by: { key_id: key?.key_id, name: 'test' }, at: '2026-01-01T00:00:00.000Z' });
    const text = JSON.stringify(entries);
    for (const secret of ['secret-token', 'tool-secret', 'Be kind.']) expect(text).not.toContain(secret);
  });

  it('returns pages, to its own organization', async () => {
    const api = await openApi();
    await changeAll(api);
    const all = await entriesOf(api);
    const first = await entriesOf(api, '?take=3');
    expect([...first, ...(await entriesOf(api, `?before=${first[2]!.id}`))]).toEqual(all);
    for (const query of ['?take=0', '?take=1001', '?before=x', '?before=0-0', '?before=00-000', '?before=1', '?after=1'])
      expect((await api.get(`/v1/audit${query}`)).status).toBe(400);
    expect(await entriesOf(api, '?before=0-1')).toEqual([]);
    const other = await api.stores.orgs.create({ name: 'other', sip_enabled: true });
    const { key } = await api.stores.keys.create(other.org_id, 'k');
    expect((await api.get('/v1/audit', key)).body).toEqual({ status: 'success', entries: [] });
  });

  it('leaves the change in place when it cannot be written, and the log reports that', async () => {
    const away = () => Promise.reject(new StoreUnavailableError('away'));
    const api = await openApi({ replace: ({ audit }) => ({ audit: { append: away, list: (...query) => audit.list(...query) } }) });
    const answer = await api.post('/sip/attach', { phone_number: NUMBER, directions: ['inbound'], service: 'sip' });
    expect([answer.status, answer.record.phone_number]).toEqual([200, NUMBER]);
    expect(api.lines.find(({ event }) => event === 'audit.not_written')?.fields).toMatchObject({ action: 'number.attach', error: 'away' });
  });

  it('includes the actions of the command line, where it can be read', async () => {
    const api = await openApi();
    const { stores, orgId } = api;
    const printed: string[] = [];
    const print = (line: string): void => void printed.push(line);
    const connect = () => Promise.resolve({ ...stores, close: () => Promise.resolve() });
    const run = (build: typeof orgCommand, ...args: string[]) => build({ connect, print }).parseAsync(args, { from: 'user' });
    await run(orgCommand, 'set-limits', 'acme', '--max-concurrent-calls', '5');
    await run(keyCommand, 'create', 'acme', '--name', 'ci');
    const [made] = (await stores.keys.list(orgId)).filter(({ name }) => name === 'ci');
    await run(keyCommand, 'revoke', made!.key_id);
    const entries = await stores.audit.list(orgId, { take: 10 });
    expect(entries.map(({ action, record, fields }) => [action, record, fields])).toEqual([
      ['key.revoke', made!.key_id, ['revoked_at']],
      ['key.create', made!.key_id, ['name']],
      ['org.change', orgId, ['max_concurrent_calls']],
    ]);
    expect(entries[0]?.by).toEqual({ key_id: null, name: expect.stringMatching(/^cli:./) as string });
    printed.length = 0;
    const environment = { TRUNKLINE_API_URL: 'http://api.example', TRUNKLINE_API_KEY: api.key };
    const io = {
      config: () => ({ data_dir: '/nowhere' }),
      environment,
      print: (line: string) => void printed.push(line),
      fetch: api.fetch,
    };
    await auditCommand(io).parseAsync(['list', '--limit', '2'], { from: 'user' });
    expect(printed).toHaveLength(3);
    expect(printed[1]).toContain('key.revoke');
    expect(printed.join('\n')).not.toContain('tl_');
  });
});
