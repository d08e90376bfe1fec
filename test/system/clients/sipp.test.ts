import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testCertificates } from '../../support/certificates.js';
import type { RunningGateway } from '../../support/gateway.js';
import type { NgProxy } from '../../support/ng-proxy.js';
import { ProxiedGateway } from '../../support/proxied-gateway.js';
import { runSipp, tunnelTo } from '../../support/sipp.js';

let proxied: ProxiedGateway;
let proxy: NgProxy;
let gateway: RunningGateway;
let tunnel: Awaited<ReturnType<typeof tunnelTo>>;

beforeAll(async () => {
  proxied = await ProxiedGateway.start(400);
  ({ proxy, gateway } = proxied);
  tunnel = await tunnelTo(gateway.sipPort, gateway.ready.ca_file);
});

afterAll(async () => {
  await tunnel.close();
  await proxied.stop();
});

async function sessions(): Promise<unknown> {
  const node = proxied.rtpengine.node();
  const { calls } = await node.command('list').finally(() => node.close());
  return calls;
}

describe('the gateway, called by SIPp over a TLS tunnel,', () => {
  it.each([
    ['answered', '+15550100100', 50],
    ['answered', '15550100100', 10],
    ['rejected', '+15550199999', 50],
    ['hold-resume', '+15550100100', 50],
    ['options', '+15550100100', 20],
  ])('passes the scenario %s (%s) in each of %i calls', async (scenario, called, calls) => {
    const outcome = await runSipp(tunnel, scenario, called, calls, 20);
    expect(outcome.code, outcome.output.slice(-3_000)).toBe(0);
    expect([outcome.successful, outcome.failed]).toEqual([calls, 0]);
  });

  it('answers 50 cancelled calls that wait for rtpengine with 487 at once, and frees what rtpengine made', async () => {
    proxy.holding = 'offer';
    try {
      const outcome = await runSipp(tunnel, 'cancelled', '+15550100100', 50, 20);
      expect(outcome.code, outcome.output.slice(-3_000)).toBe(0);
      expect([outcome.successful, outcome.failed]).toEqual([50, 0]);
    } finally {
      proxy.release();
    }
    await expect.poll(sessions).toEqual([]);
    // The line is written after the session is freed.
    const cancelled = async (): Promise<number> => (await gateway.log('gateway')).match(/"reason":"CALLER_CANCELLED"/g)?.length ?? 0;
    await expect.poll(cancelled).toBe(50);
  });

  it('gets nothing through a tunnel that trusts another CA', async () => {
    const wary = await tunnelTo(gateway.sipPort, (await testCertificates()).caFile);
    try {
      const received = await new Promise<string>((resolve) => {
        let text = '';
        const socket = connect(wary.port, '127.0.0.1', () => socket.write('\r\n\r\n'));
        socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
        // A reset is what is wanted.
        socket.on('error', () => undefined);
        socket.on('close', () => resolve(text));
      });
      expect(received).toBe('');
    } finally {
      await wary.close();
    }
  });
});
