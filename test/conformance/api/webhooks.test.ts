/** Events of a real sandbox leave the platform: by webhook, and in the live stream. */

import { Sandbox } from "e2b";
import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test } from "vitest";
import { api, openPlatform } from "../../support/platform/platform.ts";
import { startReceiver } from "../../support/webhooks/receiver.ts";

const platform = openPlatform();
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TYPES = ["created", "paused", "killed"].map((type) => `sandbox.lifecycle.${type}`);

test("a sandbox that is created, paused and killed is reported in this order, signed, and the stream shows the same", async () => {
  const receiver = await startReceiver();
  const body = { name: "conformance", url: receiver.url, events: TYPES, signatureSecret: SECRET };
  const made = await api(platform, "POST", "/events/webhooks", { body });
  expect(made.status, made.text).toBe(201);
  const { id } = made.json as { id: string };
  onTestFinished(async () => void (await api(platform, "DELETE", `/events/webhooks/${id}`)));

  const leaving = new AbortController();
  onTestFinished(() => leaving.abort());
  const stream = await fetch(`${platform.apiUrl}/events?type=${TYPES.join(",")}`, {
    headers: { "x-api-key": platform.apiKey, accept: "text/event-stream" },
    signal: leaving.signal,
  });
  expect(stream.headers.get("content-type")).toContain("text/event-stream");

  const sandbox = await Sandbox.create({ metadata: { made: "by the webhook test" } });
  await sandbox.pause();
  await Sandbox.kill(sandbox.sandboxId);
  // Other sandboxes of the project may end at the same time, and what a busy machine answers late is sent again.
  const own = () =>
    receiver.got
      .filter(({ event }) => event.sandboxId === sandbox.sandboxId)
      .filter(({ event }, index, all) => all.findIndex((one) => one.event.id === event.id) === index);
  await expect.poll(() => own().map(({ event }) => event.type), { timeout: 120_000 }).toEqual(TYPES);
  for (const { body: sent, headers } of own()) {
    expect(new Webhook(SECRET).verify(sent, headers as Record<string, string>)).toMatchObject({
      eventData: { sandbox_metadata: { made: "by the webhook test" } },
    });
  }
  expect(await shown(stream, sandbox.sandboxId, TYPES.length)).toEqual(own().map(({ event }) => event.id));
});

/** The ids of the sandbox's first `count` events in the stream. */
async function shown(stream: Response, sandboxId: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  const text = stream.body?.pipeThrough(new TextDecoderStream());
  let rest = "";
  for await (const part of text ?? []) {
    const lines = (rest + part).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      const event = JSON.parse(line.slice(6)) as { id: string; sandboxId?: string };
      if (event.sandboxId === sandboxId) ids.push(event.id);
    }
    if (ids.length >= count) break;
  }
  return ids;
}
