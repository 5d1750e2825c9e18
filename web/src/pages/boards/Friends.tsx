/** Some members ranked among themselves. */
import { type FormEvent, useState } from "react";
import { count, counted } from "../../lib/words";
import { Button, EmptyState, ErrorState, numberCell, Rank, Score, Sheet, SkeletonRows, Table, TextArea } from "../../ui";
import { type BoardName, useAmong } from "./asking";
import styles from "./boards.module.css";
import { MemberName, named } from "./MemberName";
import { MOST_FRIENDS, typedMembers, type Where } from "./view";

interface FriendsProps {
  name: BoardName;
  where: Where;
  friends: readonly string[];
  beat: number;
  chosen: string;
  onChange: (members: readonly string[]) => void;
  onChoose: (member: string) => void;
}

export function Friends({ name, where, friends, beat, chosen, onChange, onChoose }: FriendsProps) {
  const { data, problem, again } = useAmong(name, friends, where, beat);
  return (
    <Sheet as="div">
      {problem && !data && <ErrorState problem={problem} again={again} />}
      {!friends.length && <EmptyState title="No friends yet">List members to rank them among themselves.</EmptyState>}
      {friends.length > 0 && !(problem && !data) && (
        <div className={styles["box"]}>
          <Table caption={`${counted(friends.length, "friend")}: rank among themselves, member, score and rank on the board`}>
            <thead>
              <tr>
                <th scope="col" className={styles["rankCell"]}>
                  Rank
                </th>
                <th scope="col">Member</th>
                <th scope="col" className={numberCell}>
                  Score
                </th>
                <th scope="col" className={numberCell}>
                  On the board
                </th>
              </tr>
            </thead>
            <tbody>
              {!data && <SkeletonRows rows={Math.min(friends.length, 8)} columns={4} />}
              {data?.entries.map((entry) => (
                <tr key={entry.member} className={entry.member === chosen ? styles["outstanding"] : undefined}>
                  <td className={styles["rankCell"]}>
                    <Rank rank={entry.rank} />
                  </td>
                  <th scope="row" className={styles["memberCell"]}>
                    <button type="button" title={entry.member} onClick={() => onChoose(entry.member)}>
                      <MemberName {...named(entry)} />
                    </button>
                  </th>
                  <td className={numberCell}>
                    <Score value={entry.score} />
                  </td>
                  <td className={numberCell}>{count(entry.board_rank)}</td>
                </tr>
              ))}
            </tbody>
          </Table>
        </div>
      )}
      {data && data.absent.length > 0 && friends.length > 0 && <p className={styles["foot"]}>Without an entry in this window: {data.absent.join(", ")}</p>}
      <Editor key={friends.join("\n")} friends={friends} onChange={onChange} />
    </Sheet>
  );
}

function Editor({ friends, onChange }: { friends: readonly string[]; onChange: (members: readonly string[]) => void }) {
  const [typed, setTyped] = useState(friends.join("\n"));
  const save = (event: FormEvent) => {
    event.preventDefault();
    onChange(typedMembers(typed));
  };
  return (
    <form className={styles["editor"]} onSubmit={save}>
      <TextArea
        label="Friends"
        rows={Math.min(Math.max(friends.length + 1, 3), 10)}
        value={typed}
        hint={`Exact names, one per line or separated by commas; at most ${count(MOST_FRIENDS)}. Kept in this browser and in the address.`}
        onChange={(event) => setTyped(event.target.value)}
      />
      <p className={styles["line"]}>
        <Button type="submit" look="primary">
          Rank them
        </Button>
        {friends.length > 0 && (
          <Button look="quiet" onClick={() => onChange([])}>
            Forget them
          </Button>
        )}
      </p>
    </form>
  );
}
