/** A destination or a proxy that cannot be reached, in words for the sandbox and its log: they name no proxy and no address. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
}
