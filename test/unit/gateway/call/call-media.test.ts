import { expect, it } from 'vitest';
import { CallMedia } from '../../../../src/gateway/call/call-media.js';
import { CallTrace } from '../../../../src/gateway/call/call-trace.js';
import type { LegEvent } from '../../../../src/gateway/model/media.js';
import { MediaUnavailableError } from '../../../../src/gateway/ports/ports.js';
import { Scope } from '../../../../src/lib/scope.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

const TEST_LINE = { kind: 'test-line', accountSid: '', firstSentence: '', language: 'ENG', voice: null, pronunciationGuide: [] } as const;

/** A call whose media thread ends while its agent connects. */
function dying(tellsOfIt: boolean): { readonly media: CallMedia; readonly events: LegEvent['type'][] } {
  const clock = new VirtualClock();
  const events: LegEvent['type'][] = [];
  const endpoint = {
    connectAgent: (_callId: string, _agent: unknown, onEvent: (event: LegEvent) => void) => {
      if (tellsOfIt) onEvent({ type: 'media-lost' });
      return Promise.reject(new MediaUnavailableError('the media worker ended'));
    },
  };
  const services = { endpoint, agentSideSrtp: false } as unknown as ConstructorParameters<typeof CallMedia>[3];
  const trace = new CallTrace(clock, false);
  const media = new CallMedia('call', 'sip-call', null, services, new Scope(clock, 1_000), trace, ({ type }) => events.push(type));
  return { media, events };
}

it('a call lets its agent connect to the next media thread when the first dies in the attempt', async () => {
  const { media, events } = dying(true);
  expect(await media.connectAgent(TEST_LINE)).toBeNull();
  expect(events).toEqual(['media-lost']);
});

it('a call without a leg fails when its media thread dies', async () => {
  await expect(dying(false).media.connectAgent(TEST_LINE)).rejects.toThrow(MediaUnavailableError);
});
