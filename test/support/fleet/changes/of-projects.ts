/** Changes of secrets, keys and webhooks, in the project of the ground. */

import { api, type Platform } from "../../platform/platform.ts";
import { type Change, type Done, isGone, isTaken, ONCE, once } from "./change.ts";
import { all, type Ground, make, must, own, statusWith } from "./ground.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

interface Named {
  readonly name: string;
}

interface Secret extends Named {
  readonly secretID: string;
  readonly currentVersion: number;
  readonly metadata: Readonly<Record<string, string>>;
}

const secrets: readonly Change[] = [
  {
    route: "POST /secrets",
    prepare(ground) {
      const name = `${ground.word}-made`;
      return {
        path: "/secrets",
        call: { body: { name, value: "made", metadata: { by: "the change" } } },
        wasDone: isTaken,
        state: async (through) =>
          (await all<Secret>(ground, through, "/secrets"))
            .filter((one) => one.name === name)
            .map(({ currentVersion, metadata }) => ({ currentVersion, metadata })),
        becomes: [{ currentVersion: 1, metadata: { by: "the change" } }],
      };
    },
  },
  {
    route: "POST /secrets/{secretID}",
    async prepare(ground) {
      const name = `${ground.word}-changed`;
      const { secretID } = await make<Secret>(ground, "POST /secrets", { name, value: "made" });
      return {
        path: `/secrets/${secretID}`,
        call: { body: { value: "changed", metadata: { by: "the change" } } },
        async state(through, { last, unheard }) {
          const { currentVersion, metadata } = await must<Secret>(own(ground, through), `GET /secrets/${secretID}`);
          // Each request makes a version, and the answered one is the last.
          const answered = (last.json as Secret).currentVersion;
          return { metadata, isAnswered: currentVersion === answered, once: answered - 1 <= 1 + unheard };
        },
        becomes: { metadata: { by: "the change" }, isAnswered: true, once: true },
      };
    },
  },
  {
    route: "DELETE /secrets/{secretID}",
    async prepare(ground) {
      const { secretID } = await make<Secret>(ground, "POST /secrets", { name: `${ground.word}-gone`, value: "made" });
      return {
        path: `/secrets/${secretID}`,
        wasDone: isGone,
        state: async (through) => (await api(own(ground, through), "GET", `/secrets/${secretID}`)).status,
        becomes: 404,
      };
    },
  },
];

interface Key extends Named {
  readonly id: string;
  readonly key: string;
}

const keys: readonly Change[] = [
  {
    route: "POST /api-keys",
    prepare(ground) {
      const name = `${ground.word}-made`;
      return {
        path: "/api-keys",
        call: { body: { name } },
        async state(through, done) {
          const { id, key } = done.last.json as Key;
          const listed = await onceNamed(ground, through, { path: "/api-keys", name, id }, done);
          return { ...listed, status: await statusWith(through, key) };
        },
        becomes: { ...ONCE, status: 200 },
      };
    },
  },
  {
    route: "PATCH /api-keys/{apiKeyID}",
    async prepare(ground) {
      const { id } = await make<Key>(ground, "POST /api-keys", { name: `${ground.word}-before` });
      const name = `${ground.word}-renamed`;
      return {
        path: `/api-keys/${id}`,
        call: { body: { name } },
        state: async (through) => (await all<Key>(ground, through, "/api-keys")).find((one) => one.id === id)?.name,
        becomes: name,
      };
    },
  },
  {
    route: "DELETE /api-keys/{apiKeyID}",
    async prepare(ground) {
      const { id, key } = await make<Key>(ground, "POST /api-keys", { name: `${ground.word}-revoked` });
      return {
        path: `/api-keys/${id}`,
        wasDone: isGone,
        async state(through) {
          const listed = await all<Key>(ground, through, "/api-keys");
          return { listed: listed.filter((one) => one.id === id), status: await statusWith(through, key) };
        },
        becomes: { listed: [], status: 401 },
      };
    },
  },
];

interface Webhook extends Named {
  readonly id: string;
}

const HOOKS = "/events/webhooks";

const webhooks: readonly Change[] = [
  {
    route: "POST /events/webhooks",
    prepare(ground) {
      const name = `${ground.word}-made`;
      return {
        path: HOOKS,
        call: { body: hook(ground, name) },
        state: (through, done) =>
          onceNamed(ground, through, { path: HOOKS, name, id: (done.last.json as Webhook).id }, done),
        becomes: ONCE,
      };
    },
  },
  {
    route: "PATCH /events/webhooks/{webhookID}",
    async prepare(ground) {
      const id = await makeHook(ground, "before");
      const name = `${ground.word}-renamed`;
      return {
        path: `${HOOKS}/${id}`,
        call: { body: { name } },
        state: async (through) => (await must<Webhook>(own(ground, through), `GET ${HOOKS}/${id}`)).name,
        becomes: name,
      };
    },
  },
  {
    route: "DELETE /events/webhooks/{webhookID}",
    async prepare(ground) {
      const id = await makeHook(ground, "deleted");
      return {
        path: `${HOOKS}/${id}`,
        wasDone: isGone,
        state: async (through) => (await api(own(ground, through), "GET", `${HOOKS}/${id}`)).status,
        becomes: 404,
      };
    },
  },
  {
    route: "POST /events/webhooks/{webhookID}/test",
    async prepare(ground) {
      const id = await makeHook(ground, "tested");
      return {
        path: `${HOOKS}/${id}/test`,
        state: (through, done) => deliveredOnce(ground, through, { id, kind: "test" }, done),
        becomes: ONCE,
      };
    },
  },
  {
    route: "POST /events/webhooks/{webhookID}/deliveries/{deliveryID}/redeliver",
    async prepare(ground) {
      const id = await makeHook(ground, "again");
      const { id: delivery } = await make<{ id: string }>(ground, `POST ${HOOKS}/${id}/test`);
      return {
        path: `${HOOKS}/${id}/deliveries/${delivery}/redeliver`,
        state: (through, done) => deliveredOnce(ground, through, { id, kind: "redelivery" }, done),
        becomes: ONCE,
      };
    },
  },
];

export const ofProjects: readonly Change[] = [...secrets, ...keys, ...webhooks];

async function onceNamed(
  ground: Ground,
  through: Platform,
  { path, name, id }: { path: string; name: string; id: string | undefined },
  done: Done,
) {
  const listed = await all<Webhook>(ground, through, path);
  return once(
    listed.filter((one) => one.name === name).map((one) => one.id),
    id,
    done,
  );
}

/** One that gets no event by itself. */
function hook({ receiver: url }: Ground, name: string): object {
  return { name, url, events: ["sandbox.lifecycle.created"], enabled: false, signatureSecret: SECRET };
}

async function makeHook(ground: Ground, name: string): Promise<string> {
  return (await make<Webhook>(ground, `POST ${HOOKS}`, hook(ground, `${ground.word}-${name}`))).id;
}

async function deliveredOnce(
  ground: Ground,
  through: Platform,
  { id, kind }: { id: string; kind: string },
  done: Done,
) {
  const log = await all<{ id: string; kind: string }>(ground, through, `${HOOKS}/${id}/deliveries`);
  const made = log.filter((one) => one.kind === kind).map((one) => one.id);
  return once(made, (done.last.json as { id?: string }).id, done);
}
