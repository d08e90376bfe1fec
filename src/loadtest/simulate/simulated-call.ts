import type { DialAgent } from '../../gateway/agents/stream/socket.js';
import { StreamAgent, type StreamDependencies } from '../../gateway/agents/stream/stream-agent.js';
import { noAgentCounters, type AgentHost } from '../../gateway/media/leg-agent.js';
import type { StreamSettings } from '../../gateway/model/agent.js';
import { newStreamSid } from '../../gateway/model/twilio-ids.js';
import { errorText } from '../../lib/result.js';
import type { Clock } from '../../lib/clock.js';
import { silentLog } from '../../lib/log.js';
import { encodeG711, isQuietG711, silenceByte, FRAME_BYTES, FRAME_MS } from '../../rtp/codec/g711.js';
import { digitOfEvent, eventOfDigit } from '../../rtp/dtmf/telephone-event.js';

/** What the caller does, in frames' time after the bot was told `start`. */
export interface CallScript {
  /** 16-bit samples at 8 kHz. */
  readonly phrase: Int16Array;
  readonly phraseAtMs: number;
  /** After the phrase, a second apart. */
  readonly digits: string;
  /** When the caller hangs up. */
  readonly durationMs: number;
  /** The bot's first sound is expected within this time of `start`. */
  readonly answerWithinMs: number;
}

/** What the bot did. Times are milliseconds after `start`; `null`: it never happened. */
export interface SimulatedCallReport {
  readonly ok: boolean;
  readonly connected: boolean;
  readonly connectMs: number;
  readonly firstAudioMs: number | null;
  /** Sound of the bot that the caller heard. */
  readonly audioMs: number;
  readonly marksSet: number;
  /** Marks that went back to the bot, because the audio before them was played or cleared. */
  readonly marksEchoed: number;
  readonly clears: number;
  /** Digits that the bot sent. */
  readonly botDigits: string;
  /** What the bot asked of the call: transfer, tool, transcript, analysis. A simulated call refuses transfer and tool. */
  readonly requests: readonly string[];
  readonly hungUpByBotMs: number | null;
  readonly errors: readonly string[];
}

const CODEC = 'PCMU';
const DIGIT_PAUSE_MS = 1_000;

/** Calls a bot once, as the gateway would, with a caller that follows a script in place of a carrier's leg. */
export async function simulateCall(
  settings: StreamSettings,
  script: CallScript,
  dependencies: Omit<StreamDependencies, 'newStreamSid' | 'counters'>,
): Promise<SimulatedCallReport> {
  const { clock } = dependencies;
  const errors: string[] = [];
  const requests: string[] = [];
  const counts = { marksSet: 0, marksEchoed: 0, clears: 0 };
  let botDigits = '';
  /** `closeFailure`: the connection was closed, and whether that is a hang-up or a loss comes next. */
  const call: { isOver: boolean; closeFailure: string | null } = { isOver: false, closeFailure: null };
  let hungUpByBotMs: number | null = null;
  let firstAudioMs: number | null = null;
  let audioFrames = 0;
  let frames = 0;
  const host: AgentHost = {
    emit: (event) => {
      switch (event.type) {
        case 'agent-note':
          if (event.kind === 'closed') call.closeFailure = event.isFailure ? event.text : null;
          else if (event.isFailure || event.kind === 'ignored') errors.push(event.text);
          return;
        case 'agent-lost':
          if (call.closeFailure !== null) errors.push(call.closeFailure);
          errors.push('the connection broke and did not come back');
          call.isOver = true;
          return;
        case 'agent-hangup':
        case 'agent-finished':
          hungUpByBotMs ??= frames * FRAME_MS;
          call.isOver = true;
          return;
        case 'provider-tokens':
        case 'stream-started':
        case 'conversation-ended':
          return;
        case 'agent-request': {
          const { request } = event;
          requests.push(request.type);
          if (request.type !== 'transfer' && request.type !== 'tool') return;
          const message = 'A simulated call has no carrier and no tools.';
          agent.notify({ type: 'refused', requestId: request.requestId, request: request.type, code: 'SIMULATED_CALL', message });
        }
      }
    },
    sendDtmf: (event) => {
      botDigits += digitOfEvent(event) ?? '';
      return true;
    },
    view: () => null,
  };
  const agent = new StreamAgent(
    settings,
    host,
    {
      ...dependencies,
      dial: countingDial(dependencies.dial, counts),
      counters: noAgentCounters(),
      newStreamSid,
    },
    silentLog,
  );
  const report = (connected: boolean, connectMs: number): SimulatedCallReport => {
    const isInTime = firstAudioMs !== null && firstAudioMs <= script.answerWithinMs;
    const audioMs = audioFrames * FRAME_MS;
    const ok = connected && isInTime && errors.length === 0;
    return { ok, connected, connectMs, firstAudioMs, audioMs, ...counts, botDigits, requests, hungUpByBotMs, errors };
  };

  const dialledMs = clock.nowMs();
  try {
    await agent.connect();
  } catch (error) {
    if (errors.length === 0) errors.push(call.closeFailure ?? errorText(error));
    return report(false, Math.round(clock.nowMs() - dialledMs));
  }
  const connectMs = Math.round(clock.nowMs() - dialledMs);
  const payload = new Uint8Array(FRAME_BYTES);
  const said = new Uint8Array(FRAME_BYTES);
  const startedMs = clock.nowMs();
  agent.start(CODEC, startedMs);
  const digitsAtMs = script.phraseAtMs + script.phrase.length / 8;
  const digits = script.digits.split('').map((digit, at) => ({ event: eventOfDigit(digit), atMs: digitsAtMs + (at + 1) * DIGIT_PAUSE_MS }));
  while (!call.isOver && frames * FRAME_MS < script.durationMs) {
    await nextFrame(clock, startedMs + frames * FRAME_MS);
    const [atMs, nowMs] = [frames * FRAME_MS, clock.nowMs()];
    phraseFrame(script, atMs, said);
    agent.hear(CODEC, 1, frames * FRAME_BYTES, said, 0, FRAME_BYTES, nowMs);
    if (digits[0] !== undefined && atMs >= digits[0].atMs) {
      const { event } = digits.shift() ?? {};
      if (event !== undefined) agent.digit(event);
    }
    agent.fill(payload, nowMs);
    if (!payload.every((byte) => isQuietG711(CODEC, byte))) {
      firstAudioMs ??= atMs;
      audioFrames += 1;
    }
    frames += 1;
  }
  agent.close();
  if (firstAudioMs === null) errors.push('the bot said nothing');
  else if (firstAudioMs > script.answerWithinMs) errors.push(`the bot spoke after ${String(firstAudioMs)} ms`);
  return report(true, connectMs);
}

function nextFrame(clock: Clock, dueMs: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(Math.max(0, dueMs - clock.nowMs()), resolve));
}

/** 20 ms of the caller: the phrase at its time, otherwise silence. */
function phraseFrame({ phrase, phraseAtMs }: CallScript, atMs: number, target: Uint8Array): void {
  target.fill(silenceByte(CODEC));
  const from = (atMs - phraseAtMs) * 8;
  if (from >= 0 && from < phrase.length) encodeG711(CODEC, phrase.subarray(from, from + FRAME_BYTES), target);
}

/** Counts the marks and `clear`s of the bot, and the marks that go back to it. */
function countingDial(dial: DialAgent, counts: { marksSet: number; marksEchoed: number; clears: number }): DialAgent {
  return (address, events) =>
    dial(address, {
      onOpen: (socket) =>
        events.onOpen({
          get unsentBytes() {
            return socket.unsentBytes;
          },
          sendText: (text) => {
            if (eventOf(text) === 'mark') counts.marksEchoed += 1;
            socket.sendText(text);
          },
          sendBinary: (bytes) => socket.sendBinary(bytes),
          ping: (serial) => socket.ping(serial),
          close: () => socket.close(),
          terminate: () => socket.terminate(),
        }),
      onText: (text) => {
        const event = eventOf(text);
        if (event === 'mark') counts.marksSet += 1;
        if (event === 'clear') counts.clears += 1;
        events.onText(text);
      },
      onFailed: (message) => events.onFailed(message),
      onBinary: (bytes) => events.onBinary(bytes),
      onPong: (serial) => events.onPong(serial),
      onClosed: (code) => events.onClosed(code),
    });
}

function eventOf(text: string): unknown {
  try {
    return (JSON.parse(text) as { event?: unknown } | null)?.event;
  } catch {
    return undefined;
  }
}
