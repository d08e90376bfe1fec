import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApi, type ApiFixture } from './api-fixture.js';

describe('/console', () => {
  let directory: string;
  let api: ApiFixture;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'trunkline-console-'));
    mkdirSync(join(directory, 'assets'));
    writeFileSync(join(directory, 'index.html'), '<!doctype html><title>console</title>');
    writeFileSync(join(directory, 'assets/index-abc123.js'), 'export {};');
    writeFileSync(join(directory, '.hash'), 'secret');
    api = await openApi({ consoleDirectory: directory });
  });
  afterAll(() => rmSync(directory, { recursive: true }));
  const get = (url: string, method = 'GET') => api.send({ method, url });

  it('serves its page for every path of its own, which is never cached', async () => {
    for (const path of ['/console/', '/console/calls', '/console/calls/153ee546-05b9-4d95-bd6d-f899f082d48b', '/console/a.js']) {
      const answer = await get(path);
      expect([path, answer.status, answer.text]).toEqual([path, 200, '<!doctype html><title>console</title>']);
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'text/html; charset=utf-8' });
    }
    for (const path of ['/console', '/']) expect(await get(path)).toMatchObject({ status: 302, headers: { location: '/console/' } });
  });

  it('serves assets, whose names have a hash, to be cached for ever', async () => {
    const answer = await get('/console/assets/index-abc123.js');
    expect(answer).toMatchObject({ status: 200, text: 'export {};' });
    expect(answer.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(answer.headers['content-type']).toContain('javascript');
  });

  it('forbids all foreign content, and being framed', async () => {
    for (const path of ['/console/', '/console/assets/index-abc123.js']) {
      const { headers } = await get(path);
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
      const policy = String(headers['content-security-policy']);
      expect(policy).toMatch(/^default-src 'none'; /);
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|data:|\*|https?:/);
    }
  });

  it('serves nothing but its files, and no other method', async () => {
    for (const path of ['/console/assets/../.hash', '/console/..%2f.hash', '/console/assets/%2e%2e/.hash', '/console/.hash']) {
      expect((await get(path)).text).not.toContain('secret');
    }
    expect((await get('/console/assets/none.js')).status).toBe(404);
    expect((await get('/console/', 'POST')).status).toBe(405);
  });

  it('answers without a build with the command for it, and the API works', async () => {
    for (const options of [{}, { consoleDirectory: join(directory, 'none') }]) {
      const bare = await openApi(options);
      const answer = await bare.send({ method: 'GET', url: '/console/calls' });
      expect([answer.status, answer.text]).toEqual([404, expect.stringContaining('scripts/build')]);
      expect((await bare.get('/v1/calls')).status).toBe(200);
    }
  });
});
