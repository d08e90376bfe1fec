// In place of the native addon (src/srtp/addon.ts loads it by TRUNKLINE_SRTP_ADDON): its sockets are the world's, the rest is the real one.
const real = require('../../../native/build/Release/srtp.node');
module.exports = {
  ...real,
  get UdpSocket() {
    return globalThis.TrunklineWorld.UdpSocket;
  },
};
