import "./theme/base.css";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { takeFromAddress } from "./lib/access";
import { chosenTheme, showTheme } from "./theme/theme";

showTheme(chosenTheme());
takeFromAddress();
const place = document.getElementById("app");
if (place) createRoot(place).render(<App />);
