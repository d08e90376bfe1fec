import type { CallAnswer, CallInProgress } from '../../../model/live-calls.js';
import { readPage } from '../call-page.js';
import { endingCallKey, gatewayAnswersKey, orgLeasesKey, orgLiveCallsKey, orgLiveKey } from '../keys.js';
import { readLiveEntry } from '../../../ports/listing.js';
import { RedisScript, type RedisConnection } from '../redis.js';
import type { CallPage, CallQuery, LiveCallLog } from '../../../ports/stores.js';

const LIST_LIVE = new RedisScript('live-calls/list');
const FIND_LIVE = new RedisScript('live-calls/find');

/** Calls in progress, as the gateways list them in Redis. */
export class RedisLiveCalls implements LiveCallLog {
  constructor(private readonly redis: RedisConnection) {}

  async get(orgId: string, callId: string): Promise<CallInProgress | null> {
    return this.#one(orgId, await this.redis.script(FIND_LIVE, [orgLiveCallsKey(orgId), orgLeasesKey(orgId)], [callId]));
  }

  async ending(orgId: string, callId: string): Promise<CallInProgress | null> {
    return this.#one(orgId, await this.redis.run((client) => client.get(endingCallKey(orgId, callId))));
  }

  async list(orgId: string, query: CallQuery): Promise<CallPage<CallInProgress>> {
    const keys = [orgLiveKey(orgId), orgLiveCallsKey(orgId), orgLeasesKey(orgId)];
    const { calls, next } = await readPage(query, async ({ from, to }, count) => {
      const answer = await this.redis.script(LIST_LIVE, keys, [
        to === null ? '+' : `(${to}`,
        from === '' ? '-' : `[${from}`,
        String(count),
      ]);
      return pairs(answer).map(([member, text]) => ({
        member,
        record: text === '' ? null : readLiveEntry(orgId, text),
        bytes: text.length,
      }));
    });
    return { calls: await this.#withAnswers(calls), next };
  }

  async #one(orgId: string, text: unknown): Promise<CallInProgress | null> {
    if (typeof text !== 'string') return null;
    const [call = null] = await this.#withAnswers([readLiveEntry(orgId, text)]);
    return call;
  }

  /** What a call that was answered has more stands at its gateway's snapshots: one read a gateway. */
  async #withAnswers(calls: readonly CallInProgress[]): Promise<readonly CallInProgress[]> {
    const answers = new Map<string, CallAnswer>();
    const gateways = new Set(calls.map(({ gateway }) => gateway));
    await Promise.all(
      [...gateways].map(async (gateway) => {
        const ids = calls.filter((call) => call.gateway === gateway).map(({ call_id: callId }) => callId);
        const texts = await this.redis.run((client) => client.hmget(gatewayAnswersKey(gateway), ...ids));
        for (const [index, callId] of ids.entries()) {
          const text = texts[index];
          if (typeof text === 'string') answers.set(callId, JSON.parse(text) as CallAnswer);
        }
      }),
    );
    return calls.map((call) => ({ ...call, answer: answers.get(call.call_id) ?? null }));
  }
}

/** Members and texts in turn. */
function pairs(answer: unknown): [string, string][] {
  if (!Array.isArray(answer)) throw new Error('live-calls/list.lua answered no array');
  return Array.from({ length: answer.length / 2 }, (_, index) => [String(answer[2 * index]), String(answer[2 * index + 1])]);
}
