import { describe, expect, it } from 'vitest';
import {
  readCoreHeaders,
  type CoreHeaders,
  clientTransactionKey,
  mergeKey,
  serverTransactionKey,
} from '../../../src/sip/message/core-headers.js';
import { parseMessage } from '../../../src/sip/message/parse.js';

const LIMITS = { maxHeaders: 30, maxHeaderBytes: 300, maxBodyBytes: 300 };
const URI = 'sip:b@gw.example';

function core(parts: { via?: string; from?: string; callId?: string; cseq?: string } = {}): CoreHeaders {
  const { via = '192.0.2.1:5061;branch=z9hG4bKa', from = '<sip:a@b>;tag=1', callId = 'c1', cseq = '7 INVITE' } = parts;
  const method = cseq.split(' ')[1] ?? '';
  const headers = [`Via: SIP/2.0/TLS ${via}`, `From: ${from}`, 'To: <sip:b@c>', `Call-ID: ${callId}`, `CSeq: ${cseq}`, 'Max-Forwards: 70'];
  const message = parseMessage(`${[`${method} ${URI} SIP/2.0`, ...headers, 'Content-Length: 0'].join('\r\n')}\r\n\r\n`, LIMITS);
  if (!message.ok) throw new Error(JSON.stringify(message.error));
  const read = readCoreHeaders(message.value);
  if (!read.ok) throw new Error(JSON.stringify(read.error));
  return read.value;
}

const server = (parts?: Parameters<typeof core>[0], method = 'INVITE', uri = URI): string => serverTransactionKey(core(parts), method, uri);

describe('the SIP server', () => {
  it('[3261 §17.2.3] identifies a transaction by branch, sent-by and method alone when the branch has the magic cookie', () => {
    expect(server({ from: '<sip:x@y>;tag=9', callId: 'c2', cseq: '8 INVITE' }, 'INVITE', 'sip:other@gw.example')).toBe(server());
    const others = [
      server({ via: '192.0.2.1:5061;branch=z9hG4bKb' }),
      server({ via: '192.0.2.2:5061;branch=z9hG4bKa' }),
      server({ via: '192.0.2.1:5062;branch=z9hG4bKa' }),
      server({ via: '192.0.2.1;branch=z9hG4bKa' }),
      server({}, 'BYE'),
    ];
    expect(new Set([server(), ...others]).size).toBe(others.length + 1);
  });

  it.each([['old'], ['z9hG4bK']])(
    '[3261 §17.2.3] identifies a transaction by all that RFC 2543 compares when the branch (%s) is not unique by itself',
    (branch) => {
      const via = `192.0.2.1:5061;branch=${branch}`;
      const others = [
        server({ via, from: '<sip:a@b>;tag=2' }),
        server({ via, from: '<sip:a@b>' }),
        server({ via, callId: 'c2' }),
        server({ via, cseq: '8 INVITE' }),
        server({ via: `192.0.2.1:5062;branch=${branch}` }),
        server({ via }, 'BYE'),
        server({ via }, 'INVITE', 'sip:other@gw.example'),
      ];
      expect(new Set([server({ via }), ...others]).size).toBe(others.length + 1);
    },
  );

  it('[3261 §17.2.3] puts nothing into the key for a port or a tag that is missing', () => {
    expect(server({ via: '192.0.2.1;branch=z9hG4bKa' })).toBe('z9hG4bKa|192.0.2.1:|INVITE');
    expect(server({ via: '192.0.2.1;branch=old', from: '<sip:a@b>' })).toBe(`2543|${URI}|c1|7||192.0.2.1:|old|INVITE`);
    expect(mergeKey(core({ from: '<sip:a@b>' }))).toBe('c1||7|INVITE');
  });

  it('[3261 §17.1.3] identifies the transaction of a response by the branch and the method of CSeq', () => {
    expect(clientTransactionKey(core({ cseq: '7 BYE' }))).toBe('z9hG4bKa|BYE');
  });

  it('[3261 §8.2.2.2] recognizes a request that came by two ways by Call-ID, From tag and CSeq, whatever its branch is', () => {
    expect(mergeKey(core({ via: '192.0.2.9;branch=z9hG4bKz' }))).toBe(mergeKey(core()));
    const others = [{ from: '<sip:a@b>;tag=2' }, { callId: 'c2' }, { cseq: '8 INVITE' }, { cseq: '7 OPTIONS' }].map((parts) =>
      mergeKey(core(parts)),
    );
    expect(new Set([mergeKey(core()), ...others]).size).toBe(others.length + 1);
  });
});
