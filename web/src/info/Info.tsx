import { useRollout, type Rollout } from "@/reader/useRollout";
import { useViewState } from "@/state/location";
import { bytes, count, figure } from "@/parts/numbers";
import { useView } from "@/api/view";
import { Fate } from "./Fate";
import { Facts, type Fact } from "./Facts";
import { Raw } from "./Raw";
import { Reward } from "./Reward";
import { Tree } from "./Tree";
import css from "./Info.module.css";

/** Everything that is known of the rollout and has no place elsewhere. */
export function Info() {
  const [{ rollout: id }] = useViewState();
  const rollout = useRollout(id);
  if (!rollout.data) return null;
  return (
    <div className={css["info"]}>
      <Reward rollout={rollout.data} />
      <Fate rollout={rollout.data} />
      <Where rollout={rollout.data} />
      <Columns rollout={rollout.data} />
      <Extra rollout={rollout.data} />
      <Rest rollout={rollout.data} />
      <Raw key={rollout.data.id} id={rollout.data.id} length={rollout.data.source.length} />
    </div>
  );
}

function Where({ rollout }: { rollout: Rollout }) {
  const { id, source, copies, timestamp } = rollout;
  const time = timestamp as unknown;
  const facts: Fact[] = [
    { name: "id", value: id },
    { name: "source_file", value: source.file, shown: `${source.file}:${source.line}` },
    { name: "bytes", value: null, shown: `${bytes(source.length)} from byte ${count(source.offset)}`, isColumn: false },
  ];
  if (typeof time === "string") facts.push({ name: "timestamp", value: time, isColumn: false });
  copies.slice(1).forEach((copy, i) => {
    facts.push({ name: `copy ${i + 1}`, value: null, shown: `${copy.file}:${copy.line}`, isColumn: false });
  });
  return <Facts title="Where it stands" facts={facts} note={copies.length > 1 ? `The same rollout stands ${copies.length} times; it is shown once.` : undefined} />;
}

/** Columns that have a section of their own, or whose names say nothing to a reader. */
const ELSEWHERE = new Set(["row", "id", "source_file", "line", "reward", "status", "reason", "trained_step", "version", "lag", "mixed", "extra", "body", "prompt", "response"]);

function shownOf(kind: string | undefined, value: unknown): string {
  if (value === null || value === undefined) return "–";
  if (kind === "flag") return value === 1 || value === true ? "yes" : "no";
  if (kind === "time" && typeof value === "number") return new Date(value * 1000).toISOString().replace("T", " ").replace(".000Z", " UTC");
  return typeof value === "number" ? figure(value) : typeof value === "string" ? value : JSON.stringify(value);
}

function Columns({ rollout }: { rollout: Rollout }) {
  const { answer } = useView();
  const summary = rollout.summary as Record<string, unknown>;
  const facts = answer.columns
    .filter(({ name }) => !ELSEWHERE.has(name) && name in summary)
    .map(({ name, kind, about }): Fact => ({ name, value: summary[name], shown: shownOf(kind, summary[name]), about }));
  return <Facts title="Columns" facts={facts} />;
}

/** Attributes that filters can name though they have no column; parts of the reward are shown with it. */
function Extra({ rollout }: { rollout: Rollout }) {
  const facts = Object.entries(rollout.extra as Record<string, unknown>)
    .filter(([name]) => !name.startsWith("reward."))
    .map(([name, value]): Fact => ({ name, value, shown: shownOf(undefined, value) }));
  return <Facts title="Other attributes" facts={facts} />;
}

function Rest({ rollout }: { rollout: Rollout }) {
  const parts = { attributes: rollout.attributes, ...rollout.rest } as Record<string, unknown>;
  return (
    <section aria-label="The row as it is">
      <h2 className={css["title"]}>The row as it is</h2>
      <div className={css["tree"]}>
        {Object.entries(parts).map(([name, value]) => (
          <Tree key={name} name={name} value={value} />
        ))}
      </div>
    </section>
  );
}
