import type { Config } from '../../config/schema.js';
import { sipHost } from '../../tls/tls-material.js';
import type { Clock } from '../../lib/clock.js';
import type { Log } from '../../lib/log.js';
import { OverloadDetector } from '../admission/overload-detector.js';
import type { OperatorAgent } from '../call/agent.js';
import { endOfSpeechTable } from '../model/end-of-speech.js';
import type { ProviderDefaults } from '../model/provider.js';
import type { SpeechService } from '../model/speech-service.js';
import type { MediaService } from '../media-thread/media-service.js';
import { trunkHosts } from './place-call.js';
import type { InboundOptions, InboundServices } from '../drachtio/inbound.js';

export function inboundOptions(config: Config): InboundOptions {
  const { admission, agents, calls, drachtio, sip, stir, trunks } = config;
  return {
    sipHost: drachtio.url === null ? sipHost(config) : sip.host,
    contactPort: sip.contact_port,
    ringingAfterMs: sip.ringing_after_ms,
    maxDurationMs: calls.max_duration_minutes * 60_000,
    standIn: agents.on_failure === 'refuse' ? null : agents.on_failure,
    refusedVerdicts: stir.refuse,
    relayAddress: config.rtpengine.address === null ? (config.public_address ?? config.bind_address) : null,
    trunkHosts: trunkHosts(trunks),
    transferHosts: calls.transfer_hosts,
    transferPrefixes: calls.transfer_prefixes,
    calledNumberFrom: sip.called_number_from,
    edge: {
      allowedSources: admission.allowed_sources,
      allowedIdentities: admission.allowed_identities,
      maxCalls: admission.max_calls,
      maxCallsPerSecond: admission.max_calls_per_second,
    },
  };
}

export function operatorAgent({ agents, openai, deepgram, gemini, elevenlabs }: Config): OperatorAgent {
  const { url, format, bearer_token: bearerToken } = agents;
  return {
    url,
    format,
    bearerToken,
    providers: {
      'openai-realtime': providerDefaults({ ...openai, voice: null }),
      deepgram: providerDefaults(deepgram),
      'gemini-live': providerDefaults({ ...gemini, voice: null, transcription_model: gemini.model }),
      elevenlabs: { url: elevenlabs.url, apiKey: elevenlabs.api_key, ...agentModels(elevenlabs.agent_id) },
    },
    speech: {
      listen: { url: deepgram.listen_url, apiKey: deepgram.api_key },
      speech: {
        deepgram: { url: deepgram.speech_url, apiKey: deepgram.api_key, model: '', voice: deepgram.voice },
        elevenlabs: speechService(elevenlabs),
        openai: speechService(openai),
      },
    },
    endOfSpeech: endOfSpeechTable(agents.end_of_speech_ms),
    standIns: {
      secondProvider: agents.second_provider,
      sentence: agents.failure_sentence,
      language: agents.failure_language,
      transferTo: agents.failure_transfer,
    },
  };
}

function speechService(settings: Pick<Config['openai'], 'speech_url' | 'speech_model' | 'speech_voice' | 'api_key'>): SpeechService {
  return { url: settings.speech_url, apiKey: settings.api_key, model: settings.speech_model, voice: settings.speech_voice };
}

/** The agent there has its models. */
function agentModels(agentId: string | null): Pick<ProviderDefaults, 'model' | 'turboModel' | 'transcriptionModel' | 'voice'> {
  return { model: agentId ?? '', turboModel: agentId ?? '', transcriptionModel: '', voice: null };
}

type ProviderConfig = Pick<Config['openai'], 'url' | 'api_key' | 'model' | 'turbo_model' | 'transcription_model'>;

function providerDefaults(settings: ProviderConfig & { readonly voice: string | null }): ProviderDefaults {
  const { url, voice, api_key: apiKey, model, turbo_model: turboModel, transcription_model: transcriptionModel } = settings;
  return { url, apiKey, model, turboModel, transcriptionModel, voice };
}

/** What calls take from the settings. */
export function inboundSettings(
  config: Config,
): Pick<InboundServices, 'operatorAgent' | 'isTraced' | 'agentSideSrtp' | 'referReason' | 'trunksArePublic'> {
  return {
    operatorAgent: operatorAgent(config),
    trunksArePublic: !config.trunks.allow_private,
    isTraced: config.calls.trace,
    agentSideSrtp: config.media.agent_leg === 'srtp',
    referReason: config.sip.refer_status === 405 ? 'METHOD_NOT_ALLOWED' : 'DECLINED',
  };
}

export function overloadDetector({ admission }: Config, endpoint: MediaService, clock: Clock, log: Log): OverloadDetector {
  const limits = {
    maxEventLoopDelayMs: admission.max_event_loop_delay_ms,
    maxMediaDelayMs: admission.max_media_delay_ms,
    maxCpuPercent: admission.max_cpu_percent,
  };
  return new OverloadDetector(limits, () => endpoint.delays, clock, log);
}
