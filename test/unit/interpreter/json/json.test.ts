import * as fc from "fast-check";
import { expect, test } from "vitest";
import { asciiJson, asciiText } from "../../../../interpreter/json/ascii.ts";
import { members } from "../../../../interpreter/json/members.ts";

test("members have the text that they were written in", () => {
  const text = ' { "a" : 5.0 , "b\\"}" : "x\\\\" ,"c":[1, {"d": "]"}] , "e":null,"f":{}\n} ';
  expect([...members(text)]).toEqual([
    ["a", "5.0"],
    ['b"}', '"x\\\\"'],
    ["c", '[1, {"d": "]"}]'],
    ["e", "null"],
    ["f", "{}"],
  ]);
});

test("the members of any object are those that JSON.parse finds", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), fc.nat(2), (object, indent) => {
      const given = JSON.parse(JSON.stringify(object)) as object;
      const found = [...members(JSON.stringify(given, null, indent))].map(([name, json]) => [name, JSON.parse(json)]);
      expect(found).toEqual(Object.entries(given));
    }),
  );
});

test.each(["", "[]", "5", '{"a":1', '{"a":NaN}', "{} x"])("%j has no members", (text) => {
  expect(() => members(text)).toThrow(SyntaxError);
});

test("ASCII JSON means the same as the JSON before", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const json = JSON.stringify(value, null, 1);
      for (const text of [asciiJson(value), asciiText(json)]) {
        expect(text).toMatch(/^[\x20-\x7e]*$/);
        expect(JSON.parse(text)).toEqual(JSON.parse(json));
      }
    }),
  );
});
