"""HELIOS as a retriever of LangChain, LlamaIndex and Haystack, over an engine or a server; an extra each."""
