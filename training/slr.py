"""Fine-tuning a causal language model for star-based refinement (HELIOS B.4): LoRA through peft, loss on replies.

    helios train instructions INDEX --examples runs/examples --out slr.jsonl
    helios train slr --recipe slr --out runs/slr instructions=slr.jsonl model=Llama-3.1-8B-Instruct

The run's folder gets `adapter/`, in peft's own format, which vLLM and transformers load beside the base model.
"""

import logging
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from helios.config import Section
from helios.errors import ModelError
from helios.index.durable import sha256_file
from helios.llm import Message
from helios.models.card import ModelCard, data_file, write_card
from training.checkpoints import load_best
from training.distributed import leads
from training.errors import TrainingError
from training.holdout import is_held_out
from training.log import LogRow
from training.recipes import Role
from training.settings import TrainSettings
from training.slr_lessons import read_instructions
from training.trainer import ParameterGroup, train

log = logging.getLogger(__name__)

IGNORED = -100
"""Label of a token that is not learned."""
ADAPTER = "adapter"
WEIGHTS = "adapter_model.safetensors"


class SlrSettings(Section):
    """What is trained, on what, and how; defaults after HELIOS B.4 where it gives them."""

    model: Path
    """Folder of the causal language model, as transformers saves it."""
    instructions: Path
    """File that `helios train instructions` wrote."""
    train: TrainSettings = TrainSettings(
        epochs=1,
        learning_rate=2e-4,
        schedule="linear",
        warmup=0.03,
        accumulate=32,
        lower_is_better=True,
        best_by="loss",
    )
    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0.0)
    dropout: float = Field(default=0.05, ge=0.0, lt=1.0)
    targets: str | tuple[str, ...] = "all-linear"
    """Names of the layers that are adapted."""
    batch: int = Field(default=4, ge=1)
    """Conversations that go through the model together; `train.accumulate` of them make a step."""
    max_tokens: int = Field(default=4096, ge=32)
    """Longer conversations are left out."""
    held_out: float = Field(default=0.05, ge=0.0, lt=1.0)
    """Share of the tables whose conversations choose the checkpoint."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A conversation as token numbers, and where its reply begins."""

    ids: tuple[int, ...]
    reply: int
    table_id: str


def train_slr(
    settings: SlrSettings, out: Path, *, device: torch.device, on_log: Callable[[LogRow], None]
) -> Mapping[str, float]:
    """Train and write the best adapter; returns the held-out loss and accuracy."""
    recipe = SlrRecipe(settings, device)
    data = data_file(settings.instructions, records=len(recipe.trained) + len(recipe.held))
    base = {path.name: sha256_file(path) for path in sorted(settings.model.glob("*.safetensors"))}
    description = {"slr": settings.model_dump(mode="json", exclude={"train"}), "data": data.sha256, "base": base}
    result = train(recipe, settings.train, out, device=device, description=description, on_log=on_log)
    scores = result.scores
    if result.best is not None:
        progress, state = load_best(out)
        recipe.load_state_dict(state)
        scores = progress.scores
    if not leads():
        return scores
    recipe.model.save_pretrained(out / ADAPTER)
    recipe.tokenizer.save_pretrained(out / ADAPTER)
    card = ModelCard(
        name="star-based refinement, LoRA",
        role="refiner (language model)",
        summary="Adapter for the three tasks of star-based refinement: detection, aggregation, verification.",
        base=f"{settings.model.name} ({', '.join(f'{name} {digest[:12]}' for name, digest in base.items())})",
        data=(data,),
        settings=settings.model_dump(mode="json", exclude={"model", "instructions"}),
        scores={f"held-out train {name}": value for name, value in scores.items()},
        limits="Replies follow from gold edges of train questions, not from a person's judgement.",
        seconds=result.seconds,
    )
    write_card(out / ADAPTER, card, weights=[WEIGHTS])
    return scores


class SlrRecipe:
    """The adapted model and its conversations, for training.trainer."""

    def __init__(self, settings: SlrSettings, device: torch.device) -> None:
        self.settings = settings
        self.device = device
        torch.manual_seed(settings.train.seed)
        self.tokenizer, base = _load(settings.model)
        self.model = _adapt(base, settings).to(device)
        self.trained: list[Tokens] = []
        self.held: list[Tokens] = []
        self._read()

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        return [ParameterGroup([p for p in self.model.parameters() if p.requires_grad])]

    def batches(self, epoch: int, *, seed: int) -> Sequence[Sequence[int]]:
        """Conversations of like length together, in random order."""
        chance = random.Random(f"{seed} {epoch}")
        noise = {number: chance.random() for number in range(len(self.trained))}
        order = sorted(noise, key=lambda number: (round(math.log2(len(self.trained[number].ids)) * 4), noise[number]))
        groups = [order[start : start + self.settings.batch] for start in range(0, len(order), self.settings.batch)]
        chance.shuffle(groups)
        return groups

    def size(self, batch: Sequence[int]) -> int:
        return len(batch)

    def step(self, batch: Sequence[int]) -> Tensor:
        self.model.train()
        loss_B, _ = self._losses([self.trained[number] for number in batch])
        return loss_B.mean()

    def evaluate(self) -> Mapping[str, float]:
        """Loss of a reply's token, and the share of replies that the model would give word for word."""
        if not self.held:
            return {}
        self.model.eval()
        losses, right = [], []
        for start in range(0, len(self.held), self.settings.batch):
            loss_B, right_B = self._losses(self.held[start : start + self.settings.batch])
            losses += loss_B.tolist()
            right += right_B.tolist()
        return {"loss": sum(losses) / len(losses), "exact replies": sum(right) / len(right)}

    def state_dict(self) -> Mapping[str, Any]:
        from peft import get_peft_model_state_dict

        return {name: tensor.detach().cpu() for name, tensor in get_peft_model_state_dict(self.model).items()}

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        from peft import set_peft_model_state_dict

        set_peft_model_state_dict(self.model, dict(state))

    def _losses(self, conversations: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Mean loss over each reply's tokens (B), and whether every token of it is the likeliest (B)."""
        length = max(len(tokens.ids) for tokens in conversations)
        ids_BL = torch.zeros(len(conversations), length, dtype=torch.long)
        mask_BL = torch.zeros_like(ids_BL)
        labels_BL = torch.full_like(ids_BL, IGNORED)
        for row, tokens in enumerate(conversations):
            count = len(tokens.ids)
            ids_BL[row, :count] = torch.tensor(tokens.ids)
            mask_BL[row, :count] = 1
            labels_BL[row, tokens.reply : count] = ids_BL[row, tokens.reply : count]
        output = self.model(input_ids=ids_BL.to(self.device), attention_mask=mask_BL.to(self.device))
        logits_BLV = output.logits[:, :-1].float()
        wanted_BL = labels_BL[:, 1:].to(self.device)
        kept_BL = wanted_BL != IGNORED
        loss_BL = F.cross_entropy(logits_BLV.transpose(1, 2), wanted_BL, ignore_index=IGNORED, reduction="none")
        right_BL = (logits_BLV.argmax(-1) == wanted_BL) | ~kept_BL
        return loss_BL.sum(1) / kept_BL.sum(1), right_BL.all(1).float()

    def _read(self) -> None:
        settings = self.settings
        too_long = 0
        for lesson in read_instructions(settings.instructions):
            tokens = _tokens(self.tokenizer, lesson.messages, lesson.table_id)
            if len(tokens.ids) > settings.max_tokens:
                too_long += 1
                continue
            is_held = is_held_out(lesson.table_id, share=settings.held_out, seed=settings.train.seed)
            (self.held if is_held else self.trained).append(tokens)
        if too_long:
            log.warning("%d conversations are longer than %d tokens: left out", too_long, settings.max_tokens)
        if not self.trained:
            raise TrainingError(f"{settings.instructions}: no conversation of {settings.max_tokens} tokens or less")


def _tokens(tokenizer: Any, messages: Sequence[Message], table_id: str) -> Tokens:
    """The conversation in the model's own chat form; a reply ends with the model's end token."""
    turns = [{"role": message.role, "content": message.content} for message in messages]
    prompt = _chat(tokenizer, turns[:-1], is_open=True)
    whole = _chat(tokenizer, turns, is_open=False)
    if not whole.startswith(prompt):  # a template that rewrites earlier turns
        whole = prompt + turns[-1]["content"]
    reply = whole[len(prompt) :].rstrip()
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    answer = tokenizer(reply, add_special_tokens=False)["input_ids"]
    end = tokenizer.eos_token_id
    if end is not None and (not answer or answer[-1] != end) and not reply.endswith("<|eot_id|>"):
        answer = [*answer, end]
    return Tokens((*ids, *answer), len(ids), table_id)


def _chat(tokenizer: Any, turns: Sequence[Mapping[str, str]], *, is_open: bool) -> str:
    if tokenizer.chat_template:
        text: str = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=is_open)
        return text
    text = "".join(f"{turn['role']}: {turn['content']}\n" for turn in turns)
    return f"{text}assistant: " if is_open else text


def _load(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and model; ModelError for a folder that is neither."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder}: no config.json; expected the folder of a causal language model")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForCausalLM.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: not a causal language model ({error})") from error
    return tokenizer, model


def _adapt(model: Any, settings: SlrSettings) -> Any:
    from peft import LoraConfig, get_peft_model

    targets = settings.targets if isinstance(settings.targets, str) else list(settings.targets)
    return get_peft_model(
        model,
        LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=targets,
            task_type="CAUSAL_LM",
        ),
    )


ROLE = Role(SlrSettings, train_slr)
