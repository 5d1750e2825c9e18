import { Component, type ReactNode } from "react";
import { asProblem, type Problem } from "../lib/problem";
import { ErrorState } from "../ui";

/** If a page throws, the frame stays. */
export class Catch extends Component<{ children: ReactNode }, { problem: Problem | null }> {
  override state = { problem: null as Problem | null };

  static getDerivedStateFromError(error: unknown) {
    return { problem: asProblem(error) };
  }

  override render() {
    const { problem } = this.state;
    return problem ? <ErrorState problem={problem} again={() => location.reload()} /> : this.props.children;
  }
}
