import { defineConfig } from 'vitest/config';

// unit: pure and fast, no other process. integration: the real redis-server, rtpengine, drachtio-srf, SIPp and baresip.
// e2e: the console in a real headless Chromium, against the whole product.
// A worker keeps the modules that it has loaded (`isolate: false`): half of the time of unit tests was loading them again for each file. No
// test depends on the order of files.
// How long a poll waits for what other processes do says nothing about them: where a time counts, the test has it.
const POLL = { timeout: 10_000 };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/{unit,conformance,property,fuzz,scenario}/**/*.test.ts'],
          testTimeout: 10_000,
          maxWorkers: 2,
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          setupFiles: ['test/support/carriers-closed.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: POLL },
          // Each file starts servers of its own, and waits for them a part of its time: three at a time keep two cores busy, and a fourth
          // would make its neighbours' callers late.
          maxWorkers: 3,
          isolate: false,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          setupFiles: ['test/support/carriers-closed.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: POLL },
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
