import { describe, expect, it } from 'vitest';
import { Turns } from '../../../../src/gateway/api/turns.js';
import { accountSidOf } from '../../../../src/gateway/model/twilio-ids.js';
import { newUuid } from '../../../../src/lib/ids.js';
import type { ToolRunner } from '../../../../src/gateway/ports/ports.js';
import { VirtualClock } from '../../../support/virtual-clock.js';
import { toolOf } from '../../../support/tool.js';
import { openApi } from './api-fixture.js';
import { untilSo } from '../../../support/turn.js';

describe('the turns of organizations', () => {
  it('are four at a time: the fifth of an organization waits for one of them, and another organization for none', async () => {
    const turns = new Turns(new VirtualClock());
    const held = await Promise.all(Array.from({ length: 4 }, () => turns.take('a')));
    let isTaken = false;
    const fifth = turns.take('a').then((giveBack) => {
      isTaken = true;
      return giveBack;
    });
    (await turns.take('b'))();
    expect(isTaken).toBe(false);
    held[0]?.();
    held[0]?.();
    const giveBack = await fifth;
    const sixth = turns.take('a');
    giveBack();
    (await sixth)();
  });

  it('end with a retry for a request that waits too long, which takes no turn from those behind it', async () => {
    const clock = new VirtualClock();
    const turns = new Turns(clock);
    const [first] = await Promise.all(Array.from({ length: 4 }, () => turns.take('a')));
    const late = expect(turns.take('a')).rejects.toMatchObject({ code: 'RATE_LIMITED', headers: { 'retry-after': '1' } });
    clock.advance(5_000);
    await late;
    const next = turns.take('a');
    first?.();
    (await next)();
  });

  it('rest after a large answer before they pass on', async () => {
    const clock = new VirtualClock();
    const turns = new Turns(clock);
    const held = await Promise.all(Array.from({ length: 4 }, () => turns.take('a')));
    held[0]?.(65_536 + 256_000);
    let isTaken = false;
    const fifth = turns.take('a').then(() => (isTaken = true));
    clock.advance(999);
    await Promise.resolve();
    expect(isTaken).toBe(false);
    clock.advance(1);
    await fifth;
  });

  it('last until the answer of a request, but never hold a tool that hangs', async () => {
    const hanging: ToolRunner = { run: () => new Promise(() => undefined) };
    let release = (): void => undefined;
    const blocked = new Promise<void>((resolve) => (release = resolve));
    let listing = 0;
    const api = await openApi({
      toolRunner: hanging,
      replace: ({ batches }) => ({
        batches: Object.assign(Object.create(batches) as typeof batches, {
          list: async () => {
            listing += 1;
            await blocked;
            return [];
          },
        }),
      }),
    });
    const tool = toolOf(api.orgId, { tool_id: `TL-${newUuid()}` });
    await api.stores.tools.put({ ...tool, tool: { ...tool.tool, input_schema: { ...tool.tool.input_schema, required: [] } } });
    for (let at = 0; at < 8; at += 1) void api.post(`/v1/tools/${tool.tool_id}/invoke`, { input: {} });
    const asked = Array.from({ length: 10 }, () => api.get('/v2/batches'));
    await untilSo(() => listing === 4);
    release();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  it('rest after a large body, also of a request that is refused, while other organizations continue', async () => {
    const api = await openApi();
    const other = await api.stores.orgs.create({ name: 'Other', sip_enabled: true });
    const large = { tool: { nonsense: 'x'.repeat(200_000) } };
    const refused = await Promise.all(Array.from({ length: 4 }, () => api.post('/v1/tools', large)));
    expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
    let isAnswered = false;
    const fifth = api.get('/v1/tools').then((answer) => {
      isAnswered = true;
      return answer;
    });
    expect((await api.get('/v1/tools', (await api.stores.keys.create(other.org_id, 'other')).key)).status).toBe(200);
    expect(isAnswered).toBe(false);
    api.clock.advance(1_000);
    expect((await fifth).status).toBe(200);
  });

  it('are shared with Twilio’s routes: four requests of an organization run, whichever routes they are for', async () => {
    let release = (): void => undefined;
    const blocked = new Promise<void>((resolve) => (release = resolve));
    let reading = 0;
    const read = async (): Promise<void> => {
      reading += 1;
      await blocked;
    };
    const noBatches = () => read().then(() => []);
    const noCalls = () => read().then(() => ({ calls: [], next: null }));
    const api = await openApi({
      replace: ({ batches, calls }) => ({
        batches: Object.assign(Object.create(batches) as typeof batches, { list: noBatches }),
        calls: Object.assign(Object.create(calls) as typeof calls, { list: noCalls }),
      }),
    });
    const token = (await api.stores.orgs.get(api.orgId))?.twilio_token ?? '';
    const account = accountSidOf(api.orgId);
    const authorization = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`;
    const url = `/2010-04-01/Accounts/${account}/Calls.json`;
    const asked = [
      ...Array.from({ length: 3 }, () => api.get('/v2/batches')),
      ...Array.from({ length: 7 }, () => api.send({ method: 'GET', url, headers: { authorization } })),
    ];
    await untilSo(() => reading === 4);
    release();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(10).fill(200));
  });
});
