import fc from 'fast-check';
import { expect, it } from 'vitest';
import { CellFrameDecoder, encodeCellFrame, type CellFrame } from '../../../../src/sip-server/cells/cell-line.js';
import { readDatagram, writeDatagram } from '../../../../src/sip-server/cells/datagram.js';

const MAX_BYTES = 200;
const byteString = fc.uint8Array({ maxLength: MAX_BYTES }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const frames = fc.array(
  fc.record({ kind: fc.constantFrom<CellFrame['kind'][]>('h', 'f', 'n', 'm', 'c', 's', 'x', 'r'), id: fc.nat(2 ** 40), text: byteString }),
);

it('a frame between cells arrives as it was sent, wherever the reads fall', () => {
  fc.assert(
    fc.property(frames, fc.integer({ min: 1, max: 50 }), (sent, size) => {
      const bytes = sent.map(encodeCellFrame).join('');
      const decoder = new CellFrameDecoder(MAX_BYTES);
      const received: CellFrame[] = [];
      for (let at = 0; at < bytes.length; at += size) received.push(...(decoder.push(bytes.slice(at, at + size)) ?? []));
      expect(received).toEqual(sent);
    }),
  );
});

it.each(['m1 201\n', 'm1 -1\n', 'm1\n', 'INVITE sip:a@b SIP/2.0\r\n', 'M1 1\nx', `m1 ${'1'.repeat(500)}`])(
  'the decoder of cell frames refuses %j',
  (bytes) => {
    expect(new CellFrameDecoder(MAX_BYTES).push(bytes)).toBeNull();
  },
);

it('a datagram keeps its peer and its text', () => {
  for (const peer of [
    { address: '192.0.2.1', port: 5060 },
    { address: '2001:db8::1', port: 65_535 },
  ])
    expect(readDatagram(writeDatagram(peer, 'OPTIONS x\r\n\r\na\nb'))).toEqual({ peer, text: 'OPTIONS x\r\n\r\na\nb' });
});
