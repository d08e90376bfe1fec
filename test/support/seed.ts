import fc from 'fast-check';

// Every property of a run takes this seed, so that each run tries the same. A failure prints it; `SEED=… npm test` tries others.
const seed = Number(process.env['SEED'] ?? 1);
if (!Number.isInteger(seed)) throw new Error(`SEED is a whole number, not "${String(process.env['SEED'])}".`);
fc.configureGlobal({ seed });
