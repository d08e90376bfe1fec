import { describe, expect, it } from 'vitest';
import { CallerTurns } from '../../../../../src/gateway/agents/provider/caller-turns.js';
import { talkAt } from '../../../../support/provider/every-provider.js';

const LOUD = 0x10;
const QUIET = 0xff;

/** Packets of 20 ms: `c` the caller is loud, `a` the agent is heard, `b` both, `.` nobody. `w` writes down, between two packets. */
function writtenAt(call: string): (number | null)[] {
  const turns = new CallerTurns();
  const written: (number | null)[] = [];
  let nowMs = 1_000;
  for (const step of call.replaceAll(' ', '')) {
    if (step === 'w') {
      written.push(turns.written(nowMs));
      continue;
    }
    const packet = new Uint8Array(160).fill(step === 'c' || step === 'b' ? LOUD : QUIET);
    turns.heard('PCMU', packet, 0, 160, nowMs);
    if (step === 'a' || step === 'b') turns.answered(nowMs);
    nowMs += 20;
  }
  return written.map((atMs) => (atMs === null ? null : (atMs - 1_000) / 20));
}
const speech = (frames: number): string => 'c'.repeat(frames);
const agent = (frames: number): string => 'a'.repeat(frames);
const both = (frames: number): string => 'b'.repeat(frames);
const pause = (frames: number): string => '.'.repeat(frames);

describe('the start of the words that a transcription has', () => {
  it.each<[string, string, (number | null)[]]>([
    ['nothing was heard', `${pause(50)}w`, [null]],
    ['a click is not speech', `${speech(2)}${pause(50)}w`, [null]],
    ['after the speech', `${pause(10)}${speech(20)}${pause(20)}w`, [10]],
    ['while the agent answers', `${pause(10)}${speech(20)}${pause(20)}${agent(30)}w`, [10]],
    ['with pauses between', `${speech(20)}${pause(40)}${speech(20)}${pause(20)}w`, [0]],
    ['a click long before', `${speech(2)}${pause(40)}${speech(20)}${pause(20)}w`, [42]],
    ['speech before the agent, and after it', `${speech(20)}${pause(20)}w${agent(20)}${pause(5)}${speech(20)}${pause(20)}w`, [0, 65]],
    ['while the next words are spoken', `${speech(20)}${pause(20)}${agent(20)}${speech(20)}w${pause(20)}w`, [0, 60]],
    ['in two pieces', `${speech(20)}${pause(20)}w${agent(10)}w`, [0, 0]],
    ['over the agent', `${agent(20)}${both(10)}${speech(20)}${pause(20)}w`, [20]],
    ['a noise while the agent speaks, and nothing written for it', `${speech(20)}${pause(20)}${agent(10)}${both(6)}${agent(20)}w`, [0]],
    ['an echo of the agent before the words', `${both(50)}${pause(20)}${speech(30)}${pause(20)}w`, [0]],
    ['as short as speech can be', `${speech(5)}${pause(20)}w`, [0]],
    ['shorter than speech', `${speech(4)}${pause(20)}w`, [null]],
    ['with a pause before most of it', `${speech(20)}${pause(40)}${speech(30)}${pause(20)}w`, [0]],
    ['a click 300 ms before', `${speech(2)}${pause(14)}${speech(20)}${pause(20)}w`, [16]],
    ['what sounds like a click, less than 300 ms before', `${speech(2)}${pause(13)}${speech(20)}${pause(20)}w`, [0]],
    ['a cough, the agent, and words', `${speech(6)}${pause(20)}${agent(10)}${speech(20)}${pause(20)}w`, [36]],
    ['the agent within a pause of 300 ms', `${speech(6)}${pause(12)}${agent(2)}${speech(12)}${pause(20)}w`, [20]],
    ['the agent within a shorter one', `${speech(6)}${pause(11)}${agent(2)}${speech(12)}${pause(20)}w`, [0]],
    ['the agent long before', `${agent(20)}${pause(20)}${speech(20)}${pause(20)}w`, [40]],
    ['the end of the agent at its beginning', `${both(1)}${speech(40)}${pause(20)}w`, [0]],
    ['an echo of the agent, without a pause', `${both(2)}${speech(40)}${pause(20)}w`, [16]],
    ['while the next words are spoken, which are longer', `${speech(20)}${pause(20)}${agent(20)}${speech(30)}w${pause(20)}w`, [0, 60]],
    ['the next words go on', `${speech(20)}${pause(20)}${agent(20)}${speech(30)}w${speech(10)}${pause(20)}w`, [0, 60]],
    ['just before the next words are over', `${speech(20)}${pause(20)}${agent(20)}${speech(30)}${pause(13)}w`, [0]],
    ['as the next words are over', `${speech(20)}${pause(20)}${agent(20)}${speech(30)}${pause(14)}w`, [60]],
    ['while it is spoken, and what is said after that', `${speech(20)}w${speech(20)}${pause(20)}w`, [0, 20]],
  ])('is found in this case: %s', (_what, call, expected) => {
    expect(writtenAt(call)).toEqual(expected);
  });

  it('is found among the last few only', () => {
    const cough = `${speech(6)}${pause(16)}a${pause(16)}`;
    expect(writtenAt(`${cough.repeat(30)}w`)).toEqual([(30 - 10) * 39]);
  });

  it('is found behind any number of clicks', () => {
    const click = `${speech(2)}${pause(20)}`;
    expect(writtenAt(`${speech(20)}${pause(20)}${agent(20)}${click.repeat(12)}w`)).toEqual([0]);
  });
});

// The text of what the caller said comes while the agent answers already, or while the caller says the next thing.

const BYTES_PER_MS = { deepgram: 8, 'gemini-live': 48, elevenlabs: 8 } as const;

describe.each(Object.keys(BYTES_PER_MS) as (keyof typeof BYTES_PER_MS)[])('the transcript of %s', (provider) => {
  it('is in the order of the audio, though texts come later, and so is the history that another session gets', async () => {
    const { leg, play } = await talkAt(provider);
    const say = (text: string): void => {
      play.begin();
      play.text(text);
      play.say(Buffer.alloc(200 * BYTES_PER_MS[provider], 0x22));
      play.end();
    };
    leg.frames(10, QUIET);
    leg.frames(30, LOUD);
    leg.frames(20, QUIET);
    say('At seven?');
    leg.frames(30, QUIET);
    play.wrote('A table, please.');
    leg.frames(30, LOUD);
    leg.frames(20, QUIET);
    say('Of course.');
    leg.frames(20, QUIET);
    play.wrote('Yes, at seven.');
    leg.frames(20, QUIET);
    leg.session.close(1_011);
    leg.frames(20, QUIET);
    expect(leg.sessions).toHaveLength(2);
    const told = JSON.stringify(leg.session.messages.all);
    const places = ['A table, please.', 'At seven?', 'Yes, at seven.'].map((text) => told.indexOf(text));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(places[0]).toBeGreaterThan(0);
    leg.agent.close();
    expect(leg.transcript().map(({ text, at_ms: atMs }) => [text, Math.round(atMs / 200) / 5])).toEqual([
      ['A table, please.', 0.2],
      ['At seven?', 1.2],
      ['Yes, at seven.', 1.8],
      ['Of course.', 2.8],
    ]);
    expect(leg.session.errors).toEqual([]);
  });
});
