import type { FakeOptions } from './fake-server.js';
import { FakeServer } from './fake-server.js';
import { FakeOpenAiSession } from './fake-openai.js';

/** OpenAI's Realtime API at a port of this machine. */
export function startFakeOpenAi(options: FakeOptions = {}): Promise<FakeServer<FakeOpenAiSession>> {
  return FakeServer.start((socket, upgrade) => {
    const end = {
      send: (text: string): void => socket.send(text),
      close: (code: number, reason: string): void => (code === 1_006 ? socket.terminate() : socket.close(code, reason)),
    };
    const session = new FakeOpenAiSession(end, { url: upgrade.url ?? '', headers: upgrade.headers });
    socket.on('message', (data: Buffer) => session.receive(data.toString()));
    socket.on('close', (code) => session.closed.add(code));
    return session;
  }, options);
}
