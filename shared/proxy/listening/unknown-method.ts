/** The method of a request that Node's parser cannot carry, because it knows a fixed list of methods. Pure. */

const REQUEST_LINE = /^(?:\r?\n)*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) [^\s]+ HTTP\/1\.[01]\r?\n/;
/** A request line that is longer is not looked at. */
const LONGEST_LINE = 8 * 1024;

/** The parser reads requests of RTSP too, and refuses their methods in a request of HTTP with this reason. */
const OF_RTSP = "Invalid method for HTTP/x.x request";

/** An error of Node's HTTP server. */
export interface ClientError extends NodeJS.ErrnoException {
  readonly reason?: string;
  readonly rawPacket?: Buffer;
  /** Bytes of the packet before the one that the parser refused. */
  readonly bytesParsed?: number;
}

/** Undefined when the bytes are not a request, or its line came in pieces. */
export function unknownMethod({ code, reason, rawPacket, bytesParsed = 0 }: ClientError): string | undefined {
  if ((code !== "HPE_INVALID_METHOD" && reason !== OF_RTSP) || rawPacket === undefined) return undefined;
  // The method may be the one of a later request of the packet.
  const start = rawPacket.lastIndexOf("\n", Math.max(bytesParsed - 1, 0)) + 1;
  return REQUEST_LINE.exec(rawPacket.toString("latin1", start, start + LONGEST_LINE))?.[1];
}

export function refusedMethod(method: string): string {
  return `The method ${method} cannot be forwarded: it is not one of those that the platform's HTTP parser knows`;
}
