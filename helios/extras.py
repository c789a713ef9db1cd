"""Libraries that come with an extra of the package: which extra, and the command that installs it."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from helios.errors import ModelError

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "client": ("httpx",),
    "documents": ("pdfplumber", "python_calamine", "docx", "pptx"),
    "entities": ("spacy",),
    "eval": ("bm25s", "matplotlib"),
    "flag": ("FlagEmbedding",),
    "haystack": ("haystack",),
    "langchain": ("langchain_core",),
    "llama-index": ("llama_index",),
    "llm": ("openai",),
    "opensearch": ("opensearchpy",),
    "otel": ("opentelemetry",),
    "rerankers": ("sentence_transformers",),
    "serve": ("fastapi", "uvicorn", "mcp", "prometheus_client", "jinja2"),
    "sources": ("ladybug", "neo4j", "psycopg", "pyoxigraph", "rdflib", "pyparsing"),
    "sql": ("sqlalchemy", "pymysql"),
    "torch": ("torch",),
    "train": ("datasets", "lightgbm", "peft", "scipy", "transformers"),
}
"""The extras of pyproject.toml with the modules that their packages bring."""


def extra_of(module: str) -> str | None:
    """The extra that brings a module; None for one that no extra brings."""
    name = module.partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if name in modules), None)


def installation(module: str) -> str:
    """What to type where a module is missing; one of no extra comes with the package itself."""
    extra = extra_of(module)
    return f'pip install "helios-retrieval[{extra}]"' if extra else "pip install helios-retrieval"


def import_library(module: str, *, needed_by: str = "rerank.backend") -> ModuleType:
    """An optional library; ModelError that says what needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise ModelError(f"{needed_by} needs {name}: {installation(name)} ({error})") from error
