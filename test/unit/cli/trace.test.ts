import { beforeEach, describe, expect, it } from 'vitest';
import { traceCommand } from '../../../src/cli/trace.js';
import { ladderHead, ladderLines, type LadderOptions } from '../../../src/cli/trace/ladder.js';
import { runCommand } from '../../support/run-command.js';

const CALL_ID = '153ee546-05b9-4d95-bd6d-f899f082d48b';
const AT = Date.parse('2026-01-01T00:00:00.000Z');
const at = (ms: number): string => new Date(AT + ms).toISOString();

const INVITE = {
  at: at(0),
  source: 'sip',
  direction: 'in',
  summary: 'INVITE sip:+1555@gw SIP/2.0',
  text: 'INVITE sip:+1555@gw SIP/2.0\r\n\r\nv=0\r\n',
} as const;
const LOOKED = { at: at(1), source: 'gateway', direction: null, summary: 'looked up: the number is attached', text: null } as const;
const OFFER = { at: at(2), source: 'rtpengine', direction: 'out', summary: 'offer (RTP inside, SRTP outside)', text: null } as const;
const OFFERED = { at: at(5), source: 'rtpengine', direction: 'in', summary: 'offer answered, 3.0 ms', text: null } as const;
const START = { at: at(1_234), source: 'agent', direction: 'out', summary: 'start', text: null } as const;
const REFUSED = { at: at(1_500), source: 'sip', direction: 'out', summary: 'SIP/2.0 480 Temporarily Unavailable', text: null } as const;

const options = (more: Partial<LadderOptions> = {}): LadderOptions => ({
  columns: 100,
  isColoured: false,
  isFull: false,
  fromMs: AT,
  ...more,
});

describe('the ladder of a trace', () => {
  it('has a line for each event, between its participants', () => {
    const lines = [
      ladderHead(options()),
      ...[INVITE, LOOKED, OFFER, OFFERED, START, REFUSED].flatMap((one) => ladderLines(one, options())),
    ];
    expect(`\n${lines.join('\n')}\n`).toBe(`
           carrier                              gateway                     rtpengine          agent
    0.000  │─ INVITE (SDP) ───────────────────────▶│                            │                  │
    0.001  │                                       ● looked up: the number is attached             │
    0.002  │                                       │─ offer (RTP inside, SRT… ─▶│                  │
    0.005  │                                       │◀─ offer answered, 3.0 ms ──│                  │
    1.234  │                                       │─ start ──────────────────────────────────────▶│
    1.500  │◀─ 480 Temporarily Unavailable ────────│                            │                  │
`);
  });

  it.each([40, 72, 80, 120, 400])('fits into %i columns, or 72', (columns) => {
    const long = { ...LOOKED, summary: 'x'.repeat(300) };
    const wide = { ...OFFER, summary: 'y'.repeat(300) };
    const lines = [ladderHead({ columns }), ...[INVITE, long, wide, START].flatMap((one) => ladderLines(one, options({ columns })))];
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(Math.max(72, columns));
  });

  it('shows failures in red and answers in green, in a terminal', () => {
    const [bad = '', good = ''] = [REFUSED, { ...REFUSED, summary: 'SIP/2.0 200 OK' }].flatMap((one) =>
      ladderLines(one, options({ isColoured: true })),
    );
    expect([bad.slice(0, 7), good.slice(0, 5)]).toEqual(['\u001b[31;1m', '\u001b[32m']);
  });

  it('has the messages below, with --full', () => {
    expect(
      ladderLines(INVITE, options({ isFull: true }))
        .slice(1)
        .map((line) => line.trim()),
    ).toEqual(['INVITE sip:+1555@gw SIP/2.0', '', 'v=0']);
  });
});

describe('trunkline trace', () => {
  let printed: string[];
  let errors: string;
  let asked: string[];
  let terminal: { readonly columns: number } | null;
  let more: Readonly<Record<string, string>>;
  let states: string[];
  let traces: object[][];

  beforeEach(() => {
    [printed, errors, asked] = [[], '', []];
    terminal = null;
    more = {};
    states = ['ended'];
    traces = [[INVITE, REFUSED]];
  });

  function run(...args: string[]): Promise<number> {
    const fetch = (given: unknown): Promise<Response> => {
      const { pathname, search } = new URL((given as Request).url);
      if (pathname === '/v1/organizations') return Promise.resolve(new Response('{}', { status: 404 }));
      asked.push(pathname + search);
      const next = <T>(list: T[]): T | undefined => (list.length > 1 ? list.shift() : list[0]);
      const isThere = search.includes('sip_call_id=abc%40carrier') && !search.includes('live');
      const live = isThere ? [{ sip_call_id: 'abc@carrier', call_id: CALL_ID }] : [];
      const body = pathname.endsWith('/trace')
        ? { status: 'success', trace: next(traces) }
        : pathname === '/v1/calls'
          ? { status: 'success', calls: live, next: null }
          : { status: 'success', call: { state: next(states), reason: 'AGENT_UNAVAILABLE', sip_status: 480 } };
      return Promise.resolve(new Response(JSON.stringify(body), { status: 200, headers: { 'content-type': 'application/json' } }));
    };
    const command = traceCommand({
      config: () => ({ data_dir: '/nowhere' }),
      environment: { TRUNKLINE_API_URL: 'http://127.0.0.1:1', TRUNKLINE_API_KEY: 'k', ...more },
      print: (line) => void printed.push(line),
      fetch,
      terminal: () => terminal,
      wait: () => Promise.resolve(),
    });
    return runCommand(command, args, { print: (text) => void printed.push(text), error: (text) => (errors += text) });
  }

  it('shows a call that ended, and the reason', async () => {
    expect(await run(CALL_ID)).toBe(0);
    expect(printed).toHaveLength(4);
    expect(printed.at(-1)).toBe('\nAGENT_UNAVAILABLE, SIP 480');
  });

  it('uses colours in a terminal, unless NO_COLOR is set', async () => {
    terminal = { columns: 120 };
    await run(CALL_ID);
    expect(printed.join('')).toContain('\u001b[');
    printed.length = 0;
    more = { NO_COLOR: '1' };
    await run(CALL_ID);
    expect(printed.join('')).not.toContain('\u001b[');
  });

  it('finds a call by its SIP Call-ID, and fails for an unknown one', async () => {
    expect(await run('abc@carrier')).toBe(0);
    expect(asked).toContain(`/v1/calls/${CALL_ID}/trace`);
    expect(await run('other@carrier')).toBe(1);
    expect(errors).toContain('has this Call-ID');
  });

  it('continues with --follow until the call has ended, and prints each event once', async () => {
    states = ['ringing', 'in_progress', 'in_progress', 'ended'];
    traces = [[INVITE], [INVITE, LOOKED], [INVITE, LOOKED], [INVITE, LOOKED, REFUSED]];
    expect(await run(CALL_ID, '--follow')).toBe(0);
    expect(printed.filter((line) => /^ +\d/.test(line))).toHaveLength(3);
  });

  it('prints no reason for a call in progress, and reads once without --follow', async () => {
    states = ['in_progress'];
    await run(CALL_ID);
    expect(asked).toHaveLength(2);
    expect(printed).toHaveLength(3);
  });

  it('lets no text of a peer control the terminal', async () => {
    traces = [[{ ...INVITE, summary: 'INVITE\u001b[2J sip:x', text: 'a\u001b]0;title\u0007b' }]];
    await run(CALL_ID, '--full');
    expect(printed.join('')).not.toContain('\u001b');
  });

  it('prints JSON, and reports when nothing is kept', async () => {
    await run(CALL_ID, '--json');
    expect(JSON.parse(printed[0] ?? '')).toHaveLength(2);
    [printed, traces] = [[], [[]]];
    await run(CALL_ID);
    expect(printed[0]).toMatch(/^No trace is stored/);
  });
});
