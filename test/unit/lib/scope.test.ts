import { describe, expect, it } from 'vitest';
import { Scope } from '../../../src/lib/scope.js';
import { VirtualClock } from '../../support/virtual-clock.js';

describe('Scope', () => {
  it('closes everything once, in reverse order, and reports what failed', async () => {
    const scope = new Scope(new VirtualClock());
    const closed: string[] = [];
    scope.defer('a', () => void closed.push('a'));
    scope.defer('b', () => Promise.reject(new Error('no')));
    scope.defer('c', () => void closed.push('c'));
    const [first, second] = await Promise.all([scope.close(), scope.close()]);
    expect(closed).toEqual(['c', 'a']);
    expect(first.map(({ name }) => name)).toEqual(['b']);
    expect(second).toBe(first);
  });

  it('gives up on a resource that hangs when its time is over, and closes the others', async () => {
    const clock = new VirtualClock();
    const scope = new Scope(clock, 1_000);
    const closed: string[] = [];
    scope.defer('a', () => void closed.push('a'));
    scope.defer('hangs', () => new Promise(() => undefined));
    const closing = scope.close();
    await clock.advanceAsync(1_001);
    expect((await closing).map(({ name }) => name)).toEqual(['hangs']);
    expect(closed).toEqual(['a']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('closes at once what is opened during its close', async () => {
    const scope = new Scope(new VirtualClock());
    const closed: string[] = [];
    scope.defer('a', () => scope.defer('late', () => void closed.push('late')));
    await scope.close();
    await scope.close();
    expect(closed).toEqual(['late']);
    expect(scope.isClosed).toBe(true);
  });

  it('closes at once what is opened after its close, and reports failures of that', async () => {
    const clock = new VirtualClock();
    const scope = new Scope(clock, 1_000);
    const closed: string[] = [];
    scope.defer('a', () => Promise.reject(new Error('no')));
    await scope.close();
    scope.defer('late', () => void closed.push('late'));
    scope.defer('hangs', () => new Promise(() => undefined));
    const closing = scope.close();
    await clock.advanceAsync(1_001);
    expect((await closing).map(({ name, error }) => `${name}: ${(error as Error).message}`)).toEqual([
      'a: no',
      'hangs: not closed within 1000 ms',
    ]);
    expect(closed).toEqual(['late']);
  });
});
