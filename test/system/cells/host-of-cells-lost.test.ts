import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { cellName } from '../../../src/config/cells.js';
import { cellDialogsKey } from '../../../src/gateway/store/redis/keys.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { CarrierListener } from '../../support/carrier-listener.js';
import { cellOfAnswer, CELLS, inCell } from '../../support/cells.js';
import { SipPeer } from '../../support/sip-peer.js';
import { NUMBER, ORG, signalHost, TwoHosts } from '../../support/two-hosts.js';
import { sessionsOf } from '../../support/trunk.js';

let hosts: TwoHosts;
let carrier: CarrierListener;
const calls: CarrierCall[] = [];

beforeAll(async () => {
  carrier = await CarrierListener.open();
  hosts = await TwoHosts.start(undefined, null, { TRUNKLINE_GATEWAY_WORKERS: String(CELLS) });
});

afterAll(async () => {
  for (const call of calls) call.close();
  carrier.close();
  await hosts.close();
});

async function talkingIn(cell: number): Promise<CarrierCall> {
  const call = await inCell(
    cell,
    () => CarrierCall.open(hosts.a.trunk, NUMBER),
    ({ signalling }) => signalling.callId,
    (unfit) => unfit.close(),
  );
  calls.push(call);
  await call.connect(carrier.port);
  carrier.add(call);
  expect(cellOfAnswer(call.answer)).toBe(cell);
  return call;
}

it('a lost host leaves the calls of each cell to the same cell of another host', async () => {
  for (const cell of [1, 2, 1, 2]) await talkingIn(cell);
  const instance = (await readFile(join(hosts.a.gateway.dataDir, 'gateway-instance'), 'utf8')).trim();
  const lengthOf = (cell: number): Promise<string> => hosts.redis.command(`HLEN ${cellDialogsKey(cellName(instance, cell))}`);
  await expect.poll(() => Promise.all([lengthOf(1), lengthOf(2)])).toEqual([':2\r\n', ':2\r\n']);
  const atMs = signalHost(hosts.a, 'SIGKILL');
  for (const call of calls) {
    await until(() => call.has('INVITE'), 'no re-INVITE');
    await call.heardAfter(atMs + 1_000);
  }
  for (const name of ['sip-server', 'sip-server-2']) expect(await hosts.b.gateway.log(name)).toContain('sip_server.cell.took_over');
  // Whichever cell has the connection.
  for (const call of calls) {
    call.over(await SipPeer.connect(hosts.b.trunk.sipPort, hosts.b.trunk.ca, { host: hosts.b.address }));
    expect((await call.request('BYE')).status).toBe(200);
  }
  const ended = async (): Promise<unknown[]> =>
    (await hosts.stores.calls.list(ORG, { limit: 100 })).calls.map(({ reason, resumed }) => [reason, resumed]);
  await expect.poll(ended).toEqual(calls.map(() => ['CALLER_HANGUP', 1]));
  await until(async () => (await sessionsOf(Number(hosts.b.gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']))) === 0, 'left');
});
