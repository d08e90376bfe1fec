import { afterEach, describe, expect, it } from 'vitest';
import { CarrierCall } from '../../support/carrier-call.js';
import { recordOf } from '../../support/trunk.js';
import { World } from '../world.js';

let world: World;
let calls: CarrierCall[] = [];

afterEach(async () => {
  for (const call of calls) call.close();
  calls = [];
  await world.destroy();
});

/** With so many rtpengines. */
async function start(relays: number, settings: Readonly<Record<string, string>> = {}): Promise<void> {
  world = await World.start(settings, { relays });
}

async function opened(): Promise<CarrierCall> {
  const call = await CarrierCall.open(world, world.ready.phone_number);
  calls.push(call);
  return call;
}

async function talking(): Promise<CarrierCall> {
  const call = await opened();
  await call.connect();
  return call;
}

/** The rtpengine that has the sessions dies. */
const killBusy = (): void => world.rtpengines.find(({ sessions }) => sessions.size > 0)?.kill();
const nothingLeft = (): Promise<void> => world.until(() => world.rtpengines.every(({ sessions }) => sessions.size === 0));

describe('an rtpengine that dies while another one lives', () => {
  it('[3261 §14.1] makes the gateway send its re-INVITE again when the carrier answers 491', async () => {
    await start(2);
    const call = await talking();
    call.refusals.push('491 Request Pending');
    killBusy();
    const [first, second] = [await call.theirs('INVITE'), await call.theirs('INVITE')];
    expect(second.body).toBe(first.body);
    await call.heardAfter(performance.now());
    expect((await call.request('BYE')).status).toBe(200);
  });

  it('costs the call, which gets BYE with MEDIA_MOVE_REFUSED, when the carrier refuses the re-INVITE', async () => {
    await start(2);
    const call = await talking();
    call.refusals.push('488 Not Acceptable Here');
    killBusy();
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_MOVE_REFUSED');
    expect(await recordOf(world, call)).toMatchObject({ reason: 'MEDIA_MOVE_REFUSED' });
    await nothingLeft();
  });

  it('ends its calls with on_node_loss: end', async () => {
    await start(2, { TRUNKLINE_RTPENGINE_ON_NODE_LOSS: 'end' });
    const call = await talking();
    killBusy();
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_LOST');
    expect(call.has('INVITE')).toBe(false);
    await nothingLeft();
  });
});

describe('the only rtpengine', () => {
  it('ends its calls when it dies; new ones get 503 until it is back', async () => {
    await start(1);
    const call = await talking();
    world.rtpengine.kill();
    expect((await call.theirs('BYE')).header('Reason')).toContain('MEDIA_LOST');
    const refused = await opened();
    refused.signalling.invite(refused.audio.sdp());
    const answer = await refused.signalling.final();
    expect([answer.status, answer.header('Warning')]).toEqual([503, expect.stringContaining('MEDIA_UNAVAILABLE')]);
    world.rtpengine.start();
    await world.until(async () => (await world.api('GET', '/readyz')).status === 200);
    expect((await (await talking()).request('BYE')).status).toBe(200);
    await nothingLeft();
  });

  it('leaves no caller waiting when it dies before the answer: they get 503', async () => {
    await start(1);
    world.rtpengine.hold('answer');
    const call = await opened();
    call.signalling.invite(call.audio.sdp());
    await world.until(() => world.rtpengine.heldCount === 1);
    world.rtpengine.kill();
    expect((await call.signalling.final()).header('Warning')).toContain('MEDIA_UNAVAILABLE');
  });
});
