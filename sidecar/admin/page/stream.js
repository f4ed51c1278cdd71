// Shows the lines of a live answer as rows of a table, while the user wants it. Nothing is requested before Start.
"use strict";
(() => {
  const MOST = 200;  // rows
  const form = document.querySelector("form.stream");
  if (!form) return;
  document.getElementById("no-script")?.remove();
  const columns = form.dataset.columns.split(" ");
  const rows = document.querySelector("#stream tbody");
  const button = form.querySelector("button");
  const said = document.getElementById("stream-said");
  const count = document.getElementById("stream-count");
  let reading = null;  // the AbortController of the answer that is read
  let waiting = [];  // events that the next frame shows
  let framed = false;
  let [shown, dropped] = [0, 0];

  const show = {
    time: (event) => event.time.slice(11, 23),
    client: (event) => `${event.client}${event.subnet ? ` for ${event.subnet}` : ""}`,
    seconds: (event) => `${(event.seconds * 1000).toFixed(3)} ms`,
  };

  const words = (event, column) => {
    if (show[column]) return show[column](event);
    const found = column.split("|").map((key) => event[key]).find((value) => value);
    return found === undefined ? "-" : String(found);
  };

  const makeRow = (event) => {
    const row = document.createElement("tr");
    columns.forEach((column, number) => {
      const cell = document.createElement(number ? "td" : "th");
      if (!number) cell.scope = "row";
      cell.textContent = words(event, column);
      row.append(cell);
    });
    return row;
  };

  const draw = () => {
    framed = false;
    const fresh = waiting.slice(-MOST).reverse().map(makeRow);
    waiting = [];
    rows.prepend(...fresh);
    while (rows.children.length > MOST) rows.lastElementChild.remove();
    count.textContent = `${shown} seen${dropped ? `, ${dropped} not shown: too many at once` : ""}`;
  };

  const take = (line) => {
    if (!line.trim()) return;
    const event = JSON.parse(line);
    if (event.dropped) {
      dropped += event.dropped;
    } else {
      shown += 1;
      waiting.push(event);
      // A hidden page gets no frames: it keeps the newest.
      if (waiting.length > 2 * MOST) waiting.splice(0, MOST);
    }
    if (!framed) {
      framed = true;
      requestAnimationFrame(draw);
    }
  };

  const read = async (body, begin) => {
    const lines = body.pipeThrough(new TextDecoderStream()).getReader();
    let [rest, begun] = ["", false];
    for (;;) {
      const { value, done } = await lines.read();
      if (done) return;
      // The server listens from the first line on, an empty one, and not yet when it sends the head of the answer.
      if (!begun) begin();
      begun = true;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      parts.forEach(take);
    }
  };

  const stop = (words) => {
    reading?.abort();
    reading = null;
    button.textContent = "Start";
    said.textContent = words;
  };

  const start = async () => {
    const mine = reading = new AbortController();
    button.textContent = "Pause";
    said.textContent = "Waiting for queries.";
    const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value.trim()));
    try {
      const answer = await fetch(`${form.dataset.from}?${wanted}`, { signal: mine.signal, cache: "no-store", credentials: "omit" });
      if (!answer.ok) {
        const sentence = (await answer.text()).trim();
        if (reading === mine) stop(`Not started: ${sentence}`);
        return;
      }
      await read(answer.body, () => {
        if (reading === mine) said.textContent = "Live.";
      });
      if (reading === mine) stop("The server has ended the stream; Start connects again.");
    } catch {
      if (reading === mine) stop("No answer from the server; Start connects again.");
    }
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (reading) stop("Paused.");
    else start();
  });
  // Enter in a field applies the filters; it would press the button, which pauses.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target === button || !reading) return;
    event.preventDefault();
    stop("");
    start();
  });
  window.addEventListener("pagehide", () => stop("Paused."));
})();
