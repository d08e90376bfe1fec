import type { Said } from '../../model/provider-settings.js';
import type { WireFormat } from '../stream/wire-format.js';

// A provider's protocol without its socket: messages of the provider become actions, and what the call does becomes messages. Neither
// turns nor truncation are assumed: a provider without them performs fewer actions, and sends nothing.

/** A message on the provider's WebSocket: a text, or bytes. */
export type WireMessage = string | Uint8Array;

export type ProviderAction =
  /** Sends a message. */
  | { readonly do: 'send'; readonly message: WireMessage }
  /** The configuration was accepted: the call may be answered. */
  | { readonly do: 'accepted' }
  /** The session cannot go on. `isFinal`: nor could another one with the same settings. */
  | { readonly do: 'fail'; readonly message: string; readonly isFinal: boolean }
  /** Something failed, and the session goes on. `isFailure`: it cost an answer. */
  | { readonly do: 'warn'; readonly message: string; readonly isFailure?: true }
  /** The provider refused an answer, or broke it off: it is asked again, and then another session is. */
  | { readonly do: 'unanswered'; readonly message: string }
  /** The provider refused a text, because somebody spoke: it gets the text again. */
  | { readonly do: 'refused'; readonly message: string }
  /** Audio of an utterance, in the format of the output. The bytes may be changed. */
  | { readonly do: 'play'; readonly utterance: string; readonly bytes: Uint8Array }
  /** No more audio of it follows. */
  | { readonly do: 'end-utterance'; readonly utterance: string }
  /** The caller interrupted: nothing that was sent so far is played any more. */
  | { readonly do: 'interrupt' }
  /** What an utterance says, so far (`isLast: false`) or in all. */
  | { readonly do: 'said'; readonly utterance: string; readonly text: string; readonly isLast: boolean }
  /** What was heard of the utterance that the caller interrupted last. */
  | { readonly do: 'corrected'; readonly text: string }
  /** What the caller said; `audioMs`: where it begins in the audio that was sent on this connection; `null`: the provider does not say. */
  | { readonly do: 'heard'; readonly text: string; readonly audioMs: number | null }
  /** What the caller said was not written down. */
  | { readonly do: 'not-heard'; readonly message: string }
  /** The caller speaks, or has finished. */
  | { readonly do: 'caller-speech'; readonly isSpeaking: boolean }
  /** `speech`: said while it runs, unless the result is there soon. */
  | { readonly do: 'run-tool'; readonly callId: string; readonly name: string; readonly input: unknown; readonly speech?: string }
  /** The provider counted tokens. */
  | { readonly do: 'used'; readonly tokens: number }
  /** The results of these are not wanted any more. */
  | { readonly do: 'drop-tools'; readonly callIds: readonly string[] }
  /** The provider ends the session soon. */
  | { readonly do: 'renew'; readonly withinMs: number };

/** How far an utterance was played when it was interrupted. */
export interface Played {
  readonly utterance: string;
  /** Sent to the caller, in milliseconds; never more than was received. */
  readonly playedMs: number;
}

/** One session at a provider. */
export interface ProviderAdapter {
  /** Where the session is; the headers hold the credential. */
  readonly target: { readonly url: string; readonly headers: Readonly<Record<string, string>> };
  /** Known once the session is accepted. */
  readonly formats: { readonly input: WireFormat; readonly output: WireFormat };
  /** How long a session lasts at the provider, in milliseconds. */
  readonly sessionMs: number;
  /** The connection is lost when nothing came this long, not even a pong; in milliseconds. `null`: for two intervals of our pings. */
  readonly silentAfterMs: number | null;
  /** What the provider wants while no audio is sent. */
  readonly keepAlive?: WireMessage;
  /** More audio of the agent may be on its way without a further word of the caller. */
  readonly isResponding: boolean;
  /** With what another connection could go on with this session; `null`: it cannot. */
  readonly resumption: string | null;
  /**
   * The connection is open.
   * @param conversation so far: another session had it
   * @param resumption of the session before; `null`: there is none
   */
  open(conversation: readonly Said[], resumption: string | null): readonly ProviderAction[];
  receive(message: WireMessage): readonly ProviderAction[];
  /** 20 ms of the caller's audio, in the format of the input. The bytes are valid during the call only. */
  audio(bytes: Uint8Array): WireMessage;
  /** The agent is to begin to speak. */
  begin(): readonly ProviderAction[];
  /** The agent's first sentence was spoken by another service: this much of it was heard. */
  spoke?(text: string): readonly ProviderAction[];
  /** Has the provider say a text word for word, after what it says now; without this method another service does. */
  say?(text: string): readonly ProviderAction[];
  /** What `interrupt` cut off. */
  interrupted(played: readonly Played[]): readonly ProviderAction[];
  /** @param continues the agent is to go on */
  toolResult(callId: string, output: unknown, continues: boolean): readonly ProviderAction[];
  /** Gives the model a text that the caller did not say, and has it answer. */
  inform(text: string): readonly ProviderAction[];
  /** Asks again for what was unanswered or refused; nothing while somebody speaks. */
  again?(): readonly ProviderAction[];
  /** What a close of the connection means. `isHangUp`: the agent ended the call. */
  closed(code: number, reason: string): { readonly message: string; readonly isFinal: boolean; readonly isHangUp?: boolean };
}
