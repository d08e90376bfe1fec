import { describe, expect, it } from 'vitest';
import { RecordCache } from '../../../../../../src/gateway/store/redis/routes/route-cache.js';

const org = (name: string): string => JSON.stringify({ org_id: 'o', name });

describe('RecordCache', () => {
  it('decodes a text once, a changed one again, and drops what was not read for long', () => {
    const records = new RecordCache(2);
    const first = records.decode('org', org('one'));
    expect(first).toMatchObject({ name: 'one', allowed_sources: [] });
    expect(records.decode('org', org('one'))).toBe(first);
    expect(records.decode('org', org('two'))).toMatchObject({ name: 'two' });
    records.decode('org', org('three'));
    expect(records.decode('org', org('one'))).not.toBe(first);
  });

  it('keeps kinds apart, returns null for null, and keeps nothing that cannot be read', () => {
    const records = new RecordCache(2);
    expect(records.decode('agent', null)).toBeNull();
    expect(records.decode('agent', org('one'))).not.toEqual(records.decode('org', org('one')));
    expect(() => records.decode('number', '{')).toThrow('a stored number record is not JSON');
  });
});
