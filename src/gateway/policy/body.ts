import { err, ok, type Result } from '../../lib/result.js';

/**
 * The session description of a request's body: the body itself, or the `application/sdp` part of a multipart body
 * (SDP with ISUP, PIDF-LO or metadata). `ok('')`: there is no body. An error: nothing in it can be used.
 */
export function sessionDescription(contentType: string | undefined, body: string): Result<string, 'BAD_BODY'> {
  if (body.trim() === '') return ok('');
  const type = (contentType ?? 'application/sdp').trim();
  if (/^application\/sdp\s*(;|$)/i.test(type)) return ok(body);
  const boundary = /^multipart\/[a-z]+\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(type);
  if (boundary === null) return err('BAD_BODY');
  for (const part of body.split(`--${boundary[1] ?? boundary[2] ?? ''}`)) {
    const split = /\r?\n\r?\n/.exec(part);
    if (split === null) continue;
    if (/^content-type\s*:\s*application\/sdp\s*(;|\r|\n|$)/im.test(part.slice(0, split.index + 1))) {
      return ok(part.slice(split.index + split[0].length).replace(/\r?\n$/, '\r\n'));
    }
  }
  return err('BAD_BODY');
}
