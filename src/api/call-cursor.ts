// Where a page of calls ended, in a form that nobody is tempted to take apart.

const MEMBER = /^\d{15}:[0-9a-f-]{36}$/;

/** @param member an entry of the index of calls */
export function cursorOf(member: string): string {
  return Buffer.from(member, 'latin1').toString('base64url');
}

/** `null`: it is no cursor of ours. */
export function memberOf(cursor: string): string | null {
  const member = Buffer.from(cursor, 'base64url').toString('latin1');
  return MEMBER.test(member) && cursorOf(member) === cursor ? member : null;
}
