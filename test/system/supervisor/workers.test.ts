import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { CELLS, talkingIn } from '../../support/cells.js';
import { RunningGateway } from '../../support/gateway.js';
import { attach, nothingLeft, recordOf, timesLogged } from '../../support/trunk.js';

const CALLS = 4;

let gateway: RunningGateway;
let calls: CarrierCall[] = [];

beforeAll(async () => {
  gateway = await RunningGateway.start({ TRUNKLINE_GATEWAY_WORKERS: String(CELLS) });
});

afterAll(async () => {
  for (const call of calls) call.close();
  await gateway.destroy();
});

/** Each cell has its half. */
async function talking(count: number): Promise<CarrierCall[]> {
  calls = await Promise.all(Array.from({ length: count }, (_, at) => talkingIn((at % CELLS) + 1, gateway)));
  return calls;
}

const live = async (): Promise<Record<string, unknown>[]> =>
  (await gateway.api('GET', '/v1/calls?state=live')).json['calls'] as Record<string, unknown>[];

describe('two gateway processes of one `trunkline up`', () => {
  it('share the calls; the API of the first lists, shows and stops those of both; one that is killed resumes its own', async () => {
    const talkers = await talking(CALLS);
    expect(await live()).toHaveLength(CALLS);

    // What the second one takes up after its death is its own two.
    const ready = await timesLogged(gateway, 'gateway-2', '"msg":"gateway.ready"');
    const killedMs = performance.now();
    process.kill(await gateway.pidOf('gateway-2'), 'SIGKILL');
    await until(async () => (await timesLogged(gateway, 'gateway-2', '"msg":"gateway.ready"')) > ready, 'no second gateway');
    await Promise.all(talkers.map((call) => call.heardAfter(killedMs + 500)));

    for (const { call_id: callId } of await live()) {
      const { status, json } = await gateway.api('POST', `/v1/calls/${String(callId)}/stop`);
      expect([status, json]).toEqual([200, expect.anything()]);
    }
    const records = await Promise.all(talkers.map((call) => recordOf(gateway, call)));
    expect(records.map(({ resumed }) => resumed)).toEqual([0, 1, 0, 1]);
    expect(new Set(records.map(({ reason }) => reason))).toEqual(new Set(['API_STOPPED']));
    await nothingLeft(Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']));
  });

  it('count the limits of a number together', async () => {
    const number = '+15550100882';
    await attach(gateway, number, { max_concurrent_calls: 3 });
    const attempts = await Promise.all(Array.from({ length: 6 }, () => CarrierCall.open(gateway, number)));
    for (const call of attempts) call.signalling.invite(call.audio.sdp());
    const statuses = await Promise.all(attempts.map(async (call) => (call.answer = await call.signalling.final()).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(3);
    for (const call of attempts) {
      if (call.answer.status === 200) {
        call.signalling.ack(call.answer);
        await call.request('BYE');
      }
      call.close();
    }
  });

  it('stop together: no call is left without a BYE', async () => {
    const talkers = await talking(CALLS);
    const byes = talkers.map((call) => call.theirs('BYE'));
    expect(await gateway.stop()).toBe(0);
    await Promise.all(byes);
  });
});
