import { Tabs } from "@/parts/Tabs";
import { useViewState } from "@/state/location";
import type { List } from "@/state/url";

const LABELS: Record<List, string> = { rows: "Rows", groups: "Groups", hits: "Hits", figures: "Figures", compare: "Compare" };

export function ListTabs() {
  const [{ list }, set] = useViewState();
  return <Tabs label="What the middle shows" names={LABELS} chosen={list} onChoose={(next) => set({ list: next })} />;
}
