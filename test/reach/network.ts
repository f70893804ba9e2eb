/** Another machine: a network namespace with one way to this one, and a name server that knows the platform's domain. */

import { createSocket } from "node:dgram";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { decode, encode } from "dns-packet";
import { run } from "../support/platform/programs.ts";

const NAME = "svc-elsewhere";
const LINK = "svcelse0";
/** Of the range that tests may use. */
export const HERE = "198.51.100.249";
const THERE = "198.51.100.250";

export interface Elsewhere {
  /** The words that run a program there, with the environment given and no other. */
  inside(env: Readonly<Record<string, string>>, words: readonly string[]): readonly [string, readonly string[]];
  remove(): Promise<void>;
}

export async function makeElsewhere(domain: string): Promise<Elsewhere> {
  const remove = async () => {
    await run("ip", ["link", "del", LINK]).catch(() => undefined);
    await run("ip", ["netns", "del", NAME]).catch(() => undefined);
    rmSync(`/etc/netns/${NAME}`, { recursive: true, force: true });
  };
  await remove();
  await run("ip", ["netns", "add", NAME]);
  await run("ip", ["link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", NAME]);
  await run("ip", ["addr", "add", `${HERE}/30`, "dev", LINK]);
  await run("ip", ["link", "set", LINK, "up"]);
  for (const words of [
    ["addr", "add", `${THERE}/30`, "dev", "eth0"],
    ["link", "set", "eth0", "up"],
    ["link", "set", "lo", "up"],
  ])
    await run("ip", ["-n", NAME, ...words]);
  // `ip netns exec` puts these in the place of the machine's.
  mkdirSync(`/etc/netns/${NAME}`, { recursive: true });
  writeFileSync(`/etc/netns/${NAME}/resolv.conf`, `nameserver ${HERE}\n`);
  writeFileSync(`/etc/netns/${NAME}/hosts`, "127.0.0.1 localhost\n");
  const names = await serveNames(domain);
  return {
    inside: (env, words) => {
      const given = Object.entries({ PATH: process.env["PATH"] ?? "", ...env }).map(
        ([name, value]) => `${name}=${value}`,
      );
      return ["ip", ["netns", "exec", NAME, "env", "-i", ...given, ...words]];
    },
    async remove() {
      await names.stop();
      await remove();
    },
  };
}

/** Every name below the domain, and no other. */
async function serveNames(domain: string): Promise<{ stop(): Promise<void> }> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const { id = 0, questions = [] } = decode(query);
    const [question] = questions;
    const isKnown = question?.name.toLowerCase().endsWith(`.${domain}`) === true;
    const answers =
      isKnown && question.type === "A" ? [{ type: "A" as const, name: question.name, ttl: 0, data: HERE }] : [];
    // Authoritative; 3: there is no such name.
    socket.send(
      encode({ type: "response", id, flags: 0x0400 | (isKnown ? 0 : 3), questions, answers }),
      from.port,
      from.address,
    );
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(53, HERE, resolve);
  });
  return { stop: () => new Promise((resolve) => void socket.close(() => resolve())) };
}
