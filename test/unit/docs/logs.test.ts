import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../scripts/docs/generate.js';
import { logEvents } from '../../../scripts/docs/logs.js';

describe('log events', () => {
  const events = logEvents(ROOT);

  it('are named area.event, and their fields in snake case', () => {
    expect(events.length).toBeGreaterThan(100);
    expect(events.filter(({ event }) => !/^[a-z_]+(\.[a-z_]+)+$/.test(event))).toEqual([]);
    expect(events.filter(({ fields }) => fields.some((name) => !/^[a-z][a-z0-9_]*$/.test(name)))).toEqual([]);
  });

  it('carry what failed as `error`', () => {
    expect(events.filter(({ fields }) => fields.includes('err'))).toEqual([]);
  });
});
