/** Changes of volumes and of what is in them, in the project of the ground. */

import { type ApiCall, api, type Platform } from "../../platform/platform.ts";
import { type Change, isGone, isTaken, ONCE, once } from "./change.ts";
import { all, type Ground, make, must } from "./ground.ts";

interface Volume {
  readonly volumeID: string;
  readonly name: string;
}

export const ofVolumes: readonly Change[] = [
  {
    route: "POST /volumes",
    prepare(ground) {
      const name = `${ground.word}-made`;
      return {
        path: "/volumes",
        call: { body: { name } },
        // A volume whose making was cut short has its name until the platform gives it up, which takes more than a minute.
        repeated: (attempt) => ({ body: { name: `${name}-${attempt}` } }),
        async state(through, done) {
          const listed = await all<Volume>(ground, through, "/volumes");
          const made = listed.filter((one) => one.name.startsWith(name)).map(({ volumeID }) => volumeID);
          return once(made, (done.last.json as { volumeID?: string }).volumeID, done);
        },
        becomes: ONCE,
      };
    },
  },
  {
    route: "DELETE /volumes/{volumeID}",
    async prepare(ground) {
      const name = `${ground.word}-deleted`;
      const { volumeID } = await make<Volume>(ground, "POST /volumes", { name });
      return {
        path: `/volumes/${volumeID}`,
        wasDone: isGone,
        state: async (through) => (await all<Volume>(ground, through, "/volumes")).filter((one) => one.name === name),
        becomes: [],
      };
    },
  },
  {
    route: "PUT /volumecontent/{volumeID}/file",
    prepare(ground) {
      return {
        path: content(ground, "file", "/sent.txt"),
        call: bytes(ground, "sent"),
        // It is there: `force` is what replaces one.
        wasDone: isTaken,
        state: async (through) => (await look(ground, through, content(ground, "file", "/sent.txt"))).text,
        becomes: "sent",
      };
    },
  },
  {
    route: "POST /volumecontent/{volumeID}/dir",
    prepare(ground) {
      return {
        path: content(ground, "dir", "/made"),
        call: bearing(ground),
        wasDone: isTaken,
        state: async (through) => (await entry(ground, through, "/made")).type,
        becomes: "directory",
      };
    },
  },
  {
    route: "PATCH /volumecontent/{volumeID}/path",
    async prepare(ground) {
      await send(ground, "/changed.txt");
      const mode = 0o640;
      return {
        path: content(ground, "path", "/changed.txt"),
        call: { ...bearing(ground), body: { mode } },
        state: async (through) => ((await entry(ground, through, "/changed.txt")).mode ?? 0) & 0o7777,
        becomes: mode,
      };
    },
  },
  {
    route: "DELETE /volumecontent/{volumeID}/path",
    async prepare(ground) {
      await send(ground, "/deleted.txt");
      return {
        path: content(ground, "path", "/deleted.txt"),
        call: bearing(ground),
        wasDone: isGone,
        state: async (through) => (await look(ground, through, content(ground, "path", "/deleted.txt"))).status,
        becomes: 404,
      };
    },
  },
];

const bearing = ({ volume }: Ground): ApiCall => ({ key: null, headers: { authorization: `Bearer ${volume.token}` } });

function bytes(ground: Ground, body: string): ApiCall {
  const { headers, ...call } = bearing(ground);
  return { ...call, body, headers: { ...headers, "content-type": "application/octet-stream" } };
}

const content = ({ volume }: Ground, part: string, path: string): string =>
  `/volumecontent/${volume.id}/${part}?path=${encodeURIComponent(path)}`;

async function send(ground: Ground, path: string): Promise<void> {
  await must(ground.fleet.through(ground.by), `PUT ${content(ground, "file", path)}`, bytes(ground, "there"));
}

const look = (ground: Ground, through: Platform, path: string) => api(through, "GET", path, bearing(ground));

async function entry(ground: Ground, through: Platform, path: string) {
  return (await look(ground, through, content(ground, "path", path))).json as { type?: string; mode?: number };
}
