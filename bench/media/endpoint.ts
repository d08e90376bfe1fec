import { type AudioCodec, payloadTypeOf } from '../../src/rtp/codec/g711.js';
import { endpointSdp, canonicalSdp } from '../../src/gateway/sdp/sdp-write.js';
import { decide, NO_USAGE } from '../../src/gateway/admission/admission.js';
import { readRelaySdp } from '../../src/gateway/sdp/sdp-read.js';
import { silentLog } from '../../src/lib/log.js';
import type { MediaService } from '../../src/gateway/media-thread/media-service.js';
import { generateSrtpKey } from '../../src/srtp/srtp.js';
import { systemClock } from '../../src/lib/system-clock.js';
import { openRelayPool, type RelayPool } from '../../src/gateway/relay/pool.js';
import type { AgentDescription } from '../../src/gateway/model/agent.js';
import type { ProviderName } from '../../src/gateway/model/provider.js';
import { PROVIDER } from '../../test/support/provider/provider-leg.js';
import { AGENT_LIMITS } from '../../test/support/media/agent-limits.js';
import { ROUTE } from '../../test/support/route.js';
import { createMediaService } from '../../test/support/built.js';
import { offerSdp } from '../../test/support/sdp.js';
import type { CarrierSide, EndpointOrder, FarSide } from './messages.js';
import { takeOrders } from '../support/orders.js';

// The product's media: the endpoint with its workers and agents, and the commands to rtpengine; no signalling.

const CODEC: AudioCodec = 'PCMU';
const HEX = '0123456789abcdef0123456789abcdef';
let media: MediaService;
let relay: RelayPool | null = null;
let settings: Extract<EndpointOrder, { type: 'set-up' }>;

async function setUp(order: Extract<EndpointOrder, { type: 'set-up' }>): Promise<void> {
  settings = order;
  const { portMin, portMax, workers } = order;
  media = await createMediaService(
    { address: '127.0.0.1', portMin, portMax, workers, mediaTimeoutMs: 60_000, agents: AGENT_LIMITS },
    silentLog,
  );
  if (order.ngPort === null) return;
  relay = openRelayPool({
    nodes: [{ address: '127.0.0.1', port: order.ngPort }],
    interfaces: { outside: 'outside', inside: 'inside' },
    instance: 'bench',
    clock: systemClock,
    log: silentLog,
    timeoutMs: 5_000,
    maxDelayMs: 250,
    own: null,
  });
}

async function open(side: CarrierSide): Promise<FarSide> {
  const far = relay === null ? await openDirect(side) : await openRelayed(side, relay);
  media.send(side.id, { do: 'start' });
  return far;
}

function provider(name: ProviderName, botUrl: string): AgentDescription {
  const url = new URL(name, botUrl).href;
  return { ...PROVIDER, kind: 'provider', provider: name, url, waitsForGreeting: true };
}

async function connectAgent(callId: string): Promise<void> {
  const { botUrl, format, provider: name } = settings;
  if (name !== null) return media.connectAgent(callId, provider(name, botUrl), () => undefined);
  await media.connectAgent(
    callId,
    {
      kind: 'stream',
      url: botUrl,
      format,
      bearerToken: null,
      signatureKey: 'bench',
      accountSid: `AC${HEX}`,
      callSid: `CA${HEX}`,
      customParameters: {},
      endOfSpeechMs: 100,
      mayPress: true,
    },
    () => undefined,
  );
}

async function openDirect({ id, port, key }: CarrierSide): Promise<FarSide> {
  const own = key === null ? null : generateSrtpKey();
  await connectAgent(id);
  const local = await media.reserve(id);
  await media.open(
    {
      callId: id,
      sipCallId: id,
      localRtpPort: local.rtpPort,
      remote: { address: '127.0.0.1', rtpPort: port, rtcpPort: port + 1 },
      codec: CODEC,
      payloadType: payloadTypeOf(CODEC),
      telephoneEventPayloadType: null,
      srtp: key === null || own === null ? null : { send: own, receive: Buffer.from(key, 'base64') },
      carrierSuite: null,
    },
    () => undefined,
  );
  return { id, port: local.rtpPort, key: own === null ? null : Buffer.from(own).toString('base64') };
}

async function openRelayed({ id, port, key }: CarrierSide, pool: RelayPool): Promise<FarSide> {
  const call = { relayId: id, agentSideSrtp: settings.agentSideSrtp, carrierSideSrtp: true };
  const sdp = offerSdp({ port, payloads: '0', rtpmap: ['0 PCMU/8000'], crypto: [`1 AES_CM_128_HMAC_SHA1_80 inline:${key ?? ''}`] });
  const decision = decide({
    route: ROUTE,
    sourceAddress: '127.0.0.1',
    credentials: null,
    identity: null,
    refusedVerdicts: [],
    sdp,
    relayAddress: null,
    load: NO_USAGE,
  });
  if (!decision.ok || decision.value === null) throw new Error('the offer is not taken');
  const [offered] = await Promise.all([pool.offer(call, canonicalSdp(decision.value)), connectAgent(id)]);
  const inside = readRelaySdp(offered.sdp);
  if (inside === undefined) throw new Error('rtpengine’s answer cannot be read');
  const own = inside.crypto === null ? null : { ...inside.crypto, inline: Buffer.from(generateSrtpKey()).toString('base64'), mki: null };
  const local = await media.reserve(id);
  await media.open(
    {
      callId: id,
      sipCallId: id,
      localRtpPort: local.rtpPort,
      remote: { address: inside.address, rtpPort: inside.rtpPort, rtcpPort: inside.rtcpPort },
      codec: CODEC,
      payloadType: payloadTypeOf(CODEC),
      telephoneEventPayloadType: null,
      srtp:
        own === null || inside.crypto === null
          ? null
          : { send: Buffer.from(own.inline, 'base64'), receive: Buffer.from(inside.crypto.inline, 'base64') },
      carrierSuite: null,
    },
    () => undefined,
  );
  const answered = await pool.answer(call, endpointSdp(decision.value, local, own));
  const outside = readRelaySdp(answered.sdp);
  if (outside?.crypto == null) throw new Error('rtpengine did not answer with SRTP');
  return { id, port: outside.rtpPort, key: outside.crypto.inline };
}

async function obey(order: EndpointOrder): Promise<unknown> {
  switch (order.type) {
    case 'set-up':
      return setUp(order);
    case 'open': {
      const far: FarSide[] = [];
      for (const side of order.calls) far.push(await open(side));
      return far;
    }
    case 'counters':
      return media.counters();
    case 'collect':
      return globalThis.gc?.();
  }
}

// Profiles are written by threads that end by themselves.
process.on('SIGTERM', () => void media.shutdown().then(() => process.exit(0)));
takeOrders(obey);
