import { beforeAll, describe, expect, it } from 'vitest';
import { FROM, OutboundSite } from '../../support/outbound-site.js';

interface Figures {
  readonly passed: boolean;
  readonly scenario: string;
  readonly measured: string;
  readonly stages: readonly {
    readonly started: number;
    readonly answered: number;
    readonly successful: number;
    readonly failed: number;
    readonly peak_in_progress: number;
    readonly latency: { readonly p99: number } | null;
    readonly failures: readonly { readonly code: string; readonly reason: string | null }[];
  }[];
  readonly batch_id: string;
}

let site: OutboundSite;

beforeAll(async () => {
  site = await OutboundSite.start(false);
  return () => site.destroy();
});

const load = (...flags: readonly string[]): ReturnType<OutboundSite['gateway']['cli']> =>
  site.gateway.cli('load', '--outbound', '--from', FROM, '--number', '+493012345', '--hold', '0.3', '--no-report', '--json', ...flags);

const outboundOf = async (): Promise<unknown> => {
  const { json } = await site.gateway.api('GET', `/sip?inbound_id=${FROM.slice(1)}`);
  return (json['data'] as { outbound: unknown } | null)?.outbound ?? null;
};

describe('trunkline load --outbound', () => {
  it('names what the operator has to allow, and leaves no trunk behind', async () => {
    const { code, stderr } = await load('--calls', '1');
    expect([code, stderr]).toEqual([1, expect.stringMatching(/org set-dialling/)]);
    expect(await outboundOf()).toBeNull();
  });

  it('places the calls through the API, answers them, and reports as for inbound calls', async () => {
    await site.allow();
    const { code, stdout, stderr } = await load('--cps', '10', '--calls', '20');
    expect([code, stderr]).toEqual([0, expect.any(String)]);
    const figures = JSON.parse(stdout) as Figures;
    expect(figures).toMatchObject({ passed: true, scenario: 'outbound', measured: 'request to ACK' });
    const [stage] = figures.stages;
    expect(stage).toMatchObject({ started: 20, answered: 20, successful: 20, failed: 0, failures: [] });
    expect(stage!.latency!.p99).toBeGreaterThan(0);
    expect(stage!.peak_in_progress).toBeGreaterThan(0);
    expect(await outboundOf()).toBeNull();
    const { json } = await site.gateway.api('GET', '/v1/calls?limit=100');
    const ended = (json['calls'] as { direction: string; reason: string }[]).filter(({ reason }) => reason === 'CALLEE_HANGUP');
    expect(ended).toHaveLength(20);
    expect(ended.every(({ direction }) => direction === 'outbound')).toBe(true);
  });

  it('reports why calls fail', async () => {
    await site.allow('--max-concurrent-calls', '1');
    const { code, stdout } = await load('--cps', '10', '--calls', '10', '--hold', '2', '--setup-timeout', '1');
    const { stages } = JSON.parse(stdout) as Figures;
    expect(code).toBe(1);
    expect(stages[0]!.failed).toBeGreaterThan(5);
    expect(stages[0]!.failures.map(({ reason }) => reason)).toEqual(['DIAL_NOT_ALLOWED']);
    await site.allow();
  });

  it('refuses a number that has a trunk, and a flag without a meaning', async () => {
    expect((await load('--media', '10')).stderr).toContain('have no media');
    await site.attach();
    expect((await load('--calls', '1')).stderr).toContain('has an outbound trunk');
    expect(await outboundOf()).toMatchObject({ sip_endpoint: site.trunk.endpoint });
  });
});
