import { expect, test } from "vitest";
import { leaseMs } from "../../../../orchestrator/repairs/lease.ts";

const joined = "https://10.0.0.2:5010";
const own = "http://127.0.0.1:5010";
const ownAddresses = () => ["127.0.0.1", "::1", "10.0.0.1"];

test.each([
  { of: "the only node", apiUrl: own, hasOthers: false, alone: true, nodeLostMs: 90_000, expected: undefined },
  {
    of: "the only node, which has joined",
    apiUrl: joined,
    hasOthers: false,
    alone: true,
    nodeLostMs: 90_000,
    expected: undefined,
  },
  {
    of: "the own machine of the only orchestrator",
    apiUrl: own,
    hasOthers: true,
    alone: true,
    nodeLostMs: 90_000,
    expected: undefined,
  },
  {
    of: "a node that has joined beside another",
    apiUrl: joined,
    hasOthers: true,
    alone: true,
    nodeLostMs: 90_000,
    expected: 30_000,
  },
  {
    of: "the own machine of one of several orchestrators",
    apiUrl: own,
    hasOthers: true,
    alone: false,
    nodeLostMs: 90_000,
    expected: 30_000,
  },
  {
    of: "the only node of several orchestrators",
    apiUrl: own,
    hasOthers: false,
    alone: false,
    nodeLostMs: 90_000,
    expected: undefined,
  },
  {
    of: "a node that counts as lost soon",
    apiUrl: joined,
    hasOthers: true,
    alone: true,
    nodeLostMs: 20_000,
    expected: 10_000,
  },
])("the lease of $of", ({ of: _of, expected, ...facts }) => {
  expect(leaseMs({ ...facts, sameHost: facts.apiUrl === own, ownAddresses })).toBe(expected);
});

test.each([
  { of: "the own machine of the only orchestrator", at: "https://10.0.0.1:5010", expected: undefined },
  { of: "another node on loopback of that machine", at: "https://127.0.0.1:5110", expected: undefined },
  { of: "another node on its loopback of IPv6", at: "https://[::1]:5110", expected: undefined },
  { of: "a network namespace of that machine", at: "https://10.0.0.2:5010", expected: 30_000 },
  { of: "a node that is reached by a name", at: "https://n1.test:5010", expected: 30_000 },
  {
    of: "the own machine of one of several orchestrators",
    at: "https://10.0.0.1:5010",
    alone: false,
    expected: 30_000,
  },
  {
    of: "another machine with the same address inside",
    at: "https://10.0.0.1:5010",
    sameHost: false,
    expected: 30_000,
  },
])("the lease of $of, which has joined", ({ at, alone = true, sameHost = true, expected }) => {
  const facts = { apiUrl: at, hasOthers: true, alone, sameHost, ownAddresses, nodeLostMs: 90_000 };
  expect(leaseMs(facts)).toBe(expected);
});
