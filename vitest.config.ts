import { defineConfig } from 'vitest/config';

// `npm test` runs the projects unit, world, redis and smoke, `npm run test:system` the project system and more random worlds (docs/testing.md).

/** A limit finds a test that hangs, and no more: nothing that a slow machine does reaches it. */
const HANG_GUARD_MS = 120_000;
const { PROCESS_COVERAGE } = process.env;
const guarded = {
  testTimeout: HANG_GUARD_MS,
  hookTimeout: HANG_GUARD_MS,
  // Below the guard, so that the failure names the state that did not come.
  expect: { poll: { timeout: HANG_GUARD_MS - 10_000, interval: 20 } },
  setupFiles: ['test/support/seed.ts'],
  // With `npm run coverage`, a process or thread that a test starts writes there what it ran (scripts/coverage).
  env: PROCESS_COVERAGE === undefined ? {} : { NODE_V8_COVERAGE: PROCESS_COVERAGE },
  // A worker keeps the modules that it has loaded: half of the time of unit tests was loading them again for each file. No test depends on
  // the order of files.
  isolate: false,
};

export default defineConfig({
  test: {
    coverage: { provider: 'v8', include: ['src/**/*.ts'], reporter: ['json'], reportOnFailure: true },
    projects: [
      {
        test: {
          ...guarded,
          name: 'unit',
          include: ['test/{unit,os,conformance,property,fuzz,scenario}/**/*.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...guarded,
          name: 'world',
          include: ['test/world/**/*.test.ts'],
          // Sockets, threads and time of Node.js are replaced before the product is loaded.
          setupFiles: ['test/support/seed.ts', 'test/world/driver/setup.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...guarded,
          name: 'redis',
          include: ['test/redis/**/*.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...guarded,
          name: 'smoke',
          include: ['test/smoke/**/*.test.ts'],
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...guarded,
          name: 'system',
          include: ['test/system/**/*.test.ts'],
          setupFiles: ['test/support/seed.ts', 'test/support/carriers-closed.ts', 'test/support/failed-tests.ts'],
          // Each file starts servers of its own, and waits for them a part of its time: three at a time keep two cores busy, and a fourth
          // would make its neighbours' callers late.
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...guarded,
          name: 'clients',
          include: ['test/clients/**/*.test.ts'],
          maxWorkers: 1,
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
