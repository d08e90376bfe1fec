/** Both laws of ITU-T G.711, by their names in SDP (RFC 3551 §6). */
export type AudioCodec = 'PCMU' | 'PCMA';

/** Static payload types of RFC 3551 §6. */
export const PCMU_PAYLOAD_TYPE = 0;
export const PCMA_PAYLOAD_TYPE = 8;

/** Both laws of ITU-T G.711 run at this rate, one byte a sample. */
export const G711_CLOCK_RATE_HZ = 8_000;

const MU_LAW_BIAS = 0x84;
const CLIP = 32_635;

function muLawByte(sample: number): number {
  const sign = sample < 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample) + MU_LAW_BIAS, CLIP);
  const exponent = Math.max(0, 24 - Math.clz32(magnitude));
  return ~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0f)) & 0xff;
}

function muLawSample(byte: number): number {
  const code = ~byte & 0xff;
  const exponent = (code >> 4) & 0x07;
  const magnitude = ((((code & 0x0f) << 3) + MU_LAW_BIAS) << exponent) - MU_LAW_BIAS;
  return (code & 0x80) !== 0 ? -magnitude : magnitude;
}

function aLawByte(sample: number): number {
  // A-law's sign bit is set for positive samples; every second bit is inverted (G.711 table 1a).
  const sign = sample >= 0 ? 0x80 : 0;
  const magnitude = Math.min(Math.abs(sample), CLIP);
  const exponent = Math.max(0, 24 - Math.clz32(magnitude));
  const code = magnitude < 256 ? magnitude >> 4 : (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0f);
  return code ^ sign ^ 0x55;
}

function aLawSample(byte: number): number {
  const code = byte ^ 0x55;
  const exponent = (code >> 4) & 0x07;
  const mantissa = ((code & 0x0f) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return (code & 0x80) !== 0 ? magnitude : -magnitude;
}

interface Law {
  /** Indexed by the sample's 16 bits read as an unsigned number. */
  readonly encode: Uint8Array;
  readonly decode: Int16Array;
  readonly silence: number;
}

function law(toByte: (sample: number) => number, toSample: (byte: number) => number): Law {
  const encode = new Uint8Array(65_536);
  for (let sample = -32_768; sample < 32_768; sample += 1) encode[sample & 0xffff] = toByte(sample);
  return { encode, decode: Int16Array.from({ length: 256 }, (_, byte) => toSample(byte)), silence: toByte(0) };
}

const LAWS: Readonly<Record<AudioCodec, Law>> = {
  PCMU: law(muLawByte, muLawSample),
  PCMA: law(aLawByte, aLawSample),
};

/** The static payload type of a codec. */
export function payloadTypeOf(codec: AudioCodec): number {
  return codec === 'PCMU' ? PCMU_PAYLOAD_TYPE : PCMA_PAYLOAD_TYPE;
}

/** The code that a codec uses for silence. */
export function silenceByte(codec: AudioCodec): number {
  return LAWS[codec].silence;
}

/** About -48 dBFS: line noise, not a voice. */
const QUIET_SAMPLE = 130;

/** Whether the code's sample is as quiet as a pause. */
export function isQuietG711(codec: AudioCodec, byte: number): boolean {
  return Math.abs(LAWS[codec].decode[byte] ?? 0) <= QUIET_SAMPLE;
}

/** Encodes `samples` (16-bit linear, 8 kHz) into `target` from `offset` on, one byte each. */
export function encodeG711(codec: AudioCodec, samples: Int16Array, target: Uint8Array, offset = 0): void {
  const table = LAWS[codec].encode;
  for (let i = 0; i < samples.length; i += 1) target[offset + i] = table[(samples[i] ?? 0) & 0xffff] ?? 0;
}

/** Decodes `source[offset, offset + length)` into `target` from index 0 on. */
export function decodeG711(codec: AudioCodec, source: Uint8Array, target: Int16Array, offset = 0, length = source.length - offset): void {
  const table = LAWS[codec].decode;
  for (let i = 0; i < length; i += 1) target[i] = table[source[offset + i] ?? 0] ?? 0;
}

/** `samples` after encoding and decoding. */
export function throughG711(codec: AudioCodec, samples: Int16Array): Int16Array {
  const encoded = new Uint8Array(samples.length);
  encodeG711(codec, samples, encoded);
  const decoded = new Int16Array(samples.length);
  decodeG711(codec, encoded, decoded);
  return decoded;
}

/** Codes of one law, indexed by those of the other. */
const ACROSS: Readonly<Record<AudioCodec, Uint8Array>> = { PCMU: across('PCMU', 'PCMA'), PCMA: across('PCMA', 'PCMU') };

function across(from: AudioCodec, to: AudioCodec): Uint8Array {
  return LAWS[from].decode.reduce((codes, sample, code) => {
    codes[code] = LAWS[to].encode[sample & 0xffff] ?? 0;
    return codes;
  }, new Uint8Array(256));
}

/** Transcodes `source[offset, offset + length)` into `target` from index 0 on; `source` and `target` may be the same. */
export function transcodeG711(from: AudioCodec, source: Uint8Array, target: Uint8Array, offset = 0, length = source.length - offset): void {
  const table = ACROSS[from];
  for (let i = 0; i < length; i += 1) target[i] = table[source[offset + i] ?? 0] ?? 0;
}

/** Every leg sends one frame per 20 ms, at G.711's 8 kHz. */
export const FRAME_MS = 20;
export const FRAME_SAMPLES = 160;
/** G.711 has one byte per sample. */
export const BYTES_PER_MS = 8;
export const FRAME_BYTES = FRAME_MS * BYTES_PER_MS;
