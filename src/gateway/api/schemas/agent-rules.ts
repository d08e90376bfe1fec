import { isIP } from 'node:net';
import { bareHost, isLocalName } from '../../../lib/address.js';
import { E164_FORM } from '../../model/e164.js';
import { doubtfulNumbers } from '../../model/transfer-list.js';
import type { AgentSettings } from '../../model/agent-record.js';
import { fieldsWithoutEffect } from '../../model/provider-fields.js';
import { codePoints } from './agent-settings.js';

// What holds for the settings of an agent taken together; `agentSettingsSchema` has what holds for each.

/** What the operator's configuration says of agents. */
export interface AgentPolicy {
  readonly languages: readonly string[];
  /** Voices of the operator's own agents. */
  readonly voices: readonly string[];
  /** No call is longer, whatever its agent's settings. */
  readonly maxDurationMinutes: number;
  /** Whether webhooks go there; of names it is known only when they are looked up. */
  readonly isWebhookHost: (host: string) => boolean;
  /** Whether the agent's organization has a place for the texts of pathways; left out: not. */
  readonly hasPathways?: boolean;
  /** Why no agent is ever connected there; `null`: one may be. */
  readonly agentUrlRefusal: (url: URL) => string | null;
}

/** A remark about one setting. */
export interface SettingNote {
  readonly path: string;
  readonly message: string;
}

/** An agent is read for each of its calls. */
const MAX_AGENT_BYTES = 262_144;
const RECOMMENDED_PROMPT = 2_000;
const RECOMMENDED_THRESHOLD = { least: 50, most: 200 };

/** Why an agent cannot be as these settings say; empty: it can. */
export function settingProblems(settings: AgentSettings, { voices, isWebhookHost }: AgentPolicy): SettingNote[] {
  const { prompt, pathway_id: pathway, stream, provider, voice, webhook } = settings;
  // A program of the owner's knows by itself what to do, and how it speaks.
  const isOwn = typeof stream === 'object' && stream !== null;
  const problems: SettingNote[] = [];
  const bytes = Buffer.byteLength(JSON.stringify(settings));
  if (bytes > MAX_AGENT_BYTES) problems.push({ path: largestOf(settings), message: tooLarge(bytes) });
  if (prompt === null && pathway === null && !isOwn)
    problems.push({ path: 'prompt', message: 'is required, unless a pathway_id is set or a stream of your own' });
  if (provider !== null && stream !== null) problems.push({ path: 'provider', message: 'cannot be set together with a stream' });
  // Providers add voices, and have those of their customers.
  if (voice !== null && !isOwn && provider === null && !voices.includes(voice))
    problems.push({ path: 'voice', message: `must be one of ${voices.join(', ')}` });
  if (webhook !== null && !isWebhookHost(new URL(webhook).hostname))
    problems.push({ path: 'webhook', message: 'is at a private, loopback or reserved address, which this service does not call' });
  return problems;
}

function tooLarge(bytes: number): string {
  return `is the largest part of an agent that would have ${String(bytes)} bytes as JSON; it may have ${String(MAX_AGENT_BYTES)} in all`;
}

function largestOf(settings: AgentSettings): string {
  const sizes = Object.entries(settings).map(([name, value]) => ({ name, size: JSON.stringify(value).length }));
  return sizes.sort((a, b) => b.size - a.size)[0]?.name ?? 'prompt';
}

/** Only its look-up will tell whether the gateway may connect to it without TLS. */
function needsPrivateName({ protocol, hostname }: URL): boolean {
  return protocol === 'ws:' && isIP(bareHost(hostname)) === 0 && !isLocalName(hostname);
}

/** What works otherwise than its owner may think. */
export function settingWarnings(
  settings: AgentSettings,
  { maxDurationMinutes, agentUrlRefusal, hasPathways = false }: AgentPolicy,
): SettingNote[] {
  const { prompt, pathway_id: pathway, stream, model, tools, transfer_list: transfers } = settings;
  const { interruption_threshold: threshold, max_duration: minutes, provider } = settings;
  const { least, most } = RECOMMENDED_THRESHOLD;
  const isTurbo = model === 'turbo';
  const isOwn = typeof stream === 'object' && stream !== null;
  const refusal = isOwn ? agentUrlRefusal(new URL(stream.url)) : null;
  const providerUrl = provider?.url ?? null;
  const providerRefusal = providerUrl === null ? null : agentUrlRefusal(new URL(providerUrl));
  const notes: readonly (SettingNote | false)[] = [
    prompt === null && pathway === null && !isOwn && { path: 'prompt', message: 'is not set: until it is, the default agent answers' },
    codePoints(prompt ?? '') > RECOMMENDED_PROMPT && {
      path: 'prompt',
      message: `has over ${String(RECOMMENDED_PROMPT)} characters, which makes the agent slower`,
    },
    isTurbo && tools.length > 0 && { path: 'tools', message: 'are inactive with the model turbo' },
    isTurbo &&
      transfers !== null &&
      Object.keys(transfers).length > 0 && { path: 'transfer_list', message: 'is inactive with the model turbo' },
    ...doubtfulNumbers(transfers)
      .slice(0, 1)
      .map((text) => ({ path: 'transfer_list', message: `has ${text.slice(0, 32)}, which is never reached: it is not ${E164_FORM}` })),
    (threshold < least || threshold > most) && {
      path: 'interruption_threshold',
      message: `is outside the recommended ${String(least)} to ${String(most)}`,
    },
    isOwn &&
      refusal === null &&
      needsPrivateName(new URL(stream.url)) && {
        path: 'stream.url',
        message: 'has no TLS: it is connected only while its name has a private address. Use wss:// for one of the public internet',
      },
    refusal !== null && { path: 'stream.url', message: `is never connected, and its calls get 480: ${refusal}` },
    providerRefusal !== null && { path: 'provider.url', message: `is never connected, and its calls get 480: ${providerRefusal}` },
    ...fieldsWithoutEffect(settings, hasPathways).map(({ field, how }) => ({
      path: field,
      message: `has no effect with this provider: ${how}`,
    })),
    settings.wait_for_greeting && provider === null && { path: 'wait_for_greeting', message: 'has no effect without a provider' },
    minutes > maxDurationMinutes && {
      path: 'max_duration',
      message: `is over the limit of this service: calls end after ${String(maxDurationMinutes)} minutes`,
    },
  ];
  return notes.filter((note) => note !== false);
}
