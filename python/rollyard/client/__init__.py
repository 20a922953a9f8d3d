"""A thin client of the server's HTTP API.

Read in this order: `site` says where the server is, `flow` what it means to ask it once and again, `encode`
turns rollouts into lines, `calls` has every call as a flow of requests, `results` what comes of them.
`blocking` and `awaited` only carry those flows out, so neither knows anything that the other does not.
"""
