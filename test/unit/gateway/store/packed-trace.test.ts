import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { maskSecrets } from '../../../../src/gateway/call/secrets.js';
import type { TraceEntry } from '../../../../src/gateway/model/call-trace.js';
import { packTrace, unpackTrace } from '../../../../src/gateway/store/redis/calls/packed-trace.js';

const masked = fc.string({ unit: 'binary-ascii' }).map(maskSecrets);
const entry = fc.record<TraceEntry>({
  at: fc.constant('2026-11-27T09:10:11.123Z'),
  source: fc.constantFrom('sip', 'rtpengine', 'agent', 'gateway'),
  direction: fc.constantFrom('in', 'out', null),
  summary: masked,
  text: fc.option(masked),
});

describe('a packed trace', () => {
  it('unpacks to what was packed, with any masked texts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(entry, { minLength: 1 }), async (trace) => {
        expect(await unpackTrace(Buffer.from(packTrace(trace)))).toEqual(trace);
      }),
    );
  });

  it('keeps an empty text apart from none, and characters beyond ASCII', async () => {
    const [empty, none] = ['', null].map((text): TraceEntry => ({ at: 'now', source: 'sip', direction: null, summary: 'Größe ☎', text }));
    expect(await unpackTrace(Buffer.from(packTrace([empty!, none!])))).toEqual([empty, none]);
  });
});
