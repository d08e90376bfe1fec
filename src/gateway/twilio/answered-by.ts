import type { AgentAnswer } from '../model/agent.js';
import type { CallRecord } from '../model/call-record.js';
import type { MachineDetection } from '../model/voice-application.js';

type AnswererEvent = Extract<AgentAnswer, { type: 'answered-by' }>['event'];
export type Answerer = NonNullable<CallRecord['answered_by']>;

/** https://www.twilio.com/docs/voice/answering-machine-detection#answeredby */
export type AnsweredBy = 'human' | 'machine_start' | 'machine_end_beep' | 'machine_end_silence' | 'machine_end_other' | 'fax' | 'unknown';

/** In Twilio's words, of a call whose machine's end was not awaited. */
export function answeredBy(answerer: Answerer): Exclude<AnsweredBy, `machine_end_${string}`> {
  switch (answerer) {
    case 'person':
      return 'human';
    case 'machine':
      return 'machine_start';
    default:
      return answerer;
  }
}

/** As at Twilio. */
export const DETECTION_TIMEOUT_MS = 30_000;

/** What the application gets now; `null`: it waits on. */
export function detected(detection: MachineDetection, event: AnswererEvent): AnsweredBy | null {
  if (event.type === 'greeting-ended') return event.by === 'beep' ? 'machine_end_beep' : 'machine_end_silence';
  if (event.type === 'guess' || (event.answerer === 'machine' && detection === 'DetectMessageEnd')) return null;
  return answeredBy(event.answerer);
}
