/** Every leg sends one frame per 20 ms, at G.711's 8 kHz. */
export const FRAME_MS = 20;
export const FRAME_SAMPLES = 160;
/** G.711 has one byte per sample. */
export const BYTES_PER_MS = 8;
export const FRAME_BYTES = FRAME_MS * BYTES_PER_MS;
