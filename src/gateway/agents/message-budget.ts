/** What the other end of one connection may make a media thread, which has other calls, read and pass on. */
export interface MessageLimits {
  /** Messages at once, and how many more each frame of 20 ms allows. */
  readonly messages: number;
  readonly messagesPerFrame: number;
  /** Bytes of text that is parsed, at once, and how many more each frame allows. */
  readonly bytes: number;
  readonly bytesPerFrame: number;
}

const MIB = 1_024 * 1_024;

/**
 * For who sends messages of its own making: an utterance of minutes may come at once in pieces of 20 ms; in the long run twenty times what real
 * time takes, and 128 kB a second.
 */
export const APPLICATION_LIMITS: MessageLimits = { messages: 10_000, messagesPerFrame: 20, bytes: 2 * MIB, bytesPerFrame: 2_560 };
/** A provider's audio is text too: 16-bit samples at 24 kHz are 64 kB a second, and an answer of minutes comes faster than real time. */
export const PROVIDER_LIMITS: MessageLimits = { messages: 10_000, messagesPerFrame: 20, bytes: 8 * MIB, bytesPerFrame: 20_480 };
/** How many messages one counts for that the main thread gets, too: fifty a second in the long run. */
const REQUEST_COST = 20;

/** Counts one connection's messages. What is over the limits is not read. */
export class MessageBudget {
  #messages: number;
  #bytes: number;
  #isShort = false;

  /** @param onShort is called once each time that there are too many */
  constructor(
    private readonly limits: MessageLimits,
    private readonly onShort: () => void,
  ) {
    this.#messages = limits.messages;
    this.#bytes = limits.bytes;
  }

  /** Another message would be taken. */
  get hasRoom(): boolean {
    return this.#messages > 0 && this.#bytes > 0;
  }

  refill(frames: number): void {
    const { messages, messagesPerFrame, bytes, bytesPerFrame } = this.limits;
    this.#messages = Math.min(messages, this.#messages + frames * messagesPerFrame);
    this.#bytes = Math.min(bytes, this.#bytes + frames * bytesPerFrame);
    if (this.hasRoom) this.#isShort = false;
  }

  /** @param bytes of text to be parsed @returns false: it is not to be read */
  take(bytes = 0): boolean {
    if (!this.hasRoom) {
      if (!this.#isShort) this.onShort();
      this.#isShort = true;
      return false;
    }
    // It may be larger than what is left: that is paid back before the next one.
    this.#messages -= 1;
    this.#bytes -= bytes;
    return true;
  }

  /** The message that was taken is a request of the main thread. */
  passOn(): void {
    this.#messages -= REQUEST_COST - 1;
  }
}
