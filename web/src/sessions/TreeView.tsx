import { memo, useEffect, useMemo, useRef, useState, type KeyboardEvent } from "react";
import { isGiven } from "@/parts/given";
import { figure, rewardText, share } from "@/parts/numbers";
import { isTurn } from "./path";
import { layout, neighbour, type Edge, type Placed, type Way } from "./tree";
import type { Turn, UnderWay } from "./news";
import { marksOf, sentence, STOPS } from "./words";
import css from "./TreeView.module.css";

const NODE_PX = 26;
const ROW_PX = 38;
const EDGE_PX = 12;

/** From so many branches on nodes are narrow, so that more of them are in sight. */
const MANY = 4;

interface Widths {
  node: number;
  column: number;
}

const WIDE: Widths = { node: 132, column: 152 };
const NARROW: Widths = { node: 92, column: 104 };

const WAYS: Record<string, Way> = { ArrowUp: "up", ArrowDown: "down", ArrowLeft: "left", ArrowRight: "right" };

interface Props {
  turns: readonly (Turn | UnderWay)[];
  /** The turn that is shown, and those before it. */
  chosen: number | null;
  path: ReadonlySet<number>;
  onChoose: (turn: number) => void;
}

/** The session as a tree, a node for each answer. Arrows move among them, Enter chooses. */
export function TreeView({ turns, chosen, path, onChoose }: Props) {
  // What is said in answers under way changes by the word; where they stand does not.
  const shape = turns.map(({ turn, follows, cut, begins_like }) => [turn, follows ?? "", cut ? 1 : "", begins_like ?? ""].join()).join(";");
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the shape is all that counts of the turns
  const tree = useMemo(() => layout(turns), [shape]);
  const [low, high] = useMemo(() => {
    const rewards = turns.flatMap((one) => (isTurn(one) && isGiven(one.reward) ? [one.reward] : []));
    return [Math.min(0, ...rewards), Math.max(1, ...rewards)];
  }, [turns]);
  const [moved, setMoved] = useState<number | null>(null);
  // The one stop of the tree: where the arrows went, else what is chosen.
  const current = moved !== null && tree.places.has(moved) ? moved : (chosen ?? turns[0]?.turn ?? null);
  const scroller = useRef<HTMLDivElement>(null);
  const node = (turn: number | null) => scroller.current?.querySelector<HTMLElement>(`[data-turn="${turn ?? ""}"]`);
  const nodeCount = tree.places.size;
  useEffect(() => {
    node(chosen)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [chosen, nodeCount]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (current === null || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      onChoose(current);
      return;
    }
    const all = [...tree.places.keys()];
    const way = WAYS[event.key];
    const next = way ? neighbour(tree, current, way) : event.key === "Home" ? (all[0] ?? null) : event.key === "End" ? (all.at(-1) ?? null) : undefined;
    if (next === undefined) return;
    event.preventDefault();
    if (next === null) return;
    setMoved(next);
    node(next)?.focus();
  };

  const widths = tree.columns < MANY ? WIDE : NARROW;
  const size = { width: (tree.columns - 1) * widths.column + widths.node + 2 * EDGE_PX, height: (tree.rows - 1) * ROW_PX + NODE_PX + 2 * EDGE_PX };
  return (
    <div ref={scroller} className={css["scroller"]}>
      <div className={css["whole"]} style={size}>
        <Edges edges={tree.edges} path={path} widths={widths} width={size.width} height={size.height} />
        <div role="tree" aria-label="Turns" onKeyDown={onKeyDown} onFocus={(event) => setMoved(Number(event.target.dataset["turn"] ?? current))}>
          {turns.map((one) => {
            const place = tree.places.get(one.turn);
            if (!place) return null;
            return (
              <Node
                key={one.turn}
                one={one}
                place={place}
                widths={widths}
                reward={isTurn(one) && isGiven(one.reward) ? share(one.reward, low, high) : null}
                isChosen={one.turn === chosen}
                isOnPath={path.has(one.turn)}
                isStop={one.turn === current}
                onChoose={onChoose}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface NodeProps {
  one: Turn | UnderWay;
  place: Placed;
  widths: Widths;
  /** On the scale of the session's rewards. */
  reward: number | null;
  isChosen: boolean;
  isOnPath: boolean;
  isStop: boolean;
  onChoose: (turn: number) => void;
}

const Node = memo(function Node({ one, place, widths, reward, isChosen, isOnPath, isStop, onChoose }: NodeProps) {
  const isOver = isTurn(one);
  return (
    <div
      role="treeitem"
      aria-level={place.row + 1}
      aria-selected={isChosen}
      tabIndex={isStop ? 0 : -1}
      title={sentence(one)}
      className={css["node"]}
      data-turn={one.turn}
      data-path={isOnPath}
      data-state={!isOver ? "under_way" : one.is_unheard ? "unheard" : "over"}
      style={{ left: left(place, widths), top: top(place), width: widths.node, height: NODE_PX }}
      onClick={() => onChoose(one.turn)}
    >
      <span className={css["turn"]}>
        <span className="visually-hidden">Turn </span>
        {one.turn}
      </span>
      <span className={css["stop"]}>{isOver ? (STOPS[one.stop] ?? one.stop) : "under way"}</span>
      {marksOf(one).map((mark) => (
        <span key={mark.name} className={mark.isBad ? css["bad"] : css["mark"]} aria-hidden="true">
          {mark.sign}
        </span>
      ))}
      {isOver && reward !== null && (
        <span className={css["reward"]} style={{ color: rewardText(reward) }}>
          {figure(one.reward)}
        </span>
      )}
    </div>
  );
});

const left = ({ column }: Placed, widths: Widths) => EDGE_PX + column * widths.column;
const top = ({ row }: Placed) => EDGE_PX + row * ROW_PX;

interface EdgesProps {
  edges: readonly Edge[];
  path: ReadonlySet<number>;
  widths: Widths;
  width: number;
  height: number;
}

const Edges = memo(function Edges({ edges, path, widths, width, height }: EdgesProps) {
  const lines = edges.map((edge) => ({ ...edge, isOnPath: edge.kind !== "like" && path.has(edge.from.turn) && path.has(edge.to.turn) }));
  // Those of the path last, over the others.
  lines.sort((a, b) => Number(a.isOnPath) - Number(b.isOnPath));
  return (
    <svg className={css["edges"]} width={width} height={height} aria-hidden="true">
      {lines.map(({ from, to, kind, isOnPath }) => (
        <path key={to.turn} d={line(widths, from, to, kind)} data-kind={kind} data-path={isOnPath} />
      ))}
    </svg>
  );
});

/** Down the left side of a column; to another column half way between two rows, and to a turn beside straight. */
function line(widths: Widths, from: Placed, to: Placed, kind: Edge["kind"]): string {
  const spine = 16;
  const [x, y] = [left(to, widths), top(to)];
  if (kind === "like") return `M${left(from, widths) + widths.node} ${y + NODE_PX / 2}H${x}`;
  const start = `M${left(from, widths) + spine} ${top(from) + NODE_PX}`;
  if (from.column === to.column) return `${start}V${y}`;
  return `${start}V${y - (ROW_PX - NODE_PX) / 2}H${x + spine}V${y}`;
}
