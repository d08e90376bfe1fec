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
  PRECONDITION_FAILED: 'Somebody else changed it meanwhile. Close this and open it again to see how it is now.',
  TOOL_IN_USE: 'Take the tool from these agents under Agents; then it can be deleted.',
  AGENT_IN_USE: 'Give the number another agent under Numbers, or detach it; then the agent can be deleted.',
  NUMBER_TAKEN: 'If the number is yours, ask the operator which organization has it.',
  LIMIT_REACHED: 'Delete one that is not needed first.',
  SIP_NOT_ENABLED: 'Ask the operator to give the organization the SIP entitlement.',
  UNREACHABLE: 'Look at the connection, and try again.',
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
