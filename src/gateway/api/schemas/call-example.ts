// A call as the documents show it.

export const EXAMPLE_CALL = {
  call_id: '153ee546-05b9-4d95-bd6d-f899f082d48b',
  state: 'ended',
  org_id: '0b0e7e0c-6f3f-4b0e-9a44-0a2f7a0f4b52',
  agent_id: '4a7c3c52-6a53-4c53-9f5b-0f0d8a2d1c11',
  direction: 'inbound',
  parent_call_id: null,
  sip_call_id: '3c26700c7f4e@203.0.113.7',
  from: '+15550100999',
  to: '+15551234567',
  caller: {
    number: '+15550100999',
    display_name: 'Kim',
    asserted: ['sip:+15550100999@carrier.example'],
    remote_party: null,
    diversions: [],
    history: [],
    privacy: [],
    user_to_user: null,
    headers: {},
  },
  source: { ip: '203.0.113.7', port: 5061, transport: 'tls', tls_version: 'TLSv1.3', tls_cipher: 'TLS_AES_256_GCM_SHA384' },
  identity: {
    verdict: 'valid',
    detail: null,
    attestation: 'A',
    origid: 'b0a7c1a4-5b1c-4b9e-9b55-9e52b21e7a10',
    signer: 'C=US, O=Carrier, CN=SHAKEN 709J',
  },
  reason: 'CALLER_HANGUP',
  sip_status: 200,
  codec: 'PCMU',
  crypto_suite: 'AES_CM_128_HMAC_SHA1_80',
  started_at: '2026-01-01T00:00:00.000Z',
  answered_at: '2026-01-01T00:00:00.042Z',
  ended_at: '2026-01-01T00:01:02.042Z',
  turns: { first_audio_ms: 120, delays_ms: [640, 720, 1_180], p50_ms: 720, p95_ms: 1_180 },
  timings: { ring_ms: null, answer_ms: 42, first_audio_ms: 61, talk_ms: 62_000 },
  quality: {
    endpoint: {
      packets_sent: 3100,
      packets_received: 3098,
      packets_lost: 2,
      jitter_ms: 1.2,
      round_trip_ms: 18,
      digits_received: 4,
      frames_late: 0,
    },
    relay: {
      from_carrier: { packets: 3098, bytes: 532_856, errors: 0, lost: 2, jitter_ms: 1, round_trip_ms: 18, mos: 4.3 },
      from_agent: { packets: 3100, bytes: 533_200, errors: 0, lost: 0, jitter_ms: 0, round_trip_ms: 1, mos: 4.4 },
    },
  },
  transcript_state: 'complete',
  transcript_error: null,
  analysis: { guest_name: 'Kim', arrival: '2026-12-24', wants_breakfast: true },
  analysis_error: null,
  agent_error: null,
  signalling_error: null,
  q850_cause: 16,
  reason_detail: null,
  answered_by: null,
  legs: [],
  stale_route: false,
  resumed: 0,
  summed_calls: null,
};

export const EXAMPLE_CALL_DETAIL = {
  ...EXAMPLE_CALL,
  transcript: [
    { speaker: 'agent', text: 'Blue Harbor Hotel, good day.', at_ms: 120 },
    { speaker: 'caller', text: 'A room for the 24th, please.', at_ms: 3400 },
  ],
  analysis_rejected: null,
};

export const EXAMPLE_TRACE = [
  {
    at: '2026-01-01T00:00:00.000Z',
    source: 'sip',
    direction: 'in',
    summary: 'INVITE sip:+15551234567@sip.example.com',
    text: 'INVITE sip:+15551234567@sip.example.com SIP/2.0\r\n…',
  },
  { at: '2026-01-01T00:00:00.004Z', source: 'rtpengine', direction: 'out', summary: 'offer, 3.1 ms', text: null },
];

export const EXAMPLE_SAMPLES = [
  {
    at_ms: 702,
    from_caller: { lost_percent: 0, jitter_ms: 0.8, mos: 4.4 },
    to_caller: null,
    round_trip_ms: null,
  },
  {
    at_ms: 5310,
    from_caller: { lost_percent: 0.78, jitter_ms: 1.2, mos: 4.34 },
    to_caller: { lost_percent: 0, jitter_ms: 0.5, mos: 4.4 },
    round_trip_ms: 18.1,
  },
];
