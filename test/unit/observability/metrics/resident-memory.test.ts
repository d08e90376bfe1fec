import { afterEach, expect, it, vi } from 'vitest';
import { residentMb } from '../../../../src/observability/metrics/resident-memory.js';

afterEach(() => void vi.restoreAllMocks());

it('is what it was before, when no file handle is left to read it with', () => {
  const before = residentMb();
  expect(before).toBeGreaterThan(10);
  vi.spyOn(process.memoryUsage, 'rss').mockImplementation(() => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory');
  });
  expect(residentMb()).toBe(before);
});
