import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { uuid } from '../../model/described.js';
import { newUuid } from '../../../lib/ids.js';
import type { AgentRecord } from '../../model/agent-record.js';
import { agentOfCall, agentOfNoStore } from '../../model/call-agent-settings.js';
import { parseE164, type E164 } from '../../model/e164.js';
import { headersFromAgent, unlistedHeader } from '../../model/passed-headers.js';
import { REASONS } from '../../model/reasons.js';
import { newAgent, badFieldsOf } from '../agent-mapper.js';
import { fieldsAnswer } from '../answers.js';
import { identityOf } from '../auth.js';
import type { RouteContext, ZodApp } from '../context.js';
import { ApiFailure, validationFailure } from '../failure.js';
import { digestOf, idempotencyKeyOf, madeBefore } from '../idempotency.js';
import type { AgentPolicy } from '../schemas/agent-rules.js';
import type { ApiErrorEntry } from '../schemas/api-error.js';
import { IDEMPOTENCY_HEADERS, placeCallSchema, type PlaceCallBody } from '../schemas/place-call.js';

const RETRY_AFTER_S = 2;
const PRIVATE_ADDRESS = 'is at a private, loopback or reserved address, which this service does not call';

/** POST /v1/calls. Registered behind authentication. */
export function placeCallRoutes(app: ZodApp, { stores, agentPolicy: policy, placeCall, clock, note }: RouteContext): void {
  app.post('/v1/calls', {
    config: { failures: ['DIAL_NOT_ALLOWED', 'IDEMPOTENCY_KEY_REUSED', 'NOT_READY'] },
    schema: {
      operationId: 'placeCall',
      tags: ['Calls'],
      summary: 'Place a call',
      description:
        'Needs an operator who enabled placing calls for the organization (docs/outbound.md). Answers before the number is dialled: ' +
        '`GET /v1/calls/{call_id}` and the webhook report what becomes of the call.',
      headers: IDEMPOTENCY_HEADERS,
      body: placeCallSchema(policy),
      response: {
        200: fieldsAnswer(
          'The call is being placed',
          { message: z.string(), call_id: uuid() },
          { message: 'Calling +15550100999', call_id: '153ee546-05b9-4d95-bd6d-f899f082d48b' },
        ),
      },
    },
    handler: async (request, reply) => {
      const { orgId, org } = identityOf(request);
      const { body } = request;
      const [to, from] = [numberOf(body.phone_number), numberOf(body.from)];
      const key = idempotencyKeyOf(request);
      const [number, agent, known, listed] = await Promise.all([
        stores.callers.get(orgId, from),
        agentOf(request, orgId, body),
        key === null ? null : stores.placements.find(orgId, key),
        stores.doNotCall.find(orgId, [to]),
      ]);
      const trunk = number?.outbound ?? null;
      const unlisted = trunk === null ? null : unlistedHeader(body.sip_headers, headersFromAgent({ inbound: null, outbound: trunk }, true));
      const bad = [
        ...(trunk === null ? [entry('from', 'is not a number of yours that is attached for outbound calls')] : []),
        ...agent.bad,
        ...(unlisted === null ? [] : [entry(`sip_headers.${unlisted}`, "is not in headers_from_agent of the number's outbound direction")]),
      ];
      if (bad.length > 0 || number === null || trunk === null) throw validationFailure(bad);
      const wanted = { digest: digestOf(body), callId: newUuid() };
      if (known !== null) return answered(to, madeBefore(known, wanted.digest, reply));
      const refusal = placeCall.refusal({ org, number, to });
      if (refusal !== null) throw refused(refusal.code, refusal.message);
      if (listed.has(to)) throw refused('DIAL_NOT_ALLOWED', `Not dialled: ${to} is on the do-not-call list`);
      const claimed = key === null ? null : await stores.placements.claim(orgId, { key, ...wanted });
      if (claimed !== null) return answered(to, madeBefore(claimed, wanted.digest, reply));
      const { callId } = wanted;
      const { ring_timeout: ringTimeoutS, detect_answerer: detectAnswerer, sip_headers: sipHeaders } = body;
      const placed = placeCall.place({
        callId,
        orgId,
        from,
        to,
        trunk,
        agent: agent.settings,
        ringTimeoutMs: ringTimeoutS * 1_000,
        detectAnswerer,
        sipHeaders,
        ...(key === null ? {} : { idempotencyKey: key }),
      });
      if (!placed.ok) {
        if (key !== null) await stores.placements.release(orgId, key);
        throw refused('NOT_READY', REASONS[placed.error].explanation);
      }
      // A call that was accepted has a record, also when the gateway dies now.
      await placeCall.kept(callId);
      // Beside the answer: it never rejects.
      void note(request, 'call.place', callId, Object.keys(body));
      return answered(to, callId);
    },
  });

  /** The agent of this call: with its own settings, or those of the body alone. */
  async function agentOf(
    request: FastifyRequest,
    orgId: string,
    body: PlaceCallBody,
  ): Promise<{ readonly settings: AgentRecord | null; readonly bad: readonly ApiErrorEntry[] }> {
    const { agent: inline, agent_id: id } = body;
    if (inline !== undefined) return inlineAgent(request, orgId, inline);
    const found = id == null ? null : await stores.agents.get(orgId, id.toLowerCase());
    if (id != null && found === null) return { settings: null, bad: [entry('agent_id', 'is not the id of an agent of yours')] };
    return withOverrides(found, orgId, body, policy);
  }

  async function inlineAgent(
    request: FastifyRequest,
    orgId: string,
    inline: NonNullable<PlaceCallBody['agent']>,
  ): Promise<{ readonly settings: AgentRecord | null; readonly bad: readonly ApiErrorEntry[] }> {
    const within = (errors: readonly ApiErrorEntry[]) => errors.map((one) => ({ ...one, path: `agent.${one.path ?? ''}` }));
    const unknown = await badFieldsOf({ body: inline }, stores.tools, orgId);
    const content = newAgent('', inline, policy);
    if (!content.ok || unknown.length > 0) return { settings: null, bad: within([...unknown, ...(content.ok ? [] : content.error)]) };
    const { settings, bad } = withOverrides(
      { ...agentOfNoStore(orgId, clock), ...content.value },
      orgId,
      request.body as PlaceCallBody,
      policy,
    );
    return { settings, bad };
  }

  function withOverrides(
    agent: AgentRecord | null,
    orgId: string,
    { metadata, max_duration, webhook }: PlaceCallBody,
    { isWebhookHost, maxDurationMinutes: longestMinutes }: AgentPolicy,
  ): { readonly settings: AgentRecord | null; readonly bad: readonly ApiErrorEntry[] } {
    const url = webhook === '' ? null : (webhook ?? null);
    if (url !== null && !isWebhookHost(new URL(url).hostname)) return { settings: null, bad: [entry('webhook', PRIVATE_ADDRESS)] };
    const given = { metadata: metadata ?? null, max_duration: max_duration ?? null, webhook: url };
    return { settings: agentOfCall(agent, orgId, given, { clock, longestMinutes }), bad: [] };
  }
}

function answered(to: E164, callId: string) {
  return { status: 'success' as const, message: `Calling ${to}`, call_id: callId };
}

function refused(code: 'DIAL_NOT_ALLOWED' | 'NOT_READY', message: string): ApiFailure {
  return new ApiFailure(code, message, code === 'NOT_READY' ? { headers: { 'retry-after': String(RETRY_AFTER_S) } } : {});
}

function entry(path: string, message: string): ApiErrorEntry {
  return { error: 'VALIDATION', message, path };
}

function numberOf(text: string): E164 {
  const number = parseE164(text);
  if (number === undefined) throw new Error('the body was not validated');
  return number;
}
