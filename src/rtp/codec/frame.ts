/** What every leg is paced by: 20 ms, at the 8 kHz of both laws of G.711. */
export const FRAME_MS = 20;
export const FRAME_SAMPLES = 160;
/** G.711 has a byte a sample. */
export const BYTES_PER_MS = 8;
export const FRAME_BYTES = FRAME_MS * BYTES_PER_MS;
