// Loaded by `--import` before a checkout's bench/media/endpoint.ts: the media that it measures are those of the checkout's build, as in
// production. A checkout of November 2026 takes them from its sources, which tsx compiles otherwise than the build does.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const SOURCE = /\/src\/(gateway\/media-thread\/media-service)\.ts$/;

// The hooks have a thread of their own, which loads this file once more.
if (isMainThread) register(import.meta.url);

export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (!SOURCE.test(found.url)) return found;
  return { url: found.url.replace(SOURCE, '/dist/$1.js'), format: 'module', shortCircuit: true };
}
