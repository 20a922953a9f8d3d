import { expect, test } from "vitest";
import { nodesOf, type NodesAnswer } from "./nodes";

const alone: NodesAnswer = {
  node: "a",
  clustered: false,
  nodes: [{ node: "a", url: "http://a", alive: true, this: true, started: 0, heard_ms_ago: 0, runs: [{ run: "default", epoch: 0 }] }],
  runs: [{ run: "default", owner: "a", epoch: 0 }],
};

test("a server by itself has no nodes to show", () => {
  expect(nodesOf(undefined)).toBeNull();
  expect(nodesOf(alone)).toBeNull();
  expect(nodesOf({ ...alone, clustered: true })?.lines).toHaveLength(1);
});

test("nodes show what they own, who is gone, and what nobody has", () => {
  const gone = { node: "b", url: "http://b", alive: false, this: false, started: 0, heard_ms_ago: 4200, runs: [] };
  const shown = nodesOf({
    ...alone,
    clustered: true,
    nodes: [...alone.nodes, gone],
    runs: [...alone.runs, { run: "x", owner: null, epoch: 0 }],
  });
  expect(shown?.lines.map(({ node, state, runs }) => [node, state, runs])).toEqual([
    ["a", "alive", ["default"]],
    ["b", "not heard for 4 s", []],
  ]);
  expect(shown?.orphans).toEqual(["x"]);
});
