import { Command } from 'commander';
import type { Client, Schemas } from '../client/index.js';
import { overApi, wantsColour, type ApiFlags, type ApiIo } from './api.js';
import { CommandFailure, plain } from './command.js';
import { ladderHead, ladderLines, type LadderOptions } from './trace/ladder.js';

type Entry = Schemas['TraceEntry'];

interface TraceFlags extends ApiFlags {
  readonly full?: boolean;
  readonly follow?: boolean;
}

/** Where it is printed; `null`: no terminal. */
export interface TraceIo extends ApiIo {
  readonly terminal?: () => { readonly columns: number } | null;
  /** Between two looks at a call in progress. */
  readonly wait?: (ms: number) => Promise<void>;
}

const FOLLOW_MS = 500;
const DEFAULT_COLUMNS = 120;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** `trunkline trace`: what happened in one call, between the carrier, the gateway, rtpengine and the agent. */
export function traceCommand(io: TraceIo): Command {
  const trace = new Command('trace')
    .description('show one call as a ladder: carrier, gateway, rtpengine, agent')
    .argument('<call-id>', "the call's id, or its SIP Call-ID")
    .option('--full', 'include the messages, with keys and credentials masked')
    .option('--follow', 'continue until the call ends');
  return overApi(trace, io, async (api, flags: TraceFlags, given: string) => {
    const callId = UUID.test(given) ? given.toLowerCase() : await callOfSipId(api, given);
    if (flags.json !== true) return show(api, io, callId, flags);
    const { trace: entries } = await api.GET('/v1/calls/{call_id}/trace', { params: { path: { call_id: callId } } });
    io.print(JSON.stringify(entries));
  });
}

async function show(api: Client, io: TraceIo, callId: string, flags: TraceFlags): Promise<void> {
  const path = { params: { path: { call_id: callId } } };
  const wait = io.wait ?? ((ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)));
  const printer = new LadderPrinter(io, flags.full === true);
  for (;;) {
    // The state first: what happens up to the end is in the trace that is asked for after it.
    const { call } = await api.GET('/v1/calls/{call_id}', path);
    const { trace } = await api.GET('/v1/calls/{call_id}/trace', path);
    printer.print(trace);
    const isOver = call.state === 'ended';
    if (!isOver && flags.follow === true) {
      await wait(FOLLOW_MS);
      continue;
    }
    if (trace.length === 0) io.print('No trace is stored for this call (calls.trace, calls.trace_retention_days).');
    if (isOver) io.print(plain(`\n${call.reason ?? ''}, SIP ${String(call.sip_status ?? '-')}`));
    return;
  }
}

/** Prints each entry once, however often it is seen. */
class LadderPrinter {
  readonly #options: Omit<LadderOptions, 'fromMs'>;
  readonly #printed = new Map<string, number>();
  #fromMs: number | undefined;

  constructor(
    private readonly io: TraceIo,
    isFull: boolean,
  ) {
    const terminal = (io.terminal ?? stdoutTerminal)();
    this.#options = { columns: terminal?.columns ?? DEFAULT_COLUMNS, isColoured: terminal !== null && wantsColour(io.environment), isFull };
  }

  print(trace: readonly Entry[]): void {
    const seen = new Map<string, number>();
    for (const entry of trace) {
      const key = `${entry.at} ${entry.source} ${entry.direction ?? ''}`;
      const count = (seen.get(key) ?? 0) + 1;
      seen.set(key, count);
      if (count > (this.#printed.get(key) ?? 0)) this.#printOne(entry);
      this.#printed.set(key, Math.max(count, this.#printed.get(key) ?? 0));
    }
  }

  #printOne(entry: Entry): void {
    if (this.#fromMs === undefined) {
      this.#fromMs = Date.parse(entry.at);
      this.io.print(ladderHead(this.#options));
    }
    // What peers say controls no terminal; the colours are ours and come after.
    const text = entry.text === null ? null : plain(entry.text.replaceAll('\r\n', '\n'));
    const shown = { ...entry, summary: plain(entry.summary), text };
    for (const line of ladderLines(shown, { ...this.#options, fromMs: this.#fromMs })) this.io.print(line);
  }
}

function stdoutTerminal(): { readonly columns: number } | null {
  return process.stdout.isTTY ? { columns: process.stdout.columns } : null;
}

async function callOfSipId(api: Client, sipCallId: string): Promise<string> {
  for (const state of ['live', 'ended'] as const) {
    // Calls in progress are looked through, those that ended are found by an index.
    for (let before: string | null | undefined; before !== null;) {
      const query = { state, sip_call_id: sipCallId, limit: 1, ...(before === undefined ? {} : { before }) };
      const page = await api.GET('/v1/calls', { params: { query } });
      const [found] = page.calls;
      if (found !== undefined) return found.call_id;
      before = page.next;
    }
  }
  throw new CommandFailure('no call that this key may see has this Call-ID; an operator key sees those that belong to no organization too');
}
