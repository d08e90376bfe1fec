import type { AgentConnectionLimits } from '../../../src/gateway/model/agent.js';

/** The defaults of the configuration, but agents on this machine are allowed. */
export const AGENT_LIMITS: AgentConnectionLimits = {
  connectTimeoutMs: 5_000,
  reconnectGraceMs: 10_000,
  pingIntervalMs: 5_000,
  maxQueuedSpeechMs: 120_000,
  maxSilenceMs: 15_000,
  maxUnsentAudioMs: 2_000,
  allowPrivate: true,
  caPem: null,
};
