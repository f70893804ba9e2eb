/** The test internet as tests see it: the arrivals there, and the things that a test can change. */

import { Agent, request } from "undici";
import { packetsSeen, type Seen } from "./namespace.ts";
import { internetPlan, type Zone } from "./plan.ts";
import type { Happening } from "./records.ts";

type Of<Is extends Happening["is"]> = Extract<Happening, { is: Is }>;

export interface Internet {
  /** Records everything that the servers see from now on. */
  watch(): Promise<Watch>;
  /** Counts the packets so far that reached the internet's border, or that the host let through from a sandbox. */
  packets(where: "border" | "passed", match?: Partial<Seen>): Promise<number>;
  /** Adds or changes a name's records. */
  setZone(name: string, zone: Zone): Promise<void>;
  killSocks(): Promise<void>;
  startSocks(): Promise<void>;
}

interface Watch {
  all<Is extends Happening["is"]>(is: Is): Promise<readonly Of<Is>[]>;
}

export function openInternet(instance = process.env.SVC_INSTANCE ?? "test"): Internet {
  const plan = internetPlan(instance);
  const dispatcher = new Agent({ connect: { socketPath: plan.socket } });
  const ask = async (path: string, body: unknown = {}) => {
    const reply = await request(`http://internet${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      dispatcher,
      reset: true,
    });
    const text = await reply.body.text();
    if (reply.statusCode !== 200) throw new Error(`the test internet answered ${reply.statusCode} to ${path}: ${text}`);
    return JSON.parse(text) as unknown;
  };
  const since = (position: number) =>
    ask("/records", { position }) as Promise<{ position: number; records: readonly Happening[] }>;
  return {
    async watch() {
      const { position } = await since(Number.MAX_SAFE_INTEGER);
      return {
        all: async <Is extends Happening["is"]>(is: Is) =>
          (await since(position)).records.filter((one): one is Of<Is> => one.is === is),
      };
    },
    async packets(where, match = {}) {
      const wanted = Object.entries(match);
      const seen = await packetsSeen(plan, where);
      const matching = seen.filter((one) => wanted.every(([name, value]) => one[name as keyof Seen] === value));
      return matching.reduce((sum, { packets }) => sum + packets, 0);
    },
    setZone: async (name, zone) => {
      await ask("/zone", { name, zone });
    },
    killSocks: async () => {
      await ask("/socks/kill");
    },
    startSocks: async () => {
      await ask("/socks/start");
    },
  };
}
