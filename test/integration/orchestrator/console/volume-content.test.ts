/** The content of volumes through the console: whoever is logged in reads and changes it without its token. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../../../support/cluster/cluster.ts";
import { type Browser, newBrowser } from "./browser.ts";

let cluster: Cluster;
let browser: Browser;
let volumeID: string;
let files: string;
beforeAll(async () => {
  cluster = await startCluster();
  browser = newBrowser(cluster);
  await browser.logIn(cluster.key);
  const made = await browser.ask("POST", "/console/api/volumes", { body: { name: "looked-at" } });
  ({ volumeID } = made.body as { volumeID: string });
  files = join(cluster.agent.volumes.folder, volumeID, "files");
  await mkdir(join(files, "pages"));
  await writeFile(join(files, "pages/evil.html"), "<script>alert(1)</script>");
});
afterAll(() => cluster.stop());

const at = (part: string, path: string, id = volumeID) =>
  `/console/api/volumecontent/${id}/${part}?${new URLSearchParams({ path }).toString()}`;

test("a directory is listed, and a file is an attachment of no type", async () => {
  const listed = await browser.ask("GET", at("dir", "/pages"));
  expect([listed.status, listed.body]).toMatchObject([200, [{ name: "evil.html", type: "file", size: 25 }]]);
  const file = await browser.ask("GET", at("file", "/pages/evil.html"));
  expect([file.status, file.text]).toEqual([200, "<script>alert(1)</script>"]);
  expect(file.headers.get("content-type")).toBe("application/octet-stream");
  expect(file.headers.get("content-disposition")).toBe("attachment");
  expect(file.headers.get("content-security-policy")).toContain("default-src 'none'");
});

test("files are written, directories made, and both removed", async () => {
  const sent = await fetch(`${cluster.url}${at("file", "/pages/new.txt")}`, {
    method: "PUT",
    headers: { origin: cluster.url, cookie: browser.cookie ?? "", "content-type": "application/octet-stream" },
    body: "from a browser",
  });
  expect(sent.status).toBe(201);
  expect(await readFile(join(files, "pages/new.txt"), "utf8")).toBe("from a browser");
  expect((await browser.ask("POST", at("dir", "/made"))).status).toBe(201);
  expect((await browser.ask("DELETE", at("path", "/made"))).status).toBe(204);
  expect((await browser.ask("GET", at("path", "/made"))).status).toBe(404);
});

test("a viewer, another project and nobody reach no content, and a change of another site is refused", async () => {
  const made = await cluster.ask("POST", "/api-keys", { body: { name: "viewer", scopes: ["read"] } });
  const viewer = newBrowser(cluster);
  await viewer.logIn((made.body as { key: string }).key);
  expect((await viewer.ask("GET", at("dir", "/"))).status).toBe(403);
  const stranger = newBrowser(cluster);
  await stranger.logIn((await cluster.addProject("strangers")).key);
  expect((await stranger.ask("GET", at("dir", "/"))).status).toBe(404);
  expect((await newBrowser(cluster).ask("GET", at("dir", "/"))).status).toBe(401);
  const forged = { headers: { origin: "http://evil.example", "sec-fetch-site": "cross-site" } };
  expect((await browser.ask("DELETE", at("path", "/pages"), forged)).status).toBe(403);
  expect((await browser.ask("GET", at("dir", "/", "not-a-volume"))).status).toBe(404);
});

test("the token of a volume opens nothing here, and a path stays below the volume's root", async () => {
  const { token } = (await cluster.ask("GET", `/volumes/${volumeID}`)).body as { token: string };
  const headers = { authorization: `Bearer ${token}` };
  expect((await newBrowser(cluster).ask("GET", at("dir", "/"), { headers })).status).toBe(401);
  expect((await browser.ask("GET", at("file", "/../secret"))).status).toBe(400);
});
