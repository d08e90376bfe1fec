import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FROM, OutboundSite } from '../../support/outbound-site.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// A trunk that gets OPTIONS, and answers them or not.

let site: OutboundSite<World>;
let world: World;
/** `null`: it does not answer. */
let answer: string | null;
let asked: number;

beforeEach(async () => {
  site = await OutboundSite.startOn((settings) => World.start(settings));
  world = site.gateway;
  [answer, asked] = ['200 OK', 0];
  void takeOptions();
});
afterEach(() => site.destroy());

async function takeOptions(): Promise<void> {
  const peer = await site.trunk.peer();
  peer.onMessage = (message) => {
    if (!message.startLine.startsWith('OPTIONS ')) return;
    asked += 1;
    if (answer !== null) respond(peer, message, answer);
  };
}

async function watch(options_interval_s: number): Promise<void> {
  const updates = { type: 'outbound', sip_endpoint: site.trunk.endpoint, options_interval_s };
  expect((await world.api('POST', '/sip/update', { phone_number: FROM, updates })).status).toBe(200);
}

async function trunk(): Promise<{ readonly trunk_state?: string; readonly trunk_error?: string }> {
  const { json } = await world.api('GET', `/sip?inbound_id=${FROM.slice(1)}`);
  return (json['data'] as { outbound: object }).outbound;
}

const becomes = (state: string): Promise<void> => world.until(async () => (await trunk()).trunk_state === state);

describe('a trunk with options_interval_s', () => {
  it('[3261 §11] gets OPTIONS at that interval, and is up whatever it answers but 408 and 503', async () => {
    await watch(30);
    await becomes('up');
    answer = '405 Method Not Allowed';
    const before = asked;
    await world.pass(150_000);
    expect(asked - before).toBeGreaterThanOrEqual(4);
    expect(asked - before).toBeLessThanOrEqual(5);
    expect((await trunk()).trunk_state).toBe('up');
  });

  it.each([
    ['does not answer', null, /^no response within 32 s$/],
    ['says that it is not there', '503 Service Unavailable', /^it answered 503$/],
  ])('that %s is down: placed calls are refused at once, until it answers again', async (_what, status, error) => {
    await watch(10);
    await becomes('up');
    answer = status;
    await becomes('down');
    expect((await trunk()).trunk_error).toMatch(error);
    const { json } = await site.place();
    expect(await site.ended(String(json['call_id']))).toMatchObject({ reason: 'TRUNK_UNREACHABLE', answered_at: null });
    expect(site.trunk.invited).toEqual([]);
    answer = '200 OK';
    await becomes('up');
    expect((await trunk()).trunk_error).toBeUndefined();
    await site.placed();
  });

  it('is asked no more when the option goes, and has no state then', async () => {
    await watch(10);
    await becomes('up');
    await watch(0);
    await world.pass(10_000);
    const before = asked;
    await world.pass(60_000);
    expect([asked, (await trunk()).trunk_state]).toEqual([before, undefined]);
  });
});
