import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.js';
import { parseWorker, workerConfig, workerCount, workerInstance } from '../../../src/config/gateway-worker.js';

const configOf = (...set: string[]) => loadConfig({ file: undefined, set, environment: {} });

describe('gateway workers', () => {
  it('are as many as the setting says, and without it one for each core but one', () => {
    expect(workerCount(configOf('gateway.workers=3'), 8)).toBe(3);
    expect([1, 2, 3, 8, 200].map((cores) => workerCount(configOf(), cores))).toEqual([1, 1, 2, 7, 64]);
    expect(() => configOf('gateway.workers=0')).toThrow('gateway.workers');
  });

  it.each([1, 2, 3, 7])('share the media ports without one that two have or nobody has, in pairs: %i', (count) => {
    const config = configOf('media.port_min=20000', 'media.port_max=20101');
    const ranges = Array.from({ length: count }, (_none, at) => workerConfig(config, { index: at + 1, count }).media);
    let next = 20_000;
    for (const { port_min: min, port_max: max } of ranges) {
      expect(min).toBe(next);
      expect(min % 2).toBe(0);
      expect(max).toBeGreaterThan(min);
      next = max + 1;
    }
    expect(next).toBe(20_102);
  });

  it('share the limits that count in one process, and leave the others', () => {
    const config = configOf('admission.max_calls=10', 'admission.max_calls_per_second=3');
    const share = workerConfig(config, { index: 2, count: 4 });
    expect(share.admission).toMatchObject({ max_calls: 3, max_calls_per_second: 1 });
    expect(share.sip).toEqual(config.sip);
    expect(workerConfig(configOf(), { index: 1, count: 2 }).admission).toMatchObject({ max_calls: null, max_calls_per_second: null });
  });

  it('have names of their own; the first one that of a gateway alone', () => {
    expect([1, 2].map((index) => workerInstance('edge', { index, count: 2 }))).toEqual(['edge', 'edge-2']);
  });

  it.each(['', '0/2', '3/2', '1', 'a/b', '1/2/3'])('are not named %j', (text) => {
    expect(() => parseWorker(text)).toThrow('--worker');
    expect(parseWorker('2/4')).toEqual({ index: 2, count: 4 });
  });
});
