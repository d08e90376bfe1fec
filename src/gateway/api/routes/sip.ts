import type { RouteContext, ZodApp } from '../context.js';
import type { FastifyRequest, preHandlerAsyncHookHandler } from 'fastify';
import { z } from 'zod';
import type { ApiErrorEntry } from '../schemas/api-error.js';
import { parseE164, type E164 } from '../../model/e164.js';
import {
  shownNumber,
  sipConfigurationSchema,
  type NumberRecord,
  type OutboundTrunk,
  DEFAULT_INBOUND_OPTIONS,
} from '../../model/records.js';
import { sipRequestSchemas, type AttachBody, type DetachBody, type SipQuery, type UpdateBody } from '../schemas/sip-api.js';
import { checkBodySchema, checkResultSchema } from '../schemas/sip-check.js';
import type { RecordRefusal } from '../../model/agent-update.js';
import { accountOf, watchedTrunkOf } from '../../model/trunk-account.js';
import { attachNumber, updateNumber } from '../naming.js';
import type { Scope, Stores, AttachChange, DirectionType, Page, TrunkChange, UpdateChange } from '../../ports/stores.js';
import { dataAnswer, exampleOf, recordAnswer, success, successSchema } from '../answers.js';
import { identityOf, scopeOf } from '../auth.js';
import { ApiFailure, validationFailure } from '../failure.js';
import { changeHeaders, ifMatchOf, preconditionFailed, setEtag } from '../revisions.js';

const isUuid = (value: unknown): value is string => z.uuid().safeParse(value).success;
const tags = ['SIP'];

/** POST /sip/attach, /sip/update, /sip/detach, /sip/check and GET /sip. Registered behind authentication and the SIP entitlement. */
export function sipRoutes(app: ZodApp, { stores, reads, check, sipPolicy: policy, note }: RouteContext): void {
  const schemas = sipRequestSchemas(policy);
  const example = success(exampleOf(sipConfigurationSchema));
  const changed = recordAnswer('The configuration as it is now', successSchema(sipConfigurationSchema), example);

  app.post('/sip/attach', {
    // The preHandler names a bad agent together with the other bad fields.
    attachValidation: true,
    preHandler: checkBody(stores, 'agent_id'),
    config: { failures: ['SIP_NOT_ENABLED', 'NUMBER_TAKEN', 'PRECONDITION_FAILED'] },
    schema: {
      operationId: 'attachNumber',
      tags,
      summary: 'Attach a phone number',
      description: 'Sets one or both directions of a number and replaces what is attached there. An unnamed direction stays.',
      headers: changeHeaders,
      body: schemas.attach,
      response: { 200: changed },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      const change = attachChange(request.body);
      const outcome = await attachNumber(stores, orgId, numberOf(request.body), change, ifMatchOf(request));
      if (!outcome.ok)
        throw outcome.error === 'no-agent' ? noSuchAgent('agent_id') : outcome.error === 'mismatch' ? preconditionFailed() : numberTaken();
      await note(request, 'number.attach', outcome.value.phone_number, Object.keys(change));
      setEtag(reply, outcome.value);
      return success(shownNumber(outcome.value));
    },
  });

  app.post('/sip/update', {
    attachValidation: true,
    preHandler: checkBody(stores, 'updates', 'agent_id'),
    config: { failures: ['SIP_NOT_ENABLED', 'NOT_FOUND', 'PRECONDITION_FAILED'] },
    schema: {
      operationId: 'updateNumber',
      tags,
      summary: 'Update one direction of a phone number',
      description: 'Sets the named direction; the other one stays. Settings that an inbound update omits keep their values.',
      headers: changeHeaders,
      body: schemas.update,
      response: { 200: changed },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      const outcome = await updateNumber(stores, orgId, numberOf(request.body), updateChange(request.body), ifMatchOf(request));
      if (!outcome.ok) throw updateFailure(outcome.error);
      const { type, ...updates } = request.body.updates;
      const fields = Object.keys(updates).map((name) => `${type}.${name}`);
      await note(request, 'number.update', outcome.value.phone_number, fields);
      setEtag(reply, outcome.value);
      return success(shownNumber(outcome.value));
    },
  });

  app.post('/sip/detach', {
    config: { failures: ['SIP_NOT_ENABLED', 'NOT_FOUND', 'PRECONDITION_FAILED'] },
    schema: {
      operationId: 'detachNumber',
      tags,
      summary: 'Detach a phone number',
      description:
        'Detaches all named directions, or none if one of them is not attached. Calls in progress continue. `data` is the ' +
        'remaining configuration, or null.',
      headers: changeHeaders,
      body: schemas.detach,
      response: {
        200: recordAnswer('The configuration that is left; null: none', successSchema(sipConfigurationSchema.nullable()), example),
      },
    },
    handler: async (request, reply) => {
      const { orgId } = identityOf(request);
      const directions = detachedDirections(request.body);
      const outcome = await stores.numbers.detach(orgId, numberOf(request.body), directions, ifMatchOf(request));
      if (!outcome.ok)
        throw outcome.error === 'mismatch' ? preconditionFailed() : notFound('The number is not attached in every direction named');
      await note(request, 'number.detach', numberOf(request.body), directions);
      if (outcome.value !== null) setEtag(reply, outcome.value);
      return success(outcome.value === null ? null : shownNumber(outcome.value));
    },
  });

  app.post('/sip/check', {
    config: { failures: ['SIP_NOT_ENABLED'] },
    schema: {
      operationId: 'checkNumber',
      tags,
      summary: 'Dry-run a call',
      description:
        'Decides like a real INVITE to the number now, and counts nothing. It skips what the request omits; ' + '`explanation` says so.',
      body: checkBodySchema,
      response: { 200: dataAnswer('The decision', checkResultSchema, exampleOf(checkResultSchema)) },
    },
    handler: async (request) => {
      const { source_ip, sdp } = request.body;
      const asked = { number: numberOf(request.body), sourceIp: source_ip ?? null, sdp: sdp ?? null };
      return success(await check(identityOf(request).orgId, asked));
    },
  });

  app.get('/sip', {
    config: { failures: ['SIP_NOT_ENABLED'] },
    schema: {
      operationId: 'getNumbers',
      tags,
      summary: 'Read one SIP configuration, or list them',
      description: 'With `inbound_id`, `data` is the configuration or null. Without it, `data` is an array, sorted by number.',
      querystring: schemas.query,
      response: {
        200: recordAnswer(
          'One configuration, null, or an array',
          z.union([
            successSchema(sipConfigurationSchema.nullable()).meta({ title: 'OneNumber' }),
            successSchema(z.array(sipConfigurationSchema).readonly()).meta({ title: 'ListOfNumbers' }),
          ]),
          example,
        ),
      },
    },
    handler: async (request, reply) => {
      const scope = scopeOf(request);
      const { inbound_id } = request.query;
      if (inbound_id === undefined) return success(await withRegistrations(stores, await reads.numbers(scope, pageOf(request.query))));
      const record = await findNumber(stores, scope, inbound_id);
      if (record !== null) setEtag(reply, record);
      const [shown = null] = await withRegistrations(stores, record === null ? [] : [record]);
      return success(shown);
    },
  });
}

/** With how the registrations of their trunks stand, and whether the trunks answer. */
async function withRegistrations(
  { registrations }: Pick<Stores, 'registrations'>,
  records: readonly NumberRecord[],
): Promise<ReturnType<typeof shownNumber>[]> {
  const accounts = records.map(accountOf);
  const known = accounts.filter((account) => account !== null);
  const states = known.length === 0 ? [] : await registrations.states(known);
  const byAccount = new Map(known.map((account, index) => [account, states[index] ?? null]));
  const trunks = records.map(watchedTrunkOf);
  const watched = trunks.filter((trunk) => trunk !== null);
  const trunkStates = watched.length === 0 ? [] : await registrations.trunkStates(watched);
  const byTrunk = new Map(watched.map((trunk, index) => [trunk, trunkStates[index] ?? null]));
  return records.map((record, index) =>
    shownNumber(record, byAccount.get(accounts[index] ?? '') ?? null, byTrunk.get(trunks[index] ?? '') ?? null),
  );
}

function numberTaken(): ApiFailure {
  return new ApiFailure('NUMBER_TAKEN', 'The number is attached by another organization');
}

function updateFailure(error: RecordRefusal | 'no-agent'): ApiFailure {
  if (error === 'no-agent') return noSuchAgent('updates.agent_id');
  return error === 'mismatch' ? preconditionFailed() : notFound('The number has no SIP configuration');
}

/** It was deleted since it was looked for. */
function noSuchAgent(path: string): ApiFailure {
  return validationFailure([agentEntry(path)]);
}

function agentEntry(path: string): ApiErrorEntry {
  return { error: 'VALIDATION', message: 'is not the id of an agent of yours', path };
}

function notFound(message: string): ApiFailure {
  return new ApiFailure('NOT_FOUND', message);
}

async function findNumber(stores: Pick<Stores, 'numbers' | 'agents'>, scope: Scope, id: string): Promise<NumberRecord | null> {
  const number = parseE164(id);
  if (number !== undefined) return stores.numbers.get(scope, number);
  // Whatever is no id finds nothing, like an id that nobody has.
  const inboundId = /^IN-(.+)$/i.exec(id)?.[1];
  return isUuid(inboundId) ? stores.numbers.getByInboundId(scope, `IN-${inboundId.toLowerCase()}`) : null;
}

/** Refuses a bad body with all that is wrong with it: what the schema found, and an agent that the organization does not have. */
function checkBody(stores: Pick<Stores, 'numbers' | 'agents'>, ...agentPath: readonly string[]): preHandlerAsyncHookHandler {
  return async (request) => {
    const invalid = request.validationError;
    const found = invalid instanceof ApiFailure ? invalid.envelope.errors : [];
    const path = agentPath.join('.');
    const isKnown = found.some((entry) => entry.path === path) || (await hasAgent(stores, request, agentPath));
    const settings = agentPath.slice(0, -1);
    const errors = [...found, ...(isKnown ? [] : [agentEntry(path)]), ...(await passwordEntries(stores, request, settings))];
    if (errors.length > 0) throw validationFailure(errors);
  };
}

/** True when the body names no agent, or one of the organization's. */
async function hasAgent(
  stores: Pick<Stores, 'numbers' | 'agents'>,
  request: FastifyRequest,
  agentPath: readonly string[],
): Promise<boolean> {
  const id = memberOf(request.body, agentPath);
  return !isUuid(id) || (await stores.agents.get(identityOf(request).orgId, id.toLowerCase())) !== null;
}

/** A challenge without a password keeps the one that the number has; what is wrong where it has none. @param path of what has `options` */
async function passwordEntries(
  { numbers }: Pick<Stores, 'numbers'>,
  request: FastifyRequest,
  path: readonly string[],
): Promise<readonly ApiErrorEntry[]> {
  const challengePath = [...path, 'options', 'challenge'];
  const challenge = memberOf(request.body, challengePath);
  if (typeof challenge !== 'object' || challenge === null || 'password' in challenge) return [];
  const number = parseE164(String(memberOf(request.body, ['phone_number'])));
  const record = number === undefined ? null : await numbers.get(identityOf(request).orgId, number);
  if (record?.inbound?.options.challenge !== undefined) return [];
  const message = 'is required: the number has no challenge yet';
  return [{ error: 'VALIDATION', message, path: [...challengePath, 'password'].join('.') }];
}

/** What a body has there, whatever was sent. */
function memberOf(body: unknown, path: readonly string[]): unknown {
  return path.reduce(
    (value, part) => (typeof value === 'object' && value !== null ? (Reflect.get(value, part) as unknown) : undefined),
    body,
  );
}

const DEFAULT_TAKE = 100;

function numberOf(body: { readonly phone_number: string }): E164 {
  const number = parseE164(body.phone_number);
  if (number === undefined) throw new Error('the body was not validated');
  return number;
}

function attachChange(body: AttachBody): AttachChange {
  const directions = body.directions.map((member) => (typeof member === 'string' ? { type: member, sip_endpoint: undefined } : member));
  const [outbound] = directions.flatMap((one) => (one.type === 'outbound' ? [one] : []));
  // The endpoint in the direction's own object is the closer one.
  const endpoint = outbound?.sip_endpoint ?? body.sip_endpoint;
  return {
    ...(directions.some(({ type }) => type === 'inbound')
      ? { inbound: { agent_id: agentId(body.agent_id ?? null), options: body.options ?? DEFAULT_INBOUND_OPTIONS } }
      : {}),
    ...(outbound !== undefined && endpoint !== undefined ? { outbound: trunkOf(outbound, endpoint) } : {}),
  };
}

function trunkOf(
  { type: _type, ...options }: Omit<TrunkChange, 'sip_endpoint'> & { readonly type: 'outbound' | 'inbound' },
  sip_endpoint: string,
): OutboundTrunk {
  return { ...trunkOptions(options), sip_endpoint };
}

/** Without the options that are null. */
function trunkOptions(options: Omit<TrunkChange, 'sip_endpoint'>): Omit<OutboundTrunk, 'sip_endpoint'> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value != null));
}

function updateChange({ updates }: UpdateBody): UpdateChange {
  if (updates.type === 'outbound') return updates;
  return {
    type: 'inbound',
    ...(updates.agent_id === undefined ? {} : { agent_id: agentId(updates.agent_id) }),
    ...(updates.options === undefined ? {} : { options: updates.options }),
  };
}

function detachedDirections(body: DetachBody): DirectionType[] {
  return [body.directions].flat().map((member) => (typeof member === 'string' ? member : member.type));
}

function pageOf(query: SipQuery): Page {
  return { take: Number(query.take ?? DEFAULT_TAKE), skip: Number(query.skip ?? 0) };
}

/** UUIDs are the same in either case; the store knows them in lower case. */
function agentId(id: string | null): string | null {
  return id === null ? null : id.toLowerCase();
}
