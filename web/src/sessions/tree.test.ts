import { expect, test } from "vitest";
import { layout, neighbour, type Branching } from "./tree";

/** `turn<follows`, with `!` for a cut and `~like` for a prompt that was written anew. */
function turns(text: string): Branching[] {
  return text.split(" ").map((word) => {
    const [, turn, follows, cut, like] = /^(\d+)(?:<(\d+))?(!)?(?:~(\d+))?$/.exec(word)!;
    return { turn: Number(turn), follows: follows === undefined ? null : Number(follows), cut: cut === undefined ? null : "why", begins_like: like === undefined ? null : Number(like) };
  });
}

/** `turn@column,row`, then edges as `from>to`, `from!to` for cuts and `from~to` for those that only begin alike. */
function drawn(text: string): string {
  const { places, edges } = layout(turns(text));
  const signs = { goes_on: ">", cut: "!", like: "~" };
  return [...[...places.values()].map(({ turn, column, row }) => `${turn}@${column},${row}`), ...edges.map(({ from, to, kind }) => `${from.turn}${signs[kind]}${to.turn}`)].join(" ");
}

test.each([
  ["a line", "0 1<0 2<1", "0@0,0 1@0,1 2@0,2 0>1 1>2"],
  ["a branch", "0 1<0 2<0 3<1", "0@0,0 1@0,1 2@1,1 3@0,2 0>1 0>2 1>3"],
  ["a branch of a branch takes a column before the next branch", "0 1<0 2<0 3<1 4<1", "0@0,0 1@0,1 2@2,1 3@0,2 4@1,2 0>1 0>2 1>3 1>4"],
  ["a cut that follows", "0 1<0!~0 2<1", "0@0,0 1@0,1 2@0,2 0!1 1>2"],
  ["a prompt that was written anew", "0 1<0 2!~1 3<2", "0@0,0 1@0,1 2@1,1 3@1,2 0>1 1~2 2>3"],
  ["n choices", "0 1 2 3<1", "0@0,0 1@1,0 2@2,0 3@1,1 1>3"],
  ["two roots", "0 1<0 2! 3<2", "0@0,0 1@0,1 2@1,0 3@1,1 0>1 2>3"],
  ["turns in the order in which they ended", "2<0 0 1<0", "0@0,0 1@0,1 2@1,1 0>1 0>2"],
  ["a turn that is not there", "1<0 2<1", "1@0,0 2@0,1 1>2"],
  ["nothing that goes round in circles", "0<1 1<0", "0@0,0 1@0,1 0>1"],
])("%s", (_, given, expected) => {
  expect(drawn(given)).toBe(expected);
});

test("no two turns share a place, however the session branched", () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let round = 0; round < 50; round++) {
    const some: Branching[] = Array.from({ length: 60 }, (_, turn) => {
      const other = turn === 0 || random(5) === 0 ? null : random(turn);
      return random(4) === 0 ? { turn, cut: "why", begins_like: other } : { turn, follows: other };
    });
    const { places, columns, rows } = layout(some);
    expect(places.size).toBe(60);
    expect(new Set([...places.values()].map(({ column, row }) => `${column},${row}`)).size).toBe(60);
    for (const { column, row } of places.values()) expect(column < columns && row < rows).toBe(true);
  }
});

test("ten thousand turns in a line are laid out", () => {
  const { rows, columns } = layout(Array.from({ length: 10_000 }, (_, turn) => ({ turn, follows: turn - 1 })));
  expect([rows, columns]).toEqual([10_000, 1]);
});

test("arrows go along the edges and to the branch beside", () => {
  const tree = layout(turns("0 1<0 2<0 3<1 4!~1"));
  const ways = (turn: number) => (["up", "down", "left", "right"] as const).map((way) => neighbour(tree, turn, way));
  expect(ways(0)).toEqual([null, 1, null, null]);
  expect(ways(1)).toEqual([0, 3, null, 4]);
  expect(ways(4)).toEqual([null, null, 1, 2]);
  expect(ways(2)).toEqual([0, null, 4, null]);
  expect(ways(99)).toEqual([null, null, null, null]);
});
