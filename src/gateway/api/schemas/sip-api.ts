import { z } from 'zod';
import { orgQuery } from './page-query.js';
import { E164_FORM, E164_PATTERN, parseE164 } from '../../model/e164.js';
import { areCertificates, isKeyOf } from '../pem.js';
import { CALLER_ID_HEADERS, DEFAULT_INBOUND_OPTIONS, EXAMPLE_OPTIONS, STATUS_CALLBACK_EVENTS } from '../../model/records.js';
import {
  DEFAULT_HEADERS_FROM_AGENT,
  DEFAULT_HEADERS_TO_AGENT,
  LISTED_HEADER,
  listedHeaderProblem,
  MAX_LISTED_HEADERS,
} from '../../model/passed-headers.js';
import { discriminator, writtenAs } from '../../model/described.js';
import { httpUrl, HTTP_URL_WITH_USER } from '../../model/http-url.js';
import { MAX_SIP_ENDPOINT, SIP_ENDPOINT_PATTERN, sipEndpointProblem } from '../../../lib/sip-endpoint.js';
import { isSourceAddress, SOURCE_PATTERN } from '../../../lib/address.js';

// Nothing here transforms: zod stops at the first failed transform, and every bad field is to be named at once.
// routes/sip.ts turns a body that passed into what the store takes.

export const MAX_ALLOWED_SOURCES = 256;
const MAX_PEM = 32_768;
const MAX_KEY_PEM = 16_384;
const MAX_TLS_NAMES = 16;
const MAX_CONCURRENT_CALLS = 100_000;
const MAX_CALLS_PER_SECOND = 10_000;
const MAX_SKIP = 10_000_000;

/** What the operator's configuration lets a customer set. */
export interface SipApiPolicy {
  /** `media_encryption: "optional"` is accepted. */
  readonly allowPlain: boolean;
  /** Whether voice webhooks may be at this host. */
  readonly isWebhookHost: (host: string) => boolean;
}

export const phoneNumber = z
  .string()
  .max(32)
  .refine((text) => parseE164(text) !== undefined, `must be ${E164_FORM}`)
  .meta({
    description:
      'E.164, with or without the plus; `-`, `.` and parentheses between digits are ignored; `(0)`, which is dialled within a country only, is refused',
    pattern: E164_PATTERN,
    examples: ['+15551234567'],
  });

const sipEndpoint = z
  .string()
  .check((ctx) => {
    const problem = sipEndpointProblem(ctx.value);
    if (problem !== null) ctx.issues.push({ code: 'custom', message: problem, input: ctx.value });
  })
  .meta({
    description: 'A sip: or sips: URI, or host[:port]',
    minLength: 1,
    maxLength: MAX_SIP_ENDPOINT,
    pattern: SIP_ENDPOINT_PATTERN,
    examples: ['sips:pbx.example.com:5061'],
  });

const credential = z.string().regex(/^[\x20-\x7e]{1,128}$/, 'must be 1 to 128 printable ASCII characters');

const NOT_CERTIFICATES = 'must be certificates in PEM';
const certificates = z
  .string()
  .max(MAX_PEM)
  .regex(/^\s*-----BEGIN CERTIFICATE-----[\s\S]*-----END CERTIFICATE-----\s*$/, NOT_CERTIFICATES)
  .refine(areCertificates, NOT_CERTIFICATES);

const NOT_KEY = "must be the certificate's private key in PEM, without a passphrase";
const privateKey = z
  .string()
  .max(MAX_KEY_PEM)
  .regex(/-----BEGIN [A-Z ]*PRIVATE KEY-----/, NOT_KEY);

const noReinvite = (peer: string): string =>
  `true: this ${peer} gets no re-INVITE, UPDATE or session timer of ours; a call whose media has to move ends, and its record says why. Default: false`;

function headerList(meaning: string, byDefault: readonly string[]) {
  const entry = z
    .string()
    .check((ctx) => {
      const problem = listedHeaderProblem(ctx.value);
      if (problem !== null) ctx.issues.push({ code: 'custom', message: problem, input: ctx.value });
    })
    .meta({ pattern: LISTED_HEADER.source });
  return z
    .array(entry)
    .max(MAX_LISTED_HEADERS)
    .meta({ description: `${meaning}: names, and X-* for all that begin so. Default: ${byDefault.join(', ')}`, examples: [byDefault] });
}

/** What a trunk needs besides its endpoint; passwords and keys are never shown again. */
const trunkOptions = {
  username: credential.nullable().optional().describe('With `password`, answers challenges of the trunk (RFC 8760: SHA-256 or MD5)'),
  password: credential.nullable().optional().describe('Write-only'),
  realm: credential.nullable().optional().describe('Only challenges of this realm are answered; null: any'),
  ca: certificates.nullable().optional().describe("PEM: CAs that the trunk's certificate may be from; null: the usual ones"),
  tls_names: z
    .array(z.string().regex(/^[A-Za-z0-9*._:-]{1,253}$/, 'must be a name or an address'))
    .min(1)
    .max(MAX_TLS_NAMES)
    .nullable()
    .optional()
    .describe("Names of which the trunk's certificate must have one; null: the host of sip_endpoint"),
  client_certificate: z
    .strictObject({ certificate: certificates, key: privateKey.describe('Write-only') })
    .meta({ title: 'ClientCertificate' })
    .refine(isKeyOf, { path: ['key'], message: NOT_KEY })
    .nullable()
    .optional()
    .describe('Shown to the trunk; the certificate, then every intermediate'),
  caller_id_header: z
    .enum(CALLER_ID_HEADERS)
    .nullable()
    .optional()
    .describe('P-Asserted-Identity is sent besides From, and only to trunks that the operator trusts (RFC 3325). Default: From'),
  registrar: sipEndpoint
    .nullable()
    .optional()
    .describe('Registers `username` there, over TLS; a gateway of the fleet refreshes it. null: no registration'),
  options_interval_s: z
    .union([z.literal(0), z.int().min(10).max(3_600)], 'must be 0, or an integer from 10 to 3600')
    .nullable()
    .optional()
    .meta({
      ...writtenAs({ type: ['integer', 'null'], minimum: 0, maximum: 3_600, not: { type: 'integer', minimum: 1, maximum: 9 } }),
      description:
        'Seconds between two OPTIONS to the trunk; a trunk that does not answer gets no calls. Default: 0, none; else 10 to 3600',
    }),
  no_reinvite: z.boolean().nullable().optional().describe(noReinvite('trunk')),
  headers_from_agent: headerList(
    'Headers that an agent, an API call or TwiML may set in INVITE, REFER and BYE of calls that we place',
    DEFAULT_HEADERS_FROM_AGENT,
  )
    .nullable()
    .optional(),
};

const direction = z.enum(['inbound', 'outbound'], 'must be "inbound" or "outbound"').meta({ title: 'Direction' });

const service = z.literal('sip', 'must be "sip"').describe('Always "sip"');

const agentId = z
  .uuid('must be the id of an agent of yours, or null')
  .nullable()
  .describe('The agent that answers; null: the built-in test line');

function limit(most: number, meaning: string): z.ZodNullable<z.ZodNumber> {
  return z.int('must be an integer or null').min(0).max(most).nullable().describe(`${meaning}; null: no limit`);
}

function webhookUrl({ isWebhookHost }: SipApiPolicy) {
  return httpUrl(HTTP_URL_WITH_USER, 2_000, 'must be an http:// or https:// URL')
    .refine(
      (text) => !URL.canParse(text) || isWebhookHost(new URL(text).hostname),
      'is at a private, loopback or reserved address, which this service does not call',
    )
    .optional();
}

function inboundOptions(policy: SipApiPolicy) {
  return z
    .strictObject({
      allowed_sources: z
        .array(
          z
            .string()
            .max(64)
            .refine(isSourceAddress, 'must be an IP address or a CIDR block, such as 203.0.113.0/24')
            .meta({ pattern: SOURCE_PATTERN }),
        )
        .max(MAX_ALLOWED_SOURCES)
        .default([...DEFAULT_INBOUND_OPTIONS.allowed_sources])
        .describe('Accepted sources of INVITEs; empty: any'),
      max_concurrent_calls: limit(MAX_CONCURRENT_CALLS, 'Calls in progress on this number').default(null),
      max_calls_per_second: limit(MAX_CALLS_PER_SECOND, 'New calls a second on this number').default(null),
      media_encryption: z
        .enum(['required', 'optional'], 'must be "required" or "optional"')
        .refine((value) => policy.allowPlain || value !== 'optional', 'this service accepts encrypted media only: must be "required"')
        .default(DEFAULT_INBOUND_OPTIONS.media_encryption)
        .describe('"optional" also accepts calls without SRTP, if the operator allows it'),
      refer: z.boolean().optional().describe('false: this carrier takes no REFER, and transfers are placed calls. Left out: REFER first'),
      no_reinvite: z.boolean().optional().describe(noReinvite('carrier')),
      headers_to_agent: headerList('Headers of the INVITE that the agent gets', DEFAULT_HEADERS_TO_AGENT).optional(),
      headers_from_agent: headerList('Headers that an agent or TwiML may set in REFER and BYE', DEFAULT_HEADERS_FROM_AGENT).optional(),
      challenge: z
        .strictObject({ username: credential, password: credential.optional().describe('Write-only; left out: the one of before') })
        .meta({ title: 'Challenge' })
        .nullable()
        .optional()
        .describe('INVITEs without these credentials get 401 (digest, RFC 8760: SHA-256 or MD5). Default: null, none are challenged'),
      voice_url: webhookUrl(policy).describe('Answers each call with TwiML, in place of the agent'),
      voice_fallback_url: webhookUrl(policy).describe('Requested when voice_url fails'),
      status_callback: webhookUrl(policy).describe('Gets a form at each of status_callback_events'),
      status_callback_events: z
        .array(z.enum(STATUS_CALLBACK_EVENTS))
        .min(1)
        .max(STATUS_CALLBACK_EVENTS.length)
        .optional()
        .describe('Left out: completed'),
    })
    .meta({ title: 'InboundOptions', description: 'Replaced as a whole: omitted options get their defaults' });
}

/** The `type` of a member of `directions`, whatever was sent. */
function typeOf(member: unknown): unknown {
  return typeof member === 'object' && member !== null && 'type' in member ? member.type : member;
}

interface RawIssueSink {
  readonly value: readonly unknown[];
  readonly issues: z.core.$ZodRawIssue[];
}

function rejectDuplicates(ctx: RawIssueSink): void {
  ctx.value.forEach((member, index) => {
    const first = ctx.value.findIndex((other) => typeOf(other) === typeOf(member));
    if (first === index) return;
    ctx.issues.push({ code: 'custom', message: 'is given twice', input: member, path: [index] });
  });
}

/** A direction as an object; what a trunk needs is of the outbound one. */
const directionSettings = z
  .discriminatedUnion(
    'type',
    [
      z.strictObject({ type: z.literal('inbound'), sip_endpoint: sipEndpoint.optional() }).meta({ title: 'InboundDirectionSettings' }),
      z
        .strictObject({ type: z.literal('outbound'), sip_endpoint: sipEndpoint.optional(), ...trunkOptions })
        .meta({ title: 'OutboundDirectionSettings' }),
    ],
    { error: unknownType },
  )
  .meta({
    title: 'DirectionSettings',
    ...discriminator('type', { inbound: 'InboundDirectionSettings', outbound: 'OutboundDirectionSettings' }),
  });

function attachSchema(policy: SipApiPolicy) {
  const member = z.union([direction, directionSettings]);
  return z
    .strictObject({
      phone_number: phoneNumber,
      directions: z.array(member).min(1).max(2).check(rejectDuplicates),
      service,
      sip_endpoint: sipEndpoint.optional().describe('Required when a direction is outbound, here or in its object'),
      agent_id: agentId.optional(),
      options: inboundOptions(policy).optional(),
    })
    .refine((body) => !lacksEndpoint(body), {
      path: ['sip_endpoint'],
      message: 'is required when a direction is outbound',
      // Also when other fields are bad, so that one answer names them all.
      when: () => true,
    })
    .meta({
      examples: [
        {
          phone_number: '+15551234567',
          directions: ['inbound'],
          service: 'sip',
          agent_id: null,
          options: EXAMPLE_OPTIONS,
        },
        {
          phone_number: '15551234567',
          directions: [{ type: 'outbound', sip_endpoint: 'sips:pbx.example.com:5061', username: 'acme', password: 's3cret' }],
          service: 'sip',
        },
      ],
    });
}

/** Runs on bodies that failed elsewhere too, so nothing is known about the shape. */
function lacksEndpoint(body: unknown): boolean {
  if (typeof body !== 'object' || body === null || !('directions' in body) || !Array.isArray(body.directions)) return false;
  if ('sip_endpoint' in body && body.sip_endpoint !== undefined) return false;
  return body.directions.some((member: unknown) => {
    const hasOwn = typeof member === 'object' && member !== null && 'sip_endpoint' in member && member.sip_endpoint !== undefined;
    return typeOf(member) === 'outbound' && !hasOwn;
  });
}

function updateSchema(policy: SipApiPolicy) {
  return z
    .strictObject({
      phone_number: phoneNumber,
      updates: z
        .discriminatedUnion(
          'type',
          [
            z.strictObject({ type: z.literal('outbound'), sip_endpoint: sipEndpoint, ...trunkOptions }).meta({ title: 'OutboundUpdate' }),
            z
              .strictObject({
                type: z.literal('inbound'),
                agent_id: agentId.optional(),
                options: inboundOptions(policy).optional(),
              })
              .meta({ title: 'InboundUpdate' }),
          ],
          { error: unknownType },
        )
        .meta(discriminator('type', { inbound: 'InboundUpdate', outbound: 'OutboundUpdate' })),
    })
    .meta({
      examples: [
        { phone_number: '+15551234567', updates: { type: 'outbound', sip_endpoint: 'sips:pbx.example.com:5061' } },
        { phone_number: '+15551234567', updates: { type: 'inbound', agent_id: null } },
      ],
    });
}

function unknownType({ input }: { readonly input: unknown }): string {
  return isObject(input) ? 'must be "inbound" or "outbound"' : 'must be an object';
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const detachSchema = z
  .strictObject({
    phone_number: phoneNumber,
    directions: z.union([
      direction,
      z
        .array(z.union([direction, z.strictObject({ type: direction }).meta({ title: 'DetachedDirection' })]))
        .min(1)
        .max(2)
        .check(rejectDuplicates),
    ]),
    service,
  })
  .meta({
    examples: [
      { phone_number: '+15551234567', directions: 'inbound', service: 'sip' },
      { phone_number: '+15551234567', directions: ['inbound', 'outbound'], service: 'sip' },
    ],
  });

/** A number in a query string. */
export function wholeNumber(least: number, most: number, byDefault: number) {
  return z
    .string()
    .refine(
      (text) => /^\d{1,8}$/.test(text) && Number(text) >= least && Number(text) <= most,
      `must be an integer from ${least} to ${most}`,
    )
    .optional()
    .meta({ type: 'integer', minimum: least, maximum: most, description: `Default: ${byDefault}`, examples: [byDefault] });
}

const querySchema = z.strictObject({
  inbound_id: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .meta({ description: "The record's inbound_id, or the phone number", examples: ['+15551234567'] }),
  take: wholeNumber(1, 1000, 100),
  skip: wholeNumber(0, MAX_SKIP, 0),
  ...orgQuery,
});

/** The request schemas of the /sip routes, under the operator's policy. */
export function sipRequestSchemas(policy: SipApiPolicy) {
  return { attach: attachSchema(policy), update: updateSchema(policy), detach: detachSchema, query: querySchema };
}

type Schemas = ReturnType<typeof sipRequestSchemas>;
export type AttachBody = z.output<Schemas['attach']>;
export type UpdateBody = z.output<Schemas['update']>;
export type DetachBody = z.output<Schemas['detach']>;
export type SipQuery = z.output<Schemas['query']>;
