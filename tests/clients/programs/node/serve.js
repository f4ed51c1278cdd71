// The loop of both programs: a line with a family and a name in, a line of JSON out.
const readline = require("node:readline");

exports.serve = async function serve(version, lookup) {
  console.log(JSON.stringify({ version }));
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [family, name] = line.split(" ");
    const start = process.hrtime.bigint();
    const said = await lookup(family, name);
    said.seconds = Number(process.hrtime.bigint() - start) / 1e9;
    console.log(JSON.stringify(said));
  }
};
