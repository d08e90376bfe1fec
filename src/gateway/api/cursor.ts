import { validationFailure } from './failure.js';

// Where a page of a list ended, in a form that nobody is tempted to take apart.

const MEMBER = /^\d{15}:(?:TL-)?[0-9a-f-]{36}(?::[0-9a-f-]{36})?$/;

/** @param member an entry of the index of what is listed */
export function cursorOf(member: string): string {
  return Buffer.from(member, 'latin1').toString('base64url');
}

/** `null`: it is no cursor of ours. */
export function memberOf(cursor: string): string | null {
  const member = Buffer.from(cursor, 'base64url').toString('latin1');
  return MEMBER.test(member) && cursorOf(member) === cursor ? member : null;
}

/** The cursor of a query as the store knows it. */
export function beforeOf(before: string | undefined): { readonly before?: string } {
  if (before === undefined) return {};
  const member = memberOf(before);
  if (member === null) throw validationFailure([{ error: 'VALIDATION', message: 'is not the next of a page', path: 'before' }]);
  return { before: member };
}

/** The cursor of an answer. */
export function nextOf(next: string | null): string | null {
  return next === null ? null : cursorOf(next);
}
