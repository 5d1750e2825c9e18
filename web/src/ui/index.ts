/** The components of pages. */
export { Button, buttonClass } from "./Button";
export { Choices } from "./Choices";
export { Dialog } from "./Dialog";
export { Combobox, Field, Input, type Option, Select, TextArea } from "./Field";
export { BarPlot, LinePlot, type Sample, Sparkline } from "./Plot";
export { numberCell, scrollBox, Sheet, Table } from "./Sheet";
export { Avatar, Badge, Moment, Rank, RankChange, Score, TimeLeft, type Tone } from "./small";
export { EmptyState, ErrorState, OfflineBanner, Skeleton, SkeletonRows } from "./states";
export { Tabs } from "./Tabs";
export { Title } from "./Title";
export { say, Toasts } from "./Toast";
