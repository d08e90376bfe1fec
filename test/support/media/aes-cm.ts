import { createCipheriv, createHmac } from 'node:crypto';

// RFC 3711 in plain Node crypto, independent of libsrtp: what the sessions are held against.

/** `lengthBytes` of AES counter mode keystream from the 128-bit counter block on (RFC 3711 §4.1.1). */
export function aesCmKeystream(key: Uint8Array, counterBlock: Uint8Array, lengthBytes: number): Buffer {
  return createCipheriv('aes-128-ctr', key, counterBlock).update(Buffer.alloc(lengthBytes));
}

/** Key derivation with a derivation rate of 0 (RFC 3711 §4.3.1, §4.3.3). Labels: 0 to 2 for SRTP, 3 to 5 for SRTCP. */
export function deriveKey(masterKeyAndSalt: Uint8Array, label: number, lengthBytes: number): Buffer {
  const counterBlock = Buffer.alloc(16);
  counterBlock.set(masterKeyAndSalt.subarray(16, 30));
  counterBlock[7]! ^= label;
  return aesCmKeystream(masterKeyAndSalt.subarray(0, 16), counterBlock, lengthBytes);
}

/** The counter block of one packet (RFC 3711 §4.1.1): salt·2^16 ⊕ SSRC·2^64 ⊕ index·2^16. */
export function packetCounterBlock(salt: Uint8Array, ssrc: number, packetIndex: bigint): Buffer {
  const counterBlock = Buffer.alloc(16);
  counterBlock.set(salt);
  const mask = Buffer.alloc(16);
  mask.writeUInt32BE(ssrc, 4);
  mask.writeUIntBE(Number(packetIndex), 8, 6);
  for (let i = 0; i < 16; i += 1) counterBlock[i]! ^= mask[i]!;
  return counterBlock;
}

/** A whole SRTP packet (RFC 3711 §3.1) made from an RTP packet with a 12-byte header. */
export function referenceProtectRtp(masterKeyAndSalt: Uint8Array, packet: Uint8Array, rolloverCounter: number): Buffer {
  const cipherKey = deriveKey(masterKeyAndSalt, 0, 16);
  const authKey = deriveKey(masterKeyAndSalt, 1, 20);
  const salt = deriveKey(masterKeyAndSalt, 2, 14);
  const view = Buffer.from(packet);
  const packetIndex = (BigInt(rolloverCounter) << 16n) | BigInt(view.readUInt16BE(2));
  const keystream = aesCmKeystream(cipherKey, packetCounterBlock(salt, view.readUInt32BE(8), packetIndex), view.length - 12);
  for (let i = 12; i < view.length; i += 1) view[i]! ^= keystream[i - 12]!;
  const roc = Buffer.alloc(4);
  roc.writeUInt32BE(rolloverCounter);
  const tag = createHmac('sha1', authKey).update(view).update(roc).digest().subarray(0, 10);
  return Buffer.concat([view, tag]);
}

/** A whole SRTCP packet (RFC 3711 §3.4). */
export function referenceProtectRtcp(masterKeyAndSalt: Uint8Array, packet: Uint8Array, index: number): Buffer {
  const cipherKey = deriveKey(masterKeyAndSalt, 3, 16);
  const authKey = deriveKey(masterKeyAndSalt, 4, 20);
  const salt = deriveKey(masterKeyAndSalt, 5, 14);
  const view = Buffer.from(packet);
  const keystream = aesCmKeystream(cipherKey, packetCounterBlock(salt, view.readUInt32BE(4), BigInt(index)), view.length - 8);
  for (let i = 8; i < view.length; i += 1) view[i]! ^= keystream[i - 8]!;
  const trailer = Buffer.alloc(4);
  trailer.writeUInt32BE((0x80000000 | index) >>> 0);
  const tag = createHmac('sha1', authKey).update(view).update(trailer).digest().subarray(0, 10);
  return Buffer.concat([view, trailer, tag]);
}
