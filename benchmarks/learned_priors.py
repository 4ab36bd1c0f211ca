"""Write the hyperparameters of MareNostrum 4, from which small databases start.

For example: python benchmarks/learned_priors.py --data ../shared/data/forge
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import read
from measuring import DATA

import predictor.model.priors
from predictor.model.features import FEATURES, with_io_nodes
from predictor.model.likelihood import most_likely
from predictor.model.priors import Learned, in_units, weak
from predictor.model.system_model import measurements

PLACE = Path(predictor.model.priors.__file__).with_name("learned.json")


def main() -> None:
    """Fit the process to FORGE's measurements, and write its hyperparameters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=DATA / "forge", metavar="FOLDER", help="with FORGE's CSV files"
    )
    there = learned_from(parser.parse_args().data)
    PLACE.write_text(json.dumps(there._asdict(), indent=1) + "\n", encoding="utf-8")


def learned_from(folder: Path) -> Learned:
    """Fit without a regime of large requests, because few systems have one, each at its size."""
    rows, io_nodes, logarithms = measurements(read(folder)["MareNostrum 4"])
    cells = with_io_nodes(rows, io_nodes)
    differing = np.ptp(cells, axis=0) > 0
    names = [name for name, differs in zip(FEATURES, differing, strict=True) if differs]
    prior = partial(weak, names=names)
    return in_units(most_likely(cells[:, differing], logarithms, prior=prior), names)


if __name__ == "__main__":
    main()
