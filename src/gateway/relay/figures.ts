import type { RelayFigures, StreamFigures } from '../model/media.js';
import type { RelaySide } from './flags.js';
import type { NgReply } from './node.js';

/** Whether a response has figures for any side of the call. */
export function hasTags(reply: NgReply): boolean {
  return Object.keys(record(reply['tags'])).length > 0;
}

/** The figures in the response to `delete` or `query`; `null`: rtpengine did not have the call. */
export function figuresOf(reply: NgReply): RelayFigures | null {
  if (typeof reply['tags'] !== 'object' || reply['tags'] === null) return null;
  return { fromCarrier: streamFigures(reply, 'carrier'), fromAgent: streamFigures(reply, 'agent') };
}

/** A tag's streams count what rtpengine received from that side. */
function streamFigures(reply: NgReply, side: RelaySide): StreamFigures {
  const tags = record(reply['tags']);
  // The side that has described nothing yet has no tag.
  const ofSide = tags[side] ?? Object.values(tags).find((one) => record(one)['tag'] === '');
  const medias = list(record(ofSide)['medias']);
  const streams = medias.flatMap((media) => list(record(media)['streams'])).map(record);
  const rtp = streams.filter((stream) => list(stream['flags']).includes('RTP'));
  const sum = (name: string): number => rtp.reduce((total, stream) => total + (number(record(stream['stats'])[name]) ?? 0), 0);
  return { packets: sum('packets'), bytes: sum('bytes'), errors: sum('errors'), ...qualityOf(reply, rtp) };
}

/** rtpengine computes an SSRC's quality from its receiver's reports, if both sides' reports reference each other (LSR). */
function qualityOf(reply: NgReply, rtp: readonly NgReply[]): Pick<StreamFigures, 'lost' | 'jitterMs' | 'roundTripMs' | 'mos'> {
  const ssrcs = record(reply['SSRC']);
  const ssrc = rtp.map((stream) => record(ssrcs[String(ssrcOf(stream))])).find((entry) => 'average MOS' in entry) ?? {};
  const average = record(ssrc['average MOS']);
  const roundTripUs = number(average['round-trip time']);
  const mosTenths = number(average['MOS']);
  return {
    lost: number(ssrc['cumulative loss']),
    jitterMs: number(average['jitter']),
    roundTripMs: roundTripUs === null ? null : roundTripUs / 1_000,
    mos: mosTenths === null ? null : mosTenths / 10,
  };
}

/** rtpengine 12 has the received SSRCs as a list. */
function ssrcOf(stream: NgReply): number | null {
  return number(stream['SSRC']) ?? number(record(list(stream['ingress SSRCs'])[0])['SSRC']);
}

function record(value: unknown): NgReply {
  return typeof value === 'object' && value !== null ? (value as NgReply) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function number(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
