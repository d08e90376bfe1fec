import { afterEach, describe, expect, it } from 'vitest';
import { answerOk, answerWith } from '../../support/invite.js';
import { CarrierEnd } from '../../support/media/carrier-end.js';
import { respond } from '../../support/peer-dialog.js';
import { childPid } from '../../support/processes.js';
import { RunningRtpengine } from '../../support/rtpengine.js';
import { send } from '../../support/redis.js';
import { botHears, follow, followCaller, hearEachOther, TransferSite, type Transfer } from '../../support/transfer-site.js';
import { isKept, killAndReturn, nothingLeft, sessionsOf } from '../../support/trunk.js';

// What dies while two calls of ours are joined, or about to be: both parties go on, or both get a BYE that says why, and nothing is left.

let transfers: TransferSite;
let relays: RunningRtpengine[] = [];

afterEach(async () => {
  await transfers.destroy();
  for (const relay of relays) await relay.stop();
  relays = [];
});

/** With so many rtpengines that are not its own; 0: one of its own. */
async function start(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) relays.push(await RunningRtpengine.start(200));
  transfers = await TransferSite.start(count === 0 ? {} : { TRUNKLINE_RTPENGINE: relays.map(({ name }) => name).join(',') });
}

/** The rtpengine that has both sessions dies; resolves with the one that lives. */
async function killBusy(): Promise<RunningRtpengine> {
  const [one, other] = relays as [RunningRtpengine, RunningRtpengine];
  const [busy, idle] = (await sessionsOf(one.port)) === 0 ? [other, one] : [one, other];
  expect(await sessionsOf(busy.port)).toBe(2);
  await busy.kill();
  return idle;
}

/** Both carriers get a re-INVITE, which `follow` answers. */
async function moved({ call, leg }: Pick<Transfer, 'call' | 'leg'>): Promise<void> {
  await Promise.all([call.signalling.incoming('INVITE'), leg.request('INVITE')]);
}

/** Nothing of any call in Redis: no snapshot, no place under a limit, no call in progress. */
async function nothingKept(): Promise<void> {
  const port = Number(transfers.outbound.gateway.environment['TRUNKLINE_REDIS_PORT']);
  const counts = [
    ['gw:*:calls', (key: string) => `HLEN ${key}`],
    ['*:live', (key: string) => `ZCARD ${key}`],
    // A place whose time is over is free, though it is taken off the list later.
    ['*:leases', (key: string) => `ZCOUNT ${key} ${String(Date.now())} +inf`],
  ] as const;
  for (const [pattern, count] of counts) {
    const answer = await send(port, `KEYS ${pattern}`);
    for (const key of answer.split('\r\n').filter((line) => !/^[*$]|^$/.test(line)))
      await expect.poll(() => send(port, count(key))).toBe(':0\r\n');
  }
}

/** The other party hangs up, and so do we; then nothing is left. */
async function endsWell({ call, leg, end }: Transfer, ngPort: number): Promise<void> {
  expect((await leg.dialog.ask('BYE')).status).toBe(200);
  expect(await call.ended()).toContain('PEER_HANGUP');
  await end.close();
  expect(await transfers.recordOf(call)).toMatchObject({ reason: 'PEER_HANGUP', legs: [{ reason: 'CALLER_HANGUP' }] });
  await nothingLeft(ngPort);
  await nothingKept();
}

const ownNgPort = (): number => Number(transfers.outbound.gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);

describe('rtpengine dies', () => {
  it('[3264 §8] under two joined calls, and another lives: both carriers get a re-INVITE, and both parties hear each other', async () => {
    await start(2);
    const transfer = await transfers.joined();
    follow(transfer);
    const other = await killBusy();
    await moved(transfer);
    await hearEachOther(transfer.call.end, transfer.end);
    expect(await sessionsOf(other.port)).toBe(2);
    await endsWell(transfer, other.port);
  });

  it('[3261 §14.1] and one carrier refuses the other one: both get BYE, each with its reason', async () => {
    await start(2);
    const transfer = await transfers.joined();
    const { call, leg, end } = transfer;
    const other = await killBusy();
    answerWith(call.peer, await call.signalling.incoming('INVITE'), '488 Not Acceptable Here');
    const [reason, bye] = await Promise.all([call.ended(), leg.request('BYE')]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
    expect(reason).toContain('MEDIA_MOVE_REFUSED');
    expect(bye.header('Reason')).toContain('PEER_HANGUP');
    expect(await transfers.recordOf(call)).toMatchObject({ reason: 'MEDIA_MOVE_REFUSED', legs: [{ reason: 'PEER_HANGUP' }] });
    await nothingLeft(other.port);
    await nothingKept();
  });

  it('and it was the only one: both get BYE with MEDIA_LOST, and nothing is left', async () => {
    await start(1);
    const { call, leg, end } = await transfers.joined();
    const [relay] = relays as [RunningRtpengine];
    await relay.kill();
    const [reason, bye] = await Promise.all([call.ended(), leg.request('BYE')]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
    expect(reason).toMatch(/MEDIA_LOST|PEER_HANGUP/);
    expect(bye.header('Reason')).toMatch(/MEDIA_LOST|PEER_HANGUP/);
    expect(`${reason} ${bye.header('Reason') ?? ''}`).toContain('MEDIA_LOST');
    await relay.startAgain();
    await transfers.recordOf(call);
    await nothingLeft(relay.port);
    await nothingKept();
  });

  it('and is started again at once: both parties go on', async () => {
    await start(0);
    const transfer = await transfers.joined();
    follow(transfer);
    process.kill(childPid(transfers.outbound.gateway.ready.pid, 'rtpengine'), 'SIGKILL');
    await moved(transfer);
    await hearEachOther(transfer.call.end, transfer.end);
    await endsWell(transfer, ownNgPort());
  });

  it('while the agent talks to whoever answered: they go on, and are joined afterwards', async () => {
    await start(2);
    const transfer = await transfers.consulting();
    const { call, end } = transfer;
    follow(transfer);
    const other = await killBusy();
    await moved(transfer);
    await botHears(call, end, 7_000);
    call.bot.send({ event: 'transfer', transfer: { id: 't2', step: 'complete' } });
    await call.bot.message('stop');
    await hearEachOther(call.end, end);
    await endsWell(transfer, other.port);
  });

  it('while the agent talks to whoever answered, and it was the only one: both get BYE', async () => {
    await start(1);
    const { call, leg, end } = await transfers.consulting();
    const [relay] = relays as [RunningRtpengine];
    await relay.kill();
    const [reason, bye] = await Promise.all([call.ended(), leg.request('BYE')]);
    respond(leg.peer, bye, '200 OK');
    await end.close();
    expect(`${reason} ${bye.header('Reason') ?? ''}`).toContain('MEDIA_LOST');
    await relay.startAgain();
    await transfers.recordOf(call);
    await nothingLeft(relay.port);
    await nothingKept();
  });

  it('while the other number rings: it is cancelled, and the caller goes on with the agent', async () => {
    await start(2);
    const { call, leg } = await transfers.dialled();
    leg.respond('180 Ringing');
    const end = await CarrierEnd.open();
    follow({ call, leg, end });
    const other = await killBusy();
    await Promise.all([leg.cancelled(), call.signalling.incoming('INVITE')]);
    const told = { transfer: { id: 't1', state: 'failed', reason: 'MEDIA_UNAVAILABLE' } };
    expect(await call.bot.message('transfer', 1)).toMatchObject(told);
    await botHears(call, call.end, 5_000);
    await call.hangUp();
    await end.close();
    await nothingLeft(other.port);
    await nothingKept();
  });

  it('before the transfer: the caller who moved is joined all the same', async () => {
    await start(2);
    const call = await transfers.talking();
    const [one, other] = relays as [RunningRtpengine, RunningRtpengine];
    const [busy, idle] = (await sessionsOf(one.port)) === 0 ? [other, one] : [one, other];
    followCaller(call);
    await busy.kill();
    await call.signalling.incoming('INVITE');
    await botHears(call, call.end, 5_000);
    // rtpengine passes the caller's SRTP through since then: the other party's key is another one, which the caller gets by re-INVITE.
    const transfer = await transfers.joined(call);
    await endsWell(transfer, idle.port);
  });
});

describe('the gateway dies', () => {
  it('together with rtpengine under two joined calls: both parties go on', async () => {
    await start(2);
    const transfer = await transfers.joined();
    follow(transfer);
    await isKept(transfers.outbound.gateway, '"phase":"joined"');
    const other = await killBusy();
    await killAndReturn(transfers.outbound.gateway);
    await hearEachOther(transfer.call.end, transfer.end);
    await endsWell(transfer, other.port);
  });
});

describe('the SIP server dies', () => {
  it('under two joined calls: nobody hears anything of it, and the end of one still ends the other', async () => {
    await start(0);
    const { call, leg, end } = await transfers.joined();
    process.kill(childPid(transfers.outbound.gateway.ready.pid, 'sip-server'), 'SIGKILL');
    await hearEachOther(call.end, end);
    // The carrier is asked over a new connection.
    await expect.poll(async () => (await transfers.outbound.trunk.peer()) !== leg.peer).toBe(true);
    const peer = await transfers.outbound.trunk.peer();
    const ping = await peer.request('OPTIONS');
    respond(peer, ping, '200 OK');
    await hearEachOther(call.end, end);
    const live = (await transfers.outbound.gateway.api('GET', '/v1/calls?state=live')).json['calls'] as { readonly call_id: string }[];
    expect(live).toHaveLength(2);
    for (const { call_id: id } of live.slice(0, 1))
      expect((await transfers.outbound.gateway.api('POST', `/v1/calls/${id}/stop`, {})).status).toBe(200);
    respond(peer, await peer.request('BYE'), '200 OK');
    call.peer.close();
    await Promise.all([call.end.close(), end.close()]);
    await transfers.recordOf(call);
    await nothingLeft(ownNgPort());
    await nothingKept();
  });
});

describe('Redis dies', () => {
  it('under two joined calls: they go on, and what they leave is there when it is back', async () => {
    await start(0);
    const transfer = await transfers.joined();
    process.kill(childPid(transfers.outbound.gateway.ready.pid, 'redis-server'), 'SIGKILL');
    await hearEachOther(transfer.call.end, transfer.end);
    await endsWell(transfer, ownNgPort());
  });
});

describe('the caller', () => {
  it('hangs up while both calls move to another rtpengine: the other party gets BYE, and nothing is left', async () => {
    await start(2);
    const { call, leg, end } = await transfers.joined();
    const other = await killBusy();
    const invite = await call.signalling.incoming('INVITE');
    const bye = call.signalling.request('BYE', call.ok);
    answerWith(call.peer, invite, '487 Request Terminated');
    expect((await bye).status).toBe(200);
    answerOk(leg.peer, await leg.request('BYE'));
    await Promise.all([call.close(), end.close()]);
    await nothingLeft(other.port);
    await nothingKept();
  });
});

describe('the carrier of the caller', () => {
  it('[3264 §8] refuses the re-INVITE that joining needs where SRTP is passed through: the caller goes on with the agent', async () => {
    transfers = await TransferSite.start({ TRUNKLINE_MEDIA_AGENT_LEG: 'srtp' });
    const { call, leg } = await transfers.dialled();
    const end = (await CarrierEnd.open()).connect(leg.invite.body);
    await leg.answer(end.sdp());
    answerWith(call.peer, await call.signalling.incoming('INVITE'), '488 Not Acceptable Here');
    const bye = await leg.request('BYE');
    respond(leg.peer, bye, '200 OK');
    expect(await call.bot.message('transfer', 1)).toMatchObject({ transfer: { id: 't1', state: 'failed' } });
    await botHears(call, call.end, 7_000);
    expect(call.bot.of('stop')).toEqual([]);
    await call.hangUp();
    await end.close();
    expect(await transfers.recordOf(call)).toMatchObject({ reason: 'CALLER_HANGUP' });
  });
});
