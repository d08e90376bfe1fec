// Plays the story of test/clients/stories.test.ts with the client that oapi-codegen makes. scripts/test-clients builds it beside that.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"
	"trunkline.example/story/trunkline"
)

// How often a state is read that comes by itself.
const poll = 100 * time.Millisecond

// Reads until the state is there. The test that runs this program ends one that never comes.
func until[T any](read func() T, isThere func(T) bool) T {
	for {
		value := read()
		if isThere(value) {
			return value
		}
		time.Sleep(poll)
	}
}

// The answer of a success, which is nil for any other one.
func answerOf[T any](answer *T, status string, body []byte) *T {
	if answer == nil {
		log.Fatalf("%s %s", status, body)
	}
	return answer
}

func noError(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	noError(err)
	return value
}

type story struct {
	ctx                    context.Context
	client                 *trunkline.ClientWithResponses
	number, caller, callee string
}

func (s story) configuration() *trunkline.SipConfiguration {
	read := must(s.client.GetNumbersWithResponse(s.ctx, &trunkline.GetNumbersParams{InboundId: &s.number}))
	return must(answerOf(read.JSON200, read.Status(), read.Body).AsOneNumber()).Data
}

func (s story) attach() {
	var inbound trunkline.AttachNumberBody_Directions_Item
	noError(inbound.FromDirection(trunkline.DirectionInbound))
	attached := must(s.client.AttachNumberWithResponse(s.ctx, nil, trunkline.AttachNumberBody{
		PhoneNumber: s.number,
		Directions:  []trunkline.AttachNumberBody_Directions_Item{inbound},
		Service:     trunkline.AttachNumberBodyServiceSip,
	}))
	fmt.Println("attach", answerOf(attached.JSON200, attached.Status(), attached.Body).Data.PhoneNumber)
	fmt.Println("read", s.configuration().Inbound.Options.MediaEncryption)
	var updates trunkline.UpdateNumberBody_Updates
	noError(updates.FromInboundUpdate(trunkline.InboundUpdate{
		Type:    trunkline.InboundUpdateTypeInbound,
		Options: &trunkline.InboundOptions{MaxConcurrentCalls: new(7)},
	}))
	updated := must(s.client.UpdateNumberWithResponse(s.ctx, nil, trunkline.UpdateNumberBody{PhoneNumber: s.number, Updates: updates}))
	fmt.Println("update", *answerOf(updated.JSON200, updated.Status(), updated.Body).Data.Inbound.Options.MaxConcurrentCalls)
}

func (s story) createAgent() uuid.UUID {
	created := must(s.client.CreateAgentWithResponse(s.ctx, trunkline.CreateAgentBody{Name: new("Desk of go"), Prompt: new("Be brief.")}))
	agent := answerOf(created.JSON200, created.Status(), created.Body).Agent
	language := trunkline.UpdateAgentBodyLanguageDEU
	body := trunkline.UpdateAgentBody{MaxDuration: new(5), Language: &language}
	updated := must(s.client.UpdateAgentWithResponse(s.ctx, agent.AgentId, nil, body))
	fmt.Println("agent", agent.AgentId, answerOf(updated.JSON200, updated.Status(), updated.Body).Updates["max_duration"])
	return agent.AgentId
}

func (s story) createTool() {
	var body trunkline.CreateToolBody
	definition := trunkline.ToolDefinition{Name: "Book", Description: "Books a table.", Url: "https://example.com/book"}
	noError(body.FromNewTool(trunkline.NewTool{Tool: definition, Label: new("go")}))
	created := must(s.client.CreateToolWithResponse(s.ctx, body))
	fmt.Println("tool", answerOf(created.JSON200, created.Status(), created.Body).Tool.ToolId)
}

func (s story) placeCall(agentId uuid.UUID) {
	placed := must(s.client.PlaceCallWithResponse(s.ctx, nil, trunkline.PlaceCallBody{
		From:        s.caller,
		PhoneNumber: s.callee,
		AgentId:     &agentId,
		Metadata:    &map[string]any{"client": "go"},
	}))
	callId := answerOf(placed.JSON200, placed.Status(), placed.Body).CallId
	read := func() trunkline.CallDetail {
		call := must(s.client.GetCallWithResponse(s.ctx, callId, nil))
		return answerOf(call.JSON200, call.Status(), call.Body).Call
	}
	until(read, func(call trunkline.CallDetail) bool { return call.State == trunkline.CallDetailStateInProgress })
	stopped := must(s.client.StopCallWithResponse(s.ctx, callId, trunkline.StopCallBody{}))
	answerOf(stopped.JSON200, stopped.Status(), stopped.Body)
	ended := until(read, func(call trunkline.CallDetail) bool { return call.State == trunkline.CallDetailStateEnded })
	fmt.Println("call", ended.CallId, *ended.Reason)
}

func (s story) createBatch() {
	var number trunkline.CreateBatchBody_Numbers_Item
	noError(number.FromCreateBatchBodyNumbers0(s.callee))
	numbers := []trunkline.CreateBatchBody_Numbers_Item{number}
	created := must(s.client.CreateBatchWithResponse(s.ctx, nil, trunkline.CreateBatchBody{Name: "go", From: &s.caller, Numbers: &numbers}))
	id := answerOf(created.JSON200, created.Status(), created.Body).Data.BatchId
	read := func() trunkline.Batch {
		batch := must(s.client.GetBatchWithResponse(s.ctx, id, nil))
		return answerOf(batch.JSON200, batch.Status(), batch.Body).Data
	}
	until(read, func(batch trunkline.Batch) bool { return *batch.State == trunkline.BatchStateReady })
	stopped := must(s.client.StopBatchWithResponse(s.ctx, id, trunkline.StopBatchBody{}))
	fmt.Println("batch", id, *answerOf(stopped.JSON200, stopped.Status(), stopped.Body).Data.State)
}

func (s story) detach() {
	var directions trunkline.DetachNumberBody_Directions
	noError(directions.FromDirection(trunkline.DirectionInbound))
	detached := must(s.client.DetachNumberWithResponse(s.ctx, nil, trunkline.DetachNumberBody{
		PhoneNumber: s.number,
		Directions:  directions,
		Service:     trunkline.DetachNumberBodyServiceSip,
	}))
	answerOf(detached.JSON200, detached.Status(), detached.Body)
	left := "none"
	if configuration := s.configuration(); configuration != nil {
		left = configuration.PhoneNumber
	}
	fmt.Println("detach", left)
}

func main() {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("authorization", os.Getenv("API_KEY"))
		return nil
	}
	client := must(trunkline.NewClientWithResponses(os.Getenv("API_URL"), trunkline.WithRequestEditorFn(authorize)))
	s := story{context.Background(), client, os.Getenv("NUMBER"), os.Getenv("CALLER"), os.Getenv("CALLEE")}
	s.attach()
	agentId := s.createAgent()
	s.createTool()
	s.placeCall(agentId)
	s.createBatch()
	s.detach()
}
