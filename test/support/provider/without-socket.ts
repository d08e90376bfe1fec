import type { ProviderAction, ProviderAdapter } from '../../../src/gateway/agents/provider/adapter.js';

// An adapter without its socket: what it makes of messages.

/** Actions, with the JSON of those that send. */
export function shown(actions: readonly ProviderAction[]): object[] {
  return actions.map((action) => (action.do === 'send' ? { ...action, message: JSON.parse(String(action.message)) as unknown } : action));
}

/** What comes of messages of the provider, one after the other: JSON, or audio. */
export function receives(adapter: ProviderAdapter, ...messages: readonly (object | Uint8Array)[]): object[] {
  return messages.flatMap((one) => shown(adapter.receive(one instanceof Uint8Array ? one : JSON.stringify(one))));
}
