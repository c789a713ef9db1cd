"""A CSV of many made-up invoices, to see what a large table costs: `python benchmarks/big_table.py 1200000 big.csv`."""

import random
import sys
from pathlib import Path

NAMES = (
    "alder amber basin birch cedar cliff cobalt copper coral crane delta dune ember falcon fern flint garnet glade "
    "granite harbour hazel heron indigo ivory jade juniper kestrel lagoon larch linden lupin maple marble meadow mesa "
    "mistral nickel ochre olive onyx opal orchid osprey pebble pine plover poplar quartz raven reed ridge river rowan "
    "saffron sage sienna slate spruce sterling swift teal thistle topaz tundra umber valley violet walnut willow wren"
)
TOWNS = "Leeds Lyon Porto Turin Gdansk Bergen Graz Bilbao Ghent Malmo Cork Basel Brno Split Varna Tartu"
STATES = ("open", "paid", "late", "cancelled")


def main(rows: int, out: Path) -> None:
    """Write `rows` rows of eight columns, the same for the same number."""
    chance, words, cities = random.Random(7), NAMES.split(), TOWNS.split()
    with out.open("w", encoding="utf-8") as file:
        file.write("Invoice,Customer,City,Issued,Amount,Quantity,Status,Note\n")
        for row in range(rows):
            day = f"20{chance.randint(10, 25)}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}"
            customer = f"{chance.choice(words).title()} {chance.choice(words)} Ltd"
            note = " ".join(chance.choice(words) for _ in range(3))
            amount, quantity = f"{chance.random() * 5000:.2f}", chance.randint(1, 500)
            line = (f"INV-{row:07d}", customer, chance.choice(cities), day, amount, str(quantity),
                    chance.choice(STATES), note)  # fmt: skip
            file.write(",".join(line) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
