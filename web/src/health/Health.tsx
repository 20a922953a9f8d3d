import { useState } from "react";
import { useView } from "@/api/view";
import { counted } from "@/parts/numbers";
import { Panel } from "@/parts/Panel";
import { useKept } from "@/state/kept";
import { toggled, useViewState } from "@/state/location";
import { Copies } from "./Copies";
import { findings, type Finding } from "./findings";
import { Problems } from "./Problems";
import css from "./Health.module.css";

/** Whether the rows can be trusted: one quiet line if so, else what is wrong and the way to it. */
export function Health() {
  const { answer } = useView();
  const [list, setList] = useState<Finding["list"] | null>(null);
  const [isFolded, setIsFolded] = useKept<boolean>("health-folded", false);
  const { health, indexing } = answer;
  if (!health) {
    if (indexing.done || indexing.bad_rows === 0) return null;
    return (
      <section aria-label="Health">
        <p className={css["quiet"]}>{counted(indexing.bad_rows, "row")} could not be read so far</p>
      </section>
    );
  }
  const found = findings(
    health,
    answer.columns.map((column) => column.name),
  );
  if (found.length === 0) {
    return (
      <section aria-label="Health">
        <p className={css["quiet"]}>Every row could be read, and nothing is odd.</p>
      </section>
    );
  }
  const losses = found.filter((finding) => finding.isLoss === true);
  const rest = found.filter((finding) => finding.isLoss !== true);
  const show = (finding: Finding) => <Line key={finding.name} finding={finding} onList={() => setList(finding.list ?? null)} />;
  return (
    <section aria-label="Health">
      {losses.length > 0 && <ul className={css["lines"]}>{losses.map(show)}</ul>}
      {rest.length > 0 && (
        <>
          <button type="button" className={css["fold"]} aria-expanded={!isFolded} onClick={() => setIsFolded(!isFolded)}>
            <span aria-hidden>{isFolded ? "▸" : "▾"}</span> {isFolded ? `${counted(rest.length, "thing")} worth a look` : "Worth a look"}
          </button>
          {!isFolded && <ul className={css["lines"]}>{rest.map(show)}</ul>}
        </>
      )}
      {list === "problems" && (
        <Panel title="Rows that could not be read" onClose={() => setList(null)}>
          <Problems />
        </Panel>
      )}
      {list === "copies" && (
        <Panel title="Copies of other rows" onClose={() => setList(null)}>
          <Copies />
        </Panel>
      )}
      {list === "unread" && (
        <Panel title="Files that could not be read" onClose={() => setList(null)}>
          <dl className={css["files"]}>
            {health.unread_files.map((file) => (
              <div key={file.file}>
                <dt>{file.file}</dt>
                <dd>{file.reason}</dd>
              </div>
            ))}
          </dl>
        </Panel>
      )}
    </section>
  );
}

function Line({ finding, onList }: { finding: Finding; onList: () => void }) {
  const [{ clauses }, set] = useViewState();
  const { text, clause, list } = finding;
  if (clause === undefined && list === undefined) return <li className={css["line"]}>{text}</li>;
  const isOn = clause !== undefined && clauses.includes(clause);
  const act = () => (clause === undefined ? onList() : set({ clauses: toggled(clauses, clause), list: "rows" }));
  return (
    <li className={css["line"]} data-loss={finding.isLoss === true}>
      <button type="button" aria-pressed={clause === undefined ? undefined : isOn} onClick={act}>
        {text} <span className={css["show"]}>— {isOn ? "show all again" : "show them"}</span>
      </button>
    </li>
  );
}
