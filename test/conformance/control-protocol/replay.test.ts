import { describe, expect, it } from 'vitest';
import { Bench, readFrames, readReceived, type RecordedFrame } from '../../support/transcript.js';

// Sessions of a real drachtio-server with a drachtio-srf application, replayed against the embedded server.
// What may differ, and only that:
// - ids, times, tags and branches that each server makes up (matched by the order of their first appearance);
// - `rport`, which the real server adds unasked (RFC 3581 §4: only when asked), and the sizes that follow from it;
// - the phrase of a 500 that the server makes itself (RFC 3261 §21.5.1: Server Internal Error);
// - the protocol field, which the real server leaves blank on ACK and on the echo of a non-INVITE answer.

/** Gives made-up values names by the order of their first appearance. */
class Names {
  readonly #known = new Map<string, string>();
  readonly values: string[] = [];

  normalise(text: string): string {
    return text
      .replace(/;rport=\d+/g, '')
      .replace('500 Internal Server Error', '500 Server Internal Error')
      .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) => this.#name('ID', id))
      .replace(/;tag=([A-Za-z0-9.-]{13})(?=[\r\n;>]|$)/g, (_all, tag: string) => `;tag=${this.#name('TAG', tag)}`)
      .replace(/;branch=(z9hG4bK[A-Za-z0-9.]{13})(?=[\r\n;]|$)/g, (_all, branch: string) => `;branch=${this.#name('BRANCH', branch)}`)
      .replace(/\|\d\d:\d\d:\d\d\.\d{6}\|/g, '|TIME|')
      .replace(/^([^\r\n]*\|(?:network|application)\|)\d+\|(?:udp|tcp|tls)?\|/, '$1SIZE|PROTOCOL|');
  }

  #name(kind: string, value: string): string {
    let name = this.#known.get(value);
    if (name === undefined) {
      name = `<${kind}${String(this.values.length)}>`;
      this.#known.set(value, name);
      this.values.push(value);
    }
    return name;
  }
}

/** Replaces the recorded server's made-up values by those of ours. */
function translate(text: string, recorded: Names, actual: Names): string {
  let translated = text;
  recorded.values.forEach((value, index) => (translated = translated.replaceAll(value, actual.values[index] ?? value)));
  return translated;
}

const sipOf = (payload: string): string => payload.slice(payload.indexOf('\r\n') + 2).replace(/;rport=\d+/g, '');

async function replay(name: string): Promise<void> {
  const frames = readFrames(name).filter(({ payload }) => !isLogin(payload));
  const meta = frames.find(({ payload }) => payload.includes('|sip|network|'))?.payload.split('|') ?? [];
  const bench = new Bench(meta[4] === 'tls' ? 'TLS' : 'UDP', Number(meta[6]));
  const recorded = new Names();
  const actual = new Names();
  let seen = 0;
  for (const frame of frames) {
    if (frame.from === 'app') bench.fromApp(translate(frame.payload, recorded, actual));
    else if (frame.payload.includes('|sip|network|')) bench.fromCaller(translate(sipOf(frame.payload), recorded, actual));
    await bench.settle();
    if (frame.from === 'app') continue;
    const mine = bench.toApp[seen] ?? '(no frame)';
    seen += 1;
    expect(actual.normalise(mine)).toBe(recorded.normalise(frame.payload));
    expect(statedSize(mine)).toBe(realSize(mine));
  }
  expect(bench.toApp.length).toBe(seen);
  const received = readReceived(name).filter((text) => text !== '');
  expect(bench.toCaller.slice(0, received.length).map((text) => actual.normalise(text))).toEqual(
    received.map((text) => recorded.normalise(text)),
  );
}

function isLogin(payload: string): boolean {
  return payload.includes('|authenticate|') || /\|OK\|(tls|tcp|udp)\//.test(payload);
}

/** `bytes` of a frame that carries a message, and what it is. */
function statedSize(payload: string): number {
  return Number(/^[^\r\n]*\|(?:network|application)\|(\d+)\|/.exec(payload)?.[1] ?? 0);
}

function realSize(payload: string): number {
  return statedSize(payload) === 0 ? 0 : payload.length - payload.indexOf('\r\n') - 2;
}

describe('[control protocol] sessions of the real server, replayed', () => {
  it.each([
    ['01-connect-auth-route'],
    ['02-invite-udp-callerbye'],
    ['03-invite-tls-callerbye'],
    ['06-app-initiated-bye'],
    ['07-reinvite-info-in-dialog'],
    ['08-options-incoming'],
    ['09-register-incoming-tls'],
    ['10-reject-486'],
    ['11-custom-headers'],
    ['12-app-sets-totag'],
    ['22-custom-headers-ok'],
    ['23-ping'],
  ])('%s', async (name) => {
    await replay(name);
  });

  it('has frames to compare in every transcript', () => {
    const counts: RecordedFrame[][] = ['02-invite-udp-callerbye', '07-reinvite-info-in-dialog'].map(readFrames);
    expect(counts.map((frames) => frames.length)).toEqual([19, 24]);
  });
});
