import { Panel } from "@/parts/Panel";
import { useViewState } from "@/state/location";
import { Browser } from "./Browser";
import { PlaceField } from "./PlaceField";
import { openPlaces } from "./places";
import css from "./Sources.module.css";

/** Other places instead of these, or more beside them. */
export function OpenPanel({ start, onClose }: { start: string | null; onClose: () => void }) {
  const [{ places }, set] = useViewState();
  const open = (chosen: string[]) => {
    onClose();
    openPlaces(chosen);
  };
  const add = (chosen: string[]) => {
    onClose();
    set({ places: [...new Set([...places, ...chosen])] });
  };
  return (
    <Panel title="Open rollouts" onClose={onClose}>
      <div className={css["panel"]}>
        <PlaceField onOpen={(place) => open([place])} />
        <Browser start={start} onOpen={open} onAdd={add} />
      </div>
    </Panel>
  );
}
