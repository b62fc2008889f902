"""The engine as its users have it: request bodies in, answers out, by way of render, batch and parse."""

import json
import pathlib
import subprocess
import tempfile


class Program:
    """`deepinfer` on one model directory."""

    def __init__(self, program, model, threads=None):
        self.program = str(program)
        self.model = str(model)
        self.options = ["--log-level", "warning"] + (["--threads", str(threads)] if threads else [])

    def run(self, *arguments, lines=()):
        """Lines of standard output as objects. Exit code 2 says that some line was refused; its answer says why."""
        done = subprocess.run(
            [self.program, *arguments], input="".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(),
            capture_output=True, check=False)
        if done.returncode not in (0, 2):
            raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.decode().strip()}")
        return [json.loads(line) for line in done.stdout.decode().split("\n") if line]

    def render(self, bodies):
        """Token ids of each Chat Completions body's prompt."""
        answers = self.run("render", "--model", self.model, "--api", "chat", lines=bodies)
        for body, answer in zip(bodies, answers):
            if "error" in answer:
                raise ValueError(f"{answer['error']['message']}: {json.dumps(body)[:300]}")
        return [answer["token_ids"] for answer in answers]

    def generate(self, prompts, max_tokens, **sampling):
        """Completions of prompts given as ids; `sampling` holds temperature, seed, n, ..."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.jsonl"), pathlib.Path(folder, "out.jsonl")
            with source.open("w") as file:
                for i, ids in enumerate(prompts):
                    file.write(json.dumps({"id": i, "tokens": ids, "max_tokens": max_tokens, **sampling}) + "\n")
            self.run("batch", "--model", self.model, "--input", str(source), "--output", str(target), *self.options)
            return [json.loads(line) for line in target.read_text().split("\n") if line]

    def chat(self, bodies, max_tokens, **sampling):
        """The answer message of each body: {"content", "reasoning_content"?, "tool_calls"?} and its finish reason."""
        completions = self.generate(self.render(bodies), max_tokens, **sampling)
        outputs = [{"request": body, "ids": [completion["token_ids"]], "finish": completion["finish_reason"]}
                   for body, completion in zip(bodies, completions)]
        answers = self.run("parse", "--model", self.model, "--api", "chat", lines=outputs)
        return [answer["body"]["choices"][0] for answer in answers]

    def bits_per_byte(self, texts):
        """Mean over all bytes of `texts` (the begin token in front is not predicted)."""
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.jsonl"), pathlib.Path(folder, "out.jsonl")
            source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
            self.run("score", "--model", self.model, "--input", str(source), "--output", str(target), *self.options)
            nll = sum(json.loads(line)["nll"] for line in target.read_text().split("\n") if line)
        return nll / 0.6931471805599453 / sum(len(text.encode()) for text in texts)
