import type { E164 } from '../contracts/e164.js';
import type { LegDescription, LegEvent, LegFigures, MediaAddress } from '../contracts/media.js';
import type { Route } from '../contracts/records.js';
import type { CallRecord } from '../contracts/call-record.js';

/** Reads what an INVITE needs to be decided. */
export interface RouteStore {
  /** `null`: the number is not attached inbound. Rejects with `StoreUnavailableError` when the store does not answer in time. */
  lookup(number: E164): Promise<Route | null>;
}

/** The store did not answer: the call is refused with 503 STORE_UNAVAILABLE. */
export class StoreUnavailableError extends Error {
  override readonly name = 'StoreUnavailableError';
}

export interface CallStore {
  /** Writes the record of an ended or refused call. */
  write(record: CallRecord): Promise<void>;
}

/** What rtpengine answered: an SDP. */
export interface RelayAnswer {
  readonly sdp: string;
}

/** Figures of one call from rtpengine's answer to `delete`. */
export interface RelayFigures {
  readonly packets: number;
  readonly bytes: number;
  readonly errors: number;
}

/** rtpengine refused a command, or did not answer it. */
export class MediaUnavailableError extends Error {
  override readonly name = 'MediaUnavailableError';
}

/** The media relay between the carrier (SRTP) and the endpoint. All three reject with `MediaUnavailableError`. */
export interface MediaRelay {
  offer(call: RelayCall, sdp: string): Promise<RelayAnswer>;
  answer(call: RelayCall & { readonly toTag: string }, sdp: string): Promise<RelayAnswer>;
  /** Frees the session. Asked until it is confirmed or the retries are used up. */
  delete(call: Pick<RelayCall, 'relayId'>): Promise<RelayFigures>;
}

export interface RelayCall {
  /** The call's own id, not the carrier's Call-ID: two carriers may use the same one. */
  readonly relayId: string;
  readonly fromTag: string;
  /** Encrypt the inside leg too. */
  readonly insideSrtp: boolean;
}

/** Media legs towards rtpengine, with the built-in agent on each. */
export interface MediaEndpoint {
  /**
   * Opens a leg: from now on it receives, but sends and says nothing. Resolves with the endpoint's own address, which the
   * inside SDP answer names. Rejects with `MediaUnavailableError` when there is no room.
   */
  open(leg: LegDescription, onEvent: (event: LegEvent) => void): Promise<MediaAddress>;
  /** The ACK came: audio and the agent start. */
  start(callId: string): void;
  /** Held: nothing is sent and the media watchdog rests. */
  setHeld(callId: string, held: boolean): void;
  /** Closes the leg; resolves with what it saw, or `null` when it was not open. */
  close(callId: string): Promise<LegFigures | null>;
}
