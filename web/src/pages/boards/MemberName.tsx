/** A member as it is listed: with its avatar and name, as far as they are known. */
import { Avatar } from "../../ui";
import styles from "./boards.module.css";
import type { Entry } from "./top";

export interface MemberNameProps {
  member: string;
  name?: string | null | undefined;
  avatar?: string | null | undefined;
}

export function MemberName({ member, name, avatar }: MemberNameProps) {
  if (!name && !avatar) return <bdi>{member}</bdi>;
  return (
    <span className={styles["person"]}>
      <Avatar name={name ?? member} url={avatar} />
      <bdi>{name ?? member}</bdi>
    </span>
  );
}

export const named = ({ member, person }: Pick<Entry, "member" | "person">): MemberNameProps => ({
  member,
  name: person?.name,
  avatar: person?.avatar_url,
});
