import { Fragment } from "react";

/** The Markdown that descriptions use: paragraphs and `code`. */
export function Explained({ text }: { text: string }) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .filter(Boolean)
    .map((paragraph, index) => <p key={index}>{inline(paragraph)}</p>);
}

const inline = (text: string) =>
  text.split(/`+([^`]+)`+/).map((part, index) => (index % 2 ? <code key={index}>{part}</code> : <Fragment key={index}>{part}</Fragment>));
