/** The page inside other sites' frames: small, and without the rest of the app. */
import "./theme/base.css";
import { show } from "./pages/embed";

const place = document.getElementById("app");
if (place) show(place);
