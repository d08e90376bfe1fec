import { err, ok, type Result } from '../../lib/result.js';

/** A body and the headers that describe it. */
export interface BodyHead {
  readonly contentType: string | undefined;
  readonly contentDisposition: string | undefined;
  /** Such as `gzip`. */
  readonly contentEncoding: string | undefined;
  readonly body: string;
}

/**
 * The session description of a request's body: the body itself, or the `application/sdp` part of a multipart body
 * (SDP with ISUP, PIDF-LO or metadata). `ok('')`: no body, or an optional one that we ignore. An error: no part is usable.
 */
export function sessionDescription({ contentType, contentDisposition, contentEncoding, body }: BodyHead): Result<string, 'BAD_BODY'> {
  if (body.trim() === '') return ok('');
  // RFC 3261 §8.2.3: we support no encoding.
  if (!/^\s*(identity\s*)?$/i.test(contentEncoding ?? '')) return err('BAD_BODY');
  const type = (contentType ?? 'application/sdp').trim();
  if (/^application\/sdp\s*(;|$)/i.test(type)) return ok(body);
  const boundary = /^multipart\/[a-z]+\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(type);
  // RFC 3261 §8.2.3: refuse an unknown body unless it is optional.
  if (boundary === null) return /;\s*handling\s*=\s*"?optional\b/i.test(contentDisposition ?? '') ? ok('') : err('BAD_BODY');
  const parts = body.split(`--${boundary[1] ?? boundary[2] ?? ''}`).flatMap(readPart);
  const description = parts.find(({ isDescription }) => isDescription);
  // RFC 3261 §8.2.3: refuse an unknown part that is required. Skip parts without the parameter, which carriers add.
  const isBeyondUs = parts.some(({ isDescription, head }) => !isDescription && /;\s*handling\s*=\s*"?required\b/i.test(head));
  return description === undefined || isBeyondUs ? err('BAD_BODY') : ok(description.text);
}

interface BodyPart {
  readonly head: string;
  readonly isDescription: boolean;
  readonly text: string;
}

function readPart(part: string): BodyPart[] {
  const split = /\r?\n\r?\n/.exec(part);
  if (split === null) return [];
  const head = part.slice(0, split.index + 1);
  const isDescription = /^content-type\s*:\s*application\/sdp\s*(;|\r|\n|$)/im.test(head);
  return [{ head, isDescription, text: part.slice(split.index + split[0].length).replace(/\r?\n$/, '\r\n') }];
}
