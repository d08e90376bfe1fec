import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { apiDocument } from './api-documents.js';

// `tsx scripts/write-api-documents.ts DIRECTORY` writes openapi.json and openapi-twilio.json there, as the API serves them.

const [directory] = process.argv.slice(2);
if (directory === undefined) throw new Error('usage: tsx scripts/write-api-documents.ts DIRECTORY');
mkdirSync(directory, { recursive: true });
for (const name of ['openapi', 'openapi-twilio'] as const)
  writeFileSync(join(directory, `${name}.json`), JSON.stringify(await apiDocument(`/${name}.json`), null, 2));
