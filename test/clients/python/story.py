"""Plays the story of test/clients/stories.test.ts with the client that openapi-generator makes for Python."""

import os
import time
from typing import Callable, TypeVar

import trunkline_client as trunkline

T = TypeVar("T")

# How often a state is read that comes by itself, in seconds.
POLL = 0.1


def until(read: Callable[[], T], is_there: Callable[[T], bool]) -> T:
    """Reads until the state is there. The test that runs this program ends one that never comes."""
    while True:
        value = read()
        if is_there(value):
            return value
        time.sleep(POLL)


def play(client: trunkline.ApiClient, number: str, caller: str, callee: str) -> None:
    sip = trunkline.SIPApi(client)
    attached = sip.attach_number(
        trunkline.AttachNumberBody(
            phone_number=number,
            directions=[trunkline.AttachNumberBodyDirectionsInner(trunkline.Direction.INBOUND)],
            service="sip",
        )
    )
    print("attach", attached.data.phone_number)
    found = sip.get_numbers(inbound_id=number).actual_instance
    print("read", found.data.inbound.options.media_encryption)
    inbound = trunkline.InboundUpdate(type="inbound", options=trunkline.InboundOptions(max_concurrent_calls=7))
    updated = sip.update_number(
        trunkline.UpdateNumberBody(phone_number=number, updates=trunkline.UpdateNumberBodyUpdates(inbound))
    )
    print("update", updated.data.inbound.options.max_concurrent_calls)

    agents = trunkline.AgentsApi(client)
    agent = agents.create_agent(trunkline.CreateAgentBody(name="Desk of python", prompt="Be brief.")).agent
    changed = agents.update_agent(agent.agent_id, trunkline.UpdateAgentBody(max_duration=5, language="DEU"))
    print("agent", agent.agent_id, changed.updates["max_duration"])
    definition = trunkline.ToolDefinition(name="Book", description="Books a table.", url="https://example.com/book")
    tool = trunkline.ToolsApi(client).create_tool(
        trunkline.CreateToolBody(trunkline.NewTool(tool=definition, label="python"))
    )
    print("tool", tool.tool.tool_id)

    calls = trunkline.CallsApi(client)
    placed = calls.place_call(
        trunkline.PlaceCallBody(var_from=caller, phone_number=callee, agent_id=agent.agent_id, metadata={"client": "python"})
    )
    until(lambda: calls.get_call(placed.call_id).call.state, lambda state: state == "in_progress")
    calls.stop_call(placed.call_id)
    ended = until(lambda: calls.get_call(placed.call_id).call, lambda call: call.state == "ended")
    print("call", ended.call_id, ended.reason)

    batches = trunkline.BatchesApi(client)
    numbers = [trunkline.CreateBatchBodyNumbersInner(callee)]
    batch = batches.create_batch(trunkline.CreateBatchBody(name="python", var_from=caller, numbers=numbers)).data
    until(lambda: batches.get_batch(batch.batch_id).data.state, lambda state: state == "ready")
    stopped = batches.stop_batch(batch.batch_id)
    print("batch", batch.batch_id, stopped.data.state)

    inbound_only = trunkline.DetachNumberBodyDirections(trunkline.Direction.INBOUND)
    sip.detach_number(trunkline.DetachNumberBody(phone_number=number, directions=inbound_only, service="sip"))
    left = sip.get_numbers(inbound_id=number).actual_instance.data
    print("detach", "none" if left is None else left.phone_number)


configuration = trunkline.Configuration(host=os.environ["API_URL"], api_key={"apiKey": os.environ["API_KEY"]})
with trunkline.ApiClient(configuration) as api_client:
    play(api_client, os.environ["NUMBER"], os.environ["CALLER"], os.environ["CALLEE"])
