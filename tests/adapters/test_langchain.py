"""LangChain's own conformance tests of retrievers, over the sample index."""

import pytest

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")
standard = pytest.importorskip(
    "langchain_tests.integration_tests.retrievers", reason="langchain-tests is not installed"
)

from helios.adapters.langchain import HeliosRetriever  # noqa: E402


@pytest.mark.anyio
class TestHeliosRetriever(standard.RetrieversIntegrationTests):
    @pytest.fixture
    def anyio_backend(self):
        return "asyncio"

    @pytest.fixture(autouse=True)
    def opened(self, engine):
        self.engine = engine

    @property
    def retriever_constructor(self):
        return HeliosRetriever

    @property
    def retriever_constructor_params(self):
        return {"source": self.engine, "k": 5}

    @property
    def retriever_query_example(self):
        return "Which is the longest river of Europe?"

    @pytest.fixture
    def retriever(self, opened):
        return self.retriever_constructor(**self.retriever_constructor_params)

    def test_metadata_lead_to_the_place(self, retriever):
        first = retriever.invoke(self.retriever_query_example)[0]
        assert (first.metadata["table_id"], first.metadata["row"], first.metadata["passage_id"]) == (
            "european-rivers", 0, "volga"
        )  # fmt: skip
        assert "Volga" in first.page_content
