import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bench } from '../support/transcript.js';
import { valuesOf } from '../support/wire.js';

// What callers, the application and time can do to calls, in any order, against a small model of what must come of it
// (RFC 3261 §13.3, §14.2, §15.1, §17.2; the 20 s are the application's).

const SILENCE_MS = 20_000;
/** 64·T1. */
const ACK_TIMEOUT_MS = 32_000;

/** An INVITE of the caller's, the first or a later one of its call. */
interface Invite {
  readonly cseq: number;
  readonly branch: string;
  /** The final answer that the caller must have had; `null`: none. */
  final: number | null;
  /** When the server answers for a silent application; `null`: it has said something. */
  silentUntil: number | null;
}

interface Call {
  readonly id: string;
  readonly invites: Invite[];
  cseq: number;
  phase: 'early' | 'up' | 'over';
  /** The 2xx that waits for its ACK: its CSeq, and when the server gives up. */
  unacked: { readonly cseq: number; readonly until: number } | null;
  /** Server BYEs that the caller must have seen. */
  byes: number;
}

interface Model {
  nowMs: number;
  isConnected: boolean;
  readonly calls: Call[];
}

interface Real {
  readonly bench: Bench;
  readonly transport: 'UDP' | 'TLS';
}

class World {
  #branches = 0;

  constructor(
    readonly model: Model,
    readonly real: Real,
  ) {}

  branch(): string {
    this.#branches += 1;
    return `z9hG4bKm${this.#branches}`;
  }
}

const finalsOf = (real: Real, branch: string, method: string): string[] =>
  real.bench.toCaller.filter(
    (text) => /^SIP\/2\.0 [2-6]/.test(text) && text.includes(`branch=${branch}\r\n`) && text.includes(` ${method}\r\n`),
  );
const toOf = (real: Real, call: Call): string => {
  const tagged = real.bench.toCaller.filter(
    (text) => text.startsWith('SIP/2.0') && text.includes(`Call-ID: ${call.id}\r\n`) && /^To: .*;tag=/m.test(text),
  );
  return valuesOf(tagged[0] ?? '', 'to')[0] ?? '<sip:b@server>';
};

function send(world: World, call: Call, method: string, cseq: number, branch: string, to: string): void {
  const { bench, transport } = world.real;
  const lines = [
    `${method} sip:b@server SIP/2.0`,
    `Via: SIP/2.0/${transport} 127.0.0.1:6000;branch=${branch}`,
    `From: <sip:a@caller>;tag=from-${call.id}`,
    `To: ${to}`,
    `Call-ID: ${call.id}`,
    `CSeq: ${cseq} ${method}`,
    `Contact: <sip:a@127.0.0.1:6000;transport=${transport.toLowerCase()}>`,
    'Content-Length: 0',
  ];
  bench.fromCaller(`${lines.join('\r\n')}\r\n\r\n`);
}

/** The id of the transaction that the application knows the request by. */
function transactionId(real: Real, branch: string): string {
  const frame = real.bench.toApp.find((payload) => payload.includes('|sip|network|') && payload.includes(`branch=${branch}\r\n`));
  return frame?.split('|')[8] ?? '';
}

const answer = (real: Real, branch: string, status: string): void =>
  real.bench.fromApp(`a|sip|${transactionId(real, branch)}|\r\nSIP/2.0 ${status}\r\n\r\n`);
const open = (call: Call): Invite | undefined => call.invites.find((invite) => invite.final === null);

/** Something that somebody does to one call; `can` says when it makes sense. */
interface Deed {
  readonly name: string;
  can(call: Call, model: Model): boolean;
  do(call: Call, world: World): void;
}

const DEEDS: readonly Deed[] = [
  {
    name: 'the INVITE is repeated',
    can: (call, model) => model.isConnected && (call.phase === 'early' || call.unacked?.cseq === 1),
    do: (call, world) => send(world, call, 'INVITE', call.invites[0]!.cseq, call.invites[0]!.branch, '<sip:b@server>'),
  },
  {
    name: 'it rings',
    can: (call) => call.invites.length === 1 && open(call) !== undefined,
    do: (call, { real }) => {
      answer(real, open(call)!.branch, '180 Ringing');
      open(call)!.silentUntil = null;
    },
  },
  {
    name: 'the application answers 200',
    can: (call) => open(call) !== undefined,
    do: (call, { real, model }) => {
      const invite = open(call)!;
      answer(real, invite.branch, '200 OK');
      invite.final = 200;
      call.phase = 'up';
      call.unacked = { cseq: invite.cseq, until: model.nowMs + ACK_TIMEOUT_MS };
    },
  },
  {
    name: 'the application refuses',
    can: (call) => open(call) !== undefined,
    do: (call, { real }) => {
      const invite = open(call)!;
      answer(real, invite.branch, '486 Busy Here');
      invite.final = 486;
      if (call.phase === 'early') call.phase = 'over';
    },
  },
  {
    name: 'CANCEL',
    // Before the answer, or crossing it.
    can: (call, model) => model.isConnected && (open(call) !== undefined || call.unacked?.cseq === call.invites.at(-1)!.cseq),
    do: (call, world) => {
      const invite = call.invites.at(-1)!;
      send(world, call, 'CANCEL', invite.cseq, invite.branch, call.invites.length === 1 ? '<sip:b@server>' : toOf(world.real, call));
      if (invite.final !== null) return;
      invite.final = 487;
      if (call.phase === 'early') call.phase = 'over';
    },
  },
  {
    name: 'ACK',
    can: (call, model) => model.isConnected && call.unacked !== null,
    do: (call, world) => {
      send(world, call, 'ACK', call.unacked!.cseq, world.branch(), toOf(world.real, call));
      call.unacked = null;
    },
  },
  {
    name: 'ACK to the refusal',
    can: (call, model) => model.isConnected && (call.invites.at(-1)?.final ?? 0) >= 300,
    do: (call, world) => send(world, call, 'ACK', call.invites.at(-1)!.cseq, call.invites.at(-1)!.branch, toOf(world.real, call)),
  },
  {
    name: 're-INVITE',
    can: (call, model) => model.isConnected && call.phase === 'up' && call.invites.length < 5,
    do: (call, world) => {
      call.cseq += 1;
      const busy = call.unacked !== null ? 491 : open(call) !== undefined ? 500 : null;
      const invite: Invite = { cseq: call.cseq, branch: world.branch(), final: busy, silentUntil: world.model.nowMs + SILENCE_MS };
      send(world, call, 'INVITE', invite.cseq, invite.branch, toOf(world.real, call));
      // One that is refused at once leaves the one before it the newest.
      if (busy === null) call.invites.push(invite);
      else call.invites.splice(-1, 0, invite);
    },
  },
  {
    name: 'BYE of the caller',
    // In a dialog, which ringing makes.
    can: (call, model) => model.isConnected && (call.phase === 'up' || (call.phase === 'early' && call.invites[0]!.silentUntil === null)),
    do: (call, world) => {
      call.cseq += 1;
      send(world, call, 'BYE', call.cseq, world.branch(), toOf(world.real, call));
      // RFC 3261 §15.1.2: what waits for an answer gets 487.
      const invite = open(call);
      if (invite !== undefined) invite.final = 487;
      call.phase = 'over';
      call.unacked = null;
    },
  },
  {
    name: 'BYE of the application',
    can: (call) => call.phase === 'up' && call.unacked === null && open(call) === undefined,
    do: (call, { real, model }) => {
      real.bench.fromApp(`b|sip||${call.id};from-tag=from-${call.id}\r\nBYE sip:placeholder SIP/2.0\r\n\r\n`);
      call.phase = 'over';
      if (model.isConnected) call.byes += 1;
    },
  },
];

class DeedCommand implements fc.AsyncCommand<Model, World> {
  constructor(
    private readonly deed: Deed,
    private readonly index: number,
  ) {}

  check(model: Readonly<Model>): boolean {
    const call = this.#call(model);
    return call !== undefined && this.deed.can(call, model);
  }

  async run(model: Model, world: World): Promise<void> {
    this.deed.do(this.#call(model)!, world);
    await settled(world);
  }

  toString(): string {
    return `${this.deed.name} (call ${this.index})`;
  }

  #call(model: Readonly<Model>): Call | undefined {
    return model.calls[this.index % Math.max(1, model.calls.length)];
  }
}

class NewCall implements fc.AsyncCommand<Model, World> {
  check = (model: Readonly<Model>): boolean => model.isConnected && model.calls.length < 3;
  toString = (): string => 'INVITE';

  async run(model: Model, world: World): Promise<void> {
    const invite: Invite = { cseq: 1, branch: world.branch(), final: null, silentUntil: model.nowMs + SILENCE_MS };
    const call: Call = { id: `call${model.calls.length}`, invites: [invite], cseq: 1, phase: 'early', unacked: null, byes: 0 };
    model.calls.push(call);
    send(world, call, 'INVITE', 1, invite.branch, '<sip:b@server>');
    await settled(world);
  }
}

class Wait implements fc.AsyncCommand<Model, World> {
  constructor(private readonly ms: number) {}

  check = (): boolean => true;
  toString = (): string => `${this.ms} ms`;

  async run(model: Model, world: World): Promise<void> {
    await pass(model, world, this.ms);
  }
}

class Disconnect implements fc.AsyncCommand<Model, World> {
  check = (model: Readonly<Model>): boolean => model.isConnected;
  toString = (): string => 'the connection is gone';

  async run(model: Model, world: World): Promise<void> {
    model.isConnected = false;
    world.real.bench.dropCaller();
    // What is not answered has nobody to answer to any more.
    for (const call of model.calls) {
      for (const invite of call.invites) if (invite.final === null) invite.final = 0;
      if (call.phase === 'early') call.phase = 'over';
    }
    await settled(world);
  }
}

async function pass(model: Model, world: World, ms: number): Promise<void> {
  model.nowMs += ms;
  await world.real.bench.pass(ms);
  for (const call of model.calls) {
    for (const invite of call.invites) {
      if (invite.final !== null || invite.silentUntil === null || invite.silentUntil > model.nowMs) continue;
      invite.final = 500;
      if (call.phase === 'early') call.phase = 'over';
    }
    if (call.unacked !== null && call.unacked.until <= model.nowMs) {
      call.unacked = null;
      call.phase = 'over';
      if (model.isConnected) call.byes += 1;
    }
  }
  await settled(world);
}

async function settled(world: World): Promise<void> {
  await world.real.bench.settle();
  for (const call of world.model.calls) checkCall(call, world.real);
}

/** What must hold at any time. */
function checkCall(call: Call, real: Real): void {
  const own = real.bench.toCaller.filter((text) => text.includes(`Call-ID: ${call.id}\r\n`));
  for (const invite of call.invites) {
    const finals = new Set(finalsOf(real, invite.branch, 'INVITE'));
    // One final answer, however often it is repeated, and it is the model's.
    expect([...finals].map((text) => Number(text.slice(8, 11)))).toEqual(invite.final === null || invite.final === 0 ? [] : [invite.final]);
  }
  // One To-tag.
  const tags = own.filter((text) => text.startsWith('SIP/2.0')).flatMap((text) => /^To: .*;tag=(.*)\r$/m.exec(text)?.slice(1) ?? []);
  expect(new Set(tags).size).toBeLessThanOrEqual(1);
  // No BYE but the application's, and ours when 64·T1 have passed without an ACK.
  const byes = new Set(own.filter((text) => text.startsWith('BYE ')).map((text) => valuesOf(text, 'cseq')[0]));
  expect(byes.size).toBe(call.byes);
  // The application was asked once for each INVITE that it had to decide.
  const asked = real.bench.toApp.filter((payload) => payload.includes(`Call-ID: ${call.id}\r\n`) && payload.includes('\r\nINVITE ')).length;
  expect(asked).toBeLessThanOrEqual(call.invites.length);
}

describe('a SIP server that gets calls', () => {
  it.each(['UDP', 'TLS'] as const)(
    '[3261 §13.3] over %s has the calls that the model has after every step, and keeps nothing of them at the end',
    async (transport) => {
      const deeds = DEEDS.map((deed) => fc.nat(2).map((index) => new DeedCommand(deed, index)));
      const commands = fc.commands(
        [
          fc.constant(new NewCall()),
          ...deeds,
          fc.constantFrom(10, 700, 5_000, 21_000, 33_000).map((ms) => new Wait(ms)),
          ...(transport === 'TLS' ? [fc.constant(new Disconnect())] : []),
        ],
        { maxCommands: 40, size: 'max' },
      );
      await fc.assert(
        fc.asyncProperty(commands, async (plan) => {
          const real: Real = { bench: new Bench(transport, 6_000), transport };
          real.bench.fromApp('r|route|invite');
          await real.bench.settle();
          real.bench.toApp.length = 0;
          const model: Model = { nowMs: 0, isConnected: true, calls: [] };
          const world = new World(model, real);
          await fc.asyncModelRun(() => ({ model, real: world }), plan);
          await leaveNothing(world);
        }),
        { numRuns: 300 },
      );
    },
  );
});

/** The application refuses what is open and hangs up what stands; time does the rest. */
async function leaveNothing(world: World): Promise<void> {
  const { model, real } = world;
  const named = (name: string): Deed => DEEDS.find((deed) => deed.name === name)!;
  for (const call of model.calls) {
    while (open(call) !== undefined) {
      named('the application refuses').do(call, world);
      await settled(world);
    }
  }
  await pass(model, world, 33_000);
  for (const call of model.calls) if (call.phase === 'up') named('BYE of the application').do(call, world);
  await settled(world);
  await pass(model, world, 100_000);
  expect({ ...real.bench.left, dialogs: real.bench.dialogCount }).toEqual({
    pending: 0,
    calls: 0,
    outgoing: 0,
    proxied: 0,
    transactions: 0,
    timers: 0,
    dialogs: 0,
  });
}
