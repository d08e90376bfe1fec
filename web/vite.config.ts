import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

// `scripts/build` runs it; the gateway serves dist/console under /console.
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: '/console/',
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2023',
    // Inlined as data: it would be refused by the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
