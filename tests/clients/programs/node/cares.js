// Looks names up with c-ares (dns.resolve4, dns.resolve6), as ../README.md describes.
const { promises: dns } = require("node:dns");
const { serve } = require("./serve.js");

const OUTCOMES = { ENODATA: "no data", ENOTFOUND: "no such name", ETIMEOUT: "try again", ESERVFAIL: "try again" };

async function one(resolve, name) {
  try {
    return { outcome: "found", addresses: await resolve(name) };
  } catch (error) {
    return { outcome: OUTCOMES[error.code] ?? "error", addresses: [], detail: error.code };
  }
}

// A program that takes either family asks for both and joins the answers.
async function both(name) {
  const answers = await Promise.all([one(dns.resolve4, name), one(dns.resolve6, name)]);
  const found = answers.filter((answer) => answer.outcome === "found");
  if (found.length === 0) return answers[0];
  return { outcome: "found", addresses: found.flatMap((answer) => answer.addresses) };
}

const LOOKUPS = { 4: (name) => one(dns.resolve4, name), 6: (name) => one(dns.resolve6, name), any: both };

serve(process.versions.ares, (family, name) => LOOKUPS[family](name));
