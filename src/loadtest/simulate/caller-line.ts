/** What a synthetic caller speaks over: a bot's WebSocket, or a carrier's call to a number. */
export interface CallerLine {
  /** Rejects with what went wrong. */
  connect(): Promise<void>;
  /** Sends these samples (16 bits, 8 kHz) next, then silence again. */
  play(samples: Int16Array): void;
  press(event: number): void;
  /** 20 ms each way, at the time after the start. @returns whether the agent was audible */
  exchange(atMs: number): boolean;
  /** The agent's side has ended the call. */
  readonly isOver: boolean;
  close(): Promise<void>;
  report(): LineReport;
}

export interface LineReport {
  /** For its record; `null`: there is none. */
  readonly sipCallId: string | null;
  /** Messages of the bot; `null`: a number was called. */
  readonly bot: BotReport | null;
  readonly transcript: readonly { readonly speaker: 'agent' | 'caller'; readonly text: string }[];
  readonly errors: readonly string[];
}

export interface BotReport {
  readonly marksSet: number;
  /** Marks that went back to the bot, because the audio before them was played or cleared. */
  readonly marksEchoed: number;
  readonly clears: number;
  /** Digits that the bot sent. */
  readonly digits: string;
  /** What the bot asked of the call: transfer, tool, transcript, analysis. A simulated call refuses transfer and tool. */
  readonly requests: readonly string[];
}

/** Louder than this is speech. */
export const AUDIBLE_DBFS = -45;
