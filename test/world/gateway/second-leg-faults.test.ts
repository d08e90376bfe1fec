import { afterEach, describe, expect, it } from 'vitest';
import { CallEnd } from '../../support/media/call-end.js';
import { send } from '../../support/redis.js';
import { botHears, follow, hearEachOther, TransferSite, type Transfer } from '../../support/transfer-site.js';
import { isKept } from '../../support/trunk.js';
import type { WorldRtpengine } from '../rtpengine.js';
import { World } from '../world.js';
import { respond } from '../../support/sip-message.js';

// What dies while two calls of ours are joined, or about to be: both parties go on, or both get a BYE that says why, and nothing is left.

let transfers: TransferSite<World>;
let world: World;

afterEach(() => transfers.destroy());

/** With so many rtpengines. */
async function start(relays: number): Promise<void> {
  transfers = await TransferSite.startOn((all) => World.start(all, { relays }));
  world = transfers.outbound.gateway;
}

/** The rtpengine that has both sessions dies; returns the one that lives. */
function killBusy(): WorldRtpengine {
  const [one, other] = world.rtpengines as [WorldRtpengine, WorldRtpengine];
  const [busy, idle] = one.sessions.size === 0 ? [other, one] : [one, other];
  expect([busy.sessions.size, idle.sessions.size]).toEqual([2, 0]);
  busy.kill();
  return idle;
}

/** Both carriers get a re-INVITE, which `follow` answers. */
async function moved({ call, leg }: Pick<Transfer, 'call' | 'leg'>): Promise<void> {
  await Promise.all([call.signalling.incoming('INVITE'), leg.request('INVITE')]);
}

/** Nothing of any call on an rtpengine and in Redis: no session, no snapshot, no place under a limit, no call in progress. */
async function nothingLeft(): Promise<void> {
  const counts = [
    ['gw:*:calls', (key: string) => `HLEN ${key}`],
    ['*:live', (key: string) => `ZCARD ${key}`],
    // A place whose time is over is free, though it is taken off the list later.
    ['*:leases', (key: string) => `ZCOUNT ${key} ${String(Date.now())} +inf`],
  ] as const;
  const port = Number(world.environment['TRUNKLINE_REDIS_PORT']);
  await world.until(() => world.rtpengines.every(({ sessions }) => sessions.size === 0));
  for (const [pattern, count] of counts) {
    const answer = await send(port, `KEYS ${pattern}`);
    for (const key of answer.split('\r\n').filter((line) => !/^[*$]|^$/.test(line)))
      await world.until(async () => (await send(port, count(key))) === ':0\r\n');
  }
}

/** The other party hangs up, and so do we; then nothing is left. */
async function endsWell({ call, leg, end }: Transfer): Promise<void> {
  expect((await leg.dialog.ask('BYE')).status).toBe(200);
  expect(await call.ended()).toContain('PEER_HANGUP');
  await end.close();
  expect(await transfers.recordOf(call)).toMatchObject({ reason: 'PEER_HANGUP', legs: [{ reason: 'CALLEE_HANGUP' }] });
  await nothingLeft();
}

describe('an rtpengine that dies', () => {
  it('[3264 §8] under two joined calls, while another lives, makes both carriers get a re-INVITE, and both parties hear each other', async () => {
    await start(2);
    const transfer = await transfers.joined();
    follow(transfer);
    const other = killBusy();
    await moved(transfer);
    await hearEachOther(transfer.call.end, transfer.end);
    expect(other.sessions.size).toBe(2);
    await endsWell(transfer);
  });

  it('[3261 §14.1] under two joined calls ends both, each with its reason, when one carrier refuses the re-INVITE', async () => {
    await start(2);
    const transfer = await transfers.joined();
    const { call, leg, end } = transfer;
    killBusy();
    respond(call.peer, await call.signalling.incoming('INVITE'), '488 Not Acceptable Here');
    const [reason, bye] = await Promise.all([call.ended(), leg.request('BYE')]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
    expect(reason).toContain('MEDIA_MOVE_REFUSED');
    expect(bye.header('Reason')).toContain('PEER_HANGUP');
    expect(await transfers.recordOf(call)).toMatchObject({ reason: 'MEDIA_MOVE_REFUSED', legs: [{ reason: 'PEER_HANGUP' }] });
    await nothingLeft();
  });

  it('under two joined calls ends both with MEDIA_LOST and leaves nothing when it was the only one', async () => {
    await start(1);
    const { call, leg, end } = await transfers.joined();
    world.rtpengine.kill();
    const [reason, bye] = await Promise.all([call.ended(), leg.request('BYE')]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
    expect(reason).toMatch(/MEDIA_LOST|PEER_HANGUP/);
    expect(bye.header('Reason')).toMatch(/MEDIA_LOST|PEER_HANGUP/);
    expect(`${reason} ${bye.header('Reason') ?? ''}`).toContain('MEDIA_LOST');
    world.rtpengine.start();
    await transfers.recordOf(call);
    await nothingLeft();
  });

  it('under two joined calls and starts again at once leaves both parties connected', async () => {
    await start(1);
    const transfer = await transfers.joined();
    follow(transfer);
    world.rtpengine.kill();
    world.rtpengine.start();
    await moved(transfer);
    await hearEachOther(transfer.call.end, transfer.end);
    await endsWell(transfer);
  });

  it('while the agent talks to the callee leaves both parties connected, and they are joined afterwards', async () => {
    await start(2);
    const transfer = await transfers.consulting();
    const { call, end } = transfer;
    follow(transfer);
    killBusy();
    await moved(transfer);
    await botHears(call, end, 7_000);
    call.bot.send({ event: 'transfer', transfer: { id: 't2', step: 'complete' } });
    await call.bot.message('stop');
    await hearEachOther(call.end, end);
    await endsWell(transfer);
  });

  it('while the agent talks to the callee ends both calls when it was the only one', async () => {
    await start(1);
    const { call, leg, end } = await transfers.consulting();
    world.rtpengine.kill();
    const [reason, bye] = await Promise.all([call.ended(), leg.request('BYE')]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
    expect(`${reason} ${bye.header('Reason') ?? ''}`).toContain('MEDIA_LOST');
    world.rtpengine.start();
    await transfers.recordOf(call);
    await nothingLeft();
  });

  it('while the other number rings cancels that call, and the caller continues with the agent', async () => {
    await start(2);
    const { call, leg } = await transfers.dialled();
    leg.respond('180 Ringing');
    const end = await CallEnd.open();
    follow({ call, leg, end });
    killBusy();
    await Promise.all([leg.cancelled(), call.signalling.incoming('INVITE')]);
    const told = { transfer: { id: 't1', state: 'failed', reason: 'MEDIA_UNAVAILABLE' } };
    expect(await call.bot.message('transfer', 1)).toMatchObject(told);
    await botHears(call, call.end, 5_000);
    await call.hangUp();
    await end.close();
    await nothingLeft();
  });
});

describe('a gateway that dies', () => {
  it('together with rtpengine under two joined calls leaves both parties connected', async () => {
    await start(2);
    const transfer = await transfers.joined();
    follow(transfer);
    await isKept(world, '"phase":"joined"');
    killBusy();
    world.killGateway();
    await world.startGateway();
    await hearEachOther(transfer.call.end, transfer.end);
    await endsWell(transfer);
  });
});

describe('a SIP server that dies', () => {
  it('under two joined calls leaves their audio untouched, and the end of one still ends the other', async () => {
    await start(1);
    const { call, leg, end } = await transfers.joined();
    world.killSipServer();
    await world.startSipServer();
    await hearEachOther(call.end, end);
    // The carrier is asked over a new connection.
    await world.until(async () => (await transfers.outbound.trunk.peer()) !== leg.peer);
    const peer = await transfers.outbound.trunk.peer();
    const ping = await peer.request('OPTIONS');
    respond(peer, ping, '200 OK');
    await hearEachOther(call.end, end);
    const live = (await world.api('GET', '/v1/calls?state=live')).json['calls'] as { readonly call_id: string }[];
    expect(live).toHaveLength(2);
    for (const { call_id: id } of live.slice(0, 1)) expect((await world.api('POST', `/v1/calls/${id}/stop`, {})).status).toBe(200);
    respond(peer, await peer.request('BYE'), '200 OK');
    call.peer.close();
    await Promise.all([call.end.close(), end.close()]);
    await transfers.recordOf(call);
    await nothingLeft();
  });
});

describe('Redis, when it dies', () => {
  it('under two joined calls, leaves them connected, and their records are written when it is back', async () => {
    await start(1);
    const transfer = await transfers.joined();
    world.killRedis();
    await hearEachOther(transfer.call.end, transfer.end);
    world.startRedis();
    await endsWell(transfer);
  });
});

describe('a caller who hangs up', () => {
  it('while both calls move to another rtpengine ends the other call with BYE and leaves nothing', async () => {
    await start(2);
    const { call, leg, end } = await transfers.joined();
    killBusy();
    const invite = await call.signalling.incoming('INVITE');
    const bye = call.signalling.request('BYE', call.ok);
    respond(call.peer, invite, '487 Request Terminated');
    expect((await bye).status).toBe(200);
    respond(leg.peer, await leg.request('BYE'), '200 OK');
    await Promise.all([call.close(), end.close()]);
    await nothingLeft();
  });
});
