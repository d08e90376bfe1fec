import type { CallTarget } from './live-calls.js';
import type { StatusCallbackEvent } from './records.js';

/** A URL that gets requests in Twilio's form. */
export interface CallbackUrl {
  readonly url: string;
  readonly method: 'GET' | 'POST';
}

/** https://www.twilio.com/docs/voice/answering-machine-detection */
export type MachineDetection = 'Enable' | 'DetectMessageEnd';

/** The application that gets requests about a call, and answers them with TwiML. Plain data: part of the call's snapshot. */
export interface VoiceApplication {
  /** Signs the requests. */
  readonly token: string;
  /** What the call begins with; `null`: its agent. */
  readonly first: CallTarget | null;
  /** The first document waits until it is known who answered, or a machine's greeting is over too; left out: it does not wait. */
  readonly machineDetection?: MachineDetection;
  /** From the answer on; then the document begins without it. Left out: 30 s. */
  readonly machineDetectionTimeoutMs?: number;
  /** DTMF before the first document; `w`: half a second of silence. `null`: none. */
  readonly sendDigits: string | null;
  /** Requested when a document cannot be had, or not read; `null`: none. */
  readonly fallback: CallbackUrl | null;
  /** Gets a request at each of these moments of the call; `null`: nobody does. */
  readonly statusCallback: (CallbackUrl & { readonly events: readonly StatusCallbackEvent[] }) | null;
}
