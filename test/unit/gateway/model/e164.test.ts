import { describe, expect, it } from 'vitest';
import { parseE164 } from '../../../../src/gateway/model/e164.js';

describe('a number in E.164 form', () => {
  it.each([
    ['with a plus', '+15550100100', '+15550100100'],
    ['without one', '15550100100', '+15550100100'],
    ['with a plus that a query string turned into a space', ' 15550100100', '+15550100100'],
    ['[3966 §5.1.1] with separators', '+1-(555).010.0100', '+15550100100'],
    ['with 7 digits', '+1234567', '+1234567'],
    ['with 15 digits', '+123456789012345', '+123456789012345'],
    ['with its area code in parentheses', '+49(30)19988001', '+493019988001'],
    ['of a country whose numbers begin with 0', '+390612345678', '+390612345678'],
  ])('is read when it comes %s', (_what, text, number) => {
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
    '+49(0)3019988001',
    '49(0)3019988001',
    '+49(030)19988001',
    '+44(0)2071234567',
    '+39(0)612345678',
    '(0)493019988001',
    '+4903019988001',
    '+49-0-30-19988001',
    '+49.030.19988001',
    '+10005550100',
    '-15550100100',
    '.15550100100',
    '15550100100.0',
    '+1-555-010-010.0',
    '+\uff11\uff15\uff15\uff15\uff10\uff11\uff10\uff10\uff11\uff10\uff10',
    '+\u0661\u0665\u0665\u0665\u0660\u0661\u0660\u0660\u0661\u0660\u0660',
    '+1555\u200b0100100',
  ])('is not read from %j', (text) => {
    expect(parseE164(text)).toBeUndefined();
  });
});
