/** What is told of a group, and by what groups are sorted. */

export interface GroupColumn {
  /** As the server sorts by it. */
  name: string;
  label: string;
  about: string;
  width: string;
  isNumber: boolean;
}

export const COLUMNS: GroupColumn[] = [
  { name: "step", label: "step", about: "training step", width: "48px", isNumber: true },
  { name: "data_source", label: "source", about: "where the prompt comes from", width: "minmax(88px, 1fr)", isNumber: false },
  { name: "n", label: "n", about: "rollouts of the group", width: "36px", isNumber: true },
  { name: "reward_mean", label: "reward", about: "lowest, mean and highest reward", width: "124px", isNumber: true },
  { name: "reward_std", label: "std", about: "spread of the rewards; without any there is no gradient", width: "84px", isNumber: true },
  { name: "passes", label: "pass", about: "rollouts with a reward above 0", width: "48px", isNumber: true },
  { name: "response_chars_mean", label: "chars", about: "mean length of the answers", width: "56px", isNumber: true },
  { name: "truncated", label: "cut", about: "rollouts that ended at a limit", width: "40px", isNumber: true },
  { name: "lag_mean", label: "lag", about: "mean steps between the weights and the step that trained on it", width: "52px", isNumber: true },
];

export const TEMPLATE = COLUMNS.map((column) => column.width).join(" ");

/** Narrower than this, the table scrolls sideways. */
export const WIDTH_PX = 576;
