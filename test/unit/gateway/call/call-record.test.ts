import { expect, it } from 'vitest';
import { answerOf, callRecord, withRetention } from '../../../../src/gateway/call/call-record.js';
import { callFrom } from '../../../support/call-data.js';
import { callOf } from '../store/store-contract.js';
import { ROUTE } from '../../../support/route.js';
import { CALL, LATE_CALL, LATE_FACTS, play } from '../../../support/call-machine.js';

const COMING = callFrom('+2');
const ANSWERED = { ...COMING, progress: { ...COMING.progress, answeredAtMs: 1 } };

it('[4568 §5] the record has codec and suite of a call whose late answer has come, before its media is connected', () => {
  const { state } = play(LATE_CALL.slice(0, 6), LATE_FACTS);
  expect([state.name, state.session]).toEqual(['Connecting', null]);
  const media = { codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' };
  expect(answerOf({ ...ANSWERED, state })).toMatchObject(media);
  expect(answerOf({ ...ANSWERED, state: play(CALL).state })).toMatchObject(media);
  expect(answerOf({ ...ANSWERED, state: play(LATE_CALL.slice(0, 5), LATE_FACTS).state })).toMatchObject({
    codec: null,
    crypto_suite: null,
  });
});

it('the record keeps a transcript as long as its organization says, or not at all', () => {
  const record = callOf('o', 0, { transcript: [{ speaker: 'agent', text: 'Hello.', at_ms: 0 }], transcript_state: 'complete' });
  const kept = (days: number | null) => withRetention(record, { ...ROUTE, org: { ...ROUTE.org, transcript_days: days } });
  expect(kept(null)).toEqual({ record });
  expect(kept(7)).toEqual({ record, transcriptDays: 7 });
  expect(kept(0).record).toMatchObject({ transcript: [], transcript_error: 'the organization keeps no transcripts' });
  expect(withRetention(record, null)).toEqual({ record });
});

it('the record has the delay of each turn and of the agent’s first audio; p50 and p95 are by nearest rank', () => {
  const { state } = play(CALL);
  const turns = (turnDelaysMs: readonly number[]) => {
    const endpoint = { agentAudioMs: 321.4, turnDelaysMs, firstAudioMs: 12, samples: [], jitterMs: 0, roundTripMs: null } as never;
    return callRecord({ ...ANSWERED, state }, { endpoint, relay: null }, { reason: 'CALLER_HANGUP', atMs: 9 }).turns;
  };
  expect(turns([])).toEqual({ first_audio_ms: 321.4, delays_ms: [], p50_ms: null, p95_ms: null });
  expect(turns([900, 100, 500])).toEqual({ first_audio_ms: 321.4, delays_ms: [900, 100, 500], p50_ms: 500, p95_ms: 900 });
  const many = Array.from({ length: 40 }, (_none, at) => 10 * (at + 1));
  expect(turns(many)).toMatchObject({ p50_ms: 200, p95_ms: 380 });
});
