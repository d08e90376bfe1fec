import { FRAME_MS } from '../../rtp/codec/g711.js';
import { digitOfEvent, eventOfDigit } from '../../rtp/dtmf/telephone-event.js';
import type { Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { AgentHost } from '../media/leg-agent.js';
import type { SampleAgent } from '../media/sample-leg-agent.js';
import type { PlayerClip, PlayerSettings } from '../model/agent.js';
import type { AudioFiles } from './audio-file.js';
import { spokenBy } from './languages.js';
import type { Speech } from './speech.js';

const DIGIT_MS = 160;
const WAIT_MS = 500;
/** Samples of a millisecond at 8 kHz. */
const SAMPLES_PER_MS = 8;
const NOTHING = new Int16Array(0);

/** A clip, as soon as its audio is ready. */
interface ReadyClip {
  readonly clip: PlayerClip;
  samples: Int16Array | undefined;
  /** Times that it is still to be played. */
  left: number;
}

/**
 * Plays clips one after the other, and gathers digits meanwhile and afterwards: then it is done, and says so once. The first digit ends the
 * clips. Times are counted in frames: a held call waits.
 */
export class Player implements SampleAgent {
  readonly #clips: ReadyClip[];
  #at = 0;
  #position = 0;
  #digits = '';
  /** Since the last clip, or the last digit. */
  #silentMs = 0;
  #startedMs: number | undefined;
  #isDone = false;

  constructor(
    private readonly settings: PlayerSettings,
    private readonly speech: Speech,
    private readonly files: AudioFiles,
    private readonly host: AgentHost,
    private readonly log: Log,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {
    this.#clips = settings.clips.map((clip) => ({
      clip,
      samples: undefined,
      left: 'loop' in clip ? (clip.loop === 0 ? Infinity : clip.loop) : 1,
    }));
  }

  /** The audio is made from here on; the call does not wait for it. */
  connect(): Promise<void> {
    for (const ready of this.#clips) {
      this.#samplesOf(ready.clip).then(
        (samples) => (ready.samples = samples),
        (error: unknown) => {
          if (this.#isDone) return;
          const text = `${ready.clip.kind}: ${errorText(error)}`;
          this.log.warn({ clip: ready.clip.kind, error: errorText(error), hint: 'the call goes on without it' }, 'agent.clip.failed');
          this.host.emit({ type: 'agent-note', kind: 'other', text, isFailure: true });
          ready.samples = NOTHING;
        },
      );
    }
    return Promise.resolve();
  }

  start(): void {
    this.#startedMs = this.clock.nowMs();
  }

  digit(event: number): void {
    const digit = digitOfEvent(event) ?? '';
    this.#transcribe('caller', digit);
    const { gather } = this.settings;
    if (gather === null || this.#isDone) return;
    this.#at = this.#clips.length;
    this.#silentMs = 0;
    if (digit === gather.finishOnKey) return this.#finish(digit);
    this.#digits += digit;
    if (this.#digits.length === gather.numDigits) this.#finish('');
  }

  frame(_heard: Int16Array, spoken: Int16Array): void {
    if (this.#isDone) return;
    let filled = 0;
    while (filled < spoken.length) {
      const ready = this.#clips[this.#at];
      if (ready === undefined) return this.#wait(filled === 0);
      if (ready.samples === undefined) return;
      if (this.#position === 0) this.#begin(ready.clip);
      const chunk = ready.samples.subarray(this.#position, this.#position + spoken.length - filled);
      spoken.set(chunk, filled);
      filled += chunk.length;
      this.#position += chunk.length;
      if (this.#position < ready.samples.length) continue;
      this.#position = 0;
      ready.left -= ready.samples.length === 0 ? Infinity : 1;
      if (!(ready.left > 0)) this.#at += 1;
    }
  }

  /** It asks for nothing. */
  notify(): void {
    return;
  }

  close(): void {
    this.#isDone = true;
  }

  /** The clips are over. */
  #wait(isSilent: boolean): void {
    const { gather } = this.settings;
    if (gather !== null && isSilent) this.#silentMs += FRAME_MS;
    if (gather === null || this.#silentMs >= gather.timeoutMs) this.#finish('');
  }

  #finish(finishedOnKey: string): void {
    this.#isDone = true;
    this.host.emit({ type: 'agent-finished', digits: this.#digits, finishedOnKey });
  }

  #begin(clip: PlayerClip): void {
    if (clip.kind === 'say') return this.#transcribe('agent', clip.text);
    if (clip.kind !== 'digits') return;
    for (const digit of clip.digits) {
      const event = eventOfDigit(digit);
      if (event !== undefined && !this.host.sendDtmf(event, DIGIT_MS)) {
        this.host.emit({ type: 'agent-note', kind: 'other', text: `the digit ${digit} could not be sent`, isFailure: true });
        return;
      }
    }
  }

  async #samplesOf(clip: PlayerClip): Promise<Int16Array> {
    switch (clip.kind) {
      case 'say':
        return this.speech.synthesize(spokenBy(clip.text, clip.language, clip.voice), []);
      case 'audio':
        return this.files.decode(clip.bytes);
      case 'pause':
        return new Int16Array(clip.ms * SAMPLES_PER_MS);
      case 'digits':
        // As long as the digits take: a `w` waits.
        return new Int16Array(
          Array.from(clip.digits).reduce((sum, digit) => sum + (digit.toLowerCase() === 'w' ? WAIT_MS : 2 * DIGIT_MS), 0) * SAMPLES_PER_MS,
        );
    }
  }

  #transcribe(speaker: 'agent' | 'caller', text: string): void {
    if (this.#isDone || text === '') return;
    const atMs = this.#startedMs === undefined ? 0 : Math.round(this.clock.nowMs() - this.#startedMs);
    this.host.emit({ type: 'agent-request', request: { type: 'transcript', entries: [{ speaker, text, at_ms: atMs }] } });
  }
}
