import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { switchTheme } from "@/app/theme";
import { ChatOf } from "@/chat/ChatOf";
import { useKey } from "@/keys/keys";
import { Button } from "@/parts/Button";
import { Notice } from "@/parts/Notice";
import { counted, rewardText } from "@/parts/numbers";
import { search, shown, type Bundled, type Row, type Told } from "./data";
import css from "./Bundle.module.css";

const ROW_PX = 28;
const FACTS = ["data_source", "step", "reward", "advantage", "status", "reason", "stop_reason", "turns", "tokens", "version", "lag"];

/** The rollouts of a file that needs no server: a list, and the one that is read. */
export function Bundle({ data }: { data: Bundled }) {
  const [words, setWords] = useState("");
  const rows = useMemo(() => search(data.rows, words), [data, words]);
  const [id, choose] = useChosen();
  const told = data.rollouts[id ?? ""] ?? data.rollouts[rows[0]?.id ?? ""];
  const step = (by: number) => {
    const at = rows.findIndex((row) => row.id === told?.id);
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next) choose(next.id);
  };
  useKey({ keys: "j", label: "Next rollout", group: "List", run: () => step(1) });
  useKey({ keys: "k", label: "Previous rollout", group: "List", run: () => step(-1) });
  return (
    <div className={css["page"]}>
      <header className={css["head"]}>
        <h1 className={css["title"]}>{data.title}</h1>
        <span className={css["about"]}>
          {counted(data.rows.length, "rollout")}
          {data.filter && <code className={css["filter"]}>{data.filter}</code>}
          <time dateTime={data.made_at}>{data.made_at.slice(0, 16).replace("T", " ")} UTC</time>
        </span>
        <Button label="Light or dark" hotkey="t" keyGroup="Page" kind="quiet" onClick={switchTheme}>
          Theme
        </Button>
      </header>
      <nav className={css["list"]} aria-label="Rollouts">
        <input
          className={css["words"]}
          type="search"
          value={words}
          placeholder="Search the list"
          aria-label="Search the list"
          onChange={(event) => setWords(event.target.value)}
        />
        <List columns={data.columns} rows={rows} chosen={told?.id ?? null} onChoose={choose} />
      </nav>
      <main className={css["reader"]}>{told ? <Rollout told={told} /> : <Notice title="There is no rollout in this file">Its filter let none through.</Notice>}</main>
    </div>
  );
}

/** The rollout after the `#` of the address, so that a link to one can be sent along with the file. */
function useChosen(): [string | null, (id: string) => void] {
  const hash = useSyncExternalStore(
    (changed) => {
      window.addEventListener("hashchange", changed);
      return () => window.removeEventListener("hashchange", changed);
    },
    () => location.hash.slice(1),
  );
  return [hash || null, (id) => location.replace(`#${id}`)];
}

interface ListProps {
  columns: string[];
  rows: readonly Row[];
  chosen: string | null;
  onChoose: (id: string) => void;
}

function List({ columns, rows, chosen, onChoose }: ListProps) {
  const scroller = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- its functions are only called, never kept
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW_PX, overscan: 12 });
  const at = rows.findIndex((row) => row.id === chosen);
  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at, { align: "auto" });
    // Only what is chosen moves the list.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [chosen]);
  const value = (row: Row, name: string) => row.values[columns.indexOf(name)];
  if (rows.length === 0) return <p className={css["none"]}>No rollout has all of these words.</p>;
  return (
    <div ref={scroller} className={css["scroller"]} tabIndex={0} role="listbox" aria-label="Rollouts">
      <div className={css["whole"]} style={{ height: `${virtual.getTotalSize()}px` }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (!row) return null;
          const reward = value(row, "reward");
          return (
            <div
              key={row.id}
              role="option"
              aria-selected={row.id === chosen}
              className={css["row"]}
              style={{ transform: `translateY(${item.start}px)` }}
              onClick={() => onChoose(row.id)}
            >
              <code className={css["id"]}>{row.id.slice(0, 8)}</code>
              <span className={css["number"]}>{shown(value(row, "step"))}</span>
              <span className={css["number"]} style={typeof reward === "number" ? { color: rewardText(Math.min(1, Math.max(0, reward))) } : {}}>
                {shown(reward)}
              </span>
              <span className={css["source"]}>{shown(value(row, "data_source"))}</span>
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Rollout({ told }: { told: Told }) {
  const facts = FACTS.map((name) => [name, shown(told.summary[name])] as const).filter(([, value]) => value !== "");
  return (
    <article className={css["rollout"]} aria-label="Rollout">
      <dl className={css["facts"]}>
        {facts.map(([name, value]) => (
          <div key={name} className={css["fact"]}>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {told.problem === null ? <ChatOf key={told.id} rollout={told} /> : <Notice title="This row could not be read">{told.problem}</Notice>}
    </article>
  );
}
