import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Without `fuzz` and `property`: what is found by chance in one run may not be in the next.
    include: ['test/{unit,conformance,scenario}/**/*.test.ts'],
    // They read the sources as text, run commands, or have real threads that must keep up with the clock.
    exclude: [
      ...configDefaults.exclude,
      'test/unit/{docs,supply,deployment,cli,gateway/media-thread}/**',
      // Minutes to hours of sound, each sample of it counted.
      'test/unit/{rtp/jitter-buffer,gateway/media/leg}-network.test.ts',
    ],
    // Code that counts what it runs takes several times as long.
    testTimeout: 180_000,
  },
});
