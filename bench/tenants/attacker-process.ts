import { NoisyTenant, storesOf } from '../../test/support/noisy-tenant.js';
import { runCli, type RunningGateway } from '../../test/support/gateway.js';
import { takeOrders } from '../support/orders.js';
import { Attacker } from './attacker.js';
import { ATTACKS, type Turn } from './attacks.js';

// The attacker, as a process of its own.

/** `place`: of ATTACKS, or EVERYTHING. */
export type AttackerOrder =
  | { readonly type: 'prepare'; readonly place: string; readonly gateway: Pick<RunningGateway, 'ready' | 'sipPort' | 'ca' | 'environment'> }
  | { readonly type: 'begin' | 'end' | 'close' };

export interface AttackerResult {
  /** How often it was answered, by status. */
  readonly answers: readonly (readonly [number, number])[];
  /** What the API said last when it refused. */
  readonly refusal: string | null;
}

export const EVERYTHING = 'everything';
/** Turns of an attack at once. */
const LANES = 4;

interface Prepared {
  begin(): void;
  end(): Promise<void>;
  close(): Promise<void>;
  result(): AttackerResult;
}

/** Turns of an attack, several at once. */
class Lanes {
  #isOver = true;
  #lanes: readonly Promise<void>[] = [];

  constructor(private readonly turn: Turn) {}

  begin(): void {
    this.#isOver = false;
    this.#lanes = Array.from({ length: LANES }, async () => {
      while (!this.#isOver) {
        await this.turn().catch(() => undefined);
        // A turn that is refused at once must not keep this process busy.
        await new Promise((done) => setTimeout(done, 5));
      }
    });
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#lanes);
  }
}

async function prepare({ place, gateway: doors }: Extract<AttackerOrder, { type: 'prepare' }>): Promise<Prepared> {
  const gateway = { ...doors, cli: (...args: readonly string[]) => runCli(doors.environment, args) };
  const stores = await storesOf(doors);
  if (place === EVERYTHING) {
    const noisy = await NoisyTenant.create(gateway, stores, '+15550166000');
    return {
      begin: () => noisy.start(),
      end: () => noisy.pause(),
      close: () => Promise.all([noisy.stop(), stores.close()]).then(() => undefined),
      result: () => ({ answers: [...noisy.answers], refusal: null }),
    };
  }
  const attack = ATTACKS.find((one) => one.place === place);
  if (attack === undefined) throw new Error(`there is no attack on ${place}`);
  const attacker = await Attacker.create(gateway, stores, `Attacker: ${place}`);
  const lanes = new Lanes(await attack.prepare(attacker));
  return {
    begin: () => lanes.begin(),
    end: () => lanes.end(),
    close: () => Promise.all([attacker.close(), stores.close()]).then(() => undefined),
    result: () => ({ answers: [...attacker.answers], refusal: attacker.refusal }),
  };
}

let prepared: Prepared | null = null;

async function obey(order: AttackerOrder): Promise<AttackerResult | null> {
  if (order.type === 'prepare') prepared = await prepare(order);
  else await prepared?.[order.type]();
  return prepared?.result() ?? null;
}

takeOrders(obey);
