"""The turns of a pydantic-ai agent whose model answers at once: two calls in each turn but the last.

Prints the microseconds of a turn, the least of several runs.
"""

import asyncio
import sys
import time

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

TURNS = int(sys.argv[1])
ROUNDS = int(sys.argv[2])


def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    turn = sum(isinstance(message, ModelResponse) for message in messages)
    usage = RequestUsage(input_tokens=1_000, output_tokens=10)
    if turn + 1 >= TURNS:
        return ModelResponse(parts=[TextPart("The sum is complete.")], usage=usage)
    calls = [
        ToolCallPart(name, {"city": "Bern", "days": turn}, tool_call_id=f"{name}-{turn}")
        for name in ("weather", "traffic")
    ]
    return ModelResponse(parts=calls, usage=usage)


agent = Agent(FunctionModel(reply), instructions="You know cities.")


@agent.tool_plain
async def weather(city: str, days: int) -> str:
    """Tells about a city."""
    return f"weather in {city} for {days} days: nothing unusual is expected."


@agent.tool_plain
async def traffic(city: str, days: int) -> str:
    """Tells about a city."""
    return f"traffic in {city} for {days} days: nothing unusual is expected."


async def main() -> None:
    limits = UsageLimits(request_limit=None)
    least = float("inf")
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        result = await agent.run("How is Bern?", usage_limits=limits)
        least = min(least, time.perf_counter() - begin)
        assert result.output == "The sum is complete."
        assert result.usage.requests == TURNS and result.usage.tool_calls == 2 * (TURNS - 1)
    print(least * 1e6 / TURNS)


asyncio.run(main())
