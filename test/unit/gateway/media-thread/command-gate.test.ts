import { expect, it } from 'vitest';
import { CommandGate } from '../../../../src/gateway/media-thread/command-gate.js';
import type { CallCommand } from '../../../../src/gateway/media-thread/worker-messages.js';

const of = (type: 'start' | 'connect-agent' | 'close' | 'reserve', callId: string): CallCommand =>
  ({ type, callId, requestId: 1 }) as CallCommand;

function gated(): { readonly gate: CommandGate; readonly seen: string[] } {
  const seen: string[] = [];
  const gate = new CommandGate((command) => seen.push('callId' in command ? `${command.type} ${command.callId}` : command.type));
  return { gate, seen };
}

it('the gate holds commands that need agents, and later ones of the same call, until agents are loaded', () => {
  const { gate, seen } = gated();
  for (const command of [of('reserve', 'a'), of('connect-agent', 'a'), of('start', 'b'), of('start', 'a'), of('close', 'a')])
    gate.take(command);
  gate.take({ type: 'counters', requestId: 2 });
  expect(seen).toEqual(['reserve a', 'start b', 'counters']);
  gate.open();
  expect(seen.slice(3)).toEqual(['connect-agent a', 'start a', 'close a']);
  gate.take(of('connect-agent', 'c'));
  expect(seen.at(-1)).toBe('connect-agent c');
});

it('the gate carries nothing out after the thread was shut down', () => {
  const { gate, seen } = gated();
  gate.take(of('connect-agent', 'a'));
  gate.take({ type: 'shut-down' });
  gate.open();
  expect(seen).toEqual(['shut-down']);
});
