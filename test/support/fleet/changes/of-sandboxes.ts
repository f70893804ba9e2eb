/** Changes of sandboxes, in the project of the fleet's tests, which counts them and judges their events. */

import { api, type Platform } from "../../platform/platform.ts";
import { createCounting, says } from "../counting.ts";
import { type Change, isGone, ONCE, once } from "./change.ts";
import { BODY, type Ground, must } from "./ground.ts";

/** Of addresses that nothing in a test is sent to. */
const DENIED = "198.51.100.192/26";
const DENIED_ADDRESS = "198.51.100.247";
/** Seconds; sandboxes begin with an hour. */
const SHORTER_S = 1_800;
const SHORT_S = 300;
const LONGER_S = 3_000;

export const ofSandboxes: readonly Change[] = [
  {
    route: "POST /sandboxes",
    async prepare({ word }) {
      return {
        path: "/sandboxes",
        call: { body: { ...BODY, metadata: { made: word } } },
        async state(through, done) {
          const path = `/v2/sandboxes?state=running&metadata=${encodeURIComponent(`made=${word}`)}`;
          const listed = await must<{ sandboxID: string }[]>(through, `GET ${path}`);
          return once(
            listed.map(({ sandboxID }) => sandboxID),
            (done.last.json as { sandboxID?: string }).sandboxID,
            done,
          );
        },
        becomes: ONCE,
      };
    },
  },
  ...(["/connect", "/resume"] as const).map(
    (verb): Change => ({
      route: `POST /sandboxes/{sandboxID}${verb}`,
      async prepare(ground) {
        const id = await makeSandbox(ground);
        await must(main(ground), `POST /sandboxes/${id}/pause`);
        return {
          path: `/sandboxes/${id}${verb}`,
          call: { body: { timeout: BODY.timeout } },
          // A resume of one that runs.
          wasDone: async ({ status }, through) => status === 409 && (await shownState(through, id)) === "running",
          state: (through) => shownState(through, id),
          becomes: "running",
        };
      },
    }),
  ),
  {
    route: "POST /sandboxes/{sandboxID}/timeout",
    async prepare(ground) {
      const id = await makeSandbox(ground);
      return {
        path: `/sandboxes/${id}/timeout`,
        call: { body: { timeout: SHORTER_S } },
        state: (through) => endsWithin(through, id, [SHORT_S, SHORTER_S]),
        becomes: true,
      };
    },
  },
  {
    route: "POST /sandboxes/{sandboxID}/refreshes",
    async prepare(ground) {
      const id = await makeSandbox(ground);
      await must(main(ground), `POST /sandboxes/${id}/timeout`, { body: { timeout: SHORT_S } });
      return {
        path: `/sandboxes/${id}/refreshes`,
        call: { body: { duration: LONGER_S } },
        state: (through) => endsWithin(through, id, [SHORTER_S, LONGER_S]),
        becomes: true,
      };
    },
  },
  {
    route: "POST /sandboxes/{sandboxID}/rewind",
    async prepare(ground) {
      const { fleet, by } = ground;
      const { id, word } = await createCounting(fleet, by);
      const snapshotID = await makeSnapshot(ground, id);
      await says(fleet, id, "echo later >later.txt");
      return {
        path: `/sandboxes/${id}/rewind`,
        call: { body: { snapshotID }, timeoutMs: 120_000 },
        state: () => says(fleet, id, "cat word.txt; ls later.txt 2>/dev/null || echo rewound"),
        becomes: `${word}rewound\n`,
      };
    },
  },
  {
    route: "PUT /sandboxes/{sandboxID}/network",
    async prepare(ground) {
      const id = await makeSandbox(ground);
      return {
        path: `/sandboxes/${id}/network`,
        call: { body: { denyOut: [DENIED] } },
        async state(through) {
          const { network } = await must<{ network?: { denyOut?: string[] } }>(through, `GET /sandboxes/${id}`);
          // What the node enforces.
          const path = `/sandboxes/${id}/network/check?host=${DENIED_ADDRESS}&port=443`;
          const { verdict } = await must<{ verdict: string }>(through, `GET ${path}`);
          return { denyOut: network?.denyOut, verdict };
        },
        becomes: { denyOut: [DENIED], verdict: "deny" },
      };
    },
  },
  {
    route: "DELETE /templates/{templateID}",
    what: "a snapshot",
    async prepare(ground) {
      const id = await makeSandbox(ground);
      const snapshotID = await makeSnapshot(ground, id);
      return {
        path: `/templates/${encodeURIComponent(snapshotID)}`,
        wasDone: isGone,
        state: (through) => must(through, `GET /snapshots?sandboxID=${id}`),
        becomes: [],
      };
    },
  },
];

const main = ({ fleet, by }: Ground): Platform => fleet.through(by);

async function makeSandbox(ground: Ground): Promise<string> {
  const { sandboxID } = await must<{ sandboxID: string }>(main(ground), "POST /v2/sandboxes", { body: BODY });
  return sandboxID;
}

async function makeSnapshot(ground: Ground, id: string): Promise<string> {
  return (await must<{ snapshotID: string }>(main(ground), `POST /sandboxes/${id}/snapshots`)).snapshotID;
}

async function shownState(through: Platform, id: string): Promise<string> {
  const { status, json } = await api(through, "GET", `/sandboxes/${id}`);
  return status === 200 ? (json as { state: string }).state : `no answer but ${status}`;
}

/** Whether its end is more than the first and at most the second number of seconds away. */
async function endsWithin(through: Platform, id: string, [least, most]: readonly [number, number]): Promise<boolean> {
  const { endAt } = await must<{ endAt: string }>(through, `GET /sandboxes/${id}`);
  const leftS = (Date.parse(endAt) - Date.now()) / 1000;
  return leftS > least && leftS <= most + 1;
}
