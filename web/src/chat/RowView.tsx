import { memo } from "react";
import { counted } from "@/parts/numbers";
import { Text } from "@/text/Text";
import type { TextMark } from "@/text/segments";
import { Block } from "./Blocks";
import { wentWrong, type Pairs } from "./pairs";
import type { Message, Part } from "./parts";
import { MARKDOWN_TEXT_MAX, type Row } from "./rows";
import css from "./RowView.module.css";

interface Props {
  row: Row;
  marks: readonly TextMark[];
  pairs: Pairs;
  raw: boolean;
  onOpen: (what: readonly (Message | Part)[], open: boolean) => void;
  /** Of the last message, while the conversation is not over. */
  goesOn?: "said" | "answered" | undefined;
  /** The last row of all. */
  isEnd?: boolean;
}

/** One row of the chat. The edge says whose it is, the label says it in words. */
export const RowView = memo(function RowView({ row, marks, pairs, raw, onOpen, goesOn, isEnd = false }: Props) {
  const channel = row.kind === "text" || row.kind === "part" ? (row.part.channel ?? row.message.channel) : row.message.channel;
  return (
    <div className={css["outer"]} data-kind={row.kind} data-inside={row.inside} data-growing={isEnd && goesOn === "said"}>
      <div className={css["row"]} data-channel={channel}>
        <Inner row={row} marks={marks} pairs={pairs} raw={raw} onOpen={onOpen} goesOn={goesOn} />
      </div>
    </div>
  );
});

function Inner({ row, marks, pairs, raw, onOpen, goesOn }: Props) {
  if (row.kind === "head") return <Head message={row.message} isOpen={row.isOpen} pairs={pairs} raw={raw} onOpen={onOpen} />;
  if (row.kind === "part") return <PartHead part={row.part} isOpen={row.isOpen} pairs={pairs} marks={marks} onOpen={onOpen} goesOn={goesOn} />;
  if (row.kind === "empty") return <p className={css["note"]}>{goesOn === "said" ? "Nothing is said yet." : "This message has no text."}</p>;
  return (
    <div className={css["text"]} data-part={row.part.index} data-last={row.isLast}>
      <Block part={row.part} from={row.chunk.from} to={row.chunk.to} drawn={row.drawn} marks={marks} />
    </div>
  );
}

type HeadProps = Omit<Props, "row" | "marks" | "goesOn" | "isEnd"> & { message: Message; isOpen: boolean };

function Head({ message, isOpen, pairs, raw, onOpen }: HeadProps) {
  const result = message.channel === "tool_result" ? message.parts.find((part) => part.kind === "result") : undefined;
  const call = result && pairs.callOf.get(result.index);
  const isLong = !raw && message.parts.some((part) => part.kind === "prose" && part.text.length > MARKDOWN_TEXT_MAX);
  return (
    <div className={css["head"]} role="heading" aria-level={3}>
      <button type="button" className={css["fold"]} aria-expanded={isOpen} onClick={() => onOpen([message], !isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        <span className={css["role"]}>
          <Text text={message.role} />
        </span>
        <span className={css["figures"]}>
          #{message.index} · {counted(message.chars, "character")}
        </span>
      </button>
      {!message.isKnown && <span className={css["said"]}>not a role that we know</span>}
      {call && <span className={css["said"]}>result of {call.name}</span>}
      {result && !call && <span className={css["said"]}>no call asked for this result{result.name === undefined ? "" : ` of ${result.name}`}</span>}
      {result && wentWrong(result) && <span className={css["wrong"]}>error</span>}
      {isLong && <span className={css["said"]}>too long to render, shown raw</span>}
      {!isOpen && <span className={css["glimpse"]}>{glimpse(message)}</span>}
    </div>
  );
}

/** The beginning of what is folded. */
function glimpse(message: Message): string {
  const part = message.parts.find((one) => one.kind !== "more");
  return part ? part.text.slice(part.lead, part.lead + 120).replace(/[^\p{L}\p{N}\p{P}\p{S}]+/gu, " ") : "";
}

function PartHead({ part, isOpen, pairs, marks, onOpen, goesOn }: Omit<Props, "row" | "raw" | "isEnd"> & { part: Part; isOpen: boolean }) {
  if (part.kind === "other") return <p className={css["note"]}><Text text={part.detail ?? part.text} /></p>;
  const result = part.kind === "call" ? pairs.resultOf.get(part.index) : undefined;
  const call = part.kind === "result" ? pairs.callOf.get(part.index) : undefined;
  const name = { reasoning: "Reasoning", call: "Call", result: "Result", more: "More fields", prose: "" }[part.kind];
  return (
    <div className={css["head"]} data-part={part.index}>
      <button type="button" className={css["fold"]} aria-expanded={isOpen} onClick={() => onOpen([part], !isOpen)}>
        <span aria-hidden="true">{isOpen ? "▾" : "▸"}</span>
        <span className={part.kind === "more" ? css["quiet"] : css["role"]}>{name}</span>
        {part.kind === "call" && (
          <code className={css["name"]}>
            <Text text={part.text} to={Math.min(part.name?.length ?? 0, part.text.length)} marks={marks} />
          </code>
        )}
        <span className={css["figures"]}>{part.kind === "more" ? <Text text={(part.detail ?? "").slice(0, 120)} /> : counted(part.chars, "character")}</span>
      </button>
      {part.unclosed && <span className={css["wrong"]}>never closed</span>}
      {part.kind === "call" && !result && <span className={goesOn ? css["said"] : css["wrong"]}>{goesOn ? "no result yet" : "no result"}</span>}
      {result && <span className={wentWrong(result) ? css["wrong"] : css["said"]}>{wentWrong(result) ? "error" : "answered"} in #{result.message}</span>}
      {call && <span className={css["said"]}>of {call.name} in #{call.message}</span>}
      {part.kind === "result" && !call && <span className={css["said"]}>no call asked for this result</span>}
      {part.kind === "result" && wentWrong(part) && <span className={css["wrong"]}>error</span>}
    </div>
  );
}
