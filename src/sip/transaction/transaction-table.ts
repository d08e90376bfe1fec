import { PassingMap } from '../../lib/passing-map.js';
import { ServerTransaction, type ClientTransaction } from './transaction-runner.js';

/** Transactions by their keys (RFC 3261 §17). A peer may name a branch as we named ours. */
export class TransactionTable {
  readonly server = new PassingMap<string, ServerTransaction>();
  readonly client = new PassingMap<string, ClientTransaction>();

  get size(): number {
    return this.server.size + this.client.size;
  }

  /** Those without a final response. */
  get unanswered(): Readonly<Record<'client' | 'server', number>> {
    const count = (of: PassingMap<string, ClientTransaction | ServerTransaction>): number =>
      [...of.values()].filter(({ isUnanswered }) => isUnanswered).length;
    return { client: count(this.client), server: count(this.server) };
  }

  all(): (ClientTransaction | ServerTransaction)[] {
    return [...this.server.values(), ...this.client.values()];
  }

  add(transaction: ClientTransaction | ServerTransaction): void {
    if (transaction instanceof ServerTransaction) this.server.set(transaction.key, transaction);
    else this.client.set(transaction.key, transaction);
  }

  delete(transaction: ClientTransaction | ServerTransaction): void {
    if (transaction instanceof ServerTransaction) this.server.delete(transaction.key);
    else this.client.delete(transaction.key);
  }

  clear(): void {
    this.server.clear();
    this.client.clear();
  }
}
