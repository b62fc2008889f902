"""The model authors' own converter, the PyPI package deepseek-recipe, as an oracle.

`render` answers as `deepinfer render` does, `parse` as `deepinfer parse`; a refused body gives {"refused": message}.
"""

import json

import deepseek_recipe as package

MODEL = "m"
REQUESTS = {
    "chat": package.ChatCompletionRequest,
    "messages": package.MessagesRequest,
    "responses": package.ResponsesRequest,
}
BODIES = {
    "chat": package.ChatCompletionResponse,
    "messages": package.MessagesResponse,
    "responses": package.ResponsesResponse,
}
FINISHES = {
    "stop": package.InferenceFinishReason.Stop,
    "length": package.InferenceFinishReason.Length,
    "content_filter": package.InferenceFinishReason.ContentFilter,
}
STARTS = {
    "ReasoningStart": "reasoning",
    "ReasoningContinuation": "reasoning_continued",
    "ContentContinuation": "answer_continued",
}
OPTIONS = package.ConversionOptions().with_model_alias(MODEL, package.ModelVersion.DeepseekV41Flash)


def refusal(error):
    """A body that is no request at all raises ValueError, which has no status."""
    if isinstance(error, package.ConversionError):
        return {"refused": str(error), "status": error.status_code}
    return {"refused": str(error), "status": 400}


def start_of(options):
    if options.starts_in_tool_calls:
        return "calls"
    stage = options.thinking_initial_stage
    return "answer" if stage is None else STARTS[str(stage).rsplit(".", 1)[-1]]


def parts_of(prompt):
    parts, shown = [], 0
    for start, end in prompt.special_ranges:
        if start > shown:
            parts.append({"text": prompt.prompt[shown:start]})
        parts.append({"special": prompt.prompt[start:end]})
        shown = end
    if shown < len(prompt.prompt):
        parts.append({"text": prompt.prompt[shown:]})
    return parts


class Recipe:
    def __init__(self, model_dir):
        self.tokenizer = package.Tokenizer.from_file(str(model_dir / "tokenizer.json"))
        self.encoding = package.DeepseekV41Encoding().with_tokenizer(self.tokenizer)

    def render(self, api, body):
        try:
            request = REQUESTS[api](body).convert(OPTIONS)
        except (package.ConversionError, ValueError) as error:
            return refusal(error)
        prompt = self.encoding.render_conversation(request.conversation)
        parsing, inference = request.parsing_options, request.inference_options
        constraint = inference.output_constraint
        return {
            "text": prompt.prompt,
            "parts": parts_of(prompt),
            "token_ids": self.encoding.encode(request.conversation),
            "parse": {
                "start": start_of(parsing),
                "tools": parsing.parse_tool_calls,
                "json": parsing.parse_json_output,
                "stop": list(parsing.stop_sequences),
            },
            "stream": request.stream,
            "max_tokens": inference.max_tokens,
            "images": [
                {"source": image.data_url or image.url, "detail": image.detail} for image in prompt.image_sources
            ],
            "constraint": constraint and {"kind": constraint.kind, "schema": constraint.schema},
        }

    def parse(self, api, body, chunks, finish):
        """`chunks`: texts, or lists of ids."""
        try:
            processor = self.processor(api, body)
        except (package.ConversionError, ValueError) as error:
            return refusal(error)
        response = BODIES[api]("ID", MODEL, 0, 0, 0)
        inputs = [
            package.InferenceChunk.text(chunk, 1) if isinstance(chunk, str) else package.InferenceChunk.tokens(chunk)
            for chunk in chunks
        ]
        groups = [self.push(processor, package.InferenceChunk.ready(), response)]
        groups += [self.push(processor, chunk, response) for chunk in inputs]
        last = []
        if finish in FINISHES:
            last = self.push(processor, package.InferenceChunk.finish(FINISHES[finish]), response)
        if not processor.finished:
            last += self.taken(processor.finish(), response)
        groups.append(last)
        return {"body": json.loads(response.to_json()), "events": groups}

    def processor(self, api, body):
        request = REQUESTS[api](body)
        namespaces = request.namespace_tool_map(OPTIONS) if api == "responses" else {}
        converted = request.convert(OPTIONS)
        generator = REQUESTS[api].chunk_generator(converted, "ID", MODEL)
        if api == "responses":
            generator = generator.with_namespace_tool_map(namespaces)
        return package.StreamProcessor(generator, converted.parsing_options, self.tokenizer)

    def push(self, processor, chunk, response):
        return [] if processor.finished else self.taken(processor.push(chunk), response)

    @staticmethod
    def taken(events, response):
        """The events as JSON, after the body has taken them in."""
        group = []
        for event in events:
            group.append(json.loads(event.to_json()))
            response.accumulate(event)
        return group
