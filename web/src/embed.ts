/** The page for frames in other sites, without the rest of the app. */
import "./theme/base.css";
import { show } from "./pages/embed";

const place = document.getElementById("app");
if (place) show(place);
