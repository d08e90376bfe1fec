import type { Voice } from './speech-service.js';

/** What of the caller interrupts the agent, or is reported while it speaks. */
export type CallerInput = 'none' | 'dtmf' | 'speech' | 'any';

/** How an application that exchanges text with the call wants to talk: the attributes of `<ConversationRelay>`. Plain data. */
export interface ConversationRules {
  /** Said first; `null`: nothing. */
  readonly greeting: { readonly text: string; readonly interruptible: CallerInput } | null;
  /** What interrupts a text without an own rule. */
  readonly interruptible: CallerInput;
  /** How soon speech interrupts. */
  readonly sensitivity: 'high' | 'medium' | 'low';
  /** The next text interrupts one without an own rule. */
  readonly preemptible: boolean;
  /** The caller's keys are reported. */
  readonly reportsDigits: boolean;
  /** What is reported while the agent speaks and is not interrupted by it. */
  readonly reportsWhileSpeaking: CallerInput;
  /** What the caller says is reported before it is complete. */
  readonly partialPrompts: boolean;
  /** Words that are probably said. */
  readonly hints: readonly string[];
  /** Language tags (BCP 47), or `multi`. */
  readonly ttsLanguage: string;
  readonly transcriptionLanguage: string;
  /** `null`: the default. */
  readonly voice: Voice | null;
  /** Voices of other languages. */
  readonly languages: Readonly<Record<string, Voice>>;
}

export const DEFAULT_CONVERSATION: ConversationRules = {
  greeting: null,
  interruptible: 'any',
  sensitivity: 'high',
  preemptible: false,
  reportsDigits: false,
  reportsWhileSpeaking: 'none',
  partialPrompts: false,
  hints: [],
  ttsLanguage: 'en-US',
  transcriptionLanguage: 'en-US',
  voice: null,
  languages: {},
};
