import { mulaw } from 'alawmulaw';
import { readRelaySdp, type RelaySide } from '../../src/gateway/sdp/sdp-read.js';
import type { RelayCall } from '../../src/gateway/ports/ports.js';
import type { RelayPool } from '../../src/gateway/relay/pool.js';
import { HANG_GUARD_MS } from './hang-guard.js';
import type { CallEnd } from './media/call-end.js';
import { offerSdp } from './sdp.js';

/** What rtpengine told each end. */
export interface RelayedSides {
  readonly inside: RelaySide;
  readonly outside: RelaySide;
}

/** Offer and answer, made by one end or the other, with both ends connected to what rtpengine says. */
export async function negotiate(
  pool: RelayPool,
  offerer: 'carrier' | 'agent',
  call: RelayCall,
  carrier: CallEnd,
  agent: CallEnd,
): Promise<RelayedSides> {
  const isOutward = offerer === 'agent';
  const offered = isOutward ? await pool.offerToCarrier(call, agent.sdp()) : await pool.offer(call, carrier.sdp());
  const answered = isOutward ? await pool.answerFromCarrier(call, carrier.sdp()) : await pool.answer(call, agent.sdp());
  const [outside, inside] = isOutward ? [offered.sdp, answered.sdp] : [answered.sdp, offered.sdp];
  carrier.connect(outside);
  agent.connect(inside);
  return { inside: sideOf(inside), outside: sideOf(outside) };
}

/** What rtpengine says of one side. */
export function sideOf(sdp: string): RelaySide {
  const side = readRelaySdp(sdp);
  if (side === undefined) throw new Error(`not one audio line: ${sdp}`);
  return side;
}

/** rtpengine's side of a call, as the agent side of another one. */
export function sideSdp({ rtpPort, rtcpPort, crypto }: RelaySide): string {
  return offerSdp({
    profile: crypto === null ? 'RTP/AVP' : 'RTP/SAVP',
    payloads: '0 101',
    rtpmap: ['0 PCMU/8000', '101 telephone-event/8000'],
    crypto: crypto === null ? [] : [`1 AES_CM_128_HMAC_SHA1_80 inline:${crypto.inline}`],
    port: rtpPort,
    extra: [`a=rtcp:${String(rtcpPort)}`],
  });
}

const FRAMES = 10;
const TONES = { carrier: 4_000, agent: -4_000 };

/** Ten packets each way, 20 ms apart; resolves when the last of them arrived. Both ends hear the other: what was said, nothing else. */
export async function hearEachOther(carrier: CallEnd, agent: CallEnd, limitMs = HANG_GUARD_MS): Promise<boolean> {
  const heard = await Promise.all([says(carrier, TONES.carrier, agent, limitMs), says(agent, TONES.agent, carrier, limitMs)]);
  return heard.every(Boolean);
}

/** Ten packets one way; the other end has sent nothing meanwhile. */
export function saysTo(from: CallEnd, to: CallEnd, limitMs = HANG_GUARD_MS): Promise<boolean> {
  return says(from, TONES.carrier, to, limitMs);
}

async function says(from: CallEnd, sample: number, to: CallEnd, limitMs: number): Promise<boolean> {
  const before = to.peer.received.length;
  await from.peer.speak(new Int16Array(FRAMES * 160).fill(sample));
  await to.peer.until(() => to.peer.received.length - before === FRAMES, limitMs);
  const [encoded] = mulaw.encode(new Int16Array([sample]));
  const payloads = to.peer.received.slice(before).map(({ packet }) => packet.payload);
  return payloads.every((payload) => payload.length === 160 && payload.every((byte) => byte === encoded));
}
