/** Changes by operators of projects as a whole, each of a project of its own. */

import type { Platform } from "../../platform/platform.ts";
import { type Change, isGone, isTaken, ONCE, once } from "./change.ts";
import {
  BODY,
  buildStatus,
  type Ground,
  makeProject,
  must,
  mustAsAdmin,
  type OwnProject,
  of,
  readAsAdmin,
  startBuild,
  statusWith,
} from "./ground.ts";

interface Project {
  readonly teamID: string;
  readonly name: string;
  readonly slug: string;
  readonly status: string;
}

interface Key {
  readonly id: string;
  readonly key: string;
  readonly name: string;
}

export const ofWholeProjects: readonly Change[] = [
  {
    route: "POST /admin/projects",
    prepare({ word }) {
      const slug = `${word}-made`;
      return {
        path: "/admin/projects",
        call: { body: { name: slug, slug } },
        wasDone: isTaken,
        state: async (through) => (await projects(through)).filter((one) => one.slug === slug).length,
        becomes: 1,
      };
    },
  },
  {
    route: "PATCH /admin/projects/{projectID}",
    async prepare(ground) {
      const { id } = await ownProject(ground, "before");
      const name = `${ground.word}-renamed`;
      return {
        path: `/admin/projects/${id}`,
        call: { body: { name } },
        state: async (through) => (await readAsAdmin<Project>(through, `/admin/projects/${id}`)).name,
        becomes: name,
      };
    },
  },
  {
    route: "DELETE /admin/projects/{projectID}",
    async prepare(ground) {
      const { id, key } = await ownProject(ground, "deleted");
      return {
        path: `/admin/projects/${id}`,
        async state(through) {
          const deletion = await readAsAdmin<{ status: string }>(through, `/admin/projects/${id}/deletion`);
          return { deletion: deletion.status, status: await statusWith(through, key) };
        },
        becomes: { deletion: "deleted", status: 401 },
      };
    },
  },
  ...(
    [
      ["disable", "disabled"],
      ["ban", "banned"],
      ["enable", "active"],
    ] as const
  ).map(
    ([verb, becomes]): Change => ({
      route: `POST /admin/projects/{projectID}/${verb}`,
      async prepare(ground) {
        const { id } = await ownProject(ground, verb);
        const reason = { reason: "a test" };
        if (verb === "enable") await mustAsAdmin(ground, `POST /admin/projects/${id}/disable`, reason);
        return {
          path: `/admin/projects/${id}/${verb}`,
          ...(verb === "enable" ? {} : { call: { body: reason } }),
          state: async (through) => (await readAsAdmin<Project>(through, `/admin/projects/${id}`)).status,
          becomes,
        };
      },
    }),
  ),
  {
    route: "POST /admin/teams/{teamID}/sandboxes/kill",
    async prepare(ground) {
      const project = await ownProject(ground, "killed");
      const through = of(project, ground.fleet.through(ground.by));
      for (let made = 0; made < 2; made++) await must(through, "POST /v2/sandboxes", { body: BODY });
      return {
        path: `/admin/teams/${project.id}/sandboxes/kill`,
        state: (through) => readAsAdmin(through, `/admin/sandboxes?teamID=${project.id}`),
        becomes: [],
      };
    },
  },
  {
    route: "POST /admin/teams/{teamID}/builds/cancel",
    async prepare(ground) {
      const project = await ownProject(ground, "cancelled");
      const { fleet, by, word } = ground;
      const build = await startBuild(of(project, fleet.through(by)), `${word}-endless`, "sleep 600");
      return {
        path: `/admin/teams/${project.id}/builds/cancel`,
        state: (through) => buildStatus(of(project, through), build),
        becomes: "error",
      };
    },
  },
  {
    route: "POST /admin/teams/{teamID}/api-keys",
    async prepare(ground) {
      const { id } = await ownProject(ground, "keys");
      const name = `${ground.word}-by-operator`;
      return {
        path: `/admin/teams/${id}/api-keys`,
        call: { body: { name } },
        async state(through, done) {
          const answered = done.last.json as Key;
          const named = (await readAsAdmin<Key[]>(through, `/admin/teams/${id}/api-keys`)).filter(
            (one) => one.name === name,
          );
          const ids = named.map((one) => one.id);
          return { ...once(ids, answered.id, done), status: await statusWith(through, answered.key) };
        },
        becomes: { ...ONCE, status: 200 },
      };
    },
  },
  {
    route: "DELETE /admin/teams/{teamID}/api-keys/{apiKeyID}",
    async prepare(ground) {
      const { id } = await ownProject(ground, "revoked");
      const { id: keyId, key } = await mustAsAdmin<Key>(ground, `POST /admin/teams/${id}/api-keys`, {
        name: "revoked",
      });
      return {
        path: `/admin/teams/${id}/api-keys/${keyId}`,
        wasDone: isGone,
        state: (through) => statusWith(through, key),
        becomes: 401,
      };
    },
  },
];

const ownProject = (ground: Ground, name: string): Promise<OwnProject> => makeProject(ground, `${ground.word}-${name}`);

const projects = (through: Platform) => readAsAdmin<Project[]>(through, "/admin/projects");
