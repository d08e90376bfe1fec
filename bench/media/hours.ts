import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { VirtualClock } from '../../test/support/virtual-clock.js';
import { talkingAgent } from './talking-agent.js';
import { NativePrograms } from './native.js';

// Hours of a call in virtual time: a bot that speaks in real time, a leg, and two receivers, each with a clock of its own.

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '8' },
    /** another checkout */
    against: { type: 'string' },
  },
});

const FORM = { frameMs: 20, wordFrames: 100, roundFrames: 150 };
/** How much faster the bot's and the receiver's clocks are than ours, in ppm. */
const CLOCKS: readonly (readonly [botPpm: number, receiverPpm: number])[] = [
  [0, 0],
  [100, 0],
  [-100, 0],
  [100, -100],
  [-100, 100],
];

/** How late an ordinary process is: mostly up to 3 ms, and once in 200 frames 10 to 30 ms. From 0 up to 1 by a generator of Park and Miller: the same numbers in each run. */
function lateness(): () => number {
  let state = 1;
  const share = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  return () => (share() < 0.005 ? 10 + 20 * share() : 3 * share() * share());
}

/** The number of a frame in its first bytes, which are loud in µ-law. */
const DIGITS = 4;

function frameOf(number: number): Buffer {
  const frame = Buffer.alloc(160, 0x90);
  for (let digit = 0; digit < DIGITS; digit += 1) frame[digit] = 0x80 + ((number >> (6 * digit)) & 0x3f);
  return frame;
}

function numberOf(payload: Uint8Array): number | null {
  if ((payload[0] ?? 0xff) >= 0xc0) return null;
  let number = 0;
  for (let digit = 0; digit < DIGITS; digit += 1) number += ((payload[digit] ?? 0) - 0x80) * 64 ** digit;
  return number;
}

interface Heard {
  readonly fixedMs: number;
  readonly fixedLate: number;
  readonly adaptiveMs: number;
  readonly adaptiveLate: number;
}

/** @param sendsPauses false: the bot sends nothing while it does not speak */
async function talk(
  checkout: string,
  programs: NativePrograms,
  { sendsPauses, botPpm, receiverPpm }: { readonly sendsPauses: boolean; readonly botPpm: number; readonly receiverPpm: number },
): Promise<Heard & { readonly words: number; readonly missing: number; readonly gaps: number }> {
  const load = async <M>(path: string): Promise<M> => (await import(resolve(checkout, path))) as M;
  const { StreamAgent } = await load<typeof import('../../src/gateway/agents/stream/stream-agent.js')>(
    'src/gateway/agents/stream/stream-agent.ts',
  );
  const { MediaLeg } = await load<typeof import('../../src/gateway/media/leg.js')>('src/gateway/media/leg.ts');
  const { SlotClock } = await load<typeof import('../../src/gateway/media/slot-clock.js')>('src/gateway/media/slot-clock.ts');
  const clock = new VirtualClock();
  // Earlier checkouts do not ask.
  const { agent, events } = talkingAgent(StreamAgent, clock, () => (leg as Partial<typeof leg>).speak?.() ?? true);

  const receiver = programs.piped('listen');
  const saidMs = new Map<number, number>();
  let [words, gaps, lastNumber, lastTimestamp] = [0, 0, -1, 0];
  const inReceiversUs = (ms: number): number => Math.round(ms * 1_000 * (1 + receiverPpm / 1e6));
  const leg = new MediaLeg(
    { codec: 'PCMU', payloadType: 0, telephoneEventPayloadType: 101, srtp: null, carrierSuite: null },
    {
      clock,
      random32: () => 12_345,
      transport: {
        sendRtp: (buffer) => {
          const timestamp = new DataView(buffer.buffer, buffer.byteOffset).getUint32(4);
          const number = numberOf(buffer.subarray(12));
          const said = number === null ? undefined : saidMs.get(number);
          if (number !== null) {
            saidMs.delete(number);
            const isSameWord = Math.floor(number / FORM.roundFrames) === Math.floor(lastNumber / FORM.roundFrames);
            if (isSameWord) gaps += Math.max(0, (timestamp - lastTimestamp) / 160 - 1);
            [lastNumber, lastTimestamp] = [number, timestamp];
          }
          const marker = (buffer[1] ?? 0) >> 7;
          receiver.write(
            `${inReceiversUs(clock.nowMs())} ${timestamp} ${marker} ${number === null ? 0 : 1} ${said === undefined ? -1 : inReceiversUs(said)}\n`,
          );
        },
        sendRtcp: () => undefined,
      },
      mediaTimeoutMs: 1e12,
      onEvent: () => undefined,
      agent: () => agent,
    },
  );
  const slots = new SlotClock(clock);
  slots.add(leg);
  leg.start();
  const frames = Math.floor((Number(values.hours) * 3_600_000) / FORM.frameMs);
  const lateMs = lateness();
  const silence = Buffer.alloc(160, 0xff);
  let readyMs = 0;
  for (let number = 0; number < frames; number += 1) {
    const isWord = number % FORM.roundFrames < FORM.wordFrames;
    // A phase of its own, which moves through all of them.
    const dueMs = 1_003 + number * FORM.frameMs * (1 - botPpm / 1e6) + Math.floor(number / FORM.roundFrames) * (sendsPauses ? 0 : 7);
    readyMs = Math.max(readyMs, dueMs + lateMs());
    if (!isWord && !sendsPauses) continue;
    clock.advance(Math.max(0, readyMs - clock.nowMs()));
    if (isWord) {
      words += 1;
      saidMs.set(number, clock.nowMs());
    }
    const payload = (isWord ? frameOf(number) : silence).toString('base64');
    events?.onText(JSON.stringify({ event: 'media', streamSid: 'MZ', media: { payload } }));
    if (number % 5_000 === 0) await receiver.drained();
  }
  clock.advance(1_000);
  const [fixedMs = 0, fixedLate = 0, adaptiveMs = 0, adaptiveLate = 0] = (await receiver.end()).split(' ').map(Number);
  return { fixedMs, fixedLate, adaptiveMs, adaptiveLate, words, missing: saidMs.size, gaps };
}

const programs = await NativePrograms.compiled();
const checkouts = values.against === undefined ? ['.'] : ['.', values.against];
try {
  console.log(
    `${values.hours} hours; mean from the bot's frame to its first sample played (ms), and late packets: fixed 40 ms, libspeexdsp`,
  );
  for (const sendsPauses of [false, true])
    for (const [botPpm, receiverPpm] of CLOCKS) {
      console.log(
        `\nbot ${botPpm} ppm, receiver ${receiverPpm} ppm, ${sendsPauses ? 'silence is sent in pauses' : 'nothing is sent in pauses'}`,
      );
      for (const checkout of checkouts) {
        const heard = await talk(checkout, programs, { sendsPauses, botPpm, receiverPpm });
        const line = [heard.fixedMs, heard.fixedLate, heard.adaptiveMs, heard.adaptiveLate]
          .map((figure) => String(figure).padStart(8))
          .join('');
        console.log(
          `  ${checkout.padEnd(12)}${line}   of ${heard.words} words ${heard.missing} never sent, ${heard.gaps} frames of silence within`,
        );
      }
    }
} finally {
  await programs.remove();
}
