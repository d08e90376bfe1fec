import { FRAME_MS } from '../../rtp/codec/g711.js';
import { digitOfEvent, eventOfDigit } from '../../rtp/dtmf/telephone-event.js';
import type { Clock } from '../../lib/clock.js';
import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { AgentHost } from '../media/leg-agent.js';
import type { SampleAgent } from '../media/sample-leg-agent.js';
import type { AgentAnswer, PlayerClip, PlayerSettings } from '../model/agent.js';
import { voiceOf } from '../model/speech-service.js';
import type { AudioUrls } from './audio-url.js';
import { spokenBy } from './languages.js';
import type { Speech } from './speech.js';
import type { TextToSpeech } from './text-to-speech.js';

export interface PlayerDependencies {
  /** Of voices that are no provider's. */
  readonly speech: Speech;
  readonly textToSpeech: TextToSpeech;
  readonly audio: AudioUrls;
  readonly clock: Pick<Clock, 'nowMs'>;
}

const TRANSFER_ID = 'player';
const DEFAULT_LANGUAGE = 'en-US';
const DIGIT_MS = 160;
const WAIT_MS = 500;
/** Samples of a millisecond at 8 kHz. */
const SAMPLES_PER_MS = 8;
/** Clips whose audio is made at the same time: the one that is played, and the next two. A document may have 200 clips of 15 minutes. */
const CLIPS_AHEAD = 3;

/** Linear samples, or the number of samples of silence. */
type ClipAudio = Int16Array | { readonly length: number };

/** A clip that has not been played to its end. */
interface ComingClip {
  readonly clip: PlayerClip;
  /** `null`: not asked for yet, or not ready. */
  audio: ClipAudio | null;
  /** Times that it is still to be played. */
  left: number;
}

/**
 * Plays clips one after the other, and gathers digits meanwhile and afterwards: then it is done, and says so once. The first digit ends the
 * clips. At the end it may transfer the caller. Times are counted in frames: a held call waits.
 */
export class Player implements SampleAgent {
  /** The first one is played. */
  readonly #clips: ComingClip[];
  #position = 0;
  #digits = '';
  /** Since the last clip, or the last digit. */
  #silentMs = 0;
  #startedMs: number | undefined;
  #isDone = false;
  readonly #closed = new AbortController();

  constructor(
    private readonly settings: PlayerSettings,
    private readonly dependencies: PlayerDependencies,
    private readonly host: AgentHost,
    private readonly log: Log,
  ) {
    this.#clips = settings.clips.map((clip) => ({
      clip,
      audio: null,
      left: 'loop' in clip ? (clip.loop === 0 ? Infinity : clip.loop) : 1,
    }));
  }

  /** The audio is made from here on; the call does not wait for it. */
  connect(): Promise<void> {
    for (const clip of this.#clips.slice(0, CLIPS_AHEAD)) this.#ask(clip);
    return Promise.resolve();
  }

  start(): void {
    this.#startedMs = this.dependencies.clock.nowMs();
  }

  /** For the audio of the clip that is next. */
  get isWaiting(): boolean {
    return this.#clips[0]?.audio === null && !this.#isDone;
  }

  digit(event: number): void {
    const digit = digitOfEvent(event) ?? '';
    this.#transcribe('caller', digit);
    const { gather } = this.settings;
    if (gather === null || this.#isDone) return;
    this.#clips.length = 0;
    this.#silentMs = 0;
    if (digit === gather.finishOnKey) return this.#finish(digit);
    this.#digits += digit;
    if (this.#digits.length === gather.numDigits) this.#finish('');
  }

  frame(_heard: Int16Array, spoken: Int16Array): void {
    if (this.#isDone) return;
    let filled = 0;
    while (filled < spoken.length) {
      const [current] = this.#clips;
      if (current === undefined) return this.#wait(filled === 0);
      const { audio, clip } = current;
      if (audio === null) return;
      if (this.#position === 0) this.#begin(clip);
      const count = Math.min(audio.length - this.#position, spoken.length - filled);
      if (audio instanceof Int16Array) spoken.set(audio.subarray(this.#position, this.#position + count), filled);
      filled += count;
      this.#position += count;
      if (this.#position < audio.length) continue;
      this.#position = 0;
      current.left -= audio.length === 0 ? Infinity : 1;
      if (!(current.left > 0)) this.#next();
    }
  }

  /** It asks for a transfer only. */
  notify(answer: AgentAnswer): void {
    const hasFailed = answer.type === 'refused' || (answer.type === 'transfer-progress' && answer.state === 'failed');
    if (this.#isDone && hasFailed) this.host.emit({ type: 'agent-finished', digits: this.#digits, finishedOnKey: '' });
  }

  close(): void {
    this.#isDone = true;
    this.#closed.abort();
  }

  #next(): void {
    this.#clips.shift();
    const within = this.#clips[CLIPS_AHEAD - 1];
    if (within !== undefined) this.#ask(within);
  }

  #ask(coming: ComingClip): void {
    this.#audioOf(coming.clip).then(
      (audio) => {
        coming.audio = audio;
        if (coming === this.#clips[0]) this.host.speak();
      },
      (error: unknown) => {
        if (this.#isDone) return;
        this.#failed(coming.clip, error, 'the call goes on without it');
        coming.audio = { length: 0 };
      },
    );
  }

  /** The clips are over. */
  #wait(isSilent: boolean): void {
    const { gather } = this.settings;
    if (gather !== null && isSilent) this.#silentMs += FRAME_MS;
    if (gather === null || this.#silentMs >= gather.timeoutMs) this.#finish('');
  }

  #finish(finishedOnKey: string): void {
    this.#isDone = true;
    const { transferTo } = this.settings;
    if (transferTo === null) this.host.emit({ type: 'agent-finished', digits: this.#digits, finishedOnKey });
    else this.host.emit({ type: 'agent-request', request: { type: 'transfer', requestId: TRANSFER_ID, to: transferTo } });
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

  async #audioOf(clip: PlayerClip): Promise<ClipAudio> {
    switch (clip.kind) {
      case 'say':
        return this.#speechOf(clip);
      case 'audio':
        return this.dependencies.audio.samplesAt(this.settings.accountSid, clip.url, this.#closed.signal);
      case 'pause':
        return { length: clip.ms * SAMPLES_PER_MS };
      case 'digits':
        return { length: durationOf(clip.digits) * SAMPLES_PER_MS };
    }
  }

  /** Where the voice of a provider fails, the caller still gets to hear the text. */
  async #speechOf(clip: Extract<PlayerClip, { kind: 'say' }>): Promise<Int16Array> {
    const { speech, textToSpeech } = this.dependencies;
    const { text, language } = clip;
    const voice = clip.voice === null ? null : voiceOf(clip.voice);
    if (this.settings.speech !== null && voice !== null) {
      try {
        return await textToSpeech.samples(
          this.settings.speech,
          { text, language: language ?? DEFAULT_LANGUAGE, voice },
          this.#closed.signal,
        );
      } catch (error) {
        if (!this.#isDone) this.#failed(clip, error, 'the speech program speaks');
      }
    }
    return speech.synthesize(spokenBy(text, language, clip.voice), [], this.settings.accountSid);
  }

  #failed({ kind }: PlayerClip, error: unknown, hint: string): void {
    this.log.warn({ clip: kind, error: errorText(error), hint }, 'agent.clip.failed');
    this.host.emit({ type: 'agent-note', kind: 'other', text: `${kind}: ${errorText(error)}`, isFailure: true });
  }

  #transcribe(speaker: 'agent' | 'caller', text: string): void {
    if (this.#isDone || text === '') return;
    const atMs = this.#startedMs === undefined ? 0 : Math.round(this.dependencies.clock.nowMs() - this.#startedMs);
    this.host.emit({ type: 'agent-request', request: { type: 'transcript', entries: [{ speaker, text, at_ms: atMs }] } });
  }
}

/** Milliseconds that digits take: a `w` waits. */
function durationOf(digits: string): number {
  return Array.from(digits).reduce((sum, digit) => sum + (digit.toLowerCase() === 'w' ? WAIT_MS : 2 * DIGIT_MS), 0);
}
