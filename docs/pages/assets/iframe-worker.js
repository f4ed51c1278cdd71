// The search is a worker, which browsers refuse to a page that was opened as a file: there its script runs in a frame.
if (location.protocol === "file:") {
  window.Worker = function (url) {
    const { port1: outside, port2: inside } = new MessageChannel();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.srcdoc = "<!doctype html>";
    frame.onload = () => {
      const worker = frame.contentWindow;
      const script = worker.document.createElement("script");
      worker.postMessage = (data) => inside.postMessage(data);
      script.src = new URL(url, location.href);
      // A port keeps messages until it has a listener.
      script.onload = () => (inside.onmessage = worker.onmessage);
      script.onerror = (error) => outside.onerror?.(error);
      worker.document.body.append(script);
    };
    document.body.append(frame);
    outside.terminate = () => frame.remove();
    return outside;
  };
}
