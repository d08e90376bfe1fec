import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.js';
import {
  isFirstWorker,
  otherPlace,
  parseWorker,
  workerConfig,
  workerCount,
  workerInstance,
  workerInstances,
} from '../../../src/config/gateway-worker.js';

const configOf = (...set: string[]) => loadConfig({ file: undefined, set, environment: {} });

describe('gateway workers', () => {
  it('are as many as set, and by default one for each core but one', () => {
    expect(workerCount(configOf('gateway.workers=3'), 8)).toBe(3);
    expect([1, 2, 3, 8, 200].map((cores) => workerCount(configOf(), cores))).toEqual([1, 1, 2, 7, 50]);
    expect(() => configOf('gateway.workers=0')).toThrow('gateway.workers');
  });

  it.each([1, 2, 3, 7])('share the media ports with their successors, in pairs, each port with exactly one: %i workers', (count) => {
    const config = configOf('media.port_min=20000', 'media.port_max=20101');
    const ranges = Array.from({ length: 2 * count }, (_none, at) => workerConfig(config, { index: at + 1, count }).media);
    let next = 20_000;
    for (const { port_min: min, port_max: max } of ranges) {
      expect(min).toBe(next);
      expect(min % 2).toBe(0);
      expect(max).toBeGreaterThan(min);
      next = max + 1;
    }
    expect(next).toBe(20_102);
  });

  it('share the limits that count per process, and keep the others', () => {
    const config = configOf('admission.max_calls=10', 'admission.max_calls_per_second=3');
    const share = workerConfig(config, { index: 2, count: 4 });
    expect(share.admission).toMatchObject({ max_calls: 3, max_calls_per_second: 1 });
    expect(share.sip).toEqual(config.sip);
    expect(workerConfig(configOf(), { index: 1, count: 2 }).admission).toMatchObject({ max_calls: null, max_calls_per_second: null });
  });

  it('have names of their own; the first one has that of a single gateway', () => {
    expect([1, 2].map((index) => workerInstance('edge', { index, count: 2 }))).toEqual(['edge', 'edge-2']);
    expect(workerInstances('edge', { index: 1, count: 1 })).toEqual(['edge', 'edge-2']);
  });

  it('have two slots each, and the first serves the API in either', () => {
    const places = [1, 2, 3, 4].map((index) => ({ index, count: 2 }));
    expect(places.map(otherPlace)).toEqual([3, 4, 1, 2]);
    expect(places.map(isFirstWorker)).toEqual([true, false, true, false]);
  });

  it('are no more than the media ports allow', () => {
    expect(workerCount(configOf('media.port_min=20000', 'media.port_max=20007'), 8)).toBe(2);
    expect(() => configOf('media.port_min=20000', 'media.port_max=20007', 'gateway.workers=3')).toThrow('4 ports for each process');
  });

  it.each(['', '0/2', '5/2', '1', 'a/b', '1/2/3'])('cannot be named %j', (text) => {
    expect(() => parseWorker(text)).toThrow('--worker');
    expect(parseWorker('2/4')).toEqual({ index: 2, count: 4 });
  });
});
