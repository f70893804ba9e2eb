/** Which addresses may be used without TLS: those that no other machine reaches. Pure. */

/** The way out for an address of another machine without TLS. */
export const JOIN =
  "make a join token on the platform (POST /admin/join-tokens) and join with it (agent --join TOKEN), then certificates protect the way";

/** @param host as in a setting or a URL: a name, an IPv4 address, or an IPv6 address with or without brackets */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  return (
    name === "localhost" ||
    name === "::1" ||
    /^127(\.\d{1,3}){3}$/.test(name) ||
    /^::ffff:127(\.\d{1,3}){3}$/.test(name)
  );
}

/** Whether a call to this address would go to another machine in clear. */
export function isPlainToAnother(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol !== "https:" && !isLoopback(hostname);
}

/** Whether a server at this host listens on every address of the machine, so that the host is nobody's address. */
export function isEveryAddress(host: string): boolean {
  return ["0.0.0.0", "::", "[::]"].includes(host);
}
