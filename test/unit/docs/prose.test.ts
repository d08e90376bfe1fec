import { describe, expect, it } from 'vitest';
import { commentFaults, commentsOf, faultsOf, PAGES, pageOf, RULES } from '../../../scripts/docs/prose.js';

describe.each(RULES)('the rule "$name"', (rule) => {
  it('holds on every page', () => {
    const { inspected, faults } = faultsOf(rule, PAGES);
    expect(faults).toEqual([]);
    expect(inspected).toBeGreaterThanOrEqual(rule.least);
  });

  it('finds a fault', () => {
    const [file, text] = rule.wrong;
    expect(faultsOf(rule, [pageOf(file, text)]).faults[0]).toMatch(new RegExp(`^${file}:\\d+: ${rule.name}: `));
  });
});

it('the comments of the sources keep to the style guide', () => {
  expect(commentsOf('/** Of a call. */\nconst a = 1; // whoever\n')).toEqual(['Of a call.', 'whoever']);
  expect(commentFaults()).toEqual([]);
});
