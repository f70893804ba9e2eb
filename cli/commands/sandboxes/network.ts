/** What a sandbox may reach, and what it has tried. */

import type { Reply } from "../../api/client.ts";
import type { Action } from "../../definition.ts";
import { EXIT, usage } from "../../failure.ts";
import type { View } from "../../output/output.ts";
import { age, bytes } from "../../output/time.ts";
import { limitOf, showList } from "../../output/watch.ts";

type Verdict = Reply<"GET /sandboxes/{sandboxID}/network/check">;
type Decision = Reply<"GET /sandboxes/{sandboxID}/network/log">["entries"][number];

const verdictView: View<Verdict> = {
  name: ({ verdict }) => verdict,
  columns: [
    { title: "VERDICT", of: ({ verdict }) => verdict, state: true },
    { title: "RULE", of: ({ rule }) => rule },
    { title: "REASON", of: ({ reason }) => reason },
    { title: "VIA", of: ({ via }) => via ?? "" },
    { title: "HEADERS", of: ({ transform }) => transform ?? "" },
    { title: "ADDRESSES", of: ({ addresses }) => addresses.join(",") },
  ],
};

const logView: View<Decision> = {
  name: ({ timestamp, protocol, destination, port, name, rule, verdict }) =>
    [timestamp, protocol, destination, port, name ?? "", rule, verdict].join(" "),
  columns: [
    { title: "AGE", of: ({ timestamp }) => age(timestamp), moving: true },
    { title: "VERDICT", of: ({ verdict }) => verdict, state: true },
    {
      title: "PROTOCOL",
      of: ({ protocol, recordType }) => (recordType === undefined ? protocol : `${protocol} ${recordType}`),
    },
    {
      title: "DESTINATION",
      of: ({ destination, port, name }) => `${name ?? destination}${port === 0 ? "" : `:${port}`}`,
    },
    { title: "RULE", of: ({ rule }) => rule },
    { title: "COUNT", of: ({ count }) => String(count) },
    { title: "SENT", of: ({ sentBytes }) => bytes(sentBytes), wide: true },
    { title: "RECEIVED", of: ({ receivedBytes }) => bytes(receivedBytes), wide: true },
    { title: "ADDRESS", of: ({ destination }) => destination, wide: true },
    { title: "REASON", of: ({ reason }) => reason ?? "", wide: true },
  ],
};

export const check: Action = async ({ api, out }, { first: sandboxID, second }, options) => {
  const { host, port } = destinationOf(second);
  const connection = await api();
  const verdict = await connection.call("GET /sandboxes/{sandboxID}/network/check", {
    params: { sandboxID },
    query: { host, port, ...(options.udp === true ? { protocol: "udp" as const } : {}) },
  });
  await out.one(verdictView, verdict, options);
  return verdict.verdict === "allow" ? 0 : EXIT.failed;
};

export const log: Action = async (context, { first: sandboxID }, options) => {
  const api = await context.api();
  const { most, told } = limitOf(context, options);
  await showList(context, options, logView, async () => {
    const { entries, suppressed } = await api.call("GET /sandboxes/{sandboxID}/network/log", {
      params: { sandboxID },
      query: { limit: most, ended: true },
    });
    if (suppressed > 0) context.out.note(`${suppressed} more decisions are not listed, because there were too many`);
    return told(entries);
  });
};

/** A URL, as it is copied from what failed, is its host and its port. */
function destinationOf(text: string): { readonly host: string; readonly port: number } {
  const [, scheme = "https", bare = text] = /^(https?):\/\/(?:[^/?#@]*@)?([^/?#]*)/i.exec(text) ?? [];
  const [, host = "", port] = /^(.+?)(?::(\d{1,5}))?$/.exec(bare) ?? [];
  if (host === "") throw usage(`'${text}' is no destination`, "write a host or an address, such as pypi.org:443");
  return { host, port: Number(port ?? (scheme.toLowerCase() === "http" ? 80 : 443)) };
}
