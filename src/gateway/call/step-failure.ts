import { AgentUnavailableError, MediaUnavailableError, ProviderLimitError, StoreUnavailableError } from '../ports/ports.js';
import type { CallEvent } from './state.js';

/** The expected failures of a step by their reason; anything else is our own fault. */
export function failureOf(error: unknown): Extract<CallEvent, { type: 'failed' }>['reason'] {
  if (error instanceof StoreUnavailableError) return 'STORE_UNAVAILABLE';
  if (error instanceof ProviderLimitError) return error.limit;
  if (error instanceof AgentUnavailableError) return 'AGENT_UNAVAILABLE';
  return error instanceof MediaUnavailableError ? 'MEDIA_UNAVAILABLE' : 'INTERNAL_ERROR';
}
