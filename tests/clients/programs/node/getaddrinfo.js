// Looks names up with getaddrinfo (dns.lookup), as ../README.md describes.
const { promises: dns } = require("node:dns");
const { serve } = require("./serve.js");

const OUTCOMES = { ENOTFOUND: "not found", EAI_AGAIN: "try again" };
const FAMILIES = { 4: 4, 6: 6, any: 0 };

async function lookup(family, name) {
  try {
    const found = await dns.lookup(name, { all: true, family: FAMILIES[family] });
    return { outcome: "found", addresses: found.map((one) => one.address) };
  } catch (error) {
    return { outcome: OUTCOMES[error.code] ?? "error", addresses: [], detail: error.code };
  }
}

serve(process.versions.node, lookup);
