//! What an answer comes down to, read back from what was told.

use super::stream::events;
use super::*;
use serde_json::Value;

/// What was said, whichever way it was told.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Gist {
    reasoning: String,
    content: String,
    /// Name, id and arguments.
    calls: Vec<[String; 3]>,
    finish: String,
    tokens: Vec<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Gist {
    /// Of a choice of completions, whose message or text is at `said`, or is a delta of it.
    fn hear_choice(&mut self, choice: &Value, said: &Value) {
        self.content += &text(&said["content"]);
        self.content += &text(&choice["text"]);
        self.reasoning += &text(&said["reasoning_content"]);
        for call in list(&said["tool_calls"]) {
            if call["id"].is_string() {
                self.calls.push([text(&call["function"]["name"]), text(&call["id"]), String::new()]);
            }
            let [.., arguments] = self.calls.last_mut().unwrap();
            *arguments += &text(&call["function"]["arguments"]);
        }
        self.finish += &text(&choice["finish_reason"]);
        let logprobs = &choice["logprobs"];
        self.tokens.extend(list(&logprobs["content"]).iter().map(|token| text(&token["token"])));
        self.tokens.extend(list(&logprobs["tokens"]).iter().map(text));
    }

    fn hear_item(&mut self, item: &Value) {
        let content: String = list(&item["content"]).iter().map(|part| text(&part["text"])).collect();
        match item["type"].as_str() {
            Some("reasoning") => self.reasoning += &content,
            Some("message") => self.content += &content,
            _ => self.calls.push([&item["name"], &item["call_id"], &item["arguments"]].map(text)),
        }
    }

    fn hear_block(&mut self, block: &Value) {
        self.reasoning += &text(&block["thinking"]);
        self.content += &text(&block["text"]);
        if block["type"] == "tool_use" {
            self.calls.push([text(&block["name"]), text(&block["id"]), block["input"].to_string()]);
        }
    }

    pub(super) fn of_whole(dialect: Dialect, whole: &Value) -> Self {
        let mut gist = Self::default();
        match dialect {
            Dialect::Chat | Dialect::Completions => {
                let choice = &whole["choices"][0];
                gist.hear_choice(choice, &choice["message"]);
            }
            Dialect::Responses => {
                list(&whole["output"]).iter().for_each(|item| gist.hear_item(item));
                gist.finish = text(&whole["status"]);
            }
            Dialect::Messages => {
                list(&whole["content"]).iter().for_each(|block| gist.hear_block(block));
                gist.finish = text(&whole["stop_reason"]);
            }
        }
        gist
    }

    pub(super) fn of_stream(dialect: Dialect, stream: &str) -> Self {
        let mut gist = Self::default();
        for (_, event) in events(stream) {
            match event["type"].as_str() {
                None => gist.hear_choice(&event["choices"][0], &event["choices"][0]["delta"]),
                Some("response.reasoning_text.delta") => gist.reasoning += &text(&event["delta"]),
                Some("response.output_text.delta") => gist.content += &text(&event["delta"]),
                Some("response.output_item.added") if event["item"]["type"] == "function_call" => {
                    gist.hear_item(&event["item"]);
                }
                Some("response.function_call_arguments.delta") => {
                    gist.calls.last_mut().unwrap()[2] += &text(&event["delta"]);
                }
                Some("response.completed" | "response.incomplete") => {
                    gist.finish = text(&event["response"]["status"]);
                    assert_eq!(Self::of_whole(dialect, &event["response"]), gist);
                }
                Some("content_block_start") => {
                    gist.hear_block(&event["content_block"]);
                    gist.calls.last_mut().into_iter().for_each(|[.., input]| {
                        if input == "{}" {
                            input.clear();
                        }
                    });
                }
                Some("content_block_delta") => {
                    gist.reasoning += &text(&event["delta"]["thinking"]);
                    gist.content += &text(&event["delta"]["text"]);
                    if event["delta"]["partial_json"].is_string() {
                        gist.calls.last_mut().unwrap()[2] += &text(&event["delta"]["partial_json"]);
                    }
                }
                Some("message_delta") => gist.finish = text(&event["delta"]["stop_reason"]),
                Some(_) => {}
            }
        }
        gist
    }
}
