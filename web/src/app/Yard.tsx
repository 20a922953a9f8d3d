import { useOpen, ViewProvider } from "@/api/view";
import { Compare } from "@/compare/Compare";
import { Curves } from "@/curves/Curves";
import { Figures } from "@/figures/Figures";
import { Groups } from "@/groups/Groups";
import { Hits } from "@/hits/Hits";
import { HitsProvider } from "@/hits/useHits";
import { Panes } from "@/parts/Panes";
import { ErrorNotice, Notice } from "@/parts/Notice";
import { Reader } from "@/reader/Reader";
import { LeftPane } from "./LeftPane";
import { ListTabs } from "./ListTabs";
import { Moves } from "@/table/Moves";
import { Rows } from "@/table/Rows";
import { useViewState } from "@/state/location";
import { Welcome } from "@/sources/Welcome";
import css from "./Yard.module.css";

/** The page of rollouts: what is open at the left, the rows in the middle under their curve, one of them at the right. */
export function Yard() {
  const [{ places, list }] = useViewState();
  const { answer, error, isWaiting } = useOpen(places);
  if (places.length === 0) return <Welcome />;
  if (error && !answer) return <Welcome problem={<ErrorNotice error={error} title="This could not be opened" />} />;
  if (!answer && isWaiting) return <Notice title="Nothing of this run is archived yet">Its rollouts are shown here as soon as the first is.</Notice>;
  if (!answer) return null;
  const List = { rows: Rows, groups: Groups, hits: Hits, figures: Figures, compare: Compare }[list];
  return (
    <ViewProvider answer={answer}>
      <HitsProvider>
        <Moves />
        <Panes
          name="panes"
          left={<LeftPane />}
          middle={
            <div className={css["middle"]}>
              <Curves />
              <ListTabs />
              <div className={css["list"]}>
                <List />
              </div>
            </div>
          }
          right={<Reader />}
        />
      </HitsProvider>
    </ViewProvider>
  );
}
