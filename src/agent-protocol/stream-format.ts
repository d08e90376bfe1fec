/** Audio and framing on an agent's WebSocket: Twilio Media Streams, or binary messages of raw audio with JSON control. */
export const STREAM_FORMATS = ['twilio', 'pcmu', 'pcma', 'pcm16-8000', 'pcm16-16000'] as const;
export type StreamFormat = (typeof STREAM_FORMATS)[number];
