import { parse } from 'yaml';
import { z } from 'zod';
import { eventOfDigit } from '../../rtp/dtmf/telephone-event.js';
import { err, ok, type Result } from '../../lib/result.js';

const MAX_STEPS = 100;
const text = z.string().trim().min(1).max(1_000);
const seconds = z.number().min(0).max(600);

const step = z.union([
  z.strictObject({ say: text }),
  z.strictObject({ interrupt: text, after: seconds.default(1) }),
  z.strictObject({ press: z.string().regex(/^[0-9A-D*#]{1,32}$/i, 'digits are 0-9, *, # and A-D') }),
  z.strictObject({ silent: seconds }),
]);

/**
 * One step of a caller. `say` waits until the agent has had its turn; `interrupt` speaks while the agent does, `after` seconds into its turn;
 * `silent` waits for that many seconds.
 */
export type ScriptStep = z.infer<typeof step>;

/** Reads a script: a YAML list of steps. The error names the step. */
export function parseScript(source: string): Result<readonly ScriptStep[], string> {
  let read: unknown;
  try {
    read = parse(source);
  } catch (error) {
    return err(`no YAML: ${(error as Error).message.split('\n')[0] ?? ''}`);
  }
  if (!Array.isArray(read) || read.length === 0 || read.length > MAX_STEPS)
    return err(`expected a list of 1 to ${String(MAX_STEPS)} steps`);
  const steps: ScriptStep[] = [];
  for (const [at, one] of read.entries()) {
    const parsed = step.safeParse(one);
    if (!parsed.success)
      return err(
        `step ${String(at + 1)}: expected { say: text }, { interrupt: text, after: seconds }, { press: digits } or { silent: seconds }`,
      );
    steps.push(parsed.data);
  }
  return ok(steps);
}

/** The texts that a caller speaks. */
export const textsOf = (steps: readonly ScriptStep[]): readonly string[] =>
  steps.flatMap((one) => ('say' in one ? [one.say] : 'interrupt' in one ? [one.interrupt] : []));

/** The telephone events of a `press`. */
export const eventsOf = (digits: string): readonly number[] =>
  digits
    .toUpperCase()
    .split('')
    .flatMap((digit) => eventOfDigit(digit) ?? []);
