import { validationFailure } from './failure.js';

// Where a page of a list ended, in a form that nobody is tempted to take apart.

const MEMBER = /^\d{15}:(?:TL-)?[0-9a-f-]{36}(?::[0-9a-f-]{36})?$/;

/** Lists that have pages: the cursor of one leads nowhere in another. */
export type PagedList = 'calls' | 'agents' | 'tools' | 'dead-letters';

/** @param member an entry of the index of what is listed */
export function cursorOf(list: PagedList, member: string): string {
  return Buffer.from(`${list} ${member}`, 'latin1').toString('base64url');
}

/** `null`: it is no cursor of this list. */
export function memberOf(list: PagedList, cursor: string): string | null {
  const member = Buffer.from(cursor, 'base64url')
    .toString('latin1')
    .slice(list.length + 1);
  return MEMBER.test(member) && cursorOf(list, member) === cursor ? member : null;
}

/** The cursor of a query as the store knows it. */
export function beforeOf(list: PagedList, before: string | undefined): { readonly before?: string } {
  if (before === undefined) return {};
  const member = memberOf(list, before);
  if (member === null)
    throw validationFailure([{ error: 'VALIDATION', message: 'is not the next of a page of this list', path: 'before' }]);
  return { before: member };
}

/** The cursor of an answer. */
export function nextOf(list: PagedList, next: string | null): string | null {
  return next === null ? null : cursorOf(list, next);
}
