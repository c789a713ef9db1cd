"""The token store: chunks joined in order, read back by node, damage told."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from helios.errors import IndexFormatError
from helios.index.tokens import TokenStore

LENGTHS = [3, 1, 7, 2, 5]


def folder(store: TokenStore) -> Path:
    return Path(store.codes.base.filename).parent


@pytest.mark.parametrize("bits", [1, 2])
def test_nodes_come_back_whatever_the_chunks(make_store, unit_vectors, bits):
    vectors = unit_vectors(np.random.default_rng(4), sum(LENGTHS))
    stores = [make_store(LENGTHS, bits=bits, seed=4, chunk=chunk) for chunk in (1, 2, 100)]
    for store in stores:
        assert (store.node_count, store.token_count) == (5, 18)
        assert store.encoder["name"] == "random"
        start = 0
        for node, length in enumerate(LENGTHS):
            decoded = store.vectors(node)
            assert decoded.shape == (length, 32)
            assert np.all(np.einsum("td,td->t", decoded, vectors[start : start + length]) > 0.5)
            start += length
    for path in folder(stores[0]).glob("*.npy"):
        assert path.read_bytes() == (folder(stores[2]) / path.name).read_bytes(), path.name


def test_no_nodes(make_store):
    store = make_store([])
    assert (store.node_count, store.token_count) == (0, 0)


@pytest.mark.parametrize("name", ["tokens.json", "codes.npy", "offsets.npy", "residuals.npy", "rotation.npy"])
@pytest.mark.parametrize("damage", ["missing", "garbage"])
def test_damage_names_the_folder(make_store, name, damage):
    directory = folder(make_store(LENGTHS))
    codebook = directory.parent / "codebook"
    damaged = codebook if name == "rotation.npy" else directory
    if damage == "missing":
        (damaged / name).unlink()
    else:
        (damaged / name).write_bytes(b"{}")
    with pytest.raises(IndexFormatError, match=rf"{damaged}/{re.escape(name)}: (missing|damaged|cannot be read)"):
        TokenStore(directory, codebook=codebook)


def test_stores_of_one_codebook_share_it(make_store):
    directory = folder(make_store(LENGTHS))
    opened: dict = {}
    one, other = (TokenStore(directory, codebook=directory.parent / "codebook", opened=opened) for _ in range(2))
    assert one.quantiser is other.quantiser
    assert list(opened) == [directory.parent / "codebook"]


def test_arrays_that_do_not_belong_together(make_store):
    directory = folder(make_store(LENGTHS))
    np.save(directory / "offsets.npy", np.array([0, 3], np.int64))
    with pytest.raises(IndexFormatError, match=r"offsets\.npy: damaged: offsets must rise from 0 to 18"):
        TokenStore(directory, codebook=directory.parent / "codebook")


@pytest.mark.parametrize(("name", "values"), [("offsets", [0, 9, 8, 18]), ("codes", [16] * 18), ("scales", [0] * 17)])
def test_what_kernels_cannot_follow_is_refused(make_store, name, values):
    directory = folder(make_store(LENGTHS))
    kind = np.load(directory / f"{name}.npy").dtype
    np.save(directory / f"{name}.npy", np.array(values, kind))
    with pytest.raises(IndexFormatError, match=rf"{name}\.npy: damaged"):
        TokenStore(directory, codebook=directory.parent / "codebook")


def test_the_description_says_what_is_inside(make_store):
    description = json.loads((folder(make_store(LENGTHS, bits=1)) / "tokens.json").read_text())
    assert description["nodes"] == 5
    assert description["tokens"] == 18
    assert (description["dimension"], description["bits"]) == (32, 1)
