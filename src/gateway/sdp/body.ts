import { err, ok, type Result } from '../../lib/result.js';

/** A body and the headers that say what it is. */
export interface BodyHead {
  readonly contentType: string | undefined;
  readonly contentDisposition: string | undefined;
  /** `gzip` and the like. */
  readonly contentEncoding: string | undefined;
  readonly body: string;
}

/**
 * The session description of a request's body: the body itself, or the `application/sdp` part of a multipart body
 * (SDP with ISUP, PIDF-LO or metadata). `ok('')`: there is no body, or one that may be left alone. An error: nothing in it can be used.
 */
export function sessionDescription({ contentType, contentDisposition, contentEncoding, body }: BodyHead): Result<string, 'BAD_BODY'> {
  if (body.trim() === '') return ok('');
  // RFC 3261 §8.2.3: we decode nothing.
  if (!/^\s*(identity\s*)?$/i.test(contentEncoding ?? '')) return err('BAD_BODY');
  const type = (contentType ?? 'application/sdp').trim();
  if (/^application\/sdp\s*(;|$)/i.test(type)) return ok(body);
  const boundary = /^multipart\/[a-z]+\s*;.*?boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(type);
  // RFC 3261 §8.2.3: what is not understood is refused unless it is optional.
  if (boundary === null) return /;\s*handling\s*=\s*"?optional\b/i.test(contentDisposition ?? '') ? ok('') : err('BAD_BODY');
  const parts = body.split(`--${boundary[1] ?? boundary[2] ?? ''}`).flatMap(readPart);
  const description = parts.find(({ isDescription }) => isDescription);
  // RFC 3261 §8.2.3: a part that has to be understood, and is not. Without the parameter, parts that carriers add are skipped.
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
