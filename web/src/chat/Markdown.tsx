import { useMemo, useState, type ReactNode } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";
import type { TextMark } from "@/text/segments";
import textCss from "@/text/Text.module.css";
import { withSource } from "./source";
import css from "./Markdown.module.css";

interface Props {
  text: string;
  from: number;
  to: number;
  marks: readonly TextMark[];
}

/** Markdown without anything that acts: no markup, no images, and links that say where they go. */
export default function Markdown({ text, from, to, marks }: Props) {
  const source = text.slice(from, to);
  const plugins = useMemo(() => [withSource(source, from, marks)], [source, from, marks]);
  return (
    <div className={css["markdown"]}>
      <ReactMarkdown remarkPlugins={GFM} rehypePlugins={plugins} components={COMPONENTS} urlTransform={keep}>
        {source}
      </ReactMarkdown>
    </div>
  );
}

const GFM = [[remarkGfm, { singleTilde: false }]] as NonNullable<Options["remarkPlugins"]>;

/** Where a link goes is decided where it is drawn: one that is refused is still shown. */
const keep = (url: string) => url;

const COMPONENTS: Components = {
  a: ({ href, children, node }) => (
    <Link url={href ?? ""} said={textOf(node)}>
      {children}
    </Link>
  ),
  img: ({ src, alt }) => (
    <span className={css["image"]}>
      image: {alt === undefined || alt === "" ? "" : `${alt}, `}
      {typeof src === "string" ? src : ""}, not loaded
    </span>
  ),
  pre: ({ children, node }) => <Code language={languageOf(node)} text={textOf(node)} children={children} />,
  // What a heading of a rollout is called must not stand among the headings of the page.
  h1: ({ children }) => <p className={css["title"]}>{children}</p>,
  h2: ({ children }) => <p className={css["title"]}>{children}</p>,
  h3: ({ children }) => <p className={css["heading"]}>{children}</p>,
  h4: ({ children }) => <p className={css["heading"]}>{children}</p>,
  h5: ({ children }) => <p className={css["heading"]}>{children}</p>,
  h6: ({ children }) => <p className={css["heading"]}>{children}</p>,
  table: ({ children }) => (
    <div className={css["scroll"]} tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  input: ({ checked }) => <span aria-label={checked === true ? "done" : "not done"}>{checked === true ? "☑ " : "☐ "}</span>,
  span: ({ node, ...rest }) => <span {...rest} className={isOdd(node) ? textCss["odd"] : undefined} />,
  mark: ({ node, ...rest }) => <mark {...rest} className={[textCss["mark"], isOdd(node) ? textCss["odd"] : ""].join(" ")} />,
};

interface Tree {
  value?: string;
  properties?: Record<string, unknown>;
  children?: Tree[];
}

function isOdd(node: unknown): boolean {
  return (node as Tree | undefined)?.properties?.["dataOdd"] === "1";
}

function textOf(node: Tree | undefined): string {
  return node?.value ?? node?.children?.map(textOf).join("") ?? "";
}

function languageOf(node: Tree | undefined): string {
  const names = node?.children?.[0]?.properties?.["className"];
  const name = Array.isArray(names) ? String(names[0]) : "";
  return name.replace(/^language-/, "");
}

function Link({ url, said, children }: { url: string; said: string; children: ReactNode }) {
  const where = /^(?:https?:\/\/|mailto:)/i.test(url) ? url : null;
  if (where === null) {
    return (
      <span>
        {children} <span className={css["where"]}>({url})</span>
      </span>
    );
  }
  return (
    <>
      <a href={where} target="_blank" rel="noreferrer noopener" title={where}>
        {children}
      </a>
      {said !== where && <span className={css["where"]}> ({where})</span>}
    </>
  );
}

function Code({ language, text, children }: { language: string; text: string; children: ReactNode }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <div className={css["code"]}>
      <div className={css["bar"]}>
        <span>{language === "" ? "code" : language}</span>
        <button type="button" className={css["copy"]} onClick={copy}>
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      <pre tabIndex={0} role="group" aria-label={language === "" ? "Code" : `Code: ${language}`}>
        {children}
      </pre>
    </div>
  );
}
