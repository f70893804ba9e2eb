/** Asks each name server one question. Any answer, also a refusal, shows that it is there. */

import { createSocket } from "node:dgram";
import { isIP } from "node:net";
import { textOf } from "../base/instance.ts";
import type { Machine } from "../base/this-machine.ts";
import type { Evidence } from "./evidence.ts";

const LIMIT_MS = 2_000;
const TRIES = 2;

/** A query for the name servers of the root, with a number of its own. */
const QUERY = Buffer.from("53760100000100000000000000000200 01".replaceAll(" ", ""), "hex");

export async function askNameServers({ instance, places }: Machine): Promise<Evidence["dns"]> {
  const own = (instance.setting("agent", "SVC_DNS_UPSTREAM") ?? "").split(",").map((word) => word.trim());
  const named = own.filter((word) => word !== "");
  const addresses = named.length > 0 ? named : nameServersIn(textOf(places.resolvConf) ?? "");
  return Promise.all(
    addresses.map(async (address) => {
      for (let left = TRIES; left > 0; left--) if (await answers(address)) return { address, answers: true };
      return { address, answers: false };
    }),
  );
}

/** Pure. */
export function nameServersIn(text: string): readonly string[] {
  return text.split("\n").flatMap((line) => {
    const address = /^\s*nameserver\s+(\S+)/.exec(line)?.[1];
    return address === undefined ? [] : [address];
  });
}

function answers(place: string): Promise<boolean> {
  const [, bracketed, v4, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(place) ?? [];
  const address = (bracketed ?? v4 ?? place).split("%")[0] ?? place;
  const family = isIP(address);
  if (family === 0) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = createSocket(family === 6 ? "udp6" : "udp4");
    let ended = false;
    const end = (heard: boolean) => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      socket.close();
      resolve(heard);
    };
    const timer = setTimeout(() => end(false), LIMIT_MS);
    socket.on("error", () => end(false));
    socket.once("message", (message) => end(message.subarray(0, 2).equals(QUERY.subarray(0, 2))));
    // Connected: a closed port is an error at once, and so is an address to which no route leads.
    socket.once("connect", () => socket.send(QUERY));
    socket.connect(Number(port ?? 53), address);
  });
}
