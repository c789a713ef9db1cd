"""Instruction data whose replies fit their schemas, and LoRA on a tiny random Llama: learns, resumes, loads again."""

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from helios.corpus import CorpusStore, CorpusWriter
from helios.errors import ModelError
from helios.models.card import read_card
from helios.types import Passage, Table
from training.cli import app
from training.errors import TrainingError
from training.examples import Example
from training.log import read_log
from training.recipes import load_recipe
from training.slr_lessons import instructions, read_instructions, write_instructions

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} {% if m['role'] == 'assistant' %}</s>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant> {% endif %}"
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusStore:
    folder = tmp_path_factory.mktemp("corpus")
    rows = tuple((f"Tower {n}", str(100 + 13 * n), str(1900 + n)) for n in range(6))
    with CorpusWriter(folder) as writer:
        for number in range(8):
            writer.add(Table(f"t{number}", f"Towers {number}", ("Tower", "Height", "Year built"), rows))
        for number in range(6):
            writer.add(Passage(f"p{number}", f"Architect {number}", f"Architect {number} built towers ."))
    return CorpusStore.open(folder)


def examples() -> list[Example]:
    made = []
    for number in range(8):
        first = 6 * number
        wrong = tuple((first + row, row) for row in range(3)) + ((first + 5, 0), (first + 5, 1))
        for kind, text in (("max", "Who built the highest tower ?"), ("plain", "Who built the tower of 1905 ?")):
            gold = ((first + 5, 5),)
            made.append(Example(f"{kind}{number}", text, f"t{number}", ("x",), gold, wrong, (1.0,) * len(wrong)))
    made.append(Example("unsure", "Who built the second best tower ?", "t0", ("x",), ((2, 2),), (), ()))
    return made


def test_replies_follow_from_the_gold_edges(corpus: CorpusStore) -> None:
    made = list(instructions(examples(), corpus, stars=3))
    replies = {
        (one.task, one.question_id): json.loads(one.messages[-1].content) for one in made if one.question_id[-1] == "3"
    }
    assert replies["detection", "max3"] == {"aggregation": True, "tables": [1]}
    assert replies["detection", "plain3"] == {"aggregation": False, "tables": [1]}
    assert replies["aggregation", "max3"] == {"numbers": [6]}
    assert ("aggregation", "plain3") not in replies
    assert not [one for one in made if one.question_id == "unsure" and one.task == "aggregation"]
    (stars,) = [one for one in made if one.task == "verification" and one.question_id == "max3"]
    reply = json.loads(stars.messages[-1].content)
    row, passage = reply["numbers"]
    assert reply["enough"]
    shown = stars.messages[-2].content
    assert f"[{row}] Row: Tower: Tower 5" in shown
    assert f"[{passage}] Architect 5" in shown
    assert "Architect 0" in shown


def test_a_file_of_instructions_is_read_back(corpus: CorpusStore, tmp_path: Path) -> None:
    made = list(instructions(examples(), corpus))
    path = tmp_path / "slr.jsonl"
    counts = write_instructions(made, path)
    assert sum(counts.values()) == len(made) and set(counts) == {"detection", "aggregation", "verification"}
    assert read_instructions(path) == made
    path.write_text('{"task": "x"}\n')
    with pytest.raises(TrainingError, match=r"slr.jsonl:1: not an instruction"):
        read_instructions(path)
    with pytest.raises(TrainingError, match="cannot read instructions"):
        read_instructions(tmp_path / "absent")


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with two layers of random weights whose tokens are bytes."""
    pytest.importorskip("peft")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("llama")
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<s>", "</s>", *letters])}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token="<s>", eos_token="</s>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=4096, bos_token_id=0, eos_token_id=1,
        initializer_range=0.3,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def lessons(corpus: CorpusStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short conversations only: detections."""
    path = tmp_path_factory.mktemp("lessons") / "slr.jsonl"
    made = [one for one in instructions(examples(), corpus) if one.task == "detection"]
    write_instructions(made, path)
    return path


def test_only_the_reply_is_learned(llama: Path, lessons: Path) -> None:
    from training.slr import SlrRecipe, SlrSettings

    recipe = SlrRecipe(SlrSettings(model=llama, instructions=lessons, held_out=0.0), torch.device("cpu"))
    tokens = recipe.trained[0]
    reply = recipe.tokenizer.decode(tokens.ids[tokens.reply :])
    assert reply.startswith('{"aggregation":') and reply.endswith("</s>")
    assert recipe.tokenizer.decode(tokens.ids[: tokens.reply]).endswith("<assistant> ")


@pytest.mark.slow
def test_training_writes_an_adapter_that_loads_again(llama: Path, lessons: Path, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    arguments = [
        "slr", "--out", str(tmp_path), "--device", "cpu", "--json", f"model={llama}", f"instructions={lessons}",
        "train.epochs=6", "train.learning_rate=0.02", "train.accumulate=1", "train.bf16=off", "held_out=0.3",
        "rank=4", "dropout=0", "batch=4",
    ]  # fmt: skip
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)
    before = next(value for step, *_, name, value in read_log(tmp_path / "log.csv") if (step, name) == (0, "loss"))
    assert 0 < scores["loss"] < before - 0.1
    card = read_card(tmp_path / "adapter", "refiner (language model)")
    assert card.scores["held-out train loss"] == pytest.approx(scores["loss"])
    assert card.data[0].name == "slr.jsonl"
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(llama), tmp_path / "adapter")
    assert any("lora_B" in name and bool(tensor.abs().sum() > 0) for name, tensor in model.named_parameters())


def test_a_folder_without_a_model_is_refused(lessons: Path, tmp_path: Path) -> None:
    from training.slr import SlrRecipe, SlrSettings

    with pytest.raises(ModelError, match="no config.json"):
        SlrRecipe(SlrSettings(model=tmp_path, instructions=lessons), torch.device("cpu"))


def test_the_recipe_needs_a_model_and_instructions() -> None:
    from helios.errors import ConfigError
    from training.slr import SlrSettings

    with pytest.raises(ConfigError, match="model: Field required"):
        load_recipe(SlrSettings, None, ["rank=4"])
