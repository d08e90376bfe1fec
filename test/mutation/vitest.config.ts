import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Without `fuzz` and `property`: what is found by chance in one run may not be in the next.
    include: ['test/{unit,conformance,scenario}/**/*.test.ts'],
    // They read the sources as text, or run commands.
    exclude: [...configDefaults.exclude, 'test/unit/{docs,supply,deployment,cli}/**'],
    testTimeout: 30_000,
  },
});
