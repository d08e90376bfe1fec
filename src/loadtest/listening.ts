/** Shorter calls end before a key is read back. */
const SHORTEST_FOR_DIGITS_S = 4;
/** Nobody who pressed no key hears themselves before: the test line greets for some 10 s, unless a key ends its greeting. */
const GREETED_S = 12;

export interface ListeningFlags {
  /** Seconds from the answer to the end of each call. */
  readonly hold: number;
  /** Percent of the calls. */
  readonly media: number;
  /** Left out: as it fits the calls. Empty: none. */
  readonly digits?: string | undefined;
  /** False: the agent does not echo. */
  readonly echo: boolean;
  /** Calls last longer than that: a ramp that holds them. */
  readonly isHeld: boolean;
}

export interface Listening {
  /** Keys that calls with media press. */
  readonly digits: string;
  /** Whether what they say must come back. */
  readonly echoes: boolean;
  /** What is not looked for, and why, one sentence each. */
  readonly notes: readonly string[];
}

/** What calls with media do and must hear, as far as their length lets them. */
export function listeningOf({ hold, media, digits: asked, echo, isHeld }: ListeningFlags): Listening {
  const isLong = isHeld || hold >= SHORTEST_FOR_DIGITS_S;
  const digits = asked ?? (isLong ? '1' : '');
  if (media === 0) return { digits, echoes: echo, notes: [] };
  const isGreeted = echo && digits === '' && !isHeld && hold < GREETED_S;
  return {
    digits,
    echoes: echo && !isGreeted,
    notes: [
      ...(asked === undefined && !isLong ? [`calls of ${String(hold)} s are too short for keys to be read back: none are pressed`] : []),
      ...(isGreeted
        ? [
            `calls of ${String(hold)} s without a key end within the greeting of the test line: their own tone need not come back ` +
              `(from --hold ${String(SHORTEST_FOR_DIGITS_S)} on a key ends the greeting)`,
          ]
        : []),
    ],
  };
}
