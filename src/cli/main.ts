#!/usr/bin/env node
import { existsSync } from 'node:fs';

// `npm run build` puts the program and its packages into a few files, which load in a third of the time. The npm package goes without
// them, and V8 counts coverage by file.
const bundle = new URL('../bundle/cli/program.js', import.meta.url);
if (existsSync(bundle) && process.env['NODE_V8_COVERAGE'] === undefined) await import(bundle.href);
else await import('./program.js');
