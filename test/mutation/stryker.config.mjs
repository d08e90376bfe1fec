// `npm run mutation -- FOLDER…` (docs/mutation.md). Not part of `npm test`.
export default {
  plugins: ['@stryker-mutator/vitest-runner'],
  testRunner: 'vitest',
  // Only tests that import what is changed, directly or not.
  vitest: { configFile: 'test/mutation/vitest.config.ts', related: true },
  coverageAnalysis: 'perTest',
  // Nothing is type-checked, and the files stay as their tests know them.
  disableTypeChecks: false,
  // A constant of a module would cost a run of every related test.
  ignoreStatic: true,
  // A result stands as long as neither the mutant nor the tests that reach it change.
  incremental: true,
  incrementalFile: 'test-results/mutation/incremental.json',
  reporters: ['clear-text', 'progress-append-only', 'html', 'json'],
  htmlReporter: { fileName: 'test-results/mutation/report.html' },
  jsonReporter: { fileName: 'test-results/mutation/report.json' },
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  tempDirName: 'test-results/mutation/sandbox',
  ignorePatterns: ['.trunkline', 'bench', 'docs/images', 'test-results', 'coverage'],
  concurrency: 2,
  timeoutMS: 10_000,
  allowEmpty: true,
};
