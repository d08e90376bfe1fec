import { expect, it } from 'vitest';
import { newSessionId, newTag, newToken, newUuid, nextSerialId, prefixTags } from '../../../src/lib/ids.js';

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
const many = (make: () => string): string[] => Array.from({ length: 1_000 }, make);

it.each([
  ['UUIDs', newUuid, UUID],
  ['ids of this process', nextSerialId, UUID],
  ['tags', newTag, /^[A-Za-z\d]{13}$/],
  ['tokens of 20 characters', () => newToken(20), /^[\w-]{20}$/],
  ['tokens of 21 characters', () => newToken(21), /^[\w-]{21}$/],
  ['ids of SDP sessions', newSessionId, /^\d{1,15}$/],
])('%s all differ, and have their form', (_what, make, form) => {
  const ids = many(make);
  expect(new Set(ids).size).toBe(1_000);
  for (const id of ids) expect(id).toMatch(form);
});

it('tags begin with the prefix of the process, if it has one', () => {
  prefixTags('2.');
  expect(newTag()).toMatch(/^2\.[A-Za-z\d]{13}$/);
  prefixTags('');
  expect(newTag()).toMatch(/^[A-Za-z\d]{13}$/);
});
