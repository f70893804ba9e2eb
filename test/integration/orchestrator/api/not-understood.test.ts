/**
 * Requests that are not understood are refused. The tests walk the OpenAPI document of the running platform, so a new
 * object of the API is covered without anyone's thought.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describedApi } from "../../../../shared/api/public.ts";
import type { Contract } from "../../../../shared/http/contract.ts";
import type { Operation } from "../../../../shared/http/openapi.ts";
import { ADMIN_TOKEN, type Ask, type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import {
  inOtherCase,
  type Misspelling,
  misspellingsOf,
  objectsOf,
  underscored,
} from "../../../support/misspellings.ts";
import { good, pathOf, type Schema } from "../../../support/samples.ts";

const routes: Contract = describedApi;
const counts = { objects: 0, fields: 0, misspellings: 0, parameters: 0 };

let cluster: Cluster;
let volume: { readonly volumeID: string; readonly token: string };
beforeAll(async () => {
  cluster = await startCluster({ config: { rateLimitWritePerSecond: 100_000, rateLimitCreatePerSecond: 100_000 } });
  const made = await cluster.ask("POST", "/volumes", { body: { name: "walked" } });
  volume = made.body as typeof volume;
});
afterAll(async () => {
  console.info(
    `the walk: ${counts.objects} objects, ${counts.fields} fields, ${counts.misspellings} misspellings; ${counts.parameters} query parameters`,
  );
  await cluster.stop();
});

interface Walked {
  readonly id: string;
  readonly method: string;
  readonly operation: Operation;
}

async function operations(): Promise<Walked[]> {
  const document = (await cluster.ask("GET", "/openapi.json")).body as {
    paths: Record<string, Record<string, Operation>>;
  };
  return Object.values(document.paths).flatMap((methods) =>
    Object.entries(methods).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      operation,
    })),
  );
}

/** Sends the required query parameters too. */
async function send(walked: Walked, { query = {}, body }: { query?: Record<string, string>; body?: unknown }) {
  const { id, method } = walked;
  const pairs = new URLSearchParams({ ...requiredQuery(walked), ...query }).toString();
  const route = routes[id];
  if (route === undefined) throw new Error(`no contract has the operation ${id}`);
  const credentials: Record<string, Ask> = {
    project: {},
    none: { key: null },
    volume: { key: null, headers: { authorization: `Bearer ${volume.token}` } },
  };
  const admin = { key: null, headers: { "x-admin-token": ADMIN_TOKEN, "x-team-id": cluster.teamId } };
  const path = pathOf(route, route.access === "volume" ? { volumeID: volume.volumeID } : {});
  const answer = await cluster.ask(method, pairs === "" ? path : `${path}?${pairs}`, {
    ...(credentials[route.access] ?? admin),
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.status, message: (answer.body as { message?: string } | undefined)?.message ?? "" };
}

function requiredQuery({ operation }: Walked): Record<string, string> {
  const required = operation.parameters.filter((parameter) => parameter.in === "query" && parameter.required);
  return Object.fromEntries(required.map(({ name, schema }) => [name, String(good(schema as Schema))]));
}

function bodyOf({ operation }: Walked): Schema | undefined {
  return operation.requestBody?.content["application/json"]?.schema as Schema | undefined;
}

/** Words that a newer client may use for a field of its own, where objects are open to them. */
function isOpenToWord({ how, field, host }: Misspelling): boolean {
  return how === "too high" && host.schema.additionalProperties === true && /^[a-z]+$/.test(field);
}

describe("the bodies of the document", () => {
  test("every misspelled field of every object is refused with its place and the field that was meant", async () => {
    const ignored: string[] = [];
    for (const walked of await operations()) {
      const root = bodyOf(walked);
      if (root === undefined) continue;
      const objects = objectsOf(root);
      counts.objects += objects.length;
      for (const object of objects) {
        counts.fields += Object.keys(object.schema.properties ?? {}).length;
        for (const misspelling of misspellingsOf(root, object, objects)) {
          const { how, field, place, body } = misspelling;
          const answer = await send(walked, { body });
          counts.misspellings += 1;
          const context = `${walked.id}: ${how} of '${field}' at '${place}' answered ${answer.status} ${answer.message}`;
          if (isOpenToWord(misspelling) && !answer.message.includes("is not a field")) {
            ignored.push(`${walked.id} ${place}`);
            continue;
          }
          expect(answer.status, context).toBe(400);
          expect(answer.message, context).toContain(`\`${place}\` is not a field: did you mean \``);
          expect(answer.message.split("did you mean")[1], context).toContain(field);
        }
      }
    }
    // Fields of the items of lists, as fields of an open object around the list.
    expect(ignored).toEqual(["createV1 name", "createV1 path", "create name", "create path", "startBuild args"]);
    expect(counts.objects).toBeGreaterThan(50);
  }, 180_000);

  test("every object says whether a caller may add fields, and those that decide about reach may not be added to", async () => {
    const open: string[] = [];
    for (const walked of await operations()) {
      for (const { schema, at } of objectsOf(bodyOf(walked) ?? {})) {
        expect([true, false], `${walked.id} ${at.join(".")}`).toContain(schema.additionalProperties);
        if (schema.additionalProperties === true) open.push([walked.id, ...at].join(" "));
      }
    }
    const allowed = [
      "createV1 create connectV1 connect setTimeout refresh pause resume rewind fork createSnapshot requestBuild requestBuildV2",
      "startBuild assignTags deleteTags createVolume changeVolumeEntry",
    ].flatMap((line) => line.split(" "));
    expect(new Set(open)).toEqual(new Set([...allowed, "startBuild steps 0"]));
  });

  test("a route that takes no body refuses one with fields, and takes an empty one", async () => {
    for (const walked of await operations()) {
      const { id, method, operation } = walked;
      if (method === "GET" || operation.requestBody !== undefined || routes[id]?.removed === true) continue;
      const refused = await send(walked, { body: { dryRun: true } });
      expect([id, refused.status, refused.message]).toEqual([
        id,
        400,
        "`dryRun` is not a field: the request takes none",
      ]);
    }
    expect((await cluster.ask("DELETE", "/sandboxes/inosuchsandbox", { body: {} })).status).toBe(404);
  });
});

test("every query parameter of the document is refused in another case and in its underscore form", async () => {
  for (const walked of await operations()) {
    const known = walked.operation.parameters.filter((parameter) => parameter.in === "query");
    for (const { name, schema } of known) {
      counts.parameters += 1;
      for (const misspelled of [inOtherCase(name), underscored(name)]) {
        const answer = await send(walked, { query: { [misspelled]: String(good(schema as Schema)) } });
        expect([walked.id, misspelled, answer.status, answer.message]).toEqual([
          walked.id,
          misspelled,
          400,
          `\`${misspelled}\` is not a query parameter: did you mean \`${name}\`?`,
        ]);
      }
    }
  }
  expect((await cluster.ask("GET", "/v2/sandboxes?_=1&utm_source=x")).status).toBe(200);
}, 60_000);
