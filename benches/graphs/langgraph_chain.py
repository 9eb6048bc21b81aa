"""A chain of nodes by LangGraph, each of which adds one to the number in the state.

Prints the microseconds of a node, the least of several runs. The graph is compiled before.
"""

import sys
import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

NODES = int(sys.argv[1])
ROUNDS = int(sys.argv[2])


class State(TypedDict):
    number: int


def add(state: State) -> State:
    return {"number": state["number"] + 1}


graph = StateGraph(State)
for node in range(NODES):
    graph.add_node(f"n{node}", add)
    graph.add_edge(f"n{node - 1}" if node > 0 else START, f"n{node}")
graph.add_edge(f"n{NODES - 1}", END)
chain = graph.compile()

least = float("inf")
for _ in range(ROUNDS):
    begin = time.perf_counter()
    result = chain.invoke({"number": 0}, {"recursion_limit": NODES + 10})
    least = min(least, time.perf_counter() - begin)
    assert result == {"number": NODES}
print(least * 1e6 / NODES)
