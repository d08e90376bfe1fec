import { afterEach, expect, it, vi } from 'vitest';
import { watchProcess } from '../../../../src/observability/metrics/process-metrics.js';
import { exposition, Metrics } from '../../../../src/observability/metrics/registry.js';
import { systemClock } from '../../../../src/lib/system-clock.js';

afterEach(() => void vi.restoreAllMocks());

it('the process metrics omit the memory, and nothing else, when no file handle is left to read it with', async () => {
  const metrics = new Metrics('gateway');
  const stop = watchProcess(metrics, systemClock);
  const names = async (): Promise<Set<string>> => {
    const text = await exposition([await metrics.snapshot()]);
    return new Set([...text.matchAll(/^(trunkline_\w+)/gm)].map(([, name]) => name!));
  };
  try {
    const before = await names();
    expect(before).toContain('trunkline_process_resident_bytes');
    vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
      throw new Error('EMFILE: too many open files, uv_resident_set_memory');
    });
    const after = await names();
    expect([...before].filter((name) => !after.has(name))).toEqual(['trunkline_process_resident_bytes']);
  } finally {
    stop();
  }
});
