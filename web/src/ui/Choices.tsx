/** A choice of a few, side by side: real radio buttons. */
import { useId } from "react";
import styles from "./ui.module.css";

interface ChoicesProps<Id extends string> {
  label: string;
  choices: readonly { id: Id; label: string }[];
  chosen: Id;
  onChoose: (id: Id) => void;
  isBare?: boolean;
}

export function Choices<Id extends string>({ label, choices, chosen, onChoose, isBare = false }: ChoicesProps<Id>) {
  const name = useId();
  return (
    <fieldset className={styles["field"]}>
      <legend className={isBare ? "unseen" : styles["label"]}>{label}</legend>
      <div className={styles["choices"]}>
        {choices.map((choice) => (
          <label key={choice.id} className={styles["choice"]}>
            <input type="radio" name={name} value={choice.id} checked={choice.id === chosen} onChange={() => onChoose(choice.id)} />
            <span>{choice.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
