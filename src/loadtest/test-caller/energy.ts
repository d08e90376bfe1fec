import { levelDbfs } from '../../rtp/codec/level.js';

/** A stretch of audio, in samples, `end` not included. */
export interface Segment {
  readonly start: number;
  readonly end: number;
}

export interface VoiceDetection {
  /** A frame louder than this is voice. */
  readonly thresholdDbfs: number;
  readonly frameSamples: number;
  /** Pauses up to this long do not end a stretch. */
  readonly hangoverSamples: number;
}

const DEFAULT_DETECTION: VoiceDetection = { thresholdDbfs: -45, frameSamples: 80, hangoverSamples: 1_600 };

/** The stretches that are louder than a threshold: 10 ms frames at 8 kHz, pauses up to 200 ms bridged, unless told otherwise. */
export function voicedSegments(samples: Int16Array, detection: Partial<VoiceDetection> = {}): Segment[] {
  const { thresholdDbfs, frameSamples, hangoverSamples } = { ...DEFAULT_DETECTION, ...detection };
  const segments: Segment[] = [];
  let current: { start: number; end: number } | undefined;
  for (let start = 0; start < samples.length; start += frameSamples) {
    const end = Math.min(start + frameSamples, samples.length);
    if (levelDbfs(samples.subarray(start, end)) <= thresholdDbfs) continue;
    if (current !== undefined && start - current.end <= hangoverSamples) current.end = end;
    else segments.push((current = { start, end }));
  }
  return segments;
}
