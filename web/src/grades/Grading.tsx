import { Panel } from "@/parts/Panel";

export function Grading({ onClose }: { onClose: () => void }) {
  return (
    <Panel title="Grade with a model" onClose={onClose}>
      {null}
    </Panel>
  );
}
