import { pickResults } from '../../src/gateway/agents/pick-results.js';
import type { ResultPaths } from '../../src/gateway/agents/result-paths.js';
import { ok } from '../../src/lib/result.js';

/** Without the thread that bounds it. */
export const RESULT_PATHS: ResultPaths = {
  pick: (_orgId, paths, text) => {
    const picked = pickResults({ paths, text });
    return Promise.resolve(picked.ok ? ok(JSON.parse(picked.value) as unknown) : picked);
  },
  close: () => Promise.resolve(),
};
