"""A language model for tests: two layers of random weights, served by llama.cpp over HTTP on loopback.

What it says is nonsense, but a reply that is constrained to a schema is valid JSON of that schema.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

WIDTH, LAYERS, HEADS, HIDDEN = 32, 2, 2, 64
CONTEXT = 32768
SLOTS = 4
SPECIAL, NORMAL, CONTROL, BYTE = ("<unk>", "<s>", "</s>"), 1, 3, 6
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write_tiny_model(path: Path) -> None:
    """Write a llama of random weights (seed 7) whose tokens are characters and bytes."""
    from gguf import GGUFWriter

    characters = ["\u2581", *map(chr, range(33, 127))]
    tokens = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256)), *characters]
    types = [2, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(characters)]
    writer = GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    for name, weight in _weights(len(tokens)):
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _weights(vocabulary: int) -> Iterator[tuple[str, np.ndarray]]:
    generator = np.random.default_rng(7)

    def normal(*shape: int) -> np.ndarray:
        return (generator.standard_normal(shape) * 0.3).astype(np.float32)

    yield "token_embd.weight", normal(vocabulary, WIDTH)
    yield "output_norm.weight", np.ones(WIDTH, np.float32)
    yield "output.weight", normal(vocabulary, WIDTH)
    for layer in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{norm}.weight", np.ones(WIDTH, np.float32)
        for square in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{square}.weight", normal(WIDTH, WIDTH)
        for wide in ("ffn_gate", "ffn_up"):
            yield f"blk.{layer}.{wide}.weight", normal(HIDDEN, WIDTH)
        yield f"blk.{layer}.ffn_down.weight", normal(WIDTH, HIDDEN)


@contextmanager
def serve(path: Path) -> Iterator[str]:
    """Serve a model on a free port of loopback; the base URL for OpenAI clients."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {"tiny"}
    params.n_ctx = CONTEXT * SLOTS
    params.n_parallel = SLOTS
    params.port = 0
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server
