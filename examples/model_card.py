"""A model is published with a card: what does the card say about the features it relies on?

skops writes model cards. A section of subgrove says how much each feature matters beyond the others, and how surely.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.ensemble import RandomForestRegressor

import subgrove as sg
from subgrove.sklearn import ImportanceDisplay

try:
    from skops.card import Card
except ImportError:
    sys.exit("This example needs skops: pip install skops")

SMALL = "--small" in sys.argv  # the size that CI runs

# %%
# A model of three columns of the bike data, and its conditional importance on held-out days.
columns = ["temp", "hum", "wind"]
train, test = sg.datasets.bike(split=0.7, random_state=1)
model = RandomForestRegressor(30 if SMALL else 200, random_state=1).fit(train.X[columns], train.y)
imp = sg.importance(
    model, test.X[columns], test.y, train=train.X[columns], n_repeats=5 if SMALL else 20, random_state=1
)

# %%
# The card gets a table and a sentence for each feature; `explain` writes the sentences.
table = imp.overall[["feature", "estimate", "conf_low", "conf_high"]].round(1)
sentences = "\n".join(f"- {' '.join(imp.explain(name).sentences)}" for name in columns)
card = Card(model, model_diagram=False, template=None)
card.add(**{"Feature importance": f"Increase of the absolute error, in bikes a day.\n\n{sentences}"})
card.add_table(**{"Table of importance": table})

# %%
# The figure is a file beside the card.
display = ImportanceDisplay.from_result(imp)
with tempfile.TemporaryDirectory() as folder:
    display.figure_.savefig(Path(folder) / "importance.png")
    card.add_plot(**{"Figure of importance": "importance.png"})
    card.save(Path(folder) / "README.md")
    written = (Path(folder) / "README.md").read_text(encoding="utf-8")
print(written.partition("# Figure")[0])
assert all(name in written for name in columns)
plt.show()
