import { readBatchText } from '../../../../src/gateway/api/batch-body.js';
import { NO_CALLS_PLACED, NO_LIVE_CALLS } from '../../../support/no-calls-placed.js';
import { subscribe, type ServedRequest } from '../../../../src/gateway/ports/events.js';
import { createApiServer, type ApiOptions, type ApiServer } from '../../../../src/gateway/api/server.js';
import type { Readiness } from '../../../../src/gateway/api/routes/health.js';
import type { ErrorEnvelope } from '../../../../src/gateway/api/schemas/api-error.js';
import type { LiveCalls } from '../../../../src/gateway/model/live-calls.js';
import type { NumberRecord } from '../../../../src/gateway/model/records.js';
import type { PlaceCall } from '../../../../src/gateway/ports/place-call.js';
import type { CallCheck } from '../../../../src/gateway/api/schemas/sip-check.js';
import type { ToolRunner } from '../../../../src/gateway/ports/ports.js';
import type { Log } from '../../../../src/lib/log.js';
import { createMemoryStores } from '../../../support/store/memory.js';
import type { Stores } from '../../../../src/gateway/ports/stores.js';
import type { RateLimits } from '../../../../src/gateway/api/rate-limits.js';
import { VirtualClock } from '../../../support/virtual-clock.js';

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that a test reads. */
export function recordingLog(lines: LogLine[]): Log {
  const at = (level: string) => (fields: object, event: string) => void lines.push({ level, event, fields: { ...fields } });
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => log };
  return log;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The body as a success; look at `status` first. */
  readonly body: { readonly status: string; readonly data: unknown; readonly errors: unknown };
  readonly failure: ErrorEnvelope;
  readonly record: NumberRecord;
}

export interface ApiFixture {
  readonly api: ApiServer;
  readonly stores: Stores;
  readonly clock: VirtualClock;
  readonly lines: LogLine[];
  readonly served: ServedRequest[];
  readonly orgId: string;
  readonly key: string;
  post(path: string, body: unknown, key?: string): Promise<Answer>;
  get(path: string, key?: string): Promise<Answer>;
  delete(path: string, key?: string): Promise<Answer>;
  /** For clients, in place of the global one. */
  readonly fetch: typeof fetch;
  send(request: { method: string; url: string; headers?: Record<string, string>; payload?: string | Buffer | undefined }): Promise<Answer>;
}

export interface FixtureOptions {
  readonly allowPlain?: boolean;
  readonly rateLimits?: Partial<RateLimits>;
  readonly readiness?: Readiness;
  readonly check?: CallCheck;
  readonly placeCall?: PlaceCall;
  readonly liveCalls?: LiveCalls;
  readonly toolRunner?: ToolRunner;
  readonly consoleDirectory?: string;
  /** Puts other stores in place of some of those in memory. */
  readonly replace?: (stores: Stores) => Partial<Stores>;
}

export const acceptAll: CallCheck = () =>
  Promise.resolve({ outcome: 'accept', sip_status: 200, reason: null, explanation: 'Accepted.', codec: null, crypto_tag: null });

export const NO_TOOLS: ToolRunner = { run: () => Promise.reject(new Error('no tool is run here')) };

export const TEST_RATE_LIMITS: RateLimits = { total: 60_000, perAddress: 12_000, perKey: 6000 };

export const TEST_AGENT_POLICY: ApiOptions['agents'] = {
  isWebhookHost: (host) => host !== '10.0.0.1',
  agentUrlRefusal: ({ hostname }) => (hostname === '10.0.0.1' ? `${hostname} is private` : null),
  languages: ['ENG', 'GER'],
  voices: [
    { name: 'de', language: 'GER' },
    { name: 'nova', language: null },
  ],
  maxDurationMinutes: 120,
};

/** The API over stores in memory, with one organization that has SIP enabled and one key of it. */
export async function openApi(options: FixtureOptions = {}): Promise<ApiFixture> {
  const clock = new VirtualClock();
  const memory = createMemoryStores({ clock });
  const stores = { ...memory, ...options.replace?.(memory) };
  const lines: LogLine[] = [];
  const served: ServedRequest[] = [];
  subscribe('api.request', (one) => served.push(one));
  const readiness = options.readiness ?? (() => Promise.resolve({ parts: { redis: true }, warnings: [] }));
  const api = await createApiServer(
    {
      stores,
      check: options.check ?? acceptAll,
      placeCall: options.placeCall ?? NO_CALLS_PLACED,
      liveCalls: options.liveCalls ?? NO_LIVE_CALLS,
      toolRunner: options.toolRunner ?? NO_TOOLS,
      readBatch: (_orgId, body) => readBatchText(body),
      readiness,
      clock,
      log: recordingLog(lines),
    },
    {
      allowPlain: options.allowPlain ?? false,
      version: '0.0.0-test',
      agents: TEST_AGENT_POLICY,
      rateLimits: { ...TEST_RATE_LIMITS, ...options.rateLimits },
      ...(options.consoleDirectory === undefined ? {} : { consoleDirectory: options.consoleDirectory }),
    },
  );
  const { org_id: orgId } = await memory.orgs.create({ name: 'acme', sip_enabled: true });
  const { key } = await memory.keys.create(orgId, 'test');
  const send: ApiFixture['send'] = async ({ method, url, headers, payload }) => {
    const answer = await api.inject({
      method: method as 'GET',
      url,
      ...(headers ? { headers } : {}),
      ...(payload === undefined ? {} : { payload }),
    });
    return answerOf(answer.statusCode, answer.headers, answer.payload);
  };
  return {
    api,
    stores,
    clock,
    lines,
    served,
    orgId,
    key,
    send,
    post: (path, body, with_ = key) =>
      send({
        method: 'POST',
        url: path,
        headers: { authorization: with_, 'content-type': 'application/json' },
        payload: JSON.stringify(body),
      }),
    get: (path, with_ = key) => send({ method: 'GET', url: path, headers: { authorization: with_ } }),
    delete: (path, with_ = key) => send({ method: 'DELETE', url: path, headers: { authorization: with_ } }),
    fetch: async (given, init) => {
      const request = new Request(given, init);
      const { pathname, search } = new URL(request.url);
      const payload = await request.text();
      const answer = await send({
        method: request.method,
        url: pathname + search,
        headers: Object.fromEntries(request.headers),
        payload: payload === '' ? undefined : payload,
      });
      return new Response(answer.text, { status: answer.status, headers: answer.headers as Record<string, string> });
    },
  };
}

export function answerOf(status: number, headers: Readonly<Record<string, unknown>>, text: string): Answer {
  const parse = (): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      return {};
    }
  };
  const body = parse() as Answer['body'];
  return { status, headers, text, body, failure: body as unknown as ErrorEnvelope, record: body.data as NumberRecord };
}
