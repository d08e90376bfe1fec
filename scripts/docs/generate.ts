import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { agentSettings, connectionDiagram, program } from './agents.js';
import { agentMessageSchema } from './agent-schema.js';
import { commandTable, globalOptions } from './cli.js';
import { conformanceTable } from './conformance.js';
import { reasonTable } from './errors.js';
import { exchangeTable, legTable, placingTable, stateDiagram, transferTable, transitionTable } from './lifecycle.js';
import { logTable } from './logs.js';
import { metricsTable } from './metrics.js';
import { providerFields } from './provider-fields.js';
import { roomTable } from './rooms.js';
import { settingsTable } from './settings.js';

// `npm run docs` writes the generated sections into the documents; test/unit/docs fails when one is stale.

/** A part of a document that is made from code: what stands between its two marks. */
export interface Section {
  readonly file: string;
  readonly name: string;
  readonly render: () => string;
}

export const SECTIONS: readonly Section[] = [
  { file: 'ARCHITECTURE.md', name: 'rooms', render: roomTable },
  { file: 'docs/settings.md', name: 'settings', render: settingsTable },
  { file: 'docs/cli.md', name: 'global-options', render: globalOptions },
  { file: 'docs/cli.md', name: 'commands', render: commandTable },
  { file: 'docs/agents.md', name: 'bot', render: () => program('examples/bot.ts') },
  { file: 'docs/agents.md', name: 'signature', render: () => program('examples/signature.ts') },
  { file: 'docs/agents.md', name: 'connection', render: connectionDiagram },
  { file: 'docs/agents.md', name: 'agent-settings', render: agentSettings },
  { file: 'docs/providers.md', name: 'provider-fields', render: providerFields },
  { file: 'docs/api.md', name: 'client', render: () => program('examples/client.ts') },
  { file: 'docs/webhooks.md', name: 'webhook-signature', render: () => program('examples/webhook-signature.ts') },
  { file: 'src/sip-server/README.md', name: 'example', render: () => program('examples/sip-server.mjs') },
  { file: 'docs/call-lifecycle.md', name: 'states', render: stateDiagram },
  { file: 'docs/call-lifecycle.md', name: 'transitions', render: transitionTable },
  { file: 'docs/call-lifecycle.md', name: 'exchanges', render: exchangeTable },
  { file: 'docs/call-lifecycle.md', name: 'transfers', render: transferTable },
  { file: 'docs/call-lifecycle.md', name: 'legs', render: legTable },
  { file: 'docs/call-lifecycle.md', name: 'placing', render: placingTable },
  { file: 'docs/errors.md', name: 'reasons', render: reasonTable },
  { file: 'docs/metrics.md', name: 'metrics', render: metricsTable },
  { file: 'docs/logs.md', name: 'events', render: () => logTable(ROOT) },
  { file: 'docs/conformance.md', name: 'tests', render: conformanceTable },
];

/** Files that are made as a whole. */
export const FILES: readonly { readonly file: string; readonly render: () => string | Promise<string> }[] = [
  { file: 'docs/agent-messages.schema.json', render: agentMessageSchema },
];

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** What stands in the document now. Throws when the marks are not there. */
export function currentText(section: Section): string {
  const { from, to, text } = locate(section);
  return text.slice(from, to);
}

/** Writes the section; false when it was up to date. */
function writeSection(section: Section): boolean {
  const { from, to, text } = locate(section);
  const next = expectedText(section);
  if (text.slice(from, to) === next) return false;
  writeFileSync(`${ROOT}${section.file}`, text.slice(0, from) + next + text.slice(to));
  return true;
}

export function expectedText(section: Section): string {
  return `\n\n${section.render().trim()}\n\n`;
}

function locate({ file, name }: Section): { from: number; to: number; text: string } {
  const text = readFileSync(`${ROOT}${file}`, 'utf8');
  const begin = `<!-- ${name}: made by npm run docs -->`;
  const end = `<!-- ${name}: end -->`;
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  if (from < 0 || to < from) throw new Error(`${file} lacks the marks of the section ${name}`);
  return { from: from + begin.length, to, text };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const section of SECTIONS) {
    const isNew = writeSection(section);
    process.stdout.write(`  ${isNew ? 'written  ' : 'unchanged'}  ${section.file} (${section.name})\n`);
  }
  for (const { file, render } of FILES) {
    writeFileSync(`${ROOT}${file}`, await render());
    process.stdout.write(`  written    ${file}\n`);
  }
}
