import { lookup, Resolver } from 'node:dns/promises';
import pLimit from 'p-limit';

export interface ResolvedAddress {
  readonly address: string;
  /** `null`: the system's name service does not say. */
  readonly ttlMs: number | null;
}

const TIMEOUT_MS = 1_000;
const TRIES = 2;

// The system's name service takes one of libuv's four threads for as long as a DNS server is mute, and files, compression and keys need
// them too. Names that others choose never take more than two.
const systemTurn = pLimit(2);

const bySystem = (name: string): Promise<readonly { readonly address: string }[]> => systemTurn(() => lookup(name, { all: true }));

/**
 * Resolves names that customers and peers choose: by the machine's DNS servers, without a thread, for at most 2 s. What DNS does not know, and a
 * name without a dot, may be in /etc/hosts, which only the system's name service reads.
 */
export class NameAddresses {
  constructor(
    private readonly resolver: Resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES }),
    private readonly system = bySystem,
  ) {}

  /** Rejects when there are none, with the code of node:dns (`ENOTFOUND`, `ETIMEOUT`). */
  async of(name: string): Promise<readonly ResolvedAddress[]> {
    if (name.includes('.')) {
      const answers = await Promise.allSettled([this.resolver.resolve4(name, { ttl: true }), this.resolver.resolve6(name, { ttl: true })]);
      const records = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
      if (records.length > 0) return records.map(({ address, ttl }) => ({ address, ttlMs: 1_000 * ttl }));
      // A server that is mute to us is so to the system.
      const failed = answers.find((answer) => answer.status === 'rejected' && !isAbsent(answer.reason));
      if (failed?.status === 'rejected') throw failed.reason;
    }
    return (await this.system(name)).map(({ address }) => ({ address, ttlMs: null }));
  }
}

/** Whether DNS answered that there is no such record. */
export function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOTFOUND' || code === 'ENODATA';
}
