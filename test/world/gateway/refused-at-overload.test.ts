import { expect, it } from 'vitest';
import type { World } from '../world.js';
import { HandMadeCall } from '../../support/hand-made-call.js';
import type { SipPeer } from '../../support/sip-peer.js';
import { offerSdp } from '../../support/sdp.js';
import { parseExposition } from '../../support/prometheus-text.js';
import { withWorld } from '../with-world.js';

// What the SIP server refuses without the gateway leaves counters, and one record a second and organization.

let gateway: World;
let peer: SipPeer;

withWorld(
  (site) => {
    ({ gateway, peer } = site);
  },
  { TRUNKLINE_SIP_MAX_DIALOGS: '1' },
);

const ATTACHED = '+15550100100';
const NOBODYS = '+15550199999';

it('the gateway counts the calls that the SIP server has no room for, and sums them in one record', async () => {
  const held = new HandMadeCall(peer, ATTACHED);
  const ok = await held.answered(offerSdp());
  const statuses = await Promise.all(
    [ATTACHED, ATTACHED, NOBODYS, ATTACHED, 'nobody'].map(async (to) => {
      const call = new HandMadeCall(peer, to);
      call.invite(offerSdp());
      const answer = await call.final();
      expect(answer.header('Warning')).toBe('399 sip-server "OVERLOADED: calls in progress: 1, limit 1"');
      return answer.status;
    }),
  );
  expect(statuses).toEqual([503, 503, 503, 503, 503]);
  await gateway.logged('sip-server', 'sip_server.calls.refused');
  await gateway.until(() => gateway.events('call.refused.summed').length === 2);
  const [summed, ...others] = await refusals();
  expect(others).toEqual([]);
  expect(summed).toMatchObject({ reason_detail: 'calls in progress: 1, limit 1' });
  expect(summed).toMatchObject({ summed_calls: 3, to: ATTACHED, sip_status: 503, reason: 'OVERLOADED', answered_at: null, from: '' });
  const metrics = parseExposition(await (await fetch(`${gateway.ready.http}/metrics`)).text());
  expect(metrics.sum('trunkline_calls_refused_total', { reason: 'OVERLOADED' })).toBe(5);
  await gateway.until(async () => (await throughput()).refused === 3);
  expect(await throughput()).toEqual({ begun: 4, refused: 3 });
  await held.hangUp(ok);
});

interface Listed {
  readonly calls: readonly { readonly reason: string | null; readonly summed_calls: number | null }[];
}

async function refusals(): Promise<Listed['calls']> {
  const { calls } = (await gateway.api('GET', '/v1/calls?state=ended')).json as unknown as Listed;
  return calls.filter(({ reason }) => reason === 'OVERLOADED');
}

/** Of the last minutes. */
async function throughput(): Promise<{ begun: number; refused: number }> {
  const { json } = await gateway.api('GET', '/v1/throughput');
  const { intervals } = json as { readonly intervals: readonly { readonly begun: number; readonly refused: number }[] };
  const sum = (of: 'begun' | 'refused'): number => intervals.reduce((total, interval) => total + interval[of], 0);
  return { begun: sum('begun'), refused: sum('refused') };
}
