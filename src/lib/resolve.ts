import { lookup } from 'node:dns/promises';
import { bareHost } from './address.js';

/** An IPv4 address and port from `host:port`, with or without a scheme in front. Rejects with a text that names the host. */
export async function resolveHostPort(text: string): Promise<{ readonly address: string; readonly port: number }> {
  const bare = text.replace(/^[a-z]+:\/\//, '');
  const colon = bare.lastIndexOf(':');
  const host = bareHost(bare.slice(0, colon));
  try {
    const { address } = await lookup(host, { family: 4 });
    return { address, port: Number(bare.slice(colon + 1)) };
  } catch (error) {
    throw new Error(`the host ${JSON.stringify(host)} cannot be resolved: ${(error as Error).message}`, { cause: error });
  }
}
