import { expect, it } from 'vitest';
import { FlowTransactions } from '../../../src/sip/transaction/flow-transactions.js';

it('the transactions of a connection are removed from any place, once', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ({ name, place: -1 })) as [Named, Named, Named, Named];
  const here = new FlowTransactions<Named>();
  for (const one of [a, b, c, d]) here.add(one);
  const names = (): string =>
    here
      .all()
      .map(({ name }) => name)
      .join('');
  here.delete(b);
  expect([names(), here.size]).toEqual(['adc', 3]);
  here.delete(b);
  here.delete(d);
  here.delete(c);
  expect([names(), here.size]).toEqual(['a', 1]);
  here.add(b);
  here.delete(a);
  expect(names()).toBe('b');
  here.delete(b);
  expect(here.size).toBe(0);
});

interface Named {
  readonly name: string;
  place: number;
}
