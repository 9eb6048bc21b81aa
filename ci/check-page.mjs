// Runs the one `js` block of a page against messages of a run, and checks what the page would show.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";

const page = readFileSync(process.argv[2], "utf8");
const blocks = [...page.matchAll(/^```js\n([^]*?)^```/gm)].map(([, code]) => code);
assert.equal(blocks.length, 1, "one script on the page");

const answer = { textContent: "" };
const sources = [];
class EventSource {
  closed = false;
  constructor() {
    sources.push(this);
  }
  close() {
    this.closed = true;
  }
}
new Function("EventSource", "document", blocks[0])(EventSource, { querySelector: () => answer });
const [source] = sources;

const [ask, first, second] = [" x1 1", "r/ask-x1.1 x1 1", "r/ask-x1.1 x1 2"];
const piece = (text, ...within) => ({ kind: "text", text, within });
const shown = (message) => {
  source.onmessage({ data: JSON.stringify(message) });
  return answer.textContent;
};
source.onopen();
assert.equal(shown(piece("For", ask, first)), "For");
assert.equal(shown({ kind: "retracted", attempt: first }), "");
assert.equal(shown(piece("Forty-", ask, second)), "Forty-");
assert.equal(shown({ kind: "missed", count: 3 }), "Forty-[3 more]");
// The attempt that asked takes the child's text with it.
assert.equal(shown({ kind: "retracted", attempt: ask }), "[3 more]");
source.onopen();
assert.equal(shown(piece("Forty-two.", ask, second)), "Forty-two.");
assert.equal(source.closed, false);
assert.equal(shown({ kind: "ended", status: "completed" }), "Forty-two.");
assert.equal(source.closed, true);
console.log("ok: the page shows what counts");
