import { useView } from "@/api/view";
import { figure } from "@/parts/numbers";
import { binsFor } from "./bins";
import { Brush } from "./Brush";
import { Fold } from "./Fold";
import { RangeInputs } from "./RangeInputs";
import { useChoice, type Counts } from "./useFacets";
import { useHistogram } from "./useHistogram";
import type { Range } from "./choice";

interface Props {
  field: string;
  whole: Counts;
  counts: Counts | undefined;
  isInteger: boolean;
  onDrop: (() => void) | undefined;
}

/** A field of numbers: how they lie, and from where to where they are wanted. */
export function RangeFacet({ field, whole, counts, isInteger, onDrop }: Props) {
  const { answer } = useView();
  const { choice, around, choose } = useChoice(field);
  const histogram = useHistogram(field, around, binsFor(whole.range, isInteger));
  const [low, high] = counts?.range ?? whole.range ?? [null, null];
  const set = (range: Range | null) => choose({ ...choice, range }, false);
  const note = low === null ? "no row is left" : `${figure(low)} to ${figure(high)}`;
  return (
    <Fold name={field} about={answer.columns.find((column) => column.name === field)?.about} note={note} onDrop={onDrop}>
      {histogram.data && histogram.data.bins.length > 1 && (
        <Brush histogram={histogram.data} range={choice.range} isInteger={isInteger} isReward={field === "reward"} onRange={set} />
      )}
      <RangeInputs key={JSON.stringify(choice.range)} field={field} range={choice.range} low={low} high={high} onRange={set} />
    </Fold>
  );
}
