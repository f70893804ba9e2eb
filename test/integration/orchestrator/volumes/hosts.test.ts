/** Where the published SDK sends the content of volumes: to the platform alone. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { recordedVolume } from "../../../support/volumes/recorded-volume.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

const addresses = () => ({
  E2B_API_URL: cluster.url,
  E2B_SANDBOX_URL: cluster.edgeUrl,
  E2B_API_KEY: cluster.key.replace(/^svc_/, "e2b_"),
});

test("with the four exports a client writes and reads a volume, and connects to the API alone", async () => {
  const recorded = await recordedVolume({ ...addresses(), E2B_VOLUME_API_URL: cluster.url });
  expect(recorded).toEqual({ read: "stays at home", hosts: [new URL(cluster.url).host] });
});

test("without the address for volumes a client tries the platform's own domain, and no other host", async () => {
  const { error, hosts } = await recordedVolume(addresses());
  expect(error).toContain("fetch failed");
  const edge = new URL(cluster.edgeUrl);
  expect(hosts).toEqual([new URL(cluster.url).host, `api.localhost:${edge.port}`].sort());
});

test("a volume has the domain of the platform, as sandboxes have it", async () => {
  const domain = `localhost:${new URL(cluster.edgeUrl).port}`;
  const made = await cluster.ask("POST", "/volumes", { body: { name: "with-domain" } });
  expect(made.body).toMatchObject({ domain });
  const { volumeID } = made.body as { volumeID: string };
  expect((await cluster.ask("GET", `/volumes/${volumeID}`)).body).toMatchObject({ domain });
  await cluster.restart({ domain: "sandboxes.example.com" });
  expect((await cluster.ask("GET", `/volumes/${volumeID}`)).body).toMatchObject({ domain: "sandboxes.example.com" });
});
