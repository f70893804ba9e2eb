/** Uploads to envd as a form whose fields name the path of the file, as clients without an SDK write them. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { fileRequests } from "./file-requests.ts";

const here = fileRequests();
const { at, urlOf } = here;

test("a field 'path' before the file is the file's path, unless the query has one", async () => {
  const post = (query: Record<string, string>, path: string) => {
    const data = new FormData();
    data.append("path", path);
    data.append("file", new Blob(["text"]), "upload");
    return fetch(urlOf(query), { method: "POST", body: data });
  };
  const answers = [await post({}, at("named/ü")), await post({ path: at("query") }, at("field")), await post({}, "")];
  expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual([
    [{ name: "ü", path: at("named/ü"), type: "file" }],
    [{ name: "query", path: at("query"), type: "file" }],
    [{ name: "upload", path: join(here.envd.home, "upload"), type: "file" }],
  ]);
  expect(readFileSync(at("named/ü"), "utf8")).toBe("text");
  expect([(await post({}, "x".repeat(5_000))).status, (await post({}, "a\0b")).status]).toEqual([400, 400]);
});

test("a part 'path' with a file name is no field", async () => {
  const data = new FormData();
  data.append("path", new Blob(["x".repeat(5_000)]), "picture");
  data.append("file", new Blob(["text"]), at("own"));
  const response = await fetch(urlOf({}), { method: "POST", body: data });
  expect([response.status, await response.json()]).toMatchObject([200, [{ path: at("own") }]]);
});

test("each file of a form has the path in the field before it", async () => {
  const data = new FormData();
  for (const name of ["one", "two"]) {
    data.append("path", at(name));
    data.append("file", new Blob([name]), "upload");
  }
  const response = await fetch(urlOf({}), { method: "POST", body: data });
  expect(await response.json()).toMatchObject([{ path: at("one") }, { path: at("two") }]);
  expect([readFileSync(at("one"), "utf8"), readFileSync(at("two"), "utf8")]).toEqual(["one", "two"]);
});

test("a field 'path' behind the file is refused where the file was written elsewhere", async () => {
  const post = (path: string) => {
    const data = new FormData();
    data.append("file", new Blob(["text"]), at("name"));
    data.append("path", path);
    return fetch(urlOf({}), { method: "POST", body: data });
  };
  const late = await post(at("meant"));
  expect([late.status, await late.json()]).toEqual([
    400,
    { code: 400, message: expect.stringContaining(`which was written as '${at("name")}': put the field 'path'`) },
  ]);
  expect([(await post(at("name"))).status, (await post("")).status]).toEqual([200, 200]);
});
