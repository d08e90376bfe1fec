import { readFileSync } from 'node:fs';
import {
  IDLE_CONNECTION,
  stepConnection,
  type ConnectionEvent,
  type ConnectionState,
  type ConnectionTimer,
} from '../../src/gateway/agents/stream/connection.js';
import { settings } from './settings.js';
import { table } from './table.js';

/** An example program, word for word but for where it has this package from. */
export function program(file: string): string {
  const source = readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8').trim();
  const text = source.replace(/'(?:\.\.\/)+src\/client\/index\.js'/, "'trunkline/client'");
  return ['```' + (file.endsWith('.ts') ? 'ts' : 'js'), text, '```'].join('\n');
}

export function agentSettings(): string {
  const rows = settings().filter(({ path }) => path.startsWith('agents.'));
  return table(
    ['setting', 'default', 'meaning'],
    rows.map(({ path, byDefault, meaning }) => [`\`${path}\``, `\`${byDefault}\``, meaning]),
  );
}

/** Does not compile when a state is missing, or one too many. */
const NAMES: Record<ConnectionState['name'], true> = {
  Idle: true,
  Dialling: true,
  Ready: true,
  Streaming: true,
  Waiting: true,
  Redialling: true,
  Closed: true,
};

const TIMERS: Record<ConnectionTimer, string> = {
  connect: 'timeout',
  retry: 'backoff expires',
  grace: 'grace period expires',
  settled: 'settled',
};

const EVENTS: readonly (readonly [string, ConnectionEvent])[] = [
  ['call accepted', { type: 'connect' }],
  ['handshake', { type: 'opened' }],
  ['refused', { type: 'failed', message: '' }],
  ['1006, 1011 to 1015', { type: 'closed', code: 1_006 }],
  ['other close code', { type: 'closed', code: 1_000 }],
  ['no pong', { type: 'silent' }],
  ['ACK', { type: 'started' }],
  ...Object.entries(TIMERS).map(([timer, name]) => [name, { type: 'timer', timer: timer as ConnectionTimer }] as const),
  ['call ends', { type: 'released' }],
];

const LIMITS = { connectTimeoutMs: 5_000, reconnectGraceMs: 10_000 };

/** Every state is given every event, whatever became of a recovery before, and whether the ACK has come. */
export function connectionDiagram(): string {
  const edges = new Map<string, Set<string>>();
  for (const from of Object.keys(NAMES) as ConnectionState['name'][]) {
    for (const recovery of ['none', 'running', 'over'] as const) {
      // The first connection is made before the 200.
      for (const isStarted of from === 'Dialling' ? [false] : [false, true]) {
        for (const [name, event] of EVENTS) {
          const { state } = stepConnection({ ...IDLE_CONNECTION, name: from, recovery, isStarted }, event, LIMITS);
          if (state.name === from) continue;
          const edge = `${from} --> ${state.name}`;
          edges.set(edge, (edges.get(edge) ?? new Set()).add(name));
        }
      }
    }
  }
  const lines = [...edges].map(([edge, names]) => `  ${edge}: ${[...names].join('; ')}`);
  return ['```mermaid', 'stateDiagram-v2', '  [*] --> Idle', ...lines, '  Closed --> [*]', '```'].join('\n').replaceAll('; ', ' / ');
}
