import g711 from 'alawmulaw';
import type { AudioCodec } from '../../../src/rtp/codec/g711.js';
import { generateSrtpKey } from '../../../src/srtp/srtp.js';
import { offerSdp, type OfferParts } from '../sdp.js';
import { payloadTypeOf } from '../../../src/rtp/codec/g711.js';
import { hearsCoded } from './pieces.js';
import { TestPeer } from './test-peer.js';

const FRAME_SAMPLES = 160;
const LAWS = { PCMU: g711.mulaw, PCMA: g711.alaw };

export interface CallEndOptions {
  /** To send with; another end of the same call has the same one, unless it changes its key. `null`: plain RTP. */
  readonly key?: Uint8Array | null;
  /** Of the key; empty: none. */
  readonly mki?: Buffer;
  readonly codec?: AudioCodec;
  /** Default: the codec's static one. */
  readonly payloadType?: number;
  readonly telephoneEventPayloadType?: number;
}

/** One end of a call with G.711, over SRTP unless told otherwise: its sockets and key, its descriptions, and what it hears. */
export class CallEnd {
  #hasInterrupted = false;

  private constructor(
    readonly peer: TestPeer,
    readonly key: Uint8Array | null,
    readonly mki: Buffer,
    private readonly format: Required<Pick<CallEndOptions, 'codec' | 'payloadType' | 'telephoneEventPayloadType'>>,
  ) {}

  static async open(options: CallEndOptions = {}): Promise<CallEnd> {
    const { key = generateSrtpKey(), mki = Buffer.alloc(0), codec = 'PCMU', telephoneEventPayloadType = 101 } = options;
    const format = { codec, payloadType: options.payloadType ?? payloadTypeOf(codec), telephoneEventPayloadType };
    return new CallEnd(await TestPeer.open({ ...format, isSecure: key !== null }), key, mki, format);
  }

  /** Its offer or answer: RTCP is on a port of its own, which `a=rtcp` names (RFC 3605). */
  sdp(parts: OfferParts = {}): string {
    const { rtpPort, rtcpPort } = this.peer.address;
    const { codec, payloadType, telephoneEventPayloadType } = this.format;
    return offerSdp({
      profile: this.key === null ? 'RTP/AVP' : 'RTP/SAVP',
      payloads: `${String(payloadType)} ${String(telephoneEventPayloadType)}`,
      rtpmap: [`${String(payloadType)} ${codec}/8000`, `${String(telephoneEventPayloadType)} telephone-event/8000`],
      crypto:
        this.key === null ? [] : [`1 AES_CM_128_HMAC_SHA1_80 inline:${Buffer.from(this.key).toString('base64')}${this.#mkiParameter}`],
      port: rtpPort,
      ...parts,
      extra: [`a=rtcp:${String(rtcpPort)}`, ...(parts.extra ?? [])],
    });
  }

  /** Sends to, and reads with the key of, what the far side described. */
  connect(sdp: string): this {
    const port = Number(/^m=audio (\d+) RTP\/S?AVP /m.exec(sdp)?.[1]);
    const rtcpPort = Number(/^a=rtcp:(\d+)/m.exec(sdp)?.[1]);
    const theirs = /^a=crypto:\d+ AES_CM_128_HMAC_SHA1_80 inline:([A-Za-z0-9+/]{40})/m.exec(sdp)?.[1];
    const address = /^c=IN IP4 (\S+)/m.exec(sdp)?.[1];
    if (address === undefined) throw new Error(`no address:\n${sdp}`);
    if ((theirs === undefined) !== (this.key === null)) throw new Error(`one end is encrypted and the other is not:\n${sdp}`);
    this.peer.connect({ address, rtpPort: port, rtcpPort });
    if (this.key !== null && theirs !== undefined) this.peer.secure({ receive: this.key, send: Buffer.from(theirs, 'base64') }, this.mki);
    return this;
  }

  /** RFC 4568 §6.1: `|value:length`; the value is what the key's last bytes say. */
  get #mkiParameter(): string {
    const { length } = this.mki;
    const valueBytes = Math.min(4, length);
    return length === 0 ? '' : `|${String(this.mki.readUIntBE(length - valueBytes, valueBytes))}:${String(length)}`;
  }

  /** Packets of the gateway's with anything but silence in them. */
  get voiced(): number {
    const { codec, payloadType } = this.format;
    const [silence] = LAWS[codec].encode(new Int16Array(1));
    return this.peer.received.filter(
      ({ packet }) => packet.header.payloadType === payloadType && packet.payload.some((byte) => byte !== silence),
    ).length;
  }

  /** Resolves when these bytes were heard, in the call's law, but for a gap where the gateway stood still (`hearsCoded`). */
  heard(bytes: Buffer): Promise<void> {
    const { payloadType } = this.format;
    const played = (): Buffer =>
      Buffer.concat(
        this.peer.received.filter(({ packet }) => packet.header.payloadType === payloadType).map(({ packet }) => packet.payload),
      );
    return this.peer.until(() => hearsCoded(played(), bytes));
  }

  /** Resolves when the agent is heard. */
  hearsAgent(): Promise<void> {
    return this.peer.until(() => this.voiced > 5);
  }

  /** Speaks one level for as long as it takes until the test line sends it back. */
  async hearsEcho(sample: number, packetMs = 20): Promise<void> {
    // A key ends the greeting, which takes ten seconds; where none was negotiated it is listened to.
    if (!this.#hasInterrupted) {
      this.#hasInterrupted = true;
      await this.hearsAgent();
      await this.peer.press(1);
    }
    const { codec, payloadType } = this.format;
    const law = LAWS[codec];
    const [spoken = 0] = law.decode(law.encode(new Int16Array([sample])));
    const done = new AbortController();
    // An agent that began in the other law echoes what is closest in it.
    const isSpoken = (payload: Uint8Array): boolean =>
      law.decode(payload).every((heard) => Math.abs(heard - spoken) <= Math.abs(spoken) / 16);
    const isHeard = (): boolean =>
      this.peer.received
        .slice(-5)
        .some(({ packet }) => packet.header.payloadType === payloadType && isSpoken(new Uint8Array(packet.payload)));
    const heard = this.peer.until(isHeard).finally(() => done.abort());
    heard.catch(() => undefined);
    while (!done.signal.aborted) await this.peer.speak(new Int16Array(6 * FRAME_SAMPLES).fill(sample), packetMs);
    await heard;
  }

  close(): Promise<void> {
    return this.peer.close();
  }
}
