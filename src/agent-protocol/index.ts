// `trunkline/agent-protocol`: what a bot and Trunkline say to each other on the bot's WebSocket. docs/agents.md explains it.

export { fromAgentMessage, MAX_AGENT_MESSAGE_BYTES, toAgentMessage, type FromAgentMessage, type ToAgentMessage } from './agent-messages.js';
export { agentUrl } from './agent-url.js';
export { sipHeaders, type SipHeaders } from './sip-headers.js';
export { STREAM_FORMATS, type StreamFormat } from './stream-format.js';
