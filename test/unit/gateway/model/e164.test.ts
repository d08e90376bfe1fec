import { describe, expect, it } from 'vitest';
import { parseE164 } from '../../../../src/gateway/model/e164.js';

describe('a number in E.164 form', () => {
  it.each([
    ['with a plus', '+15550100100', '+15550100100'],
    ['without one', '15550100100', '+15550100100'],
    ['whose plus a query string turned into a space', ' 15550100100', '+15550100100'],
    ['[3966 §5.1.1] with separators', '+1-(555).010.0100', '+15550100100'],
    ['of 7 digits', '+1234567', '+1234567'],
    ['of 15 digits', '+123456789012345', '+123456789012345'],
  ])('is read %s', (_what, text, number) => {
    expect(parseE164(text)).toBe(number);
  });

  it.each([
    '',
    '+',
    '+123456',
    '+1234567890123456',
    '+05550100100',
    '0015550100100',
    '++15550100100',
    '1+5550100100',
    '+1 5550100100',
    '+1555O100100',
  ])('is not %j', (text) => {
    expect(parseE164(text)).toBeUndefined();
  });
});
