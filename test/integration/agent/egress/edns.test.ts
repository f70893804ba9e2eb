/** Names by resolvers that know no EDNS: old ones, and those of some routers. */

import { decode, encode, type Question } from "dns-packet";
import { expect, onTestFinished, test } from "vitest";
import { openNames } from "../../../../agent/egress/dns/names.ts";
import { nameServer } from "../../../support/peers/name-server.ts";

/** Answers FORMERR to questions for which `knows` is false. */
async function namesBy(knows: (hasOption: boolean) => boolean) {
  const asked: boolean[] = [];
  const server = await nameServer((message) => {
    const { id = 0, questions = [], additionals = [] } = decode(message);
    const [question] = questions as [Question];
    const hasOption = additionals.some(({ type }) => type === "OPT");
    asked.push(hasOption);
    const isKnown = knows(hasOption);
    const answer =
      question.type === "A"
        ? ({ type: "A", name: question.name, ttl: 60, data: "203.0.113.7" } as const)
        : ({ type: "CNAME", name: question.name, ttl: 60, data: "b.test" } as const);
    return encode({
      type: "response",
      id,
      flags: isKnown ? 0x0180 : 0x0181,
      questions,
      answers: isKnown ? [answer] : [],
    });
  });
  const names = openNames(async () => [server]);
  onTestFinished(() => {
    names.stop();
    server.close();
  });
  return { names, asked };
}

test("a resolver that refuses EDNS is asked without it", async () => {
  const { names, asked } = await namesBy((hasOption) => !hasOption);
  expect(await names.addresses("a.test")).toMatchObject({ code: 0, addresses: ["203.0.113.7"] });
  expect(await names.alias("a.test")).toMatchObject({ code: 0, alias: "b.test" });
  expect(asked).toEqual([true, false, true, false]);
});

test("a resolver that knows EDNS is asked once", async () => {
  const { names, asked } = await namesBy(() => true);
  expect(await names.addresses("a.test")).toMatchObject({ code: 0, addresses: ["203.0.113.7"] });
  expect(asked).toEqual([true]);
});

test("a resolver that takes no question is asked twice, and its code counts", async () => {
  const { names, asked } = await namesBy(() => false);
  expect(await names.addresses("a.test")).toMatchObject({ code: 1, addresses: [] });
  expect(asked).toEqual([true, false]);
});
