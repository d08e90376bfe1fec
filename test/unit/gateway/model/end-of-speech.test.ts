import { expect, it } from 'vitest';
import { loadConfig } from '../../../../src/config/load.js';
import { endOfSpeechMs, endOfSpeechTable } from '../../../../src/gateway/model/end-of-speech.js';

const TABLE = '200=1000,50=250,150=900';

it.each([
  [100, null],
  [50, 250],
  [75, 413],
  [150, 900],
  [175, 950],
  [200, 1_000],
  // Beyond the table: as at its end.
  [0, 250],
  [49.5, 250],
  [500, 1_000],
])('the end of speech comes, at a threshold of %d, after %s ms of silence', (threshold, silenceMs) => {
  expect(endOfSpeechMs(endOfSpeechTable(TABLE), threshold)).toBe(silenceMs);
});

it('a table of one value applies it to every threshold but 100', () => {
  expect([20, 100, 150].map((threshold) => endOfSpeechMs(endOfSpeechTable('50=300'), threshold))).toEqual([300, null, 300]);
});

it.each(['', '50', '50=', '50=1;60=2', '50=-1', 'a=b'])('the configuration refuses %j as a table', (text) => {
  expect(() => loadConfig({ set: [`agents.end_of_speech_ms=${text}`], environment: {} })).toThrow('agents.end_of_speech_ms');
});
