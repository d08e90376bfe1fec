import type { MediaEncryption } from '../../contracts/records.js';
import { err, ok, type Result } from '../../lib/result.js';
import { sessionDescription } from './body.js';
import { unsupportedOptions } from './invite.js';
import type { Reason } from './reasons.js';
import { sessionTimerHeaders, type SessionTimerHead } from './session-timer.js';
import { canonicalOffer, carrierAnswer, readOffer, readRelaySdp, type NegotiableOffer } from './sdp.js';

/** What was last agreed with the carrier. */
export interface Session {
  readonly offer: NegotiableOffer;
  /** The carrier's last offer, as received. */
  readonly offerSdp: string;
  /** The endpoint's answer to rtpengine: it stays the same for the whole call. */
  readonly insideAnswer: string;
  /** Our last answer. */
  readonly answerSdp: string;
  /** Of our o= line; one more with each answer that differs (RFC 3264 §8). */
  readonly version: number;
  readonly sessionId: string;
}

/** The headers and body of a re-INVITE or UPDATE that decide what it is answered. */
export interface ReofferHead extends SessionTimerHead {
  readonly contentType: string | undefined;
  readonly body: string;
}

/** What a re-INVITE or UPDATE asks for: an SDP ('' for none) and the session timer's headers of the answer. */
export function readReoffer(
  head: ReofferHead,
): Result<{ readonly sdp: string; readonly sessionTimer: Readonly<Record<string, string>> }, Reason> {
  if (unsupportedOptions(head.require).length > 0) return err('BAD_EXTENSION');
  const sdp = sessionDescription(head.contentType, head.body);
  if (!sdp.ok) return sdp;
  const sessionTimer = sessionTimerHeaders(head);
  if (!sessionTimer.ok) return sessionTimer;
  return ok({ sdp: sdp.value, sessionTimer: sessionTimer.value });
}

export interface RelaySteps {
  offer(sdp: string): Promise<{ readonly sdp: string }>;
  answer(sdp: string): Promise<{ readonly sdp: string }>;
}

/**
 * Answers an offer within a call. An unchanged offer (a session refresh), and one without SDP, get the last answer again, to the letter.
 * The codec and the payload type of telephone-event stay those of the call.
 */
export async function answerReoffer(
  session: Session,
  sdp: string,
  encryption: MediaEncryption,
  relay: RelaySteps,
): Promise<Result<Session, Reason>> {
  if (sdp === '' || sdp === session.offerSdp) return ok(session);
  const read = readOffer(sdp, encryption, session.offer.codec.name);
  if (!read.ok) return read;
  const offer = read.value;
  const { codec, telephoneEvent } = session.offer;
  if (offer.codec.name !== codec.name || offer.codec.payloadType !== codec.payloadType) return err('NO_COMMON_CODEC');
  if (offer.telephoneEvent !== null && offer.telephoneEvent !== telephoneEvent) return err('NO_COMMON_CODEC');
  await relay.offer(canonicalOffer(offer));
  const outside = readRelaySdp((await relay.answer(session.insideAnswer)).sdp);
  const version = session.version + 1;
  const answerSdp = outside === undefined ? undefined : carrierAnswer(offer, outside, { sessionId: session.sessionId, version });
  if (answerSdp === undefined) return err('SRTP_SUITE_UNSUPPORTED');
  return ok({ ...session, offer, offerSdp: sdp, answerSdp, version });
}
