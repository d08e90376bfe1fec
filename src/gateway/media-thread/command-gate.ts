import type { CallCommand } from './worker-messages.js';

const NEED_AGENTS: readonly CallCommand['type'][] = ['connect-agent', 'start-fork'];

/** Commands of a thread that has not loaded its agents yet: those that need them wait, and so does what follows in the same call. */
export class CommandGate {
  #waiting: CallCommand[] | null = [];
  readonly #calls = new Set<string>();

  constructor(private readonly carryOut: (command: CallCommand) => void) {}

  take(command: CallCommand): void {
    const callId = callOf(command);
    if (command.type === 'shut-down') this.#waiting?.splice(0);
    if (this.#waiting === null || (!NEED_AGENTS.includes(command.type) && (callId === null || !this.#calls.has(callId))))
      return this.carryOut(command);
    this.#waiting.push(command);
    if (callId !== null) this.#calls.add(callId);
  }

  /** Agents are loaded. */
  open(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = null;
    for (const command of waiting) this.carryOut(command);
  }
}

function callOf(command: CallCommand): string | null {
  if (command.type === 'open' || command.type === 'open-ahead') return command.leg.callId;
  return 'callId' in command ? command.callId : null;
}
