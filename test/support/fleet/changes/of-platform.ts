/** Changes by operators: of nodes, join tokens, workspaces, keys of the platform, and of what is stored. */

import { api, type Platform } from "../../platform/platform.ts";
import { type Change, isGone, ONCE, once } from "./change.ts";
import { type Ground, must, mustAsAdmin, own, readAsAdmin } from "./ground.ts";

interface JoinToken {
  readonly id: string;
  readonly revokedAt: string | null;
}

export const ofPlatform: readonly Change[] = [
  {
    route: "POST /nodes/{nodeID}",
    prepare({ cordoned: [{ id }] }) {
      return {
        path: `/nodes/${id}`,
        call: { body: { status: "ready" } },
        state: async (through) => (await readAsAdmin<{ status: string }>(through, `/nodes/${id}`)).status,
        becomes: "ready",
      };
    },
  },
  {
    route: "POST /nodes/{nodeID}/drain",
    prepare({ cordoned: [, { id }] }) {
      return {
        path: `/nodes/${id}/drain`,
        call: { body: { running: "finish", atOnce: 3 } },
        async state(through) {
          const { running, atOnce } = await readAsAdmin<{ running: string; atOnce: number }>(
            through,
            `/nodes/${id}/drain`,
          );
          return { running, atOnce, status: (await readAsAdmin<{ status: string }>(through, `/nodes/${id}`)).status };
        },
        becomes: { running: "finish", atOnce: 3, status: "draining" },
      };
    },
  },
  {
    route: "POST /admin/join-tokens",
    prepare() {
      return {
        path: "/admin/join-tokens",
        call: { body: { kind: "edge" } },
        async state(through, { last }) {
          const { id } = last.json as JoinToken;
          return (await readAsAdmin<JoinToken[]>(through, "/admin/join-tokens")).filter((one) => one.id === id).length;
        },
        becomes: 1,
      };
    },
  },
  {
    route: "DELETE /admin/join-tokens/{joinTokenID}",
    async prepare(ground) {
      const { id } = await mustAsAdmin<JoinToken>(ground, "POST /admin/join-tokens", { kind: "edge" });
      return {
        path: `/admin/join-tokens/${id}`,
        async state(through) {
          const token = (await readAsAdmin<JoinToken[]>(through, "/admin/join-tokens")).find((one) => one.id === id);
          return token === undefined || token.revokedAt !== null;
        },
        becomes: true,
      };
    },
  },
  {
    route: "POST /admin/builds/collect",
    prepare(ground) {
      return {
        path: "/admin/builds/collect",
        // Nothing is as old as that.
        call: { body: { dryRun: false, keepHours: 87_600 } },
        state: async (through) => (await api(own(ground, through), "GET", `/templates/${ground.built.id}`)).status,
        becomes: 200,
      };
    },
  },
  {
    route: "POST /admin/templates/promote",
    prepare({ built, word }) {
      const name = `${word}-for-all`;
      return {
        path: "/admin/templates/promote",
        call: { body: { templateID: built.id, name } },
        // Another project than the template's.
        state: async (through) =>
          (await must<{ templateID: string }>(through, `GET /templates/aliases/${name}`)).templateID,
        becomes: built.id,
      };
    },
  },
  {
    route: "POST /admin/snapshots/{snapshotID}/checks",
    prepare({ built }) {
      const path = `/admin/snapshots/${built.buildId}/checks`;
      return {
        path,
        async state(through, { last }) {
          const { checkID } = last.json as { checkID: string };
          return (await readAsAdmin<{ checkID: string }>(through, `${path}/${checkID}`)).checkID === checkID;
        },
        becomes: true,
      };
    },
  },
  {
    route: "DELETE /admin/snapshots/{snapshotID}/checks/{checkID}",
    async prepare(ground) {
      const path = `/admin/snapshots/${ground.built.buildId}/checks`;
      const { checkID } = await mustAsAdmin<{ checkID: string }>(ground, `POST ${path}`);
      // Whoever asks for a check that has ended begins it again, so there is no state to look at.
      return { path: `${path}/${checkID}`, state: (_, { last }) => Promise.resolve(last.status), becomes: 204 };
    },
  },
  {
    route: "POST /admin/secrets/rewrap",
    prepare() {
      return {
        path: "/admin/secrets/rewrap",
        call: { body: {} },
        state: (_, { last }) => Promise.resolve((last.json as { done: boolean }).done),
        becomes: true,
      };
    },
  },
  {
    route: "POST /admin/identity/rotate",
    prepare() {
      return {
        path: "/admin/identity/rotate",
        call: { body: {} },
        async state(through) {
          const { keys } = await readAsAdmin<{ keys: { state: string }[] }>(through, "/admin/identity/keys");
          return keys.filter(({ state }) => state === "next").length;
        },
        becomes: 1,
      };
    },
  },
  {
    route: "POST /admin/workspaces",
    prepare({ word }) {
      const name = `${word}-made`;
      return {
        path: "/admin/workspaces",
        call: { body: { name } },
        async state(through, done) {
          const named = (await workspaces(through)).filter((one) => one.name === name);
          return once(
            named.map(({ workspaceID }) => workspaceID),
            (done.last.json as Workspace).workspaceID,
            done,
          );
        },
        becomes: ONCE,
      };
    },
  },
  {
    route: "PATCH /admin/workspaces/{workspaceID}",
    async prepare(ground) {
      const id = await makeWorkspace(ground, "before");
      const name = `${ground.word}-renamed`;
      return {
        path: `/admin/workspaces/${id}`,
        call: { body: { name } },
        state: async (through) => (await workspaces(through)).find(({ workspaceID }) => workspaceID === id)?.name,
        becomes: name,
      };
    },
  },
  {
    route: "DELETE /admin/workspaces/{workspaceID}",
    async prepare(ground) {
      const id = await makeWorkspace(ground, "deleted");
      return {
        path: `/admin/workspaces/${id}`,
        wasDone: isGone,
        state: async (through) => (await workspaces(through)).filter(({ workspaceID }) => workspaceID === id),
        becomes: [],
      };
    },
  },
];

interface Workspace {
  readonly workspaceID: string;
  readonly name: string;
}

const workspaces = (through: Platform) => readAsAdmin<Workspace[]>(through, "/admin/workspaces");

async function makeWorkspace(ground: Ground, name: string): Promise<string> {
  const body = { name: `${ground.word}-${name}` };
  return (await mustAsAdmin<Workspace>(ground, "POST /admin/workspaces", body)).workspaceID;
}
