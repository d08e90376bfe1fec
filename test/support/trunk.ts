import { workerInstance } from '../../src/config/gateway-worker.js';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { silentLog } from '../../src/lib/log.js';
import type { CallRecord } from '../../src/gateway/model/call-record.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { RtpengineNode } from '../../src/gateway/relay/node.js';
import { gatewayCallsKey } from '../../src/gateway/store/redis/keys.js';
import { until, type CarrierCall } from './carrier-call.js';
import type { RunningGateway } from './gateway.js';
import type { Product } from './product.js';
import { send } from './redis.js';

// What an operator would ask of a running gateway, for tests that kill its parts.

/** The record of a carrier's call, when it has been written. */
export async function recordOf(gateway: Product, { signalling }: CarrierCall): Promise<CallRecord> {
  let record: CallRecord | undefined;
  await until(async () => {
    const answer = await gateway.api('GET', '/v1/calls?limit=200').catch(() => undefined);
    const calls = (answer?.json['calls'] ?? []) as readonly CallRecord[];
    record = calls.find(({ sip_call_id: id }) => id === signalling.callId);
    return record !== undefined;
  }, 'no record');
  if (record === undefined) throw new Error('no record');
  return record;
}

/** Sessions of an rtpengine; `null`: it does not answer. */
export async function sessionsOf(port: number, address = '127.0.0.1'): Promise<number | null> {
  const node = new RtpengineNode({ address, port, timeoutMs: 1_000, clock: systemClock, log: silentLog });
  try {
    const { calls } = await node.command('list', { limit: 1_000 });
    return Array.isArray(calls) ? calls.length : null;
  } catch {
    return null;
  } finally {
    node.close();
  }
}

/** This text stands in what Redis has of the gateway's calls: it is written a moment after the 200, and nothing waits for it. */
export function isKept(gateway: Product, text: string, place = 1): Promise<void> {
  return until(async () => (await ofKept(gateway, 'HGETALL', place)).includes(text), `${text} is not kept`);
}

/** Redis has so many calls of the gateway's. */
export function areKept(gateway: Product, calls: number): Promise<void> {
  return until(async () => (await ofKept(gateway, 'HLEN')) === `:${String(calls)}\r\n`, `${String(calls)} calls are not kept`);
}

async function ofKept(gateway: Product, command: string, place = 1): Promise<string> {
  const instance =
    gateway.environment['TRUNKLINE_GATEWAY_INSTANCE'] ?? (await readFile(join(gateway.dataDir, 'gateway-instance'), 'utf8')).trim();
  return send(
    Number(gateway.environment['TRUNKLINE_REDIS_PORT']),
    `${command} ${gatewayCallsKey(workerInstance(instance, { index: place, count: 1 }))}`,
  );
}

/** Nothing of any call is left on the rtpengine. */
export function nothingLeft(port: number): Promise<void> {
  return until(async () => (await sessionsOf(port)) === 0, 'sessions are left');
}

/** A number that the test line answers. */
export async function attach(gateway: Product, number: string, options: object = {}): Promise<void> {
  const body = { phone_number: number, directions: ['inbound'], service: 'sip', options };
  const { status, json } = await gateway.api('POST', '/sip/attach', body);
  if (status !== 200) throw new Error(JSON.stringify(json));
}

/** How often something stands in a log. */
export async function timesLogged(gateway: Product, name: string, text: string): Promise<number> {
  return (await gateway.log(name)).split(text).length - 1;
}

/** Ends the gateway as a crash does; resolves with the moment. */
export async function killGateway(gateway: RunningGateway): Promise<number> {
  const pid = await gateway.pidOf('gateway');
  const atMs = performance.now();
  process.kill(pid, 'SIGKILL');
  return atMs;
}

/** Ends the gateway; resolves when the next one has begun to serve. */
export async function killAndReturn(gateway: RunningGateway): Promise<number> {
  const before = await timesLogged(gateway, 'gateway', '"msg":"gateway.ready"');
  const atMs = await killGateway(gateway);
  await until(async () => (await timesLogged(gateway, 'gateway', '"msg":"gateway.ready"')) > before, 'no gateway');
  return atMs;
}
