import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';
import { freePorts } from '../../support/ports.js';
import { runSipp, tunnelTo, type SippOptions } from '../../support/sipp.js';

const NUMBER = '+15550100100';

let gateway: RunningGateway;
let tunnel: Awaited<ReturnType<typeof tunnelTo>>;
let udpPort: number;

beforeAll(async () => {
  [udpPort = 0] = await freePorts(1);
  gateway = await RunningGateway.start({ TRUNKLINE_SIP_UDP_PORT: String(udpPort) });
  tunnel = await tunnelTo(gateway.sipPort, gateway.ready.ca_file);
});

afterAll(async () => {
  await tunnel.close();
  await gateway.destroy();
});

type CallRecord = Readonly<Record<string, unknown>>;

async function recorded(): Promise<CallRecord[]> {
  return (await gateway.api('GET', '/v1/calls?limit=200')).json['calls'] as CallRecord[];
}

/** Every call of the scenario succeeds; resolves with the records of its calls, one each, in the end all of them ended. */
async function records(scenario: string, calls: number, rate: number, port: number, options: SippOptions = {}): Promise<CallRecord[]> {
  const before = new Set((await recorded()).map(({ call_id: id }) => id));
  const outcome = await runSipp({ port }, scenario, NUMBER, calls, rate, options);
  expect(outcome.code, outcome.output.slice(-3_000)).toBe(0);
  expect([outcome.successful, outcome.failed, outcome.lost > 0]).toEqual([calls, 0, options.lost !== undefined]);
  const ours = async (): Promise<CallRecord[]> =>
    (await recorded()).filter(({ call_id: id, state }) => !before.has(id) && state === 'ended');
  await expect.poll(async () => (await ours()).length).toBe(calls);
  return ours();
}

const reasons = (all: readonly CallRecord[]): unknown[] => [...new Set(all.map(({ reason }) => reason))];

describe('the gateway, called by SIPp over a TLS tunnel,', () => {
  it('[3261 §13.2.1] takes the codec of a late offer from the answer in the ACK', async () => {
    const all = await records('late-offer', 20, 20, tunnel.port);
    expect(reasons(all)).toEqual(['CALLER_HANGUP']);
    expect(new Set(all.map(({ codec }) => codec))).toEqual(new Set(['PCMA']));
  });

  it('[4028 §9] answers 422 with Min-SE, then refreshes sessions by UPDATE and re-INVITE', async () => {
    expect(reasons(await records('session-timers', 20, 20, tunnel.port))).toEqual(['CALLER_HANGUP']);
  });

  it('counts both DTMF digits that come by INFO, and ends the call on #', async () => {
    const all = await records('digits', 10, 20, tunnel.port);
    expect(reasons(all)).toEqual(['AGENT_HANGUP']);
    expect(all).toMatchObject(all.map(() => ({ quality: { endpoint: { digits_received: 2 } } })));
  });

  it('refreshes a long call again and again', async () => {
    expect(reasons(await records('long-call', 10, 20, tunnel.port))).toEqual(['CALLER_HANGUP']);
  });

  it('answers an INVITE without SRTP with 488 and SRTP_REQUIRED', async () => {
    expect(reasons(await records('rejected-plain', 20, 20, tunnel.port))).toEqual(['SRTP_REQUIRED']);
  });

  it('answers a burst of 100 INVITEs', async () => {
    expect(reasons(await records('answered', 100, 10_000, tunnel.port))).toEqual(['CALLER_HANGUP']);
  });
});

describe('the gateway, called by SIPp over UDP with one packet in ten lost,', () => {
  it('[3261 §17.1.1.2] [3261 §13.3.1.4] answers and ends every call, with one record each', async () => {
    const all = await records('answered-udp', 40, 40, udpPort, { transport: 'u1', lost: 10 });
    expect(reasons(all)).toEqual(['CALLER_HANGUP']);
    expect(new Set(all.map(({ sip_call_id: id }) => id)).size).toBe(40);
  });
});
