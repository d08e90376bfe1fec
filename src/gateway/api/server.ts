import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type InjectOptions,
  type LightMyRequestResponse,
  type RouteOptions,
} from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import type { IncomingMessage } from 'node:http';
import type { AgentPolicy } from './schemas/agent-rules.js';
import type { LiveCalls } from '../model/live-calls.js';
import type { SipApiPolicy } from './schemas/sip-api.js';
import type { PlaceCall } from '../ports/place-call.js';
import type { CallCheck } from './schemas/sip-check.js';
import { publish } from '../ports/events.js';
import type { ToolRunner } from '../ports/ports.js';
import { isNestedDeeper, MAX_NESTING } from '../../lib/bounded-json.js';
import { newUuid } from '../../lib/ids.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { ScopedReads } from './scoped-reads.js';
import { describeKeyedRoute } from './answers.js';
import type { ReadBatchText } from './batch-body.js';
import { authenticate, identityOf, isOperator, keyIdOf, requireSipEntitlement } from './auth.js';
import { auditRecorder } from './audit.js';
import { CallControl } from './call-control.js';
import { bodyProblem } from './body-problem.js';
import { answerClientError, answerExpectation, ApiFailure, failureOf } from './failure.js';
import { refuseUnknownQuery } from './known-query.js';
import { collectOpenapi, openapiRoutes } from './openapi.js';
import { rateLimitHooks, type RateLimitHooks, type RateLimits } from './rate-limits.js';
import { agentRoutes } from './routes/agents.js';
import { auditRoutes } from './routes/audit.js';
import { batchRoutes } from './routes/batches.js';
import { callRoutes } from './routes/calls.js';
import { placeCallRoutes } from './routes/place-call.js';
import { consoleRoutes } from './routes/console.js';
import { doNotCallRoutes } from './routes/do-not-call.js';
import { healthRoutes, type Readiness } from './routes/health.js';
import { metricsRoutes, type MetricsSource } from './routes/metrics.js';
import { orgRoutes } from './routes/orgs.js';
import { reasonRoutes } from './routes/reasons.js';
import { sipRoutes } from './routes/sip.js';
import { throughputRoutes } from './routes/throughput.js';
import { webhookRoutes } from './routes/webhooks.js';
import { toolRoutes } from './routes/tools.js';
import { twilioRoutes } from './routes/twilio.js';
import { voiceRoutes } from './routes/voices.js';
import type { RouteContext, Voice, ZodApp } from './context.js';
import { takeTurn, Turns } from './turns.js';
import { isTwilioUrl, sendTwilioFailure } from './twilio-failure.js';
import { FORBIDDEN_NAME, NESTED_TOO_DEEP, zodValidator } from './validation.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** On the injected clock. */
    arrivedAtMs: number;
  }
}

export interface ApiDeps {
  readonly stores: RouteContext['stores'];
  readonly check: CallCheck;
  readonly placeCall: PlaceCall;
  readonly liveCalls: LiveCalls;
  readonly toolRunner: ToolRunner;
  readonly readBatch: ReadBatchText;
  readonly readiness: Readiness;
  readonly clock: Clock;
  readonly log: Log;
  /** None: there is no /metrics. */
  readonly metrics?: MetricsSource;
}

export interface ApiOptions extends Pick<SipApiPolicy, 'allowPlain'> {
  /** Shown by /healthz and in the OpenAPI document. */
  readonly version?: string;
  readonly rateLimits: RateLimits;
  /** Where the console was built; left out: there is none. */
  readonly consoleDirectory?: string;
  readonly agents: Omit<AgentPolicy, 'voices'> & { readonly voices: readonly Voice[] };
}

export interface ApiAddress {
  readonly host: string;
  readonly port: number;
}

export interface ApiServer {
  /** Listens on this address only; `port: 0` takes a free one. Resolves with where it listens. */
  listen(address: ApiAddress): Promise<ApiAddress>;
  /** Takes no new connections, answers what is under way, then ends. */
  close(): Promise<void>;
  /** A request without a socket. */
  inject(request: InjectOptions): Promise<LightMyRequestResponse>;
}

const UNKNOWN_VERSION = '0.0.0';
const BODY_LIMIT_BYTES = 256 * 1024;
const HEADER_LIMIT_BYTES = 16 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 15_000;
/** How often Node.js looks for requests that are too slow. Its default of 30 s lets them have so much longer. */
const SLOW_LOOK_MS = 1_000;
const IDLE_TIMEOUT_MS = 60_000;
const MAX_CONNECTIONS = 2000;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

/** Makes the HTTP server of the control API. It has all its routes when this resolves, and listens after `listen`. */
export async function createApiServer(deps: ApiDeps, options: ApiOptions): Promise<ApiServer> {
  const app = newApp(deps.log);
  const routes = watchRoutes(app);
  refuseUnknownQuery(app);
  const limits = await rateLimitHooks(app, options.rateLimits);
  app.decorateRequest('identity', null);
  app.decorateRequest('arrivedAtMs', 0);
  app.addHook('onRequest', async (request, reply) => {
    request.arrivedAtMs = deps.clock.nowMs();
    reply.header('x-request-id', request.id);
    await limits.beforeAuth.call(app, request, reply);
    if (request.raw.httpVersion === '1.1' && request.headers.host === undefined)
      throw new ApiFailure('VALIDATION', 'The request has no Host header (RFC 9112 §3.2)');
    // Before the body is read: whether it could be read is no matter where nothing takes it.
    if (request.is404) throw routes.failureFor(request.method, request.url);
    // `/v1/agents/` is no agent without an id; the files of the console have any path.
    const { '*': _file, ...ids } = request.params as Readonly<Record<string, string>>;
    if (Object.values(ids).includes('')) throw new ApiFailure('NOT_FOUND', 'No such route: a part of the path is empty');
  });
  app.addHook('onResponse', (request, reply, done) => {
    report(deps, request, reply);
    done();
  });
  app.setErrorHandler((error, request, reply) => send(deps.log, request, reply, failureOf(error, request.id)));
  app.setNotFoundHandler((request, reply) => send(deps.log, request, reply, routes.failureFor(request.method, request.url)));
  await addRoutes(app, limits, deps, options);
  await app.ready();
  return serverOf(app);
}

function newApp(log: Log): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_LIMIT_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    forceCloseConnections: 'idle',
    // While closing, what arrives on an open connection is still answered, and in the usual shape.
    return503OnClosing: false,
    http: {
      maxHeaderSize: HEADER_LIMIT_BYTES,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: SLOW_LOOK_MS,
      // A request without a Host is refused by us: Node.js would answer it without a body and an id.
      requireHostHeader: false,
    },
    genReqId: requestIdOf,
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id);
      send(log, request, reply, failureOf(error, request.id));
    },
    clientErrorHandler: answerClientError,
    // The framework loads its own compilers unless others are named here.
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
  });
  app.server.maxConnections = MAX_CONNECTIONS;
  app.server.on('checkExpectation', (request, response) => answerExpectation(requestIdOf(request), response));
  app.setValidatorCompiler(zodValidator);
  app.setSerializerCompiler(serializerCompiler);
  // JSON is the only content; the framework would take plain text too.
  app.removeContentTypeParser('text/plain');
  takeJson(app);
  return app;
}

function unused(): never {
  throw new Error('every schema of the API is a zod schema');
}

/** Reads JSON as the framework does, and tells a body that is none from one with fields that could change what objects are. */
function takeJson(app: FastifyInstance): void {
  const read = app.getDefaultJsonParser('error', 'error');
  app.removeContentTypeParser('application/json');
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, bytes, done) => {
    // Many clients send the type with each request; a route that needs a body says that there is none.
    if (bytes.length === 0) {
      done(null, undefined);
      return;
    }
    const problem = bodyProblem(request.headers, bytes);
    const body = bytes.toString();
    if (problem !== null || isNestedDeeper(body, MAX_NESTING)) {
      done(problem ?? new ApiFailure('VALIDATION', NESTED_TOO_DEEP));
      return;
    }
    void read(request, body, (error, value) => {
      const isForbidden = error !== null && isJson(body);
      done(isForbidden ? new ApiFailure('VALIDATION', FORBIDDEN_NAME) : error, value);
    });
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const KEYED_ROUTES = [
  ...[callRoutes, placeCallRoutes, webhookRoutes, agentRoutes, voiceRoutes, batchRoutes, doNotCallRoutes, toolRoutes],
  ...[auditRoutes, orgRoutes, reasonRoutes, throughputRoutes],
];

async function addRoutes(app: FastifyInstance, limits: RateLimitHooks, deps: ApiDeps, options: ApiOptions): Promise<void> {
  const { stores, clock, log, check, placeCall, readBatch, toolRunner: runner } = deps;
  const version = options.version ?? UNKNOWN_VERSION;
  await collectOpenapi(app, version);
  const reads = new ScopedReads(stores);
  const { voices, ...agents } = options.agents;
  const context: RouteContext = {
    stores,
    reads,
    check,
    placeCall,
    runner,
    readBatch,
    clock,
    voices,
    control: new CallControl(deps.liveCalls, stores, reads),
    note: auditRecorder(stores.audit, log),
    agentPolicy: { ...agents, voices: voices.map(({ name }) => name) },
    sipPolicy: { allowPlain: options.allowPlain, isWebhookHost: options.agents.isWebhookHost },
  };
  healthRoutes(app.withTypeProvider(), { readiness: deps.readiness, version });
  if (deps.metrics !== undefined) metricsRoutes(app.withTypeProvider(), { metrics: deps.metrics });
  const inTurn = takeTurn(
    new Turns(clock),
    (request) => (isOperator(request) ? keyIdOf(request) : identityOf(request).orgId),
    BODY_LIMIT_BYTES,
  );
  await app.register(async (scope) => {
    const keyed: ZodApp = scope.withTypeProvider();
    keyed.addHook('onRoute', describeKeyedRoute);
    keyed.addHook('onRequest', authenticate(stores, log));
    keyed.addHook('onRequest', limits.perKey);
    keyed.addHook('onRequest', inTurn);
    for (const addTo of KEYED_ROUTES) addTo(keyed, context);
    await keyed.register((sip, _options, done) => {
      sip.addHook('onRequest', requireSipEntitlement);
      sipRoutes(sip, context);
      done();
    });
  });
  await app.register((scope, _options, done) => {
    twilioRoutes(scope.withTypeProvider(), context, [limits.perKey, inTurn]);
    done();
  });
  await app.register(consoleRoutes, { directory: options.consoleDirectory ?? null });
  await openapiRoutes(app);
}

/** The caller's own id when it is fit to stand in a log line, else a new one. */
function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : newUuid();
}

function send(log: Log, request: FastifyRequest, reply: FastifyReply, failure: ApiFailure): void {
  const cause = failure.cause;
  if (failure.statusCode >= 500 && cause instanceof Error) {
    // Not the error object itself: its fields may hold what the caller sent.
    const fields = { request_id: request.id, code: failure.code, error: cause.message, stack: cause.stack };
    log.error(fields, 'api.request.failed');
  }
  if (isTwilioUrl(request.url)) sendTwilioFailure(reply, failure, request.id);
  else void reply.code(failure.statusCode).headers(failure.headers).send(failure.envelope);
}

function report(deps: ApiDeps, request: FastifyRequest, reply: FastifyReply): void {
  // The route's pattern, never the URL: that may hold a phone number.
  const route = request.is404 ? null : (request.routeOptions.url ?? null);
  const served = { method: request.method, route, status: reply.statusCode, durationMs: deps.clock.nowMs() - request.arrivedAtMs };
  publish('api.request', served);
  const { identity } = request;
  const orgId = identity === null ? null : 'scope' in identity ? identity.scope : identity.orgId;
  const keyId = identity?.keyId ?? null;
  const fields = {
    request_id: request.id,
    method: served.method,
    route,
    status: served.status,
    duration_ms: Math.round(served.durationMs),
  };
  deps.log.info({ ...fields, org_id: orgId, key_id: keyId }, 'api.request');
}

function serverOf(app: FastifyInstance): ApiServer {
  return {
    listen: async ({ host, port }) => {
      await app.listen({ host, port });
      const address = app.server.address();
      if (address === null || typeof address === 'string') throw new Error('the server listens on no address');
      return { host: address.address, port: address.port };
    },
    close: async () => app.close(),
    inject: (request) => app.inject(request),
  };
}

/** What routes there are, to tell a wrong method from a wrong path. */
interface RouteTable {
  /** The failure for a request that no route took. */
  failureFor(method: string, url: string): ApiFailure;
}

/** Starts noting every route that is added to `app` from now on. */
function watchRoutes(app: FastifyInstance): RouteTable {
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', (route: RouteOptions) => {
    const known = methods.get(route.url) ?? new Set<string>();
    for (const method of [route.method].flat()) known.add(method);
    methods.set(route.url, known);
  });
  return {
    failureFor(method, url) {
      const path = url.split('?', 1)[0] ?? '';
      const allowed = [...methods].filter(([pattern]) => matches(pattern, path)).flatMap(([, set]) => [...set]);
      // A route may take the request and then find nothing, as one for files does.
      if (allowed.length === 0 || allowed.includes(method)) return new ApiFailure('NOT_FOUND', 'No such route');
      const allow = [...new Set(allowed)].sort().join(', ');
      return new ApiFailure('METHOD_NOT_ALLOWED', `The methods of this route are ${allow}`, { headers: { allow } });
    },
  };
}

function matches(pattern: string, path: string): boolean {
  const escaped = pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  const expression = escaped.replace(/:[A-Za-z_]\w*/g, '[^/]+').replace(/\*/g, '.*');
  return new RegExp(`^${expression}$`).test(path);
}
