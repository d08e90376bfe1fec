import { randomBytes } from 'node:crypto';
import type { AudioCodec } from '../../rtp/codec/g711.js';
import { within, type Clock } from '../../lib/clock.js';
import { formatInlineKey, generateSrtpKey, parseInlineKey } from '../../srtp/srtp.js';
import type { TlsFacts } from '../../sip/transport/flow.js';
import { CarrierMediaLeg, type CarrierMediaSettings } from './media-leg.js';
import { CarrierClient, type CallOutcome, type CarrierTarget, type SipEvent } from './sip-client.js';

export const SUITE = 'AES_CM_128_HMAC_SHA1_80';
const BYE_LIMIT_MS = 3_000;

export interface Answer {
  readonly codec: AudioCodec;
  readonly tag: string;
  readonly suite: string;
  readonly key: Uint8Array;
  readonly address: string;
  readonly rtpPort: number;
  readonly rtcpPort: number;
  readonly telephoneEvent: number | null;
  readonly hasMux: boolean;
}

/** One call of the test carrier: TLS, INVITE with an SRTP offer, and the media leg. */
export class CarrierCall {
  tls: TlsFacts | null = null;
  outcome: CallOutcome | undefined;
  /** From the beginning to the final response. */
  answerMs: number | null = null;
  answer: Answer | undefined;
  leg: CarrierMediaLeg | undefined;
  readonly #client: CarrierClient;
  readonly #sessionId = randomBytes(4).readUInt32BE();
  #version = 1;
  #sendKey = generateSrtpKey();
  readonly #startedMs: number;

  /** @param codecs in order of preference */
  constructor(
    target: CarrierTarget,
    private readonly codecs: readonly AudioCodec[],
    private readonly clock: Clock,
  ) {
    this.#startedMs = clock.nowMs();
    this.#client = new CarrierClient(target, clock);
    this.#client.onOffer = (sdp) => this.#onOffer(sdp);
  }

  /** Resolves when audio goes both ways. Rejects with a sentence: no connection, a refusal, an answer that cannot be used. */
  async place(called: string, caller: string): Promise<CarrierMediaLeg> {
    this.tls = await this.#client.connect();
    const leg = await CarrierMediaLeg.open(this.#client.localAddress, this.clock);
    this.leg = leg;
    const outcome = await this.#client.invite(called, caller, this.#describe(leg.port, this.codecs));
    this.outcome = outcome;
    this.answerMs = Math.round(this.clock.nowMs() - this.#startedMs);
    if (outcome.status >= 300) throw new Error(`refused with ${String(outcome.status)} ${outcome.reason}`);
    const answer = readAnswer(outcome.sdp);
    this.answer = answer;
    if (answer === undefined) {
      await this.hangUp();
      throw new Error('the answer has no PCMU or PCMA audio with one usable key');
    }
    leg.start(this.#settingsOf(answer));
    return leg;
  }

  get events(): readonly SipEvent[] {
    return this.#client.events;
  }

  /** `null`: nothing was sent. */
  get sipCallId(): string | null {
    return this.#client.callId;
  }

  /** `Reason` of the gateway's BYE; `null`: none came. */
  get endReason(): string | null {
    return this.#client.endReason;
  }

  get isEnded(): boolean {
    return this.#client.isEnded;
  }

  /** The gateway has a few seconds to answer the BYE. */
  async hangUp(): Promise<void> {
    await within(this.clock, BYE_LIMIT_MS, this.#client.hangUp());
  }

  close(): void {
    this.#client.close();
    this.leg?.close();
  }

  #settingsOf({ rtpPort, rtcpPort, address, codec, telephoneEvent, key }: Answer): CarrierMediaSettings {
    return {
      remote: { address, rtpPort, rtcpPort },
      codec,
      telephoneEventPayloadType: telephoneEvent,
      keys: { send: this.#sendKey, receive: key },
    };
  }

  /** Answers a re-INVITE, which moves the call to another media relay or refreshes it. A new relay has no rollover counter of ours, so it gets a new key. */
  #onOffer(sdp: string): string | null {
    const offer = readAnswer(sdp);
    const { leg, answer } = this;
    if (offer === undefined || leg === undefined || answer === undefined || offer.codec !== answer.codec) return null;
    const isMoved = offer.address !== answer.address || offer.rtpPort !== answer.rtpPort || !Buffer.from(offer.key).equals(answer.key);
    this.answer = offer;
    if (isMoved) {
      this.#version += 1;
      this.#sendKey = generateSrtpKey();
      leg.move(this.#settingsOf(offer));
    }
    return this.#describe(leg.port, [offer.codec], offer.tag);
  }

  #describe(port: number, codecs: readonly AudioCodec[], tag = '1'): string {
    const address = this.#client.localAddress;
    const family = address.includes(':') ? 'IP6' : 'IP4';
    const types = codecs.map((codec) => (codec === 'PCMU' ? 0 : 8));
    return [
      'v=0',
      `o=carrier ${String(this.#sessionId)} ${String(this.#version)} IN ${family} ${address}`,
      's=-',
      `c=IN ${family} ${address}`,
      't=0 0',
      `m=audio ${String(port)} RTP/SAVP ${types.join(' ')} 101`,
      ...codecs.map((codec) => `a=rtpmap:${codec === 'PCMU' ? '0' : '8'} ${codec}/8000`),
      'a=rtpmap:101 telephone-event/8000',
      'a=fmtp:101 0-15',
      `a=crypto:${tag} ${SUITE} ${formatInlineKey(this.#sendKey)}`,
      'a=ptime:20',
      'a=sendrecv',
      '',
    ].join('\r\n');
  }
}

/** Reads the gateway's answer strictly, with nothing of the gateway's own code. */
function readAnswer(sdp: string): Answer | undefined {
  const all = (pattern: RegExp): RegExpMatchArray[] => [...sdp.matchAll(pattern)];
  const media = all(/^m=audio (\d+) RTP\/SAVP ([\d ]+)\r$/gm);
  const keys = all(/^a=crypto:(\d+) (\S+) (\S+)\r$/gm);
  const address = /^c=IN IP[46] (\S+)\r$/m.exec(sdp)?.[1];
  const [line] = media;
  const [key] = keys;
  if (media.length !== 1 || keys.length !== 1 || line === undefined || key === undefined || address === undefined) return undefined;
  const inline = parseInlineKey(key[3] ?? '');
  const codec = (['PCMU', 'PCMA'] as const)[[0, 8].indexOf(Number((line[2] ?? '').split(' ')[0]))];
  if (!inline.ok || codec === undefined) return undefined;
  const rtpPort = Number(line[1]);
  const telephoneEvent = /^a=rtpmap:(\d+) telephone-event\/8000\r$/m.exec(sdp)?.[1];
  return {
    codec,
    tag: key[1] ?? '',
    suite: key[2] ?? '',
    key: inline.value,
    address,
    rtpPort,
    rtcpPort: Number(/^a=rtcp:(\d+)/m.exec(sdp)?.[1] ?? rtpPort + 1),
    telephoneEvent: telephoneEvent === undefined ? null : Number(telephoneEvent),
    hasMux: /^a=rtcp-mux/m.test(sdp),
  };
}
