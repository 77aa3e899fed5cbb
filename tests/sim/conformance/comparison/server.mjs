// Starts LangGraph's own server with the graph beside this file, in a folder that has both and the packages, and says where
// it listens.
import { subscribe } from "node:diagnostics_channel";
import { startServer } from "@langchain/langgraph-api/server";

// Node closes a connection after five idle seconds. On a busy machine a client that uses it again at that moment fails.
subscribe("http.server.request.start", ({ server }) => {
  server.keepAliveTimeout = 0;
});

const { host } = await startServer({
  port: 0,
  nWorkers: 10,
  host: "127.0.0.1",
  cwd: process.cwd(),
  graphs: { lead_agent: "./graph.mjs:graph" },
});
console.log(`listening at http://${host}`);
