import { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { HandMadeCall } from '../../support/hand-made-call.js';
import { offerSdp } from '../../support/sdp.js';
import { World } from '../world.js';

it.each(['drain', 'park'] as const)('a gateway that ends by %s leaves the SIP server without an error in its log', async (how) => {
  const world = await World.start();
  try {
    await world.stopGateway(how);
    await world.pass(1_000);
    expect(world.lines.filter(({ process, level }) => process === 'gateway' && level === 'error')).toEqual([]);
  } finally {
    await world.destroy();
  }
});

it('a gateway that drains until its last call has ended leaves nothing of that call in Redis', async () => {
  const world = await World.start();
  try {
    const call = new HandMadeCall(await world.carrier(), '+15550100100');
    const ok = await call.answered(offerSdp());
    const stopped = world.stopGateway('drain');
    await call.hangUp(ok);
    await stopped;
    const redis = new Redis(6_379);
    expect(await redis.hkeys('gw:{gateway}:calls')).toEqual([]);
    redis.disconnect();
  } finally {
    await world.destroy();
  }
});

it('a gateway that drains is not ready, though its process and its parts are', async () => {
  const world = await World.start();
  try {
    const call = new HandMadeCall(await world.carrier(), '+15550100100');
    const ok = await call.answered(offerSdp());
    expect((await world.api('GET', '/readyz')).status).toBe(200);
    const stopped = world.stopGateway('drain');
    await world.until(async () => (await world.api('GET', '/readyz')).status === 503);
    const { json } = await world.api('GET', '/readyz');
    expect(json).toMatchObject({
      errors: [{ error: 'NOT_READY', message: 'gateway is not ready: it is shutting down and takes no new calls' }],
      parts: { redis: true, rtpengine: true, sip_server: true, gateway: false },
    });
    expect((await world.api('GET', '/healthz')).status).toBe(200);
    await call.hangUp(ok);
    await stopped;
  } finally {
    await world.destroy();
  }
});
