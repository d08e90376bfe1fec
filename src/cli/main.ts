#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';

// V8 would soon put a call's objects among the old ones at once, as those of a busy moment outlived it: there each keeps all that it refers
// to until a full collection, and every small collection copies that. (NODE_OPTIONS takes no such flag.)
setFlagsFromString('--no-allocation-site-pretenuring');

// `npm run build` puts the program and its packages into a few files, which load in a third of the time. The npm package goes without
// them, and V8 counts coverage by file.
const bundle = new URL('../bundle/cli/program.js', import.meta.url);
if (existsSync(bundle) && process.env['NODE_V8_COVERAGE'] === undefined) await import(bundle.href);
else await import('./program.js');
