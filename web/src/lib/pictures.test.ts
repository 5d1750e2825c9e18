import { expect, test } from "vitest";
import { covers } from "./pictures";

const CASES: [string, string, string, boolean][] = [
  ["images.example.com", "https://images.example.com/a.png", "https", true],
  ["images.example.com", "https://images.example.com/a.png", "http", true],
  ["images.example.com", "http://images.example.com/a.png", "http", true],
  ["images.example.com", "http://images.example.com/a.png", "https", false],
  ["https://images.example.com", "http://images.example.com/a.png", "http", false],
  ["images.example.com", "https://example.com/a.png", "https", false],
  ["images.example.com", "https://images.example.com.evil.org/a.png", "https", false],
  ["images.example.com", "https://images.example.com:8443/a.png", "https", false],
  ["images.example.com:8443", "https://images.example.com:8443/a.png", "https", true],
  ["images.example.com:443", "https://images.example.com/a.png", "https", true],
  ["*.example.com", "https://a.b.example.com/a.png", "https", true],
  ["*.example.com", "https://example.com/a.png", "https", false],
  ["http://localhost:9000", "http://localhost:9000/a.png", "http", true],
  ["images.example.com", "data:image/png;base64,AA==", "https", false],
];

test.each(CASES)("%s and %s on %s", (source, url, scheme, expected) => {
  expect(covers(source, new URL(url), scheme)).toBe(expected);
});
