/**
 * How long a test waits for a state before it counts as hanging. Nothing that a slow machine does reaches it, and it ends below the limit
 * of the whole test (vitest.config.ts), so that the failure names the state that did not come.
 */
export const HANG_GUARD_MS = 110_000;
