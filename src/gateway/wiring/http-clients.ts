import type { Config } from '../../config/schema.js';
import type { Clock } from '../../lib/clock.js';
import { ThreadedResultPaths } from '../agents/result-paths.js';
import { HttpToolRunner } from '../agents/tool-runner.js';
import type { ToolRunner, VoiceServer } from '../ports/ports.js';
import { HttpVoiceServer } from '../twilio/voice-client.js';

/** Servers of customers that calls send requests to. */
export interface HttpClients {
  readonly toolRunner: ToolRunner;
  readonly voiceServer: VoiceServer;
  close(): Promise<void>;
}

export function openHttpClients({ tools, webhooks }: Config, caPem: string | null, clock: Clock): HttpClients {
  const toolRunner = new HttpToolRunner({ allowPrivate: tools.allow_private, caPem, clock, resultPaths: new ThreadedResultPaths(clock) });
  const voiceServer = new HttpVoiceServer({ allowPrivate: webhooks.allow_private, caPem, timeoutMs: webhooks.timeout_ms, clock });
  return {
    toolRunner,
    voiceServer,
    close: async () => {
      await toolRunner.close();
      await voiceServer.close();
    },
  };
}
