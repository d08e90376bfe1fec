import { readFileSync } from 'node:fs';

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { readonly version: string };

/** Who sends requests to servers of customers and carriers (RFC 9110 §10.1.5). */
export const USER_AGENT = `Trunkline/${version}`;
