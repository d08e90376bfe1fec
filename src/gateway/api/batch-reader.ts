import type { Clock } from '../../lib/clock.js';
import { FairTurns } from '../../lib/fair-turns.js';
import { err, type Result } from '../../lib/result.js';
import { askThread, startThread } from '../../lib/thread.js';
import { readBatchText, type BatchText, type ReadBatch, type ReadBatchText } from './batch-body.js';
import { ApiFailure } from './failure.js';
import type { ApiErrorEntry } from './schemas/api-error.js';

/** A thread takes longer to start than these to be read. */
const SMALL = 16_384;
const LIMIT_MS = 30_000;
const MAX_MEMORY_MB = 512;
const MAX_CHARACTERS_OF_AN_ORG = 32 * 1_024 * 1_024;

type Answer = Result<ReadBatch, readonly ApiErrorEntry[]>;

/** Reads large bodies in a thread each, one at a time. */
export function batchReader(clock: Pick<Clock, 'nowMs' | 'setTimer'>): ReadBatchText {
  const turns = new FairTurns({ atOnce: 1, atOnceOfOne: 1, maxSize: MAX_CHARACTERS_OF_AN_ORG, rest: 1 }, clock);
  return (orgId, body) => {
    if (body.text.length <= SMALL) return readBatchText(body);
    const read = turns.run(orgId, body.text.length, () => readInThread(body, clock));
    if (read === null)
      throw new ApiFailure(
        'LIMIT_REACHED',
        'Too many numbers of the organization are being read: wait for the answers to earlier requests',
      );
    return read;
  };
}

async function readInThread(body: BatchText, clock: Pick<Clock, 'setTimer'>): Promise<Answer> {
  const thread = startThread(new URL('./batch-body-thread', import.meta.url), null, MAX_MEMORY_MB);
  const answer = await askThread<Answer>(thread, body, { clock, limitMs: LIMIT_MS });
  if (answer === 'late') return refused(`The numbers were not read within ${String(LIMIT_MS)} ms: send fewer at a time.`);
  return answer === 'failed' ? refused('The numbers could not be read: send fewer at a time.') : answer;
}

const refused = (message: string): Answer => err([{ error: 'VALIDATION', message }]);
