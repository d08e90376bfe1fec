import { beforeEach, expect, it } from 'vitest';
import { TrunkWatch } from '../../../../src/gateway/drachtio/trunk-watch.js';
import { parseE164 } from '../../../../src/gateway/model/e164.js';
import type { NumberRecord, TrunkState } from '../../../../src/gateway/model/records.js';
import { silentLog } from '../../../../src/lib/log.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const NUMBER: NumberRecord = {
  inbound_id: 'IN-1',
  phone_number: parseE164('+15550100555')!,
  org_id: 'org',
  inbound: null,
  outbound: { sip_endpoint: 'trunk.test', options_interval_s: 10 },
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
};

let clock: VirtualClock;
let owner: string | undefined;
let kept: TrunkState | null;
let sent: string[];
let unanswered: string | null;

beforeEach(() => {
  [clock, owner, kept, sent, unanswered] = [new VirtualClock(), undefined, null, [], null];
});

function watchOf(gateway: string): TrunkWatch {
  const watch = new TrunkWatch({
    trunks: {
      watching: () => Promise.resolve([NUMBER]),
      claim: () => Promise.resolve((owner ??= gateway) === gateway),
      noteTrunk: (_trunk, state) => {
        kept = state;
        return Promise.resolve();
      },
      trunkStates: () => Promise.resolve([kept]),
    },
    srf: {
      options: (_request, onAnswer) => {
        sent.push(gateway);
        onAnswer(null, { status: unanswered === null ? 200 : 503, body: '', raw: '', unanswered });
      },
    },
    refusal: () => Promise.resolve(null),
    trunksArePublic: true,
    clock,
    log: silentLog,
  });
  watch.start((user) => `<sip:${user}@${gateway}.test;transport=tls>`);
  return watch;
}

/** In steps, as what is awaited goes on between two timers. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1_000) {
    clock.advance(1_000);
    for (let turn = 0; turn < 12; turn += 1) await Promise.resolve();
  }
}

it('one of several gateways asks a trunk, and all know that it is down after two OPTIONS without an answer', async () => {
  const [first, second] = [watchOf('a'), watchOf('b')];
  await pass(3_000);
  expect([sent, first.count('up'), first.downReason(NUMBER)]).toEqual([['a'], 1, null]);
  unanswered = 'trunk.test:5061 refused the connection (ECONNREFUSED)';
  await pass(10_000);
  expect(first.downReason(NUMBER)).toBeNull();
  await pass(4_000);
  expect(sent).toEqual(['a', 'a', 'a']);
  for (const watch of [first, second]) {
    expect(watch.downReason(NUMBER)).toMatch(/^the trunk has not answered OPTIONS since .*: trunk\.test:5061 refused the connection/);
    expect([watch.count('up'), watch.count('down')]).toEqual([0, 1]);
  }
});
