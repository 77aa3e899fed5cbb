// Starts LangGraph's own server with the graph beside this file, in a folder that has both and the packages, and says where
// it listens.
import { startServer } from "@langchain/langgraph-api/server";

const { host } = await startServer({
  port: 0,
  nWorkers: 10,
  host: "127.0.0.1",
  cwd: process.cwd(),
  graphs: { lead_agent: "./graph.mjs:graph" },
});
console.log(`listening at http://${host}`);
