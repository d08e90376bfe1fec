import type { E164 } from '../../model/e164.js';

// Every key name. The part in braces is the hash tag: what one script or one multi-key command touches shares it, so that
// everything works on Redis Cluster.

/** String, JSON: the record of a number. The truth; every index below is secondary to it. */
export const numberKey = (number: E164): string => `num:{${number}}`;
export const NUMBER_KEY_PATTERN = 'num:{*}';

/** Sorted set, expires: ids of the number's calls in progress on all gateways, each by the time in ms at which its lease ends. */
export const numberLeasesKey = (number: E164): string => `num:{${number}}:leases`;

/** Sorted set, expires: ids of the number's calls of the last second, by their time in ms. Only under `max_calls_per_second`. */
export const numberRecentKey = (number: E164): string => `num:{${number}}:recent`;

/** Sorted set, expires soon: slots that gateways leased ahead, by the time in ms at which they end. Only under a limit. */
export const numberAheadKey = (number: E164): string => `num:{${number}}:ahead`;

/** The number whose record a key is; `null`: it is another key. */
export function numberOfKey(key: string): E164 | null {
  return (/^num:\{([^}]*)\}$/.exec(key)?.[1] as E164 | undefined) ?? null;
}

/** String: the number that an inbound_id belongs to. */
export const inboundIdKey = (inboundId: string): string => `inbound:{${inboundId}}`;

/** String, JSON: the organization. */
export const orgKey = (orgId: string): string => `org:{${orgId}}`;

/** As the three of a number, for all numbers of the organization. */
export const orgLeasesKey = (orgId: string): string => `org:{${orgId}}:leases`;
export const orgRecentKey = (orgId: string): string => `org:{${orgId}}:recent`;
export const orgAheadKey = (orgId: string): string => `org:{${orgId}}:ahead`;

/** As `orgCallsKey`, expires: the organization's calls in progress on all gateways. Those whose lease has ended are gone. */
export const orgLiveKey = (orgId: string): string => `org:{${orgId}}:live`;

/** Hash, expires: what is known of each of them, JSON by call id. */
export const orgLiveCallsKey = (orgId: string): string => `org:{${orgId}}:live:calls`;

/** String, JSON, expires soon: a call as it stood in that list, until its record is written. */
export const endingCallKey = (orgId: string, callId: string): string => `org:{${orgId}}:ending:${callId}`;

/** Hash, expires: calls of the organization in one minute, by `<start of 10 s in ms>:<begun, ended or refused>`. */
export const orgThroughputKey = (orgId: string, minute: number): string => `org:{${orgId}}:throughput:${String(minute)}`;

/** Sorted set, expires: ids of its calls with a session at a provider, each by the time in ms at which its lease ends. */
export const orgProviderSessionsKey = (orgId: string): string => `org:{${orgId}}:provider:sessions`;

/** Hash, expires: `milliseconds` and `tokens` of its sessions at providers in one day. @param day of UTC, such as 2026-01-31 */
export const orgProviderDayKey = (orgId: string, day: string): string => `org:{${orgId}}:provider:${day}`;

/**
 * Sorted sets, both expire: ids of its placed calls in progress, by the time in ms at which their lease ends; and of the last second, by
 * their time. @param trunk only those on this trunk, while the organization's trunks have limits
 */
export const orgDialsKey = (orgId: string, trunk?: string): string =>
  trunk === undefined ? `org:{${orgId}}:dials` : `org:{${orgId}}:trunk:${trunk}:dials`;
export const orgRecentDialsKey = (orgId: string, trunk?: string): string => `${orgDialsKey(orgId, trunk)}:recent`;

/**
 * Hash, expires: `calls` placed in one day, and `micros`: what they cost or may cost, in millionths; of a trunk, `calls` alone.
 * @param day of UTC, such as 2026-01-31
 */
export const orgDialDayKey = (orgId: string, day: string, trunk?: string): string => `${orgDialsKey(orgId, trunk)}:${day}`;

/** String, expires: the digest of a request to place a call, and the call, `<sha256> <call id>`, and ` claimed` until there is one. @param digest of its idempotency key */
export const orgPlacementKey = (orgId: string, digest: string): string => `org:{${orgId}}:placed:${digest}`;

/** Sorted set, all scores 0: numbers whose trunk has a registrar. */
export const REGISTERING_KEY = 'trunks:{registering}';

/** Sorted set, all scores 0: numbers whose trunk gets OPTIONS. */
export const WATCHED_KEY = 'trunks:{watched}';

/** String, JSON, expires: whether the trunk answers them. @param trunk digest */
export const trunkStateKey = (trunk: string): string => `trunk:{${trunk}}:state`;

/** String, expires: the gateway that registers the account, or asks the trunk. @param account digest */
export const registrarKey = (account: string): string => `trunk:{${account}}:registrar`;

/** String, JSON, expires: how its registration stands. */
export const registrationKey = (account: string): string => `trunk:{${account}}:registration`;

/** Sorted set, all scores 0: the organization's numbers. */
export const orgNumbersKey = (orgId: string): string => `org:{${orgId}}:numbers`;

/** Set: digests of the organization's API keys. */
export const orgKeysKey = (orgId: string): string => `org:{${orgId}}:keys`;

/** Sorted set, all scores 0: `<creation, 15 digits of milliseconds>:<agent id>`, so that order is time. */
export const orgAgentsKey = (orgId: string): string => `org:{${orgId}}:agents:made`;

/** Sorted set, all scores 0: `<start, 15 digits of milliseconds>:<call id>`, so that order is time. */
export const orgCallsKey = (orgId: string): string => `org:{${orgId}}:calls`;

/** As `orgCallsKey`: of these, the calls that came in and were refused. */
export const orgRefusedCallsKey = (orgId: string): string => `org:{${orgId}}:calls:refused`;

/** String, JSON, expires: one call's record. */
export const callKey = (orgId: string, callId: string): string => `org:{${orgId}}:call:${callId}`;

/** String, JSON, expires: what was said in one call. */
export const callDetailKey = (orgId: string, callId: string): string => `org:{${orgId}}:call:${callId}:detail`;

/** String (`packTrace`), expires: what happened in one call. */
export const traceKey = (orgId: string, callId: string): string => `org:{${orgId}}:call:${callId}:trace`;

/**
 * Lists, oldest first, of the traces and of the records that are kept, `<expires, ms> <bytes> <org id> <member of its index>`; and a hash
 * of their bytes by kind.
 */
export const STORED_CALLS_KEYS: readonly string[] = ['{stored-calls}:traces', '{stored-calls}:records', '{stored-calls}:bytes'];

/** As `orgCallsKey`, trimmed: the calls of all organizations, `<start>:<call id>:<organization>`. */
export const CALLS_KEY = 'calls';

/** The same, trimmed, expires: those of one Call-ID. @param digest of the Call-ID, which a stranger chose */
export const sipCallsKey = (digest: string): string => `sip-call:{${digest}}`;

/** Set: ids of all organizations. */
export const ORGS_KEY = 'orgs';

/** Hash: the record of an API key, by the SHA-256 of the key in hex. */
export const apiKeyKey = (digest: string): string => `key:{${digest}}`;

/** String: the digest of the API key with this id. */
export const apiKeyIdKey = (keyId: string): string => `keyid:{${keyId}}`;

/** String, JSON: an agent. */
export const agentKey = (agentId: string): string => `agent:{${agentId}}`;

/** String, JSON: a tool. */
export const toolKey = (toolId: string): string => `tool:{${toolId}}`;

/** Set: digests of operators' keys. */
export const OPERATOR_KEYS_KEY = 'operator:keys';

/** As `orgAgentsKey`, of tools. */
export const orgToolsKey = (orgId: string): string => `org:{${orgId}}:tools:made`;

/** Sorted set, all scores 0: numbers whose calls go to the agent. Secondary to the records of numbers. */
export const agentNumbersKey = (agentId: string): string => `agent:{${agentId}}:numbers`;

/** Sorted set, all scores 0: ids of agents that name the tool. Secondary to the records of agents. */
export const toolAgentsKey = (toolId: string): string => `tool:{${toolId}}:agents`;

/** Sorted set: the organization's batches, by the time in ms at which they were made. */
export const orgBatchesKey = (orgId: string): string => `org:{${orgId}}:batches`;

/** String, JSON, expires: a batch of calls. */
export const batchKey = (batchId: string): string => `batch:{${batchId}}`;

/**
 * Streams, expire with the batch: its log, trimmed; and the part of the log that tells what became of single numbers, at most one entry of
 * each, never trimmed. JSON in the field `entry`.
 */
export const batchLogKey = (batchId: string): string => `batch:{${batchId}}:log`;
export const batchOutcomesKey = (batchId: string): string => `batch:{${batchId}}:outcomes`;

/** Hash, expires with the batch: of a batch that dials, `org_id`, `state`, `plan` (JSON), counts, and the last fencing `token`. */
export const batchRunKey = (batchId: string): string => `batch:{${batchId}}:run`;

/** Hash, expires with the batch: its numbers that are not done, JSON by number. */
export const batchNumbersKey = (batchId: string): string => `batch:{${batchId}}:numbers`;

/** Sorted set, expires with the batch: those that wait for a call, by the time in ms from which they may be dialled. */
export const batchDueKey = (batchId: string): string => `batch:{${batchId}}:due`;

/** Hash, expires with the batch: calls whose outcome is not known, `<fencing token> <JSON>` by call id. */
export const batchAttemptsKey = (batchId: string): string => `batch:{${batchId}}:attempts`;

/** Sorted set, expires: its calls of the last second, by their time in ms. */
export const batchRecentKey = (batchId: string): string => `batch:{${batchId}}:recent`;

/** Set: ids of the batches that dial, or whose calls are not all over. */
export const RUNNING_BATCHES_KEY = 'batches:running';

/** Sorted set: numbers that the organization never dials, by the time in ms at which they were added. */
export const orgDoNotCallKey = (orgId: string): string => `org:{${orgId}}:do-not-call`;

/** Stream, trimmed: who changed what of the organization, JSON in the field `entry`. */
export const orgAuditKey = (orgId: string): string => `org:{${orgId}}:audit`;

/** Hash, expires: answered calls of one gateway instance, JSON by call id. */
export const gatewayCallsKey = (instance: string): string => `gw:{${instance}}:calls`;

/** Hash: the cells, and who has the calls of each (cells/beat.lua). */
export const CELLS_KEY = '{cells}:owners';

/** Hash, expires: dialogs of one cell's SIP server, JSON by key. */
export const cellDialogsKey = (cell: string): string => `{cells}:dialogs:${cell}`;

/** Sorted set: ids of webhooks of one lane by the time in ms at which they are due. */
export const outboxDueKey = (lane: number): string => `outbox:{${String(lane)}}:due`;

/** Sorted set: lanes of the outbox by the time in ms at which their first webhook is due. */
export const OUTBOX_LANES_KEY = 'outbox:lanes';

/** Hash: webhooks under way, JSON by id. */
export const outboxJobsKey = (lane: number): string => `outbox:{${String(lane)}}:jobs`;

/** Sorted set, all scores 0: `<time, 15 digits of milliseconds>:<delivery id>` of webhooks that were given up. */
export const orgDeadOrderKey = (orgId: string): string => `org:{${orgId}}:dead`;

/** Hash: those webhooks, JSON by id. */
export const orgDeadLettersKey = (orgId: string): string => `org:{${orgId}}:dead:letters`;

/** Hash, expires: what a list of calls says of each of them, JSON by call id. */
export const gatewayAnswersKey = (instance: string): string => `gw:{${instance}}:answers`;

/** Channel: the key of each record of a number, an organization or an agent that was written. */
export const CHANGES_CHANNEL = 'changes';

/** Sorted set: gateways by the time in ms until which they may use routes that they remember. */
export const GATEWAYS_KEY = 'gateways';

/** Channel: requests to one gateway instance, the answers to its own, and its heartbeat. */
export const gatewayChannel = (instance: string): string => `gw:${instance}:requests`;

/** String, expires: the instance that swept the numbers last. */
export const SWEEP_LOCK_KEY = 'sweep:numbers';
