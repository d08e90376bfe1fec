import { readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

// `npm run build` runs this after the compiler: dist/bundle/ is the program of dist/ with its packages, in a few files. A process loads it
// in a third of the time that 1,400 modules take.

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DIST = `${ROOT}dist`;
/** Threads have entry points of their own; src/lib/thread.ts looks for them here. */
const ENTRIES = [
  'cli/program.js',
  'gateway/media-thread/worker.js',
  'gateway/agents/audio-file-thread.js',
  'gateway/agents/result-paths-thread.js',
  'gateway/api/batch-body-thread.js',
];
/** These read files beside their modules. */
const EXTERNAL = ['@echogarden/fvad-wasm', '@fastify/swagger-ui'];
/** What a module of CommonJS expects. */
const COMMONJS = `import { createRequire as requireOf } from 'node:module';
const require = requireOf(import.meta.url);`;

/** Each process reads the maps of what it loads: those of packages help nobody. */
const NO_MAP = `data:application/json;base64,${Buffer.from('{"version":3,"sources":[""],"mappings":"A"}').toString('base64')}`;

/** The package builds the text of each debug line, of whole messages too, before `debug` drops it. */
const withQuietDebug = (text: string): string => text.replaceAll(/^(\s*)debug\(/gm, '$1debug.enabled && debug(');

/** The package asks the environment, which is slow, for each header of each message. */
const PRESERVED = 'process.env.DRACHTIO_PRESERVE_HEADER_NAMES';
const withEnvironmentRead = (text: string): string =>
  text.includes(PRESERVED) ? `const preservedNames = ${PRESERVED};\n${text.replaceAll(PRESERVED, 'preservedNames')}` : text;

/** Files are named relative to the module that reads them: it keeps the address that it has in dist/. */
function addressOf(file: string): string {
  return `(import.meta.url.slice(0, import.meta.url.lastIndexOf('/dist/')) + ${JSON.stringify(`/dist/${relative(DIST, file).replaceAll(sep, '/')}`)})`;
}

await build({
  absWorkingDir: ROOT,
  entryPoints: ENTRIES.map((entry) => `dist/${entry}`),
  outbase: 'dist',
  outdir: 'dist/bundle',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  external: EXTERNAL,
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'none',
  // A third less to compile; names stay, for stack traces.
  minifyWhitespace: true,
  minifySyntax: true,
  banner: { js: COMMONJS },
  logLevel: 'warning',
  plugins: [
    {
      name: 'addresses',
      setup: (plugin) => {
        // Zod's messages in fifty languages.
        plugin.onLoad({ filter: /\/zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export { default as en } from './en.js';" }));
        plugin.onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, ({ path }) => {
          const text = readFileSync(path, 'utf8');
          return {
            contents: `${path.includes('/drachtio-srf/') ? withEnvironmentRead(withQuietDebug(text)) : text}\n//# sourceMappingURL=${NO_MAP}`,
            loader: 'js',
          };
        });
        plugin.onLoad({ filter: /\/dist\/.*\.js$/ }, ({ path }) => {
          const text = readFileSync(path, 'utf8');
          return { contents: path.endsWith('lib/thread.js') ? text : text.replaceAll('import.meta.url', addressOf(path)), loader: 'js' };
        });
      },
    },
  ],
});
