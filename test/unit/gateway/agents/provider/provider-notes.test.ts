import { describe, expect, it } from 'vitest';
import { ProviderNotes } from '../../../../../src/gateway/agents/provider/provider-notes.js';
import type { AgentNote } from '../../../../../src/gateway/model/media.js';
import { EventLog } from '../../../../support/event-log.js';
import { VirtualClock } from '../../../../support/virtual-clock.js';

/** Notes of a session that was dialled at 1 s, 250.4 ms ago. */
function notesOf(url = 'wss://agent.deepgram.com:8443/v1/agent?key=secret') {
  const [told, clock, log] = [[] as AgentNote[], new VirtualClock(), new EventLog()];
  const notes = new ProviderNotes({ provider: 'deepgram', url }, (note) => told.push(note), clock, log);
  clock.advance(1_000);
  notes.dialled();
  clock.advance(250.4);
  return { notes, told, log };
}

describe('the notes of a provider’s sessions', () => {
  const name = 'deepgram (agent.deepgram.com:8443)';

  it.each<[string, (notes: ProviderNotes) => void, Omit<AgentNote, 'type'>]>([
    ['an ignored message', (notes) => notes.add('ignored', 'x'), { kind: 'ignored', text: 'x', isFailure: false }],
    ['a cause that ends the call', (notes) => notes.add('other', 'x', true), { kind: 'other', text: 'x', isFailure: true }],
    [
      'an accepted session',
      (notes) => notes.accepted(),
      { kind: 'other', text: `session accepted by ${name} after 250 ms`, isFailure: false },
    ],
    ['a closed session', (notes) => notes.closed('bye', false), { kind: 'closed', text: `${name}: bye`, isFailure: false }],
    [
      'a closed session that ends the call',
      (notes) => notes.closed('gone', true),
      { kind: 'closed', text: `${name}: gone`, isFailure: true },
    ],
    [
      'a session that could not be opened',
      (notes) => notes.failed('no\nroute '),
      { kind: 'other', text: `${name}: no route, after 250 ms`, isFailure: true },
    ],
    ['a warning', (notes) => notes.warn('slow'), { kind: 'other', text: `${name}: slow`, isFailure: false }],
    ['a warning that costs an answer', (notes) => notes.warn('full', true), { kind: 'other', text: `${name}: full`, isFailure: true }],
  ])('report %s', (_what, tell, expected) => {
    const { notes, told } = notesOf();
    tell(notes);
    expect(told).toEqual([{ type: 'agent-note', ...expected }]);
  });

  it('contain five warnings at most, in the log too', () => {
    const { notes, told, log } = notesOf();
    for (const n of [1, 2, 3, 4, 5, 6, 7]) notes.warn(`warning ${String(n)}`);
    expect(told.map(({ text }) => text)).toEqual([1, 2, 3, 4, 5].map((n) => `${name}: warning ${String(n)}`));
    expect(log.events).toEqual(
      [1, 2, 3, 4, 5].map((n) => ({ level: 'warn', event: 'agent.provider.warning', fields: { error: `warning ${String(n)}` } })),
    );
  });

  it('contain nothing of a URL that cannot be read', () => {
    const { notes, told } = notesOf('secret');
    notes.closed('bye', false);
    expect(told.map(({ text }) => text)).toEqual(['deepgram (a URL that cannot be read): bye']);
  });
});
