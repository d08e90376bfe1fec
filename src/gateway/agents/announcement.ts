import type { AgentAnswer, AnnouncementSettings } from '../model/agent.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import type { AgentHost } from '../media/leg-agent.js';
import type { SampleAgent } from '../media/sample-leg-agent.js';
import { SpeechError, type Speech } from './speech.js';

/** 200 ms of silence after the sentence: what is still in jitter buffers on the way is heard too. */
const FAREWELL_FRAMES = 10;
const TRANSFER_ID = 'stand-in';

/** Stands in for an agent that cannot be reached: says a sentence, then transfers the caller or hangs up. Without speech it does that at once. */
export class Announcement implements SampleAgent {
  #samples: Int16Array | null = null;
  #position = 0;
  #silentFrames = FAREWELL_FRAMES;
  #startedMs = 0;
  #isDone = false;

  constructor(
    private readonly settings: AnnouncementSettings,
    private readonly speech: Speech,
    private readonly host: AgentHost,
    private readonly log: Log,
    private readonly clock: Pick<Clock, 'nowMs'>,
  ) {}

  /** The sentence is synthesized from here on; the call does not wait for it. */
  connect(): Promise<void> {
    const { text, language } = this.settings;
    this.speech.synthesize({ text, language }, []).then(
      (samples) => (this.#samples = samples),
      (error: unknown) => {
        this.log.warn({ code: error instanceof SpeechError ? error.code : 'failed', hint: 'nothing is said' }, 'agent.speech.failed');
        this.#samples = new Int16Array(0);
      },
    );
    return Promise.resolve();
  }

  start(): void {
    this.#startedMs = this.clock.nowMs();
  }

  /** It listens to nobody. */
  digit(): void {
    return;
  }

  frame(_heard: Int16Array, spoken: Int16Array): void {
    spoken.fill(0);
    if (this.#samples === null || this.#isDone) return;
    const { text } = this.settings;
    if (this.#position === 0 && this.#samples.length > 0) {
      const entry = { speaker: 'agent', text, at_ms: Math.round(this.clock.nowMs() - this.#startedMs) } as const;
      this.host.emit({ type: 'agent-request', request: { type: 'transcript', entries: [entry] } });
    }
    const chunk = this.#samples.subarray(this.#position, this.#position + spoken.length);
    spoken.set(chunk);
    this.#position += chunk.length;
    if (this.#position < this.#samples.length) return;
    this.#silentFrames -= 1;
    if (this.#silentFrames >= 0) return;
    this.#isDone = true;
    this.#leave();
  }

  notify(answer: AgentAnswer): void {
    const hasFailed = answer.type === 'refused' || (answer.type === 'transfer-progress' && answer.state === 'failed');
    if (this.#isDone && hasFailed) this.host.emit({ type: 'agent-hangup' });
  }

  close(): void {
    this.#isDone = true;
  }

  #leave(): void {
    const { transferTo } = this.settings;
    if (transferTo === null) return this.host.emit({ type: 'agent-hangup' });
    this.host.emit({ type: 'agent-request', request: { type: 'transfer', requestId: TRANSFER_ID, to: transferTo } });
  }
}
