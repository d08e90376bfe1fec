import type { Config } from '../../config/schema.js';
import type { Log } from '../../lib/log.js';
import { calledCertificates } from '../../tls/tls-material.js';
import { createMediaService, type MediaService } from '../media-thread/media-service.js';
import type { AgentConnectionLimits } from '../model/agent.js';
import type { RtcpSeen } from '../../lib/observed.js';
import { publish } from '../ports/events.js';

/** Starts the media threads, with the ports of one worker, which another process has until `bindAfter` resolves. */
export async function openEndpoint(config: Config, log: Log, bindAfter?: Promise<void>): Promise<MediaService> {
  const { port_min: portMin, port_max: portMax, workers, timeout_ms: mediaTimeoutMs } = config.media;
  const address = config.rtpengine.address === null ? '127.0.0.1' : config.bind_address;
  const onRtcp = config.hep.address === null ? undefined : (seen: RtcpSeen): void => publish('rtcp.seen', seen);
  return createMediaService(
    {
      address,
      portMin,
      portMax,
      workers,
      mediaTimeoutMs,
      agents: await agentLimits(config),
      webhooksAllowPrivate: config.webhooks.allow_private,
      onRtcp,
      ...(bindAfter === undefined ? {} : { bindAfter }),
    },
    log,
  );
}

async function agentLimits(config: Config): Promise<AgentConnectionLimits> {
  const { agents } = config;
  return {
    connectTimeoutMs: agents.connect_timeout_ms,
    reconnectGraceMs: agents.reconnect_grace_ms,
    pingIntervalMs: agents.ping_interval_ms,
    maxQueuedSpeechMs: agents.max_queued_speech_ms,
    maxUnsentAudioMs: agents.max_unsent_audio_ms,
    maxSilenceMs: agents.max_silence_ms,
    allowPrivate: agents.allow_private,
    caPem: await calledCertificates(config),
  };
}
