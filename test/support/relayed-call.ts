import { mulaw } from 'alawmulaw';
import { readRelaySdp, type RelaySide } from '../../src/gateway/sdp/sdp-read.js';
import type { RelayCall } from '../../src/gateway/ports/ports.js';
import { generateSrtpKey } from '../../src/srtp/srtp.js';
import type { RelayPool } from '../../src/gateway/relay/pool.js';
import { HANG_GUARD_MS } from './hang-guard.js';
import { TestPeer } from './media/test-peer.js';
import { offerSdp } from './sdp.js';

/** One end of a call: a peer with sockets, and the key that it sends with; `null`: plain RTP. */
export interface CallEnd {
  readonly peer: TestPeer;
  readonly key: Uint8Array | null;
  /** The key's MKI, as in the SDP; empty: none. */
  readonly mki: Buffer;
}

export async function newEnd(isSecure: boolean, mki: Buffer = Buffer.alloc(0)): Promise<CallEnd> {
  return { peer: await TestPeer.open(), key: isSecure ? generateSrtpKey() : null, mki };
}

export function sdpOf({ peer, key, mki }: CallEnd): string {
  const mkiText =
    mki.length === 0 ? '' : `|2^31|${String(mki.readUIntBE(Math.max(0, mki.length - 4), Math.min(4, mki.length)))}:${String(mki.length)}`;
  return offerSdp({
    profile: key === null ? 'RTP/AVP' : 'RTP/SAVP',
    payloads: '0 101',
    rtpmap: ['0 PCMU/8000', '101 telephone-event/8000'],
    crypto: key === null ? [] : [`1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.from(key).toString('base64')}${mkiText}`],
    port: peer.address.rtpPort,
    extra: [`a=rtcp:${String(peer.address.rtcpPort)}`],
  });
}

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
  const offered = isOutward ? await pool.offerToCarrier(call, sdpOf(agent)) : await pool.offer(call, sdpOf(carrier));
  const answered = isOutward ? await pool.answerFromCarrier(call, sdpOf(carrier)) : await pool.answer(call, sdpOf(agent));
  const [outside, inside] = (isOutward ? [offered, answered] : [answered, offered]).map(({ sdp }) => readRelaySdp(sdp));
  if (outside === undefined || inside === undefined) throw new Error(`not one audio line: ${offered.sdp}${answered.sdp}`);
  takeSide(carrier, outside);
  takeSide(agent, inside);
  return { inside, outside };
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

/** From now on the end sends to this side of rtpengine, with its key. */
export function takeSide({ peer, key, mki }: CallEnd, relay: RelaySide): void {
  peer.connect(relay);
  if ((key === null) !== (relay.crypto === null)) throw new Error('one end is encrypted and rtpengine is not, or the other way round');
  if (key !== null && relay.crypto !== null) peer.secure({ receive: key, send: Buffer.from(relay.crypto.inline, 'base64') }, mki);
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
