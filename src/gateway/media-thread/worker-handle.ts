import type { Worker } from 'node:worker_threads';
import { assertNever } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import { PassingMap } from '../../lib/passing-map.js';
import { startThread } from '../../lib/thread.js';
import type { LegEvent, MediaDelays } from '../model/media.js';
import type { RtcpSeen } from '../../lib/observed.js';
import { MediaUnavailableError } from '../ports/ports.js';
import { TurnBatch } from '../../lib/turn-batch.js';
import type { WorkerCommand, WorkerMessage, WorkerReply, WorkerSettings } from './worker-messages.js';

interface PendingRequest {
  readonly resolve: (reply: WorkerReply) => void;
  readonly reject: (error: Error) => void;
}

export interface WorkerOwner {
  onLegEvent(callId: string, event: LegEvent): void;
  onRtcp(seen: RtcpSeen): void;
  onDelays(delays: MediaDelays): void;
  /** The thread ended, on request or not, after its pending requests were rejected. */
  onExit(): void;
}

/** The main thread's side of one worker: requests with replies, start and end. */
export class WorkerHandle {
  readonly #worker: Worker;
  readonly #pending = new PassingMap<number, PendingRequest>();
  readonly #ready: Promise<readonly number[]>;
  readonly #exited: Promise<void>;
  readonly #outgoing: TurnBatch<WorkerCommand>;
  #nextRequestId = 1;
  #hasExited = false;

  constructor(
    settings: WorkerSettings,
    private readonly owner: WorkerOwner,
    private readonly log: Log,
  ) {
    this.#worker = startThread(new URL('./worker', import.meta.url), settings);
    this.#outgoing = new TurnBatch((commands) => this.#worker.postMessage(commands));
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', () => {
        this.#exit();
        resolve();
      });
    });
    this.#worker.on('error', (error) => log.error({ error: error }, 'media.worker.failed'));
    this.#ready = new Promise((resolve, reject) => {
      this.#worker.once('exit', () => reject(new MediaUnavailableError('the media worker ended before it was ready')));
      this.#worker.on('message', (messages: readonly WorkerMessage[]) => {
        for (const message of messages) this.#receive(message, resolve, reject);
      });
    });
    // Nobody may await a failed start.
    this.#ready.catch(() => undefined);
  }

  /** Resolves with the RTP ports of the worker's sockets once they are bound. Rejects with `MediaUnavailableError`. */
  get ready(): Promise<readonly number[]> {
    return this.#ready;
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  send(command: WorkerCommand): void {
    this.#outgoing.push(command);
  }

  /** Sends a command that has a reply. Rejects with `MediaUnavailableError` if the worker ends before the reply. */
  request(command: (requestId: number) => WorkerCommand): Promise<WorkerReply> {
    return new Promise((resolve, reject) => {
      if (this.#hasExited) {
        reject(new MediaUnavailableError('the media worker has exited'));
        return;
      }
      const requestId = this.#nextRequestId;
      this.#nextRequestId += 1;
      this.#pending.set(requestId, { resolve, reject });
      this.send(command(requestId));
    });
  }

  /** Stops the thread, by force after the time limit. */
  async shutDown(limitMs: number): Promise<void> {
    this.send({ type: 'shut-down' });
    const timer = setTimeout(() => this.terminate(), limitMs);
    await this.#exited;
    clearTimeout(timer);
  }

  /** Ends a thread that does not react. */
  terminate(): void {
    void this.#worker.terminate();
  }

  #receive(message: WorkerMessage, ready: (rtpPorts: readonly number[]) => void, failed: (error: Error) => void): void {
    switch (message.type) {
      case 'ready':
        ready(message.rtpPorts);
        break;
      case 'failed':
        failed(new MediaUnavailableError(message.message));
        break;
      case 'reply':
        this.#pending.get(message.requestId)?.resolve(message.reply);
        this.#pending.delete(message.requestId);
        break;
      case 'leg-event':
        this.owner.onLegEvent(message.callId, message.event);
        break;
      case 'rtcp':
        this.owner.onRtcp(message.seen);
        break;
      case 'delays':
        this.owner.onDelays(message.delays);
        break;
      case 'log':
        this.log[message.level](message.fields, message.event);
        break;
      default:
        assertNever(message);
    }
  }

  #exit(): void {
    this.#hasExited = true;
    for (const request of this.#pending.values()) request.reject(new MediaUnavailableError('the media worker ended'));
    this.#pending.clear();
    this.owner.onExit();
  }
}
