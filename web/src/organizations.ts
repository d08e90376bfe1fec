import { computed, effect, signal } from '@preact/signals';
import type { Client, Schemas } from '../../src/client/index.js';

// Whose records are shown: an organization's, or with an operator key those of all, or of one that is chosen.

type Organization = Schemas['Organization'];

/** In place of an organization's id: calls that belong to none. */
export const NO_ORG = 'none';

export const organizations = signal<readonly Organization[]>([]);
export const isOperator = signal(false);
/** An id, or `NO_ORG`; '': all of them. */
export const chosenOrg = signal('');
/** Records of several organizations stand side by side. */
export const showsOrgs = computed(() => isOperator.value && chosenOrg.value === '');

// What changes something is hidden from whoever may not.
effect(() => {
  document.documentElement.toggleAttribute('data-reads-only', isOperator.value);
});

export async function readOrganizations(api: Client): Promise<void> {
  const answer = await api.GET('/v1/organizations', {});
  organizations.value = answer.organizations;
  isOperator.value = answer.operator;
}

export function forgetOrganizations(): void {
  organizations.value = [];
  isOperator.value = false;
  chosenOrg.value = '';
}

export function orgName(orgId: string | null): string {
  if (orgId === null) return 'none';
  return organizations.value.find((org) => org.org_id === orgId)?.name ?? orgId;
}

/** A request as an operator means it: about the organization that is chosen. */
export function aboutChosen(request: Request): Request {
  const url = new URL(request.url);
  if (request.method !== 'GET' || chosenOrg.peek() === '' || url.pathname === '/v1/organizations') return request;
  url.searchParams.set('org_id', chosenOrg.peek());
  return new Request(url, request);
}
