import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sipServerName } from '../../../src/config/cells.js';
import { until, type CarrierCall } from '../../support/carrier-call.js';
import { areWhole, cellOfAnswer, CELLS, connectionOf, openedIn } from '../../support/cells.js';
import { RunningGateway } from '../../support/gateway.js';
import { SipPeer } from '../../support/sip-peer.js';
import { nothingLeft, recordOf } from '../../support/trunk.js';

let gateway: RunningGateway;

beforeAll(async () => {
  gateway = await RunningGateway.start({ TRUNKLINE_GATEWAY_WORKERS: String(CELLS) });
});

beforeEach(() => areWhole(gateway));

afterAll(() => gateway.destroy());

async function opened(cell: number, owner: number): Promise<CarrierCall> {
  const call = await openedIn(cell, gateway);
  call.peer.close();
  call.over(await connectionOf(gateway, owner));
  return call;
}

async function talking(cell: number, owner: number): Promise<CarrierCall> {
  const call = await opened(cell, owner);
  await call.connect();
  expect(cellOfAnswer(call.answer)).toBe(cell);
  return call;
}

const newConnection = (): Promise<SipPeer> => SipPeer.connect(gateway.sipPort, gateway.ca);

async function endsWell(call: CarrierCall): Promise<void> {
  expect((await call.request('BYE')).status).toBe(200);
  expect(call.has('BYE')).toBe(false);
  expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed: 0 });
  call.close();
}

/** Resolves when its SIP server has read all that was sent on the connection before. */
async function isRead({ peer }: CarrierCall): Promise<void> {
  peer.raw('\r\n\r\n');
  await peer.next('pong', ({ startLine }) => startLine === 'PONG');
}

describe('`trunkline up` with two cells', () => {
  // One kill for each SIP server: the supervisor starts what dies again and again only after a pause.
  it.each([1, 2])('loses no call and no request when the SIP server of cell %i gets kill -9', async (cell) => {
    const other = 3 - cell;
    const calls = await Promise.all([talking(1, 1), talking(1, 2), talking(2, 1), talking(2, 2)]);
    const [cut, kept] = [calls.filter((_, index) => index % 2 === cell - 1), calls.filter((_, index) => index % 2 !== cell - 1)];
    const ending = await talking(cell, other);
    const [begun, fresh, others] = await Promise.all([opened(cell, other), opened(cell, other), opened(other, other)]);
    const pid = await gateway.pidOf(sipServerName(cell));
    // It reads nothing more: what comes by the other cell's connections is on its way to it.
    process.kill(pid, 'SIGSTOP');
    const bye = ending.request('BYE');
    const answered = begun.connect();
    await isRead(ending);
    await isRead(begun);
    const killedMs = performance.now();
    process.kill(pid, 'SIGKILL');

    // At once: requests in its dialogs wait until it is back, and new calls are the other one's.
    const statuses = Promise.all(kept.map(async (call) => (await call.request('OPTIONS')).status));
    await Promise.all([answered, fresh.connect(), others.connect()]);
    expect([begun, fresh, others].map(({ answer }) => cellOfAnswer(answer))).toEqual([other, other, other]);
    expect(await statuses).toEqual([200, 200]);
    expect((await bye).status).toBe(200);
    expect(await recordOf(gateway, ending)).toMatchObject({ reason: 'CALLER_HANGUP' });
    ending.close();
    for (const call of cut) {
      await call.peer.whenClosed();
      call.over(await newConnection());
    }
    expect(await Promise.all(cut.map(async (call) => (await call.request('OPTIONS')).status))).toEqual([200, 200]);
    await Promise.all(calls.map((call) => call.heardAfter(performance.now())));
    const gap = Math.max(...calls.map(({ audio }) => audio.longestGapSince(killedMs)));
    console.log(`  figure: SIP server of one of two cells killed: ${String(Math.round(gap))} ms of silence`);
    for (const call of [...calls, begun, fresh, others]) await endsWell(call);
    await nothingLeft(Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']));
  });
});

it('gives no new call to a SIP server that hangs for 2 s', async () => {
  const pid = await gateway.pidOf('sip-server-2');
  const first = await opened(2, 1);
  const probe = async (): Promise<number> => {
    const { signalling } = await openedIn(2, gateway);
    return cellOfAnswer(await signalling.over(first.peer).probe('OPTIONS'));
  };
  process.kill(pid, 'SIGSTOP');
  const stoppedMs = performance.now();
  const answered = first.connect();
  const probes: Promise<number>[] = [];
  let isTaken = false;
  const oneIsTaken = async (): Promise<boolean> => {
    probes.push(probe());
    void Promise.any(probes).then((cell) => (isTaken ||= cell === 1));
    return Promise.resolve(isTaken);
  };
  await until(oneIsTaken, 'no new request is answered', { everyMs: 100 });
  console.log(
    `  figure: SIP server of a cell hangs: the other one has its new calls after ${String(Math.round(performance.now() - stoppedMs))} ms`,
  );
  process.kill(pid, 'SIGCONT');
  await answered;
  await Promise.all(probes);
  expect(cellOfAnswer(first.answer)).toBe(2);
  await endsWell(first);
});

it('lets a cell that finds the sockets held by the other one serve what that one passes on', async () => {
  const call = await talking(2, 1);
  process.kill(await gateway.pidOf('socket-holder'), 'SIGKILL');
  process.kill(await gateway.pidOf('sip-server-2'), 'SIGKILL');
  await gateway.logged('sip-server-2', 'sip_server.sockets.held');
  expect((await call.request('OPTIONS')).status).toBe(200);
  await endsWell(call);
  await gateway.stop();
  await gateway.up();
});

it('keeps the calls of both cells at `trunkline reload`', async () => {
  const calls = await Promise.all([talking(1, 1), talking(1, 2), talking(2, 1), talking(2, 2)]);
  const atMs = performance.now();
  const { code, stdout, stderr } = await gateway.cli('reload');
  expect([code, stderr, stdout]).toEqual([0, '', 'replaced: sip-server, sip-server-2, gateway, gateway-2\n']);
  for (const call of calls) {
    await call.peer.whenClosed();
    call.over(await newConnection());
    expect((await call.request('OPTIONS')).status).toBe(200);
  }
  await Promise.all(calls.map((call) => call.heardAfter(performance.now())));
  const gap = Math.max(...calls.map(({ audio }) => audio.longestGapSince(atMs)));
  console.log(`  figure: reload of two cells: ${String(Math.round(gap))} ms of silence`);
  for (const call of calls) await endsWell(call);
  expect((await gateway.cli('stop')).code).toBe(0);
});
