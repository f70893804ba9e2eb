/** One sentence for people about an entry of the network log: what was wrong, and what to do about it. Pure. */

import type { NetworkLogEntry } from "../../shared/agent-api/routes.ts";
import { NAMED_PORTS } from "../../shared/policy/decide.ts";

type Explained = Pick<NetworkLogEntry, "protocol" | "verdict" | "rule" | "name" | "recordType" | "address" | "port">;

const FAILED = /^failed\b ?(.*)$/s;

/** Undefined where nothing was wrong. */
export function explanation(entry: Explained): string | undefined {
  const { protocol, verdict, rule } = entry;
  const [failed, reason = ""] = FAILED.exec(rule) ?? [];
  if (failed !== undefined && verdict === "deny")
    return "the policy allows it, but the node's egress process was down or the policy was being replaced: try again";
  if (failed !== undefined) return protocol === "dns" ? unanswered(reason) : unconnected(reason);
  if (verdict === "allow") return undefined;
  return protocol === "dns" ? refusedQuestion(entry) : refusedConnection(entry);
}

const UNANSWERED: Readonly<Record<string, string>> = {
  NXDOMAIN: "the name does not exist: check its spelling",
  SERVFAIL: "the node's resolver could not resolve the name: the name's own servers fail, or the resolver does",
  REFUSED: "the node's resolver refuses to answer questions for this name",
  timeout: "the node's resolvers did not answer in time: the operator looks at them and at SVC_DNS_UPSTREAM",
  unreachable: "the node's resolvers cannot be reached: the operator looks at them and at SVC_DNS_UPSTREAM",
  "no resolver": "the node has no resolver: the operator sets SVC_DNS_UPSTREAM",
};

function unanswered(reason: string): string {
  return UNANSWERED[reason] ?? `the node's resolver answered with an error (${reason})`;
}

const UNCONNECTED: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the destination refused the connection: nothing listens on that port there",
  ECONNRESET: "the destination ended the connection with a reset",
  EHOSTUNREACH: "the node has no route to the destination",
  ENETUNREACH: "the node has no route to the destination",
  ETIMEDOUT: "the destination did not answer in time",
  EPIPE: "the destination closed the connection",
};

function unconnected(reason: string): string {
  const known = UNCONNECTED[reason];
  if (known !== undefined) return known;
  return reason === "" ? "it was allowed and failed" : `it was allowed and failed: ${reason}`;
}

function refusedQuestion({ rule, name, recordType }: Explained): string {
  if (rule === "limit questions") return "the sandbox asks for more names at once, or in a second, than it may";
  if (rule === "always name") return "the question is for something that cannot be a host name";
  if (rule.startsWith("always type"))
    return `the node's resolver answers only A, AAAA and CNAME, and SRV and MX where any name may be asked for${recordType === undefined ? "" : `, not this ${recordType}`}`;
  if (rule.startsWith("always "))
    return `the name leads to an address in ${rule.slice("always ".length)}, which no sandbox can reach`;
  return `the policy denies everything that it does not allow: add ${JSON.stringify(name ?? "the name")} to allowOut`;
}

function refusedConnection(entry: Explained): string {
  const { rule } = entry;
  if (rule === "limit connections") return "the sandbox has more connections open than it may";
  if (rule === "always node") return "the node itself is never reachable from a sandbox";
  if (rule === "always udp")
    return "under a policy with domains, rules or an egress proxy only TCP leaves: use a policy of addresses for UDP";
  if (rule === "always ipv6") return "only IPv4 leaves a sandbox";
  if (rule.startsWith("always port")) return "the node's own resolver answers names: no other one can be asked";
  if (rule.startsWith("always "))
    return `addresses in ${rule.slice("always ".length)} are never reachable from a sandbox, whatever its policy says`;
  return `${rule} forbids it, and nothing allows it: add ${wantedDestination(entry)}`;
}

/** What has to be in `allowOut`: the name is of use only where the node reads it. */
function wantedDestination({ protocol, port, name = "", address }: Explained): string {
  const isNamed = protocol === "tcp" && NAMED_PORTS.includes(port);
  if (isNamed && name !== "") return `${JSON.stringify(name)} to allowOut`;
  const byAddress = `${address === "" ? "the address" : JSON.stringify(address)} to allowOut`;
  if (protocol === "udp") return byAddress;
  const where = isNamed ? "where the program says it, by SNI or Host" : "on ports 80 and 443 only";
  return `${byAddress} (an allowed name counts ${where})`;
}
