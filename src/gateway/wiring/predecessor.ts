import { errorText } from '../../lib/result.js';
import type { Log } from '../../lib/log.js';
import type { Inbound } from '../drachtio/inbound.js';
import type { MediaService } from '../media-thread/media-service.js';
import type { CallSnapshot } from '../model/call-snapshot.js';
import type { SnapshotStore } from '../ports/ports.js';

/** The process that this one follows: it has their calls and ports until it ends. */
export interface Predecessor {
  /** Wall time. */
  readonly ended: Promise<number>;
  /** True: what its calls need is to be made ready before it ends. False: it has ended. */
  readonly isAskedAhead: Promise<boolean>;
  /** It is ready, as far as it can be. */
  readonly onReady: () => void;
}

export const NO_PREDECESSOR: Predecessor = {
  // A process that died without a successor is replaced at once.
  ended: Promise.resolve(Math.round(performance.timeOrigin)),
  isAskedAhead: Promise.resolve(false),
  onReady: () => undefined,
};

interface SuccessorParts {
  readonly snapshots: SnapshotStore;
  readonly openSpool: () => Promise<void>;
  readonly endpoint: MediaService;
  readonly inbound: Inbound;
  readonly log: Log;
}

/** Takes over from the predecessor, if there is one. Resolves, with the sockets bound, with the calls that a process at this place left. */
export async function orphanedCalls(
  predecessor: Predecessor,
  { snapshots, openSpool, endpoint, inbound, log }: SuccessorParts,
): Promise<{ readonly orphaned: readonly CallSnapshot[]; readonly endedMs: number }> {
  if (await predecessor.isAskedAhead) {
    const preparing = snapshots.ahead().then((calls) => inbound.openAhead(calls, endpoint.ahead));
    await Promise.race([preparing, predecessor.ended]).catch((error: unknown) =>
      log.warn({ error: errorText(error) }, 'gateway.calls.not_ahead'),
    );
    endpoint.ahead.bindWhenFree();
    predecessor.onReady();
  }
  const endedMs = await predecessor.ended;
  await openSpool();
  // Callers hear nothing until their legs are open.
  const [orphaned] = await Promise.all([snapshots.orphaned(), endpoint.ready()]);
  return { orphaned, endedMs };
}
