// Browsers start no worker for a page that was opened as a file, and search needs one. This one lives in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      const script = (source) => `<script src="${source}"><\/script>`;
      this.inside.document.open();
      this.inside.document.write(`<script>
        postMessage = (given) => {
          const data = structuredClone(given);
          setTimeout(() => parent.dispatchEvent(new MessageEvent("from-frame", { data, source: window })));
        };
        importScripts = (...sources) => Promise.all(sources.map((source) => new Promise((done, failed) => {
          const element = document.createElement("script");
          element.src = source; element.onload = done; element.onerror = failed;
          document.body.appendChild(element);
        })));
      <\/script>${script(url)}`);
      this.inside.document.close();
      window.addEventListener("from-frame", (event) => {
        if (event.source !== this.inside) return;
        const message = new MessageEvent("message", { data: event.data });
        if (this.onmessage) this.onmessage(message);
        this.dispatchEvent(message);
      });
    }
    postMessage(given) {
      const data = structuredClone(given);  // as with a worker, neither side sees what the other changes later
      const send = () => setTimeout(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
      if (this.inside.document.readyState === "complete") send();
      else this.inside.addEventListener("load", send, { once: true });
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
