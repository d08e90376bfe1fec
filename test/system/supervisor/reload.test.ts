import { afterEach, beforeEach, expect, it } from 'vitest';
import { TestBot, type BotMessage } from '../../support/agent/test-bot.js';
import { CarrierCall, until } from '../../support/carrier-call.js';
import { RunningGateway } from '../../support/gateway.js';
import { isAlive, processesOf } from '../../support/processes.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { SipPeer } from '../../support/sip-peer.js';
import { isKept, nothingLeft, recordOf } from '../../support/trunk.js';

// `trunkline reload`: the old gateway keeps its calls, the new one takes new calls. Figures of silence are in docs/failures.md.

let gateway: RunningGateway;
let calls: CarrierCall[] = [];

const start = async (environment: Readonly<Record<string, string>> = {}): Promise<void> => {
  gateway = await RunningGateway.start(environment);
};

beforeEach(() => {
  calls = [];
});

afterEach(async () => {
  for (const call of calls) call.close();
  await gateway.destroy();
});

async function talking(place = 1): Promise<CarrierCall> {
  const call = await CarrierCall.open(gateway, gateway.ready.phone_number);
  calls.push(call);
  await call.connect();
  await isKept(gateway, call.signalling.callId, place);
  return call;
}

/** The SIP server that it was connected to was replaced too. */
async function endsWell(call: CarrierCall, resumed: number): Promise<void> {
  call.over(await SipPeer.connect(gateway.sipPort, gateway.ca));
  expect((await call.request('OPTIONS')).status).toBe(200);
  expect((await call.request('BYE')).status).toBe(200);
  expect(await recordOf(gateway, call)).toMatchObject({ reason: 'CALLER_HANGUP', resumed });
  expect(call.has('BYE')).toBe(false);
}

async function reload(): Promise<void> {
  const { code, stdout, stderr } = await gateway.cli('reload');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^replaced: sip-server, gateway(?:-2)?\n$/);
}

/** Calls begun and ended, as all of its processes have counted them, those that have ended included; whether packets were. */
async function counted(): Promise<[begun: number | undefined, ended: number | undefined, hasPackets: boolean]> {
  const { sum } = parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text());
  const packets = sum('trunkline_media_packets_received_total', { process: 'gateway' }) ?? 0;
  return [sum('trunkline_calls_begun_total'), sum('trunkline_calls_ended_total'), packets > 0];
}

const hasEnded = (pid: number): Promise<void> => until(() => !isAlive(pid), 'the old gateway does not end');
const ngPort = (): number => Number(gateway.environment['TRUNKLINE_RTPENGINE_NG_PORT']);

it('a reload leaves a call in the old gateway, which ends after it; a new call is in the new one', async () => {
  await start();
  const call = await talking();
  const before = await gateway.pidOf('gateway');
  const atMs = performance.now();
  await reload();
  expect(isAlive(before)).toBe(true);
  await call.heardAfter(performance.now());
  expect([call.audio.ssrcs.length, call.audio.lost]).toEqual([1, 0]);
  console.log(`  figure: trunkline reload: ${String(Math.round(call.audio.longestGapSince(atMs)))} ms of silence`);
  const other = await talking(2);
  expect((await other.request('BYE')).status).toBe(200);
  // The new one serves the API, for the old one's calls too.
  await endsWell(call, 0);
  await hasEnded(before);
  await nothingLeft(ngPort());
  expect(await counted()).toEqual([2, 2, true]);
  // Back to the first place.
  const second = await gateway.pidOf('gateway-2');
  await reload();
  await hasEnded(second);
  expect(await counted()).toEqual([2, 2, true]);
  expect(isAlive(await gateway.pidOf('gateway'))).toBe(true);
  expect((await gateway.cli('stop')).code).toBe(0);
  expect(processesOf(gateway.dataDir)).toEqual([]);
});

function parametersOf(message: BotMessage): Record<string, string> {
  return (message['start'] as { readonly customParameters: Record<string, string> }).customParameters;
}

it('a reload hands over what is left after calls.handover_ms, to a process that connects the agents first', async () => {
  const bot = await TestBot.start();
  await start({ TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true', TRUNKLINE_CALLS_HANDOVER_MS: '1000' });
  const held = [await talking(), await talking(), await talking()];
  const first = [...bot.calls.all];
  const before = await gateway.pidOf('gateway');
  const connectedAgain = bot.calls.at(2 * held.length - 1).then(() => ({
    atMs: performance.now(),
    isOldAlive: isAlive(before),
    closed: first.flatMap(({ closed }) => closed.all),
  }));
  await reload();
  const { atMs, ...seen } = await connectedAgain;
  expect(seen).toEqual({ isOldAlive: true, closed: [] });
  await hasEnded(before);
  const silences: number[] = [];
  for (const next of bot.calls.all.slice(held.length)) {
    const start = await next.message('start');
    const { call_id: callId, reconnects } = parametersOf(start);
    expect(reconnects).toBe('1');
    const earlier = first.find((call) => parametersOf(call.start)['call_id'] === callId);
    silences.push(Math.round(next.arrivalMs(start) - (earlier?.arrivalMs(earlier.of('media').at(-1)!) ?? 0)));
  }
  for (const call of held) await call.heardAfter(performance.now());
  const gaps = held.map(({ audio }) => audio.longestGapSince(atMs));
  console.log(`  figure: handover: ${gaps.join(', ')} ms without RTP, ${silences.join(', ')} ms without an agent`);
  // The one ends where the other begins, and between them no packet is lost. (`npm run faults` measures the gap.)
  expect(held.map(({ audio }) => [audio.ssrcs.length, audio.lost, audio.isInTurn])).toEqual(held.map(() => [2, 0, true]));
  const successor = await gateway.pidOf('gateway');
  for (const call of held) await endsWell(call, 1);
  await hasEnded(successor);
  await nothingLeft(ngPort());
  await bot.stop();
});

it('a second reload while the first gateway has calls hands over those of the second gateway at once', async () => {
  await start();
  const first = await talking();
  await reload();
  const second = await talking(2);
  await reload();
  await gateway.logged('gateway-2', 'call.resumed');
  await first.heardAfter(performance.now());
  await second.heardAfter(performance.now());
  await endsWell(first, 0);
  await endsWell(second, 1);
});

it('a reload leaves an old gateway whose calls continue in another one when it is killed', async () => {
  await start();
  const call = await talking();
  await reload();
  process.kill(await gateway.pidOf('gateway'), 'SIGKILL');
  await gateway.logged('gateway', 'call.resumed');
  await call.heardAfter(performance.now());
  await endsWell(call, 1);
});

it('a reload leaves two gateways that a new supervisor takes over, and trunkline stop ends', async () => {
  await start();
  const call = await talking();
  await reload();
  await gateway.stop('SIGKILL');
  await gateway.up();
  await until(() => gateway.output.split('supervisor.child.taken_over').length === 7, 'not all are taken over');
  await call.heardAfter(performance.now());
  call.over(await SipPeer.connect(gateway.sipPort, gateway.ca));
  expect((await call.request('OPTIONS')).status).toBe(200);
  const stopping = gateway.cli('stop');
  await call.theirs('BYE');
  expect((await stopping).code).toBe(0);
  expect(processesOf(gateway.dataDir)).toEqual([]);
});

it('a reload whose new gateway does not start changes nothing', async () => {
  await start();
  const before = await gateway.pidOf('gateway');
  // Another program has the ports of the other place.
  const { createSocket } = await import('node:dgram');
  const [min, max] = ['TRUNKLINE_MEDIA_PORT_MIN', 'TRUNKLINE_MEDIA_PORT_MAX'].map((name) => Number(gateway.environment[name]));
  const middle = ((min ?? 0) + (max ?? 0) + 1) / 2;
  const sockets = Array.from({ length: (max ?? 0) - middle + 1 }, (_none, at) => createSocket('udp4').bind(middle + at, '127.0.0.1'));
  const { code, stderr } = await gateway.cli('reload');
  for (const socket of sockets) socket.close();
  expect([code, stderr]).toEqual([1, expect.stringContaining('gateway-2 did not start')]);
  expect(await gateway.pidOf('gateway')).toBe(before);
  const call = await talking();
  expect((await call.request('BYE')).status).toBe(200);
});
