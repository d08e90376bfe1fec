import { expect } from 'vitest';
import { TestBot } from '../../support/agent/test-bot.js';
import { OutboundSite } from '../../support/outbound-site.js';
import type { TakenCall } from '../../support/outbound-trunk.js';
import { offerSdp } from '../../support/sdp.js';
import { turn } from '../driver/time.js';
import { worldDatagrams } from '../driver/datagrams.js';
import { World } from '../world.js';
import { Carrier, type CarrierCall } from './carrier.js';
import type { Part, Step } from './steps.js';
import { respond } from '../../support/sip-message.js';

const LIMITED = '+15550100777';
const UNKNOWN = '+15550100888';
const MOST_CALLS = 1;
const RELAYS = ['rtpengine-1', 'rtpengine-2'] as const;
/** After that long nothing of a call that has ended may be under way: 64·T1 for its BYE, and the media timeout of one that nobody ends. */
const SETTLED_MS = 100_000;

type Place = Extract<Step, { do: 'place' }>['callee'];

/** Plays a script in a world of its own, mends what the script broke, ends its calls, and checks what has to hold whatever happened. */
export async function play(script: readonly Step[]): Promise<void> {
  const bot = await TestBot.start();
  const site = await OutboundSite.startOn((settings) =>
    World.start({ ...settings, TRUNKLINE_AGENTS_URL: bot.url, TRUNKLINE_AGENTS_ALLOW_PRIVATE: 'true' }, { relays: 2 }),
  );
  try {
    const played = new PlayedWorld(site, bot);
    await played.begin();
    for (const step of script) await played.perform(step);
    await played.mend();
    await played.check();
  } finally {
    await site.destroy();
    await bot.stop();
  }
}

class PlayedWorld {
  readonly #world: World;
  readonly #carrier: Carrier;
  readonly #dead = new Set<Part>();
  readonly #stalled = new Set<Part>();
  /** Calls that a gateway had when it died and Redis was away: nobody else knows of them. */
  readonly #lost = new Set<CarrierCall>();
  readonly #callees: Place[] = [];
  readonly #placed: string[] = [];
  readonly #taken: { readonly call: TakenCall; isTalking: boolean }[] = [];

  constructor(
    private readonly site: OutboundSite<World>,
    private readonly bot: TestBot,
  ) {
    this.#world = site.gateway;
    this.#carrier = new Carrier(this.#world);
  }

  async begin(): Promise<void> {
    const body = { phone_number: LIMITED, directions: ['inbound'], service: 'sip', options: { max_concurrent_calls: MOST_CALLS } };
    expect((await this.#world.api('POST', '/sip/attach', body)).status).toBe(200);
    this.site.trunk.takeAll((call) => this.#take(call));
    await this.#carrier.connect();
  }

  async perform(step: Step): Promise<void> {
    switch (step.do) {
      case 'call': {
        const number = { own: this.#world.ready.phone_number, unknown: UNKNOWN, limited: LIMITED }[step.number];
        return this.#carrier.call(number, step.late);
      }
      case 'cancel':
        return this.#withCall(step.call, (call) => this.#carrier.cancel(call));
      case 'hang-up':
        return this.#withCall(step.call, (call) => this.#carrier.hangUp(call));
      case 'hold':
      case 'resume':
        return this.#withCall(step.call, (call) => this.#carrier.change(call, step.do === 'hold' ? 'sendonly' : 'sendrecv'));
      case 'place':
        return this.#place(step.callee);
      case 'callee-hangs-up': {
        const one = at(this.#taken, step.call);
        if (one?.isTalking === true) this.#hangUpAtTrunk(one);
        return;
      }
      case 'stop-by-api': {
        const callId = at(this.#placed, step.call);
        if (callId !== undefined) void this.#world.api('POST', `/v1/calls/${callId}/stop`, {}).catch(() => undefined);
        return;
      }
      case 'bot-says':
      case 'bot-hangs-up':
      case 'bot-breaks': {
        const connection = at(this.bot.calls.all, step.bot);
        if (connection?.socket.readyState !== 1 || connection.of('start').length === 0) return;
        if (step.do === 'bot-says') connection.say(new Uint8Array(1_600).fill(0x55));
        else if (step.do === 'bot-hangs-up') connection.socket.close(1_000);
        else connection.socket.terminate();
        return;
      }
      case 'kill':
        this.#kill(step.part);
        return;
      case 'start':
        return this.#start(step.part);
      case 'stall':
        this.#stalled.add(step.part);
        if (step.part === 'redis') this.#world.redis.stall();
        else this.#relay(step.part).stall();
        return;
      case 'go-on':
        this.#stalled.delete(step.part);
        if (step.part === 'redis') this.#world.redis.go();
        else this.#relay(step.part).goOn();
        return;
      case 'lose':
        worldDatagrams().lose(step.datagrams);
        return;
      case 'reconnect':
        this.#carrier.drop();
        return;
      case 'pass':
        return this.#world.pass(step.ms);
      case 'turns':
        for (let turns = 0; turns < step.turns; turns += 1) await turn();
        return;
    }
  }

  /** Everything lives again, every call is ended by whoever has it, and the time for the rest has passed. */
  async mend(): Promise<void> {
    const world = this.#world;
    worldDatagrams().lose(0);
    this.#stalled.clear();
    world.redis.go();
    for (const relay of world.rtpengines) relay.goOn();
    for (const part of ['rtpengine-1', 'rtpengine-2', 'gateway', ...this.#dead] as const) await this.#start(part);
    await world.pass(15_000);
    for (const call of this.#carrier.calls) await this.#carrier.hangUp(call);
    for (const one of this.#taken) if (one.isTalking) this.#hangUpAtTrunk(one);
    await world.pass(SETTLED_MS);
  }

  async check(): Promise<void> {
    const world = this.#world;
    const records = await world.records();
    const recordsOf = (sipCallId: string): readonly Record<string, unknown>[] => records.filter((one) => one['sip_call_id'] === sipCallId);
    for (const call of this.#carrier.calls) {
      const { callId } = call.signalling;
      expect(call.finals.length, `${callId} has one final answer at most`).toBeLessThanOrEqual(1);
      if (call.isAnswered && !this.#lost.has(call)) expect(recordsOf(callId).length, `${callId} was answered, and has one record`).toBe(1);
      else expect(recordsOf(callId).length, `${callId} has one record at most`).toBeLessThanOrEqual(1);
    }
    for (const callId of this.#placed)
      expect(records.filter((one) => one['call_id'] === callId).length, `${callId} was accepted, and has one record`).toBe(1);
    expect(mostAtOnce(records.filter((one) => one['to'] === LIMITED)), 'calls up at once of the number that takes one').toBeLessThanOrEqual(
      MOST_CALLS,
    );
    expect(
      records.filter((one) => one['state'] !== undefined && one['state'] !== 'ended'),
      'no call is in progress',
    ).toEqual([]);
    for (const [index, relay] of world.rtpengines.entries())
      expect([...relay.sessions.keys()], `sessions of rtpengine ${String(index + 1)}`).toEqual([]);
    const { pending, calls, outgoing, proxied, transactions, timers, dialogs } = world.sipServer.counts;
    expect({ pending, calls, outgoing, proxied, transactions, timers, dialogs }, 'what the SIP server has left').toEqual({
      pending: 0,
      calls: 0,
      outgoing: 0,
      proxied: 0,
      transactions: 0,
      timers: 0,
      dialogs: 0,
    });
    const open = this.bot.calls.all.filter(({ socket }) => socket.readyState !== 3);
    expect(open.length, 'connections of bots').toBe(0);
    expect(world.events('process.unhandled_rejection'), 'unhandled rejections').toEqual([]);
    await this.#checkFigures();
  }

  /** What the gateway itself counts. */
  async #checkFigures(): Promise<void> {
    const text = await (await fetch(`${this.#world.ready.http}/metrics`)).text();
    const sum = (name: string): number =>
      [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].reduce((total, [, value]) => total + Number(value), 0);
    const names = [
      'trunkline_calls_in_progress',
      'trunkline_relay_sessions',
      'trunkline_call_snapshots',
      'trunkline_call_places',
      'trunkline_media_legs',
    ];
    expect(Object.fromEntries(names.map((name) => [name, sum(name)])), 'what the gateway has left').toEqual(
      Object.fromEntries(names.map((name) => [name, 0])),
    );
  }

  async #withCall(index: number, work: (call: Carrier['calls'][number]) => Promise<void>): Promise<void> {
    const call = at(this.#carrier.calls, index);
    if (call !== undefined) await work(call);
  }

  async #place(callee: Place): Promise<void> {
    const answer = await this.site.place().catch(() => null);
    if (answer?.status !== 200) return;
    this.#callees.push(callee);
    this.#placed.push(String(answer.json['call_id']));
  }

  #take(call: TakenCall): void {
    const callee = this.#callees[this.#taken.length] ?? 'answers';
    const one = { call, isTalking: false };
    this.#taken.push(one);
    if (callee === 'is-mute') return;
    call.respond('180 Ringing');
    if (callee === 'is-busy') call.respond('486 Busy Here');
    void call
      .request('CANCEL')
      .then((cancel) => {
        respond(call.peer, cancel, '200 OK');
        if (callee === 'rings') call.respond('487 Request Terminated');
      })
      .catch(() => undefined);
    void call
      .request('BYE')
      .then((bye) => {
        one.isTalking = false;
        respond(call.peer, bye, '200 OK');
      })
      .catch(() => undefined);
    if (callee !== 'answers') return;
    one.isTalking = true;
    void call.answer(offerSdp({ payloads: '0 101' })).catch(() => undefined);
  }

  #hangUpAtTrunk(one: { readonly call: TakenCall; isTalking: boolean }): void {
    one.isTalking = false;
    // Its connection may be gone.
    void one.call.dialog.request('BYE').catch(() => undefined);
  }

  #kill(part: Part): void {
    if (this.#dead.has(part)) return;
    this.#dead.add(part);
    if (part === 'gateway') {
      if (this.#dead.has('redis') || this.#stalled.has('redis')) for (const call of this.#carrier.calls) this.#lost.add(call);
      this.#world.killGateway();
    } else if (part === 'sip-server') this.#world.killSipServer();
    else if (part === 'redis') this.#world.killRedis();
    else this.#relay(part).kill();
  }

  async #start(part: Part): Promise<void> {
    if (!this.#dead.has(part)) return;
    // A gateway needs Redis, the SIP server and an rtpengine to start.
    if (part === 'gateway') {
      if (this.#stalled.has('redis') || !RELAYS.some((relay) => !this.#dead.has(relay) && !this.#stalled.has(relay))) return;
      for (const other of ['redis', 'sip-server'] as const) await this.#start(other);
    }
    this.#dead.delete(part);
    if (part === 'gateway') await this.#world.startGateway();
    else if (part === 'sip-server') await this.#world.startSipServer();
    else if (part === 'redis') this.#world.startRedis();
    else this.#relay(part).start();
  }

  #relay(part: 'rtpengine-1' | 'rtpengine-2'): World['rtpengine'] {
    const relay = this.#world.rtpengines[part === 'rtpengine-1' ? 0 : 1];
    if (relay === undefined) throw new Error(`there is no ${part}`);
    return relay;
  }
}

/** How many of the calls were up at the same time, at most. */
function mostAtOnce(records: readonly Record<string, unknown>[]): number {
  const spans = records
    .filter((one) => typeof one['answered_at'] === 'string')
    .map((one) => ({ from: Date.parse(String(one['answered_at'])), to: Date.parse(String(one['ended_at'])) }));
  return Math.max(0, ...spans.map(({ from }) => spans.filter((other) => other.from <= from && from < other.to).length));
}

function at<T>(list: readonly T[], place: number): T | undefined {
  return list.length === 0 ? undefined : list[place % list.length];
}
