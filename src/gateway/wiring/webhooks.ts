import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { traceparentOf } from '../../observability/tracing/trace-context.js';
import type { RedisStores } from '../store/redis/redis-stores.js';
import { subscribe } from '../ports/events.js';
import { GuardedClient } from '../net/guarded-client.js';
import { Analyst, type TextModel } from '../webhooks/analyst.js';
import { Poster } from '../webhooks/post.js';
import type { RetrySchedule } from '../webhooks/retry-schedule.js';
import { ANALYSIS_TIMEOUT_MS, WebhookSender, type WebhookSenderParts } from '../webhooks/sender.js';

const MAX_ANALYSIS_BYTES = 1 << 20;
/** For all that a webhook needs beside its receiver. */
const CLAIM_SPARE_MS = 10_000;

/** Delivers webhooks: those of calls as soon as their record is stored. */
export interface Webhooks {
  start(): void;
  close(): Promise<void>;
}

export function openWebhooks(config: Config, caPem: string | null, stores: RedisStores, clock: Clock, log: Log): Webhooks {
  const { allow_private: allowPrivate, timeout_ms: timeoutMs } = config.webhooks;
  const poster = new Poster({ allowPrivate, caPem, timeoutMs, clock });
  const { outbox, orgs, calls } = stores;
  // The operator's own address.
  const client = new GuardedClient({ allowPrivate: true, caPem, clock, maxResponseBytes: MAX_ANALYSIS_BYTES });
  const sender = new WebhookSender({
    outbox,
    orgs,
    calls,
    analyst: new Analyst(client, textModel(config)),
    post: tracedPost(poster, config),
    schedule: retrySchedule(config),
    claimMs: Math.max(2 * timeoutMs, ANALYSIS_TIMEOUT_MS) + CLAIM_SPARE_MS,
    clock,
    log,
    chance: Math.random,
  });
  const unsubscribe = subscribe('call.stored', ({ record, completion }) => {
    if (completion !== null && record.org_id !== null) sender.kick(record.org_id);
  });
  return {
    start: () => sender.start(),
    close: async () => {
      unsubscribe();
      await sender.close();
      await Promise.all([poster.close(), client.close()]);
    },
  };
}

function textModel({ analysis, openai }: Config): TextModel {
  const { url, model, api_key: apiKey } = analysis;
  const takesOpenAiKeys = new URL(url).protocol === 'https:' && new URL(url).host === new URL(openai.url).host;
  return { url, model, apiKey, takesOpenAiKeys };
}

/** A webhook delivery uses the trace of its call. */
function tracedPost(poster: Poster, { telemetry }: Config): WebhookSenderParts['post'] {
  if (telemetry.otlp_url === null) return (...given) => poster.post(...given);
  return (url, body, headers, aborted) => {
    const traceparent = traceparentOf(headers['webhook-id'] ?? '', telemetry.sample_ratio);
    return poster.post(url, body, { ...headers, traceparent }, aborted);
  };
}

function retrySchedule({ webhooks }: Config): RetrySchedule {
  return { firstMs: webhooks.retry_first_ms, maxMs: webhooks.retry_max_ms, giveUpMs: webhooks.give_up_ms };
}
