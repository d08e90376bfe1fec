import type { StreamNoun } from '../twilio/twiml.js';

/** `StreamEvent`: https://www.twilio.com/docs/voice/twiml/stream#statuscallback */
export type StreamEvent = 'stream-started' | 'stream-stopped' | 'stream-error';

/** What has become of one stream. */
export interface StreamReport {
  readonly stream: StreamNoun;
  readonly event: StreamEvent;
  readonly streamSid: string;
  /** For a person; `null`: nothing failed. */
  readonly error: string | null;
}

/** The streams of a call, so that each that started is reported as stopped or failed, once. */
export class StreamCallbacks {
  readonly #open = new Map<string, StreamNoun>();

  constructor(private readonly report: (report: StreamReport) => void) {}

  isOpen(streamSid: string): boolean {
    return this.#open.has(streamSid);
  }

  started(streamSid: string, stream: StreamNoun): void {
    this.#open.set(streamSid, stream);
    this.report({ stream, event: 'stream-started', streamSid, error: null });
  }

  /** Nothing when it did not start, or has ended. @param error for a person; `null`: nothing failed */
  ended(streamSid: string, error: string | null): void {
    const stream = this.#open.get(streamSid);
    if (stream === undefined) return;
    this.#open.delete(streamSid);
    this.report({ stream, event: error === null ? 'stream-stopped' : 'stream-error', streamSid, error });
  }

  /** It never started. */
  failed(streamSid: string, stream: StreamNoun, error: string): void {
    this.report({ stream, event: 'stream-error', streamSid, error });
  }

  endAll(): void {
    for (const streamSid of [...this.#open.keys()]) this.ended(streamSid, null);
  }
}
