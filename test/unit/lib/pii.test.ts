import { format, inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { LogFields } from '../../../src/lib/log.js';
import { pii } from '../../../src/lib/pii.js';

describe('Pii', () => {
  const number = '+15550100999';
  const hidden = pii(number);

  it('is [redacted] however it is written', () => {
    const texts = [JSON.stringify({ hidden }), String(hidden), inspect({ hidden }, { showHidden: true }), format('%s %o', hidden, hidden)];
    for (const text of texts) expect(text).toContain('[redacted]');
    expect(texts.join()).not.toContain(number);
    expect(JSON.stringify(structuredClone({ hidden }))).not.toContain(number);
  });

  it('returns its value on request by name', () => {
    expect(hidden.reveal()).toBe(number);
  });

  it('is the only type in which a log line takes a field with personal data', () => {
    // @ts-expect-error a bare number
    const bare: LogFields = { from: number };
    expect([bare, { from: hidden } satisfies LogFields]).toHaveLength(2);
  });
});
