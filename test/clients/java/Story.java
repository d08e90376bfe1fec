package story;

import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.UUID;
import trunkline.ApiClient;
import trunkline.ApiException;
import trunkline.api.AgentsApi;
import trunkline.api.BatchesApi;
import trunkline.api.CallsApi;
import trunkline.api.SipApi;
import trunkline.api.ToolsApi;
import trunkline.model.*;

/** Plays the story of test/clients/stories.test.ts with the client that openapi-generator makes for Java. */
public final class Story {
  /** How often a state is read that comes by itself. */
  private static final long POLL_MS = 100;

  private final ApiClient client;
  private final String number;
  private final String caller;
  private final String callee;

  private Story(ApiClient client, Map<String, String> environment) {
    this.client = client;
    number = environment.get("NUMBER");
    caller = environment.get("CALLER");
    callee = environment.get("CALLEE");
  }

  private interface Read<T> {
    T read() throws ApiException;
  }

  /** Reads until the state is there. The test that runs this program ends one that never comes. */
  private static <T> T until(Read<T> state, Predicate<T> isThere) throws ApiException, InterruptedException {
    for (;;) {
      T value = state.read();
      if (isThere.test(value)) return value;
      Thread.sleep(POLL_MS);
    }
  }

  private SipConfiguration configuration(SipApi sip) throws ApiException {
    return sip.getNumbers(number, null, null, null).getOneNumber().getData();
  }

  private void attach(SipApi sip) throws ApiException {
    AttachNumberAnswer attached =
        sip.attachNumber(
            new AttachNumberBody()
                .phoneNumber(number)
                .directions(List.of(new AttachNumberBodyDirectionsInner(Direction.INBOUND)))
                .service(AttachNumberBody.ServiceEnum.SIP),
            null);
    System.out.println("attach " + attached.getData().getPhoneNumber());
    System.out.println("read " + configuration(sip).getInbound().getOptions().getMediaEncryption());
    InboundUpdate inbound =
        new InboundUpdate().type(InboundUpdate.TypeEnum.INBOUND).options(new InboundOptions().maxConcurrentCalls(7));
    UpdateNumberAnswer updated =
        sip.updateNumber(new UpdateNumberBody().phoneNumber(number).updates(new UpdateNumberBodyUpdates(inbound)), null);
    System.out.println("update " + updated.getData().getInbound().getOptions().getMaxConcurrentCalls());
  }

  private UUID createAgent(AgentsApi agents) throws ApiException {
    Agent agent = agents.createAgent(new CreateAgentBody().name("Desk of java").prompt("Be brief.")).getAgent();
    UpdateAgentBody body = new UpdateAgentBody().maxDuration(5).language(UpdateAgentBody.LanguageEnum.DEU);
    Object minutes = agents.updateAgent(agent.getAgentId(), body, null).getUpdates().get("max_duration");
    System.out.println("agent " + agent.getAgentId() + " " + ((Number) minutes).intValue());
    return agent.getAgentId();
  }

  private void createTool(ToolsApi tools) throws ApiException {
    ToolDefinition definition =
        new ToolDefinition().name("Book").description("Books a table.").url("https://example.com/book");
    CreateToolAnswer created = tools.createTool(new CreateToolBody(new NewTool().tool(definition).label("java")));
    System.out.println("tool " + created.getTool().getToolId());
  }

  private void placeCall(CallsApi calls, UUID agentId) throws ApiException, InterruptedException {
    PlaceCallBody body =
        new PlaceCallBody()
            .from(caller)
            .phoneNumber(callee)
            .agentId(agentId)
            .metadata(Map.of("client", "java"));
    UUID callId = calls.placeCall(body, null).getCallId();
    until(() -> calls.getCall(callId, null).getCall(), call -> call.getState() == CallDetail.StateEnum.IN_PROGRESS);
    calls.stopCall(callId, null);
    CallDetail ended =
        until(() -> calls.getCall(callId, null).getCall(), call -> call.getState() == CallDetail.StateEnum.ENDED);
    System.out.println("call " + ended.getCallId() + " " + ended.getReason());
  }

  private void createBatch(BatchesApi batches) throws ApiException, InterruptedException {
    CreateBatchBody body =
        new CreateBatchBody().name("java").from(caller).numbers(List.of(new CreateBatchBodyNumbersInner(callee)));
    UUID id = batches.createBatch(body, null).getData().getBatchId();
    until(() -> batches.getBatch(id, null).getData(), batch -> batch.getState() == Batch.StateEnum.READY);
    System.out.println("batch " + id + " " + batches.stopBatch(id, null).getData().getState());
  }

  private void detach(SipApi sip) throws ApiException {
    sip.detachNumber(
        new DetachNumberBody()
            .phoneNumber(number)
            .directions(new DetachNumberBodyDirections(Direction.INBOUND))
            .service(DetachNumberBody.ServiceEnum.SIP),
        null);
    SipConfiguration left = configuration(sip);
    System.out.println("detach " + (left == null ? "none" : left.getPhoneNumber()));
  }

  private void play() throws ApiException, InterruptedException {
    SipApi sip = new SipApi(client);
    attach(sip);
    UUID agentId = createAgent(new AgentsApi(client));
    createTool(new ToolsApi(client));
    placeCall(new CallsApi(client), agentId);
    createBatch(new BatchesApi(client));
    detach(sip);
  }

  public static void main(String[] arguments) throws ApiException, InterruptedException {
    Map<String, String> environment = System.getenv();
    ApiClient client = new ApiClient();
    client.setBasePath(environment.get("API_URL"));
    client.setApiKey(environment.get("API_KEY"));
    new Story(client, environment).play();
    // The client's threads would keep the program for a minute.
    System.exit(0);
  }
}
