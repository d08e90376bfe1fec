import { computed, signal } from '@preact/signals';
import { aboutChosen, forgetOrganizations } from './organizations.js';
import { ApiError, createClient, type Client } from '../../src/client/index.js';

// Who is signed in: an API key, kept until the tab is closed.

const STORED = 'trunkline.key';

export const apiKey = signal<string | null>(sessionStorage.getItem(STORED));
/** Why nobody is signed in any more. */
export const signedOutBecause = signal<string | null>(null);

const client = computed<Client | null>(() => (apiKey.value === null ? null : clientOf(apiKey.value)));

function clientOf(key: string): Client {
  return createClient({
    baseUrl: location.origin,
    apiKey: key,
    timeoutMs: 15_000,
    fetch: (request) => fetch(request instanceof Request ? aboutChosen(request) : request),
  });
}

/** Rejects with an `ApiError` when the key is refused, or nobody answers. */
export async function signIn(key: string): Promise<void> {
  await clientOf(key).GET('/v1/calls', { params: { query: { limit: 1 } } });
  sessionStorage.setItem(STORED, key);
  signedOutBecause.value = null;
  apiKey.value = key;
}

export function signOut(because: string | null = null): void {
  sessionStorage.removeItem(STORED);
  signedOutBecause.value = because;
  apiKey.value = null;
  forgetOrganizations();
}

/** One request with the key of the session; a refused key ends the session. */
export async function ask<T>(request: (api: Client) => Promise<T>): Promise<T> {
  const api = client.peek();
  if (api === null) throw new ApiError('You are not signed in', { status: 401, code: 'UNAUTHENTICATED' });
  try {
    return await request(api);
  } catch (error) {
    // Ignore a late 401 of an earlier session.
    if (error instanceof ApiError && error.status === 401 && client.peek() === api) signOut('The key is no longer valid. Sign in again.');
    throw error;
  }
}
