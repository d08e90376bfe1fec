import type { LineFault } from './lines.js';
import type { Fault } from './run-fault.js';
import type { Lines, World } from './world.js';

// Connections that are cut, carry nothing, or are slow.

const LASTS_MS = 5_000;

const TITLES: Readonly<Record<keyof Lines, string>> = {
  control: 'gateway – SIP server',
  redis: 'gateway – Redis',
  ng: 'gateway – rtpengine (ng)',
  agent: 'gateway – agent’s WebSocket',
  carrier: 'carrier – SIP server (TLS)',
};

const HOW: Readonly<Record<Exclude<LineFault, null>, string>> = {
  reset: 'cut for 5 s',
  'black hole': 'nothing comes through for 5 s',
  slow: '200 ms each way for 5 s',
};

function ofLine(line: keyof Lines, kind: Exclude<LineFault, null>, excused: Fault['excused'] = {}): Fault {
  const spoil = (fault: LineFault) => (world: World) => world.lines?.[line].spoil(fault);
  return {
    name: `${line}-${kind.replace(' ', '-')}`,
    title: `${TITLES[line]}: ${HOW[kind]}${line === 'ng' && kind === 'slow' ? ', 5 % lost' : ''}`,
    world: 'proxies',
    lastsMs: LASTS_MS,
    inject: spoil(kind),
    heal: spoil(null),
    excused,
  };
}

export const LINE_FAULTS: readonly Fault[] = [
  ...(['control', 'redis', 'agent', 'carrier'] as const).flatMap((line) => [
    ofLine(line, 'reset'),
    ofLine(line, 'black hole'),
    ofLine(line, 'slow'),
  ]),
  ofLine('ng', 'black hole'),
  ofLine('ng', 'slow'),
];
