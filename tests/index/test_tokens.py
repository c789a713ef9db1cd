"""The token store: chunks joined in order, read back by node, damage told."""

import json
from pathlib import Path

import numpy as np
import pytest

from helios.errors import IndexFormatError
from helios.index.tokens import MIN_WEIGHT, TokenStore

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


def test_rare_tokens_weigh_more_and_the_mean_is_one(make_store):
    store = make_store([4] * 40)
    ids = np.argsort(store.frequencies)[[0, 20, -1]].astype(np.int32)
    weights = store.token_weights(ids)
    assert weights.dtype == np.float32
    assert weights.mean() == pytest.approx(1.0)
    assert weights[0] > weights[1] > weights[2] > 0


def test_a_token_of_every_node_still_counts(make_store):
    store = make_store([1])
    held = np.flatnonzero(store.frequencies).astype(np.int32)
    never = np.flatnonzero(store.frequencies == 0)[:1].astype(np.int32)
    rarity = np.array([MIN_WEIGHT, np.log(2.0) + MIN_WEIGHT])
    weights = store.token_weights(np.concatenate([held, never]))
    np.testing.assert_allclose(weights, rarity / rarity.mean(), rtol=1e-5)


def test_no_nodes(make_store):
    store = make_store([])
    assert (store.node_count, store.token_count) == (0, 0)
    assert store.token_weights(np.array([3, 4], np.int32)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["tokens.json", "codes.npy", "offsets.npy", "residuals.npy", "rotation.npy"])
@pytest.mark.parametrize("damage", ["missing", "garbage"])
def test_damage_names_the_folder(make_store, name, damage):
    directory = folder(make_store(LENGTHS))
    if damage == "missing":
        (directory / name).unlink()
    else:
        (directory / name).write_bytes(b"{}")
    with pytest.raises(IndexFormatError, match=f"{directory}: no readable"):
        TokenStore(directory)


def test_arrays_that_do_not_belong_together(make_store):
    directory = folder(make_store(LENGTHS))
    np.save(directory / "offsets.npy", np.array([0, 3], np.int64))
    with pytest.raises(IndexFormatError, match="offsets end at 3, codes hold 18 tokens"):
        TokenStore(directory)


def test_the_description_says_what_is_inside(make_store):
    description = json.loads((folder(make_store(LENGTHS, bits=1)) / "tokens.json").read_text())
    assert description["nodes"] == 5
    assert description["tokens"] == 18
    assert (description["dimension"], description["bits"]) == (32, 1)
