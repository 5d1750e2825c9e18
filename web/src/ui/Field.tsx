/** A label, a control, a hint and an error, tied together for screen readers. */
import { type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes, type TextareaHTMLAttributes, useId } from "react";
import styles from "./ui.module.css";

interface About {
  label: string;
  hint?: ReactNode;
  wrong?: string | undefined;
  /** The label is for screen readers only. */
  isBare?: boolean;
}

interface Tied {
  id: string;
  className: string | undefined;
  "aria-describedby": string | undefined;
  "aria-invalid": true | undefined;
}

interface FieldProps extends About {
  children: (tied: Tied) => ReactNode;
}

export function Field({ label, hint, wrong, isBare = false, children }: FieldProps) {
  const id = useId();
  const described = [hint && `${id}-hint`, wrong && `${id}-wrong`].filter(Boolean).join(" ");
  const tied: Tied = {
    id,
    className: styles["control"],
    "aria-describedby": described || undefined,
    "aria-invalid": wrong ? true : undefined,
  };
  return (
    <div className={styles["field"]}>
      <label className={isBare ? "unseen" : styles["label"]} htmlFor={id}>
        {label}
      </label>
      {children(tied)}
      {hint && (
        <p className={styles["hint"]} id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {wrong && (
        <p className={styles["wrong"]} id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </div>
  );
}

export function Input({ label, hint, wrong, isBare, ...rest }: About & InputHTMLAttributes<HTMLInputElement>) {
  return (
    <Field label={label} hint={hint} wrong={wrong} isBare={isBare ?? false}>
      {(tied) => <input autoComplete="off" spellCheck={false} {...rest} {...tied} />}
    </Field>
  );
}

export function TextArea({ label, hint, wrong, isBare, ...rest }: About & TextareaHTMLAttributes<HTMLTextAreaElement>) {
  return (
    <Field label={label} hint={hint} wrong={wrong} isBare={isBare ?? false}>
      {(tied) => <textarea spellCheck={false} {...rest} {...tied} />}
    </Field>
  );
}

export interface Option {
  value: string;
  label: string;
}

interface SelectProps extends About, Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange"> {
  options: readonly Option[];
  value: string;
  onChoose: (value: string) => void;
}

/** Adds a value that is not among the options, because an address can name any. */
export function Select({ label, hint, wrong, isBare, options, value, onChoose, ...rest }: SelectProps) {
  const all = options.some((option) => option.value === value) ? options : [...options, { value, label: value }];
  return (
    <Field label={label} hint={hint} wrong={wrong} isBare={isBare ?? false}>
      {(tied) => (
        <select {...rest} {...tied} value={value} onChange={(event) => onChoose(event.target.value)}>
          {all.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface ComboboxProps extends About {
  options: readonly Option[];
  value: string;
  onChoose: (value: string) => void;
  placeholder?: string;
}

/** Text with the browser's own suggestions, which work with keyboards and screen readers. */
export function Combobox({ label, hint, wrong, isBare, options, value, onChoose, placeholder }: ComboboxProps) {
  const list = useId();
  return (
    <Field label={label} hint={hint} wrong={wrong} isBare={isBare ?? false}>
      {(tied) => (
        <>
          <input
            {...tied}
            key={value}
            list={list}
            defaultValue={value}
            placeholder={placeholder}
            autoComplete="off"
            spellCheck={false}
            onBlur={(event) => event.target.value !== value && onChoose(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && onChoose(event.currentTarget.value)}
          />
          <datalist id={list}>
            {options.map((option) => (
              <option key={option.value} value={option.value}>
                {option.label}
              </option>
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
