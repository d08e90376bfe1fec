import { expect, it } from 'vitest';
import { answerOf } from '../../../../src/gateway/call/call-record.js';
import { CALL, LATE_CALL, LATE_FACTS, play } from '../../../support/call-machine.js';

const PROGRESS = { ringingAtMs: null, answeredAtMs: 1, resumed: 0, agentError: null };

it('[4568 §5] tells codec and suite of a call whose late answer has come, before both sides of its media are connected', () => {
  const { state } = play(LATE_CALL.slice(0, 6), LATE_FACTS);
  expect([state.name, state.session]).toEqual(['Connecting', null]);
  const media = { codec: 'PCMU', crypto_suite: 'AES_CM_128_HMAC_SHA1_80' };
  expect(answerOf(state, PROGRESS)).toMatchObject(media);
  expect(answerOf(play(CALL).state, PROGRESS)).toMatchObject(media);
  expect(answerOf(play(LATE_CALL.slice(0, 5), LATE_FACTS).state, PROGRESS)).toMatchObject({ codec: null, crypto_suite: null });
});
