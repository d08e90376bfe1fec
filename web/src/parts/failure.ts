import type { ApiError } from '../../../src/client/api-error.js';

/** A failure as a form shows it. */
export interface Failure {
  readonly message: string;
  /** What to do about it; `null`: the message says it. */
  readonly advice: string | null;
  /** What is wrong with a field, or with something in it. */
  readonly errorAt: (path: string) => string | undefined;
}

const ADVICE: Readonly<Record<string, string>> = {
  PRECONDITION_FAILED: 'The record changed meanwhile. Close this dialog and open it again to see the current values.',
  TOOL_IN_USE: 'First remove the tool from these agents under Agents.',
  AGENT_IN_USE: 'First give the number another agent under Numbers, or detach it.',
  NUMBER_TAKEN: 'If the number is yours, ask the operator which organization has it.',
  LIMIT_REACHED: 'First delete one that you do not need.',
  SIP_NOT_ENABLED: 'Ask the operator to enable SIP for the organization.',
  UNREACHABLE: 'Check the connection and try again.',
};

export function failureOf({ message, code, errors }: Pick<ApiError, 'message' | 'code' | 'errors'>): Failure {
  return {
    message,
    advice: ADVICE[code] ?? null,
    errorAt: (path) => {
      const found = errors.find((one) => one.path === path) ?? errors.find((one) => one.path !== undefined && isWithin(one.path, path));
      return found === undefined ? undefined : found.path === path ? found.message : `${found.path ?? ''} ${found.message}`;
    },
  };
}

function isWithin(inner: string, outer: string): boolean {
  return inner.startsWith(`${outer}.`) || inner.startsWith(`${outer}[`);
}
