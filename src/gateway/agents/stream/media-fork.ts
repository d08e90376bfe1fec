import type { AudioPacket } from '../../../rtp/audio-packet.js';
import type { AgentConnectionLimits, ForkSettings } from '../../model/agent.js';
import type { LegEvent } from '../../model/media.js';
import { type AudioCodec, FRAME_BYTES, FRAME_MS, transcodeG711 } from '../../../rtp/codec/g711.js';
import type { CancelTimer, Clock } from '../../../lib/clock.js';
import type { Log } from '../../../lib/log.js';
import type { AgentCounters, LegFork } from '../../media/leg-agent.js';
import { DONE_CODES } from './frames.js';
import { MessageWriter } from './messages.js';
import type { AgentSocket, DialAgent } from './socket.js';
import { Uplink } from './uplink.js';

export interface ForkDependencies {
  readonly clock: Clock;
  readonly dial: DialAgent;
  readonly limits: AgentConnectionLimits;
  /** Counted up. */
  readonly counters: AgentCounters;
}

/** More than this unsent, and frames of the agent are dropped: about a second and a half of both tracks. */
const MAX_UNSENT_BYTES = 65_536;

/** `<Start><Stream>`: a one-way copy of the call's audio to a WebSocket. One that breaks is not connected again. */
export class MediaFork implements LegFork {
  #socket: AgentSocket | null = null;
  #writer: MessageWriter | null = null;
  #uplink: Uplink | null = null;
  #stopDialling: () => void = () => undefined;
  #cancelLimit: CancelTimer = () => undefined;
  /** Frames of the agent's track, since the connection. */
  #frames = 0;
  #framesSincePing = 0;
  #isPinged = false;
  #isOver = false;
  readonly #outbound = new Uint8Array(FRAME_BYTES);

  /** @param emit gets each event once; nothing after `close` */
  constructor(
    private readonly settings: ForkSettings,
    private readonly dependencies: ForkDependencies,
    private readonly emit: (event: Extract<LegEvent, { type: 'stream-started' | 'fork-ended' }>) => void,
    private readonly log: Log,
  ) {}

  start(codec: AudioCodec, nowMs: number): void {
    const { clock, dial, limits, counters } = this.dependencies;
    if (this.settings.tracks.includes('inbound')) {
      this.#uplink = new Uplink('twilio', codec, limits.maxUnsentAudioMs, {
        onSamples: () => undefined,
        onDropped: (milliseconds) => (counters.droppedInboundMs += milliseconds),
      });
      this.#uplink.start(nowMs);
    }
    this.#cancelLimit = clock.setTimer(limits.connectTimeoutMs, () =>
      this.#safely(() => this.#end(`no answer within ${String(limits.connectTimeoutMs)} ms`)),
    );
    this.#stopDialling = dial(
      { ...this.settings, bearerToken: null },
      {
        onOpen: (socket) => this.#safely(() => this.#onOpen(socket)),
        onFailed: (message) => this.#safely(() => this.#end(message)),
        // Its server has nothing to say.
        onText: () => undefined,
        onBinary: () => undefined,
        onPong: () => (this.#isPinged = false),
        onClosed: (code) => this.#safely(() => this.#end(DONE_CODES.has(code) ? null : `the connection was closed with ${String(code)}`)),
      },
    );
  }

  hear(packet: AudioPacket): void {
    this.#uplink?.hear(packet);
  }

  sent(codec: AudioCodec, payload: Uint8Array, nowMs: number): void {
    this.#tick(nowMs, 1);
    const timestampMs = this.#frames * FRAME_MS;
    this.#frames += 1;
    if (this.#socket === null || this.#writer === null || !this.settings.tracks.includes('outbound')) return;
    if (this.#socket.unsentBytes > MAX_UNSENT_BYTES) {
      this.dependencies.counters.droppedOutboundMs += FRAME_MS;
      return;
    }
    if (codec === 'PCMU') this.#outbound.set(payload);
    else transcodeG711(codec, payload, this.#outbound);
    this.#socket.sendUtf8(this.#writer.media(this.#outbound, 0, timestampMs, 'outbound'));
  }

  pass(nowMs: number, frames: number): void {
    this.#tick(nowMs, frames);
    this.#frames += frames;
  }

  close(): void {
    if (this.#isOver) return;
    if (this.#socket !== null && this.#writer !== null) this.#socket.sendText(this.#writer.stop());
    this.#release();
  }

  #onOpen(socket: AgentSocket): void {
    const { streamSid, tracks, customParameters } = this.settings;
    this.#cancelLimit();
    this.#socket = socket;
    const writer = new MessageWriter(streamSid, { ...this.settings, format: 'twilio' }, tracks);
    this.#writer = writer;
    this.#frames = 0;
    socket.sendText(writer.connected());
    socket.sendText(writer.start(customParameters));
    this.#uplink?.connect({ socket, writer });
    this.emit({ type: 'stream-started', streamSid });
  }

  #tick(nowMs: number, frames: number): void {
    this.#uplink?.tick(nowMs);
    // Its server acknowledges no audio: what the socket has taken counts as read.
    this.#uplink?.acknowledge(this.#uplink.sentFrames);
    if (this.#socket === null) return;
    this.#framesSincePing += frames;
    const { pingIntervalMs } = this.dependencies.limits;
    if (this.#framesSincePing * FRAME_MS < pingIntervalMs) return;
    this.#framesSincePing = 0;
    if (this.#isPinged) return this.#end(`no ping was answered for ${String(pingIntervalMs)} ms`);
    this.#isPinged = true;
    this.#socket.ping(0);
  }

  #end(error: string | null): void {
    if (this.#isOver) return;
    if (error !== null) this.log.warn({ error }, 'fork.lost');
    this.#release();
    this.emit({ type: 'fork-ended', streamSid: this.settings.streamSid, error });
  }

  #release(): void {
    this.#isOver = true;
    this.#cancelLimit();
    this.#stopDialling();
    this.#socket?.close();
    this.#socket = null;
    this.#writer = null;
    this.#uplink?.connect(null);
  }

  /** What a socket or a timer calls: a bug of ours ends this fork, and nothing else of the thread. */
  #safely(work: () => void): void {
    if (this.#isOver) return;
    try {
      work();
    } catch (error) {
      this.log.error({ error }, 'fork.bug');
      this.#end('internal error');
    }
  }
}
