/** Changes of templates, their tags and builds, in the project of the ground. */

import { api, type Platform, type Reply } from "../../platform/platform.ts";
import { type Change, isGone } from "./change.ts";
import { all, buildStatus, type Ground, make, own, stepsOf } from "./ground.ts";

interface Requested {
  readonly templateID: string;
  readonly buildID: string;
}

export const ofTemplates: readonly Change[] = [
  ...(["/v2/templates", "/v3/templates"] as const).map(
    (path): Change => ({
      route: `POST ${path}`,
      prepare(ground) {
        const name = `${ground.word}${path.replaceAll("/", "-")}`;
        const state = async (through: Platform) => {
          const listed = await all<{ aliases: string[] }>(ground, through, "/v2/templates?limit=100");
          return listed.filter(({ aliases }) => aliases.includes(name)).length;
        };
        return { path, call: { body: { name } }, state, becomes: 1 };
      },
    }),
  ),
  {
    route: "POST /v2/templates/{templateID}/builds/{buildID}",
    async prepare(ground) {
      const { templateID: id, buildID: buildId } = await request(ground, "steps");
      const status = (through: Platform) => buildStatus(own(ground, through), { id, buildId });
      return {
        path: `/v2/templates/${id}/builds/${buildId}`,
        call: { body: stepsOf("sleep 2; echo built >built.txt") },
        // It is not waiting any more.
        wasDone: async (said: Reply, through) => said.status === 400 && (await status(through)) !== "waiting",
        state: status,
        becomes: "ready",
      };
    },
  },
  {
    route: "DELETE /templates/{templateID}",
    what: "a template",
    async prepare(ground) {
      const { templateID } = await request(ground, "deleted");
      return {
        path: `/templates/${templateID}`,
        wasDone: isGone,
        state: async (through) => (await read(ground, through, templateID)).status,
        becomes: 404,
      };
    },
  },
  {
    route: "DELETE /templates/{templateID}",
    what: "a tag",
    prepare(ground) {
      const { name } = ground.built;
      const state = (through: Platform) => tagged(ground, through, "third");
      return { path: `/templates/${name}:third`, wasDone: isGone, state, becomes: [] };
    },
  },
  {
    route: "PATCH /templates/{templateID}",
    async prepare(ground) {
      const { templateID } = await request(ground, "published");
      return {
        path: `/templates/${templateID}`,
        call: { body: { public: true } },
        state: async (through) => ((await read(ground, through, templateID)).json as { public: boolean }).public,
        becomes: true,
      };
    },
  },
  {
    route: "PATCH /v2/templates/{templateID}",
    async prepare(ground) {
      const { templateID } = await request(ground, "cold");
      return {
        path: `/v2/templates/${templateID}`,
        call: { body: { warmPool: 0 } },
        state: async (through) => ((await read(ground, through, templateID)).json as { warmPool?: number }).warmPool,
        becomes: 0,
      };
    },
  },
  {
    route: "POST /templates/tags",
    prepare(ground) {
      const { name, buildId } = ground.built;
      return {
        path: "/templates/tags",
        call: { body: { target: name, tags: ["added"] } },
        state: (through) => tagged(ground, through, "added"),
        becomes: [buildId],
      };
    },
  },
  {
    route: "DELETE /templates/tags",
    prepare(ground) {
      const { name } = ground.built;
      return {
        path: "/templates/tags",
        call: { body: { name, tags: ["second"] } },
        wasDone: isGone,
        state: (through) => tagged(ground, through, "second"),
        becomes: [],
      };
    },
  },
];

/** A template whose build was requested and not begun. */
function request(ground: Ground, name: string): Promise<Requested> {
  return make<Requested>(ground, "POST /v3/templates", { name: `${ground.word}-${name}` });
}

function read(ground: Ground, through: Platform, id: string): Promise<Reply> {
  return api(own(ground, through), "GET", `/templates/${id}`);
}

/** The builds that the ground's template has by that tag. */
async function tagged(ground: Ground, through: Platform, wanted: string): Promise<readonly string[]> {
  const tags = await all<{ tag: string; buildID: string }>(ground, through, `/templates/${ground.built.id}/tags`);
  return tags.filter(({ tag }) => tag === wanted).map(({ buildID }) => buildID);
}
