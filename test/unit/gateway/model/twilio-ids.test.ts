import { expect, it } from 'vitest';
import { accountSidOf, callIdOf, callSidOf, newSessionId, newStreamSid, orgIdOf } from '../../../../src/gateway/model/twilio-ids.js';

const UUID = '01234567-89ab-cdef-0123-456789abcdef';
const HEX = '0123456789abcdef0123456789abcdef';

it('an id in Twilio’s form is two letters and a UUID, and is read in either case', () => {
  expect([callSidOf(UUID), accountSidOf(UUID.toUpperCase())]).toEqual([`CA${HEX}`, `AC${HEX}`]);
  expect([callIdOf(`CA${HEX.toUpperCase()}`), orgIdOf(`AC${HEX}`)]).toEqual([UUID, UUID]);
});

it.each(['', 'CA', HEX, `AC${HEX}`, `ca${HEX}`, `CA${HEX}0`, `CA0${HEX}`, `CA${HEX.slice(1)}`, `CA${HEX.slice(1)}g`, `CA${UUID}`])(
  '%j is not an id of a call',
  (sid) => {
    expect(callIdOf(sid)).toBeUndefined();
  },
);

it('an id of a call is not one of an account', () => {
  expect(orgIdOf(`CA${HEX}`)).toBeUndefined();
});

it('new ids of streams and sessions differ', () => {
  const ids = [newStreamSid(), newStreamSid(), newSessionId(), newSessionId()];
  expect(new Set(ids).size).toBe(4);
  expect(ids.map((id) => id.replace(/[\da-f]{32}$/, ''))).toEqual(['MZ', 'MZ', 'VX', 'VX']);
});
