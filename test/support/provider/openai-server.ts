import { startSessions, type FakeOptions, type FakeServer } from './fake-server.js';
import { FakeOpenAiSession } from './fake-openai.js';

/** OpenAI's Realtime API at a port of this machine. */
export function startFakeOpenAi(options: FakeOptions = {}): Promise<FakeServer<FakeOpenAiSession>> {
  return startSessions((end, upgrade) => new FakeOpenAiSession(end, upgrade), options);
}
