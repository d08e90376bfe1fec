import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RunningGateway } from '../../support/gateway.js';
import { runSipp, Tunnel } from '../../support/sipp.js';

let gateway: RunningGateway;
let tunnel: Tunnel;

beforeAll(async () => {
  gateway = await RunningGateway.start();
  tunnel = await Tunnel.open(gateway.sipPort, gateway.ready.ca_file);
});

afterAll(async () => {
  await tunnel.close();
  await gateway.destroy();
});

describe('SIPp over a TLS tunnel', () => {
  it.each([
    ['answered', '+15550100100', 50],
    ['answered', '15550100100', 10],
    ['rejected', '+15550199999', 50],
    ['hold-resume', '+15550100100', 20],
    ['options', '+15550100100', 20],
  ])('%s (%s): %i calls without a failure', async (scenario, called, calls) => {
    const outcome = await runSipp(tunnel, scenario, called, calls, 20);
    expect(outcome.code, outcome.output.slice(-3_000)).toBe(0);
    expect([outcome.successful, outcome.failed]).toEqual([calls, 0]);
  });
});
