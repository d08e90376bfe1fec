import type { AgentAddress, AgentSocket, AgentSocketEvents, DialAgent } from '../../../src/gateway/agents/stream/socket.js';
import { faultsToAgent } from './message-schema.js';

export interface SentMessage {
  readonly event: string;
  readonly sequenceNumber?: string;
  readonly streamSid?: string;
  readonly [name: string]: unknown;
}

/** An agent's end of WebSockets that a test plays: each attempt waits until the test answers it. Whatever is sent must fit the schema. */
export class PlayedAgent {
  readonly attempts: { readonly address: AgentAddress; readonly events: AgentSocketEvents; isGivenUp: boolean }[] = [];
  readonly messages: SentMessage[] = [];
  readonly binary: Buffer[] = [];
  readonly ended: string[] = [];
  /** Serials of the pings that came. */
  readonly pings: number[] = [];
  /** Pings are answered, at once. */
  reads = true;
  unsentBytes = 0;

  readonly dial: DialAgent = (address, events) => {
    const attempt = { address, events, isGivenUp: false };
    this.attempts.push(attempt);
    return () => (attempt.isGivenUp = true);
  };

  /** The attempt under way. */
  get events(): AgentSocketEvents {
    const attempt = this.attempts.at(-1);
    if (attempt === undefined) throw new Error('nobody dialled');
    return attempt.events;
  }

  accept(): void {
    const socket: AgentSocket = Object.defineProperty(this.#socket(), 'unsentBytes', { get: () => this.unsentBytes });
    this.events.onOpen(socket);
  }

  #socket(): AgentSocket {
    const sendText = (text: string): void => {
      const message = JSON.parse(text) as SentMessage;
      const faults = faultsToAgent(message);
      if (faults !== '') throw new Error(`${text}: ${faults}`);
      this.messages.push(message);
    };
    return {
      unsentBytes: 0,
      sendText,
      sendUtf8: (bytes) => sendText(Buffer.from(bytes).toString()),
      sendBinary: (bytes) => this.binary.push(Buffer.from(bytes)),
      ping: (serial) => {
        this.pings.push(serial);
        if (this.reads) this.events.onPong(serial);
      },
      close: () => this.ended.push('closed'),
      terminate: () => this.ended.push('terminated'),
    };
  }

  says(message: object): void {
    this.events.onText(JSON.stringify(message));
  }

  /** The messages of these kinds. */
  of(...events: readonly string[]): SentMessage[] {
    return this.messages.filter(({ event }) => events.includes(event));
  }
}
