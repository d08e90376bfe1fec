import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallTrace } from '../../src/gateway/call/call-trace.js';
import { VirtualClock } from '../support/virtual-clock.js';

const key = fc.uint8Array({ minLength: 30, maxLength: 46 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const end = fc.constantFrom('\r\n', '\n');
const space = fc.constantFrom('', ' ', '\t', '  ');
const mixed = (text: string): fc.Arbitrary<string> => fc.boolean().map((upper) => (upper ? text.toUpperCase() : text));
const cryptoLine = fc
  .tuple(mixed('a=crypto:'), fc.integer({ min: 1, max: 99 }), mixed('AES_CM_128_HMAC_SHA1_80'), mixed('inline:'), space, key, end)
  .chain(([name, tag, suite, inline, gap, secret, eol]) =>
    fc.constantFrom('', '|2^20', '|2^20|1:4', ' FEC_ORDER=FEC_SRTP').map((rest) => ({
      line: `${name}${String(tag)} ${suite} ${inline}${gap}${secret}${rest}${eol}`,
      secret,
    })),
  );
const head = fc.array(fc.constantFrom('v=0\r\n', 'm=audio 4000 RTP/SAVP 0\r\n', 'Content-Type: application/sdp\r\n', '\r\n'), {
  maxLength: 400,
});

describe('a trace', () => {
  it('never contains a key of an SDP, wherever its texts are cut', () => {
    fc.assert(
      fc.property(
        head,
        fc.array(cryptoLine, { minLength: 1, maxLength: 4 }),
        fc.constantFrom('sip' as const, 'rtpengine' as const),
        (before, lines, source) => {
          const trace = new CallTrace(new VirtualClock(), true);
          const text = `${before.join('')}${lines.map(({ line }) => line).join('')}a=sendrecv\r\n`;
          trace.add(source, 'in', lines[0]?.line ?? '', text);
          const kept = JSON.stringify(trace.read());
          // Not even the first part of one.
          for (const { secret } of lines) expect(kept).not.toContain(secret.slice(0, 12));
          expect(kept).toContain('***');
        },
      ),
      { numRuns: 500 },
    );
  });
});
