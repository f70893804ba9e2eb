/** Reads a stream of server-sent events, as far as the platform writes them: `id`, `event`, `data`, and comments. */

export interface SentEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

/** A platform that sends more without the end of an event is not the platform. */
const LONGEST = 4 * 2 ** 20;

export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > LONGEST) throw new Error("an event of the platform is too long");
    for (let end = text.search(/\r?\n\r?\n/); end >= 0; end = text.search(/\r?\n\r?\n/)) {
      const block = text.slice(0, end);
      text = text.slice(end).replace(/^\r?\n\r?\n/, "");
      const found = parse(block);
      if (found !== undefined) yield found;
    }
  }
}

function parse(block: string): SentEvent | undefined {
  const fields = new Map<string, string[]>();
  for (const line of block.split(/\r?\n/)) {
    const [, name = "", value = ""] = /^([a-z]+):\s?(.*)$/.exec(line) ?? [];
    if (name !== "") fields.set(name, [...(fields.get(name) ?? []), value]);
  }
  const data = fields.get("data");
  if (data === undefined) return undefined;
  return { id: fields.get("id")?.at(-1), event: fields.get("event")?.at(-1) ?? "message", data: data.join("\n") };
}
