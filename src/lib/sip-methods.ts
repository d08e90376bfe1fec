/** The methods that the gateway takes, in the form of an Allow header. */
export const ALLOWED_METHODS = 'INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, PRACK, NOTIFY';
