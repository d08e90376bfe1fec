import { describe, expect, it } from 'vitest';
import { ClaimedPackets } from '../../../src/rtp/claimed-packets.js';

interface Heard {
  readonly claimed: number;
  readonly received: number;
  readonly quietMs: number;
  readonly ssrc?: number;
}

/** What each report in turn says. */
function judged(...reports: readonly Heard[]): boolean[] {
  const packets = new ClaimedPackets();
  return reports.map(({ ssrc = 7, claimed, received, quietMs }) => packets.areLost({ ssrc, claimed, received }, quietMs));
}

describe('packets that a peer claims to have sent', () => {
  it('are lost when none arrived since the report before', () => {
    expect(judged({ claimed: 250, received: 250, quietMs: 10 }, { claimed: 500, received: 250, quietMs: 5_000 })).toEqual([false, true]);
  });

  it('are lost when none ever arrived, while the first report of a source proves nothing', () => {
    expect(judged({ claimed: 250, received: 0, quietMs: 5_000 }, { claimed: 500, received: 0, quietMs: 10_000 })).toEqual([false, true]);
  });

  it('are lost when the path broke between two reports, as the second one shows', () => {
    expect(judged({ claimed: 250, received: 250, quietMs: 10 }, { claimed: 500, received: 380, quietMs: 2_400 })[1]).toBe(true);
  });

  it('stay lost while the peer claims no more, until a packet arrives', () => {
    const lost = { claimed: 300, received: 250, quietMs: 4_000 };
    const reports = [
      { claimed: 250, received: 250, quietMs: 10 },
      lost,
      { ...lost, quietMs: 5_000 },
      { claimed: 400, received: 350, quietMs: 10 },
    ];
    expect(judged(...reports)).toEqual([false, true, true, false]);
  });

  it.each<[string, Heard]>([
    ['the peer was silent', { claimed: 250, received: 250, quietMs: 5_000 }],
    ['the peer spoke a little, which arrived, and is silent since', { claimed: 350, received: 350, quietMs: 3_000 }],
    ['half of the packets are lost on the way', { claimed: 500, received: 375, quietMs: 20 }],
    ['a third of the speech was lost before the pause', { claimed: 400, received: 350, quietMs: 2_000 }],
    ['the missing packets may be on their way', { claimed: 274, received: 250, quietMs: 5_000 }],
    ['networks have such pauses', { claimed: 300, received: 250, quietMs: 900 }],
    ['the peer restarted its count', { claimed: 40, received: 250, quietMs: 5_000 }],
    ['another source speaks', { claimed: 500, received: 250, quietMs: 5_000, ssrc: 8 }],
  ])('are not lost where %s', (_where, report) => {
    expect(judged({ claimed: 250, received: 250, quietMs: 10 }, report)).toEqual([false, false]);
  });

  it('are counted across the end of 32 bits', () => {
    expect(judged({ claimed: 2 ** 32 - 100, received: 900, quietMs: 10 }, { claimed: 150, received: 900, quietMs: 5_000 })[1]).toBe(true);
  });
});
