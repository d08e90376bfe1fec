import { describe, expect, it } from 'vitest';
import { DocumentAudio } from '../../../../src/gateway/call/document-audio.js';
import { ok } from '../../../../src/lib/result.js';

const MIB = 1_024 * 1_024;

describe('the audio files of a document', () => {
  it('are fetched once for each URL', async () => {
    const asked: string[] = [];
    const files = new DocumentAudio((url) => {
      asked.push(url);
      return Promise.resolve(ok(new Uint8Array(1)));
    });
    await Promise.all(['a', 'b', 'a', 'a'].map((url) => files.file(url)));
    expect(asked).toEqual(['a', 'b']);
  });

  it('are refused from 16 MiB together, and no more of them is fetched then', async () => {
    let fetched = 0;
    const files = new DocumentAudio(() => {
      fetched += 1;
      return Promise.resolve(ok(new Uint8Array(5 * MIB)));
    });
    const got = await Promise.all(Array.from({ length: 200 }, (_none, at) => files.file(String(at))));
    expect(got.filter((audio) => audio.ok)).toHaveLength(3);
    expect(got.at(-1)).toEqual({
      ok: false,
      error: 'The audio files of the document have more than 16 MiB together; the call goes on without this one.',
    });
    expect(fetched).toBeLessThanOrEqual(8);
  });
});
