import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../../../scripts/docs/generate.js';

it('Kamailio accepts kamailio.cfg of docs/carriers/kamailio.md, and rejects it with an unknown word', () => {
  const directory = mkdtempSync(join(tmpdir(), 'kamailio-'));
  try {
    const [, config = ''] = /^```kamailio\n([\s\S]*?)^```/m.exec(readFileSync(`${ROOT}docs/carriers/kamailio.md`, 'utf8')) ?? [];
    const isAccepted = (text: string): boolean => {
      writeFileSync(join(directory, 'kamailio.cfg'), text);
      return spawnSync('kamailio', ['-c', '-f', join(directory, 'kamailio.cfg')]).status === 0;
    };
    expect([isAccepted(config), isAccepted(config.replaceAll('t_relay', 't_rely'))]).toEqual([true, false]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
