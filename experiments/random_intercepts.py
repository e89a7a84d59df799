"""The random-intercept model of the paper: fidelity by method, with intercepts of data sets and of features in them.

-log MMD ~ method + (1 | data set / feature), fitted by restricted maximum likelihood. Its intervals take differences
between methods to be the same in all data sets but for independent noise. They are not, so a second standard error
stands beside: that of the mean over data sets of the difference in each, which needs no such assumption.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

_Z = 1.959964  # 97.5 % quantile of the normal distribution


def coefficients(results: pd.DataFrame, variants: Sequence[str], reference: str = "perm") -> pd.DataFrame:
    """Mean difference in fidelity from the reference, by variant, with 95 % intervals.

    Parameters
    ----------
    results : frame
        Columns name (of the data set), feature, repetition, variant, fidelity.
    variants : sequence of str
        Those that the model is fitted to, and the order of the table; the reference is among them.
    reference : str
        The variant that others are compared with.
    """
    import statsmodels.formula.api as smf

    used = results[results["variant"].isin(variants) & np.isfinite(results["fidelity"])].copy()
    others = [variant for variant in variants if variant != reference]
    used["column"] = used["name"].astype(str) + "/" + used["feature"].astype(str)  # some are called 1, 2, 3
    for variant in others:
        used[variant] = (used["variant"] == variant).astype(np.float64)
    model = smf.mixedlm(
        "fidelity ~ " + " + ".join(others), used, groups="name", re_formula="1", vc_formula={"feature": "0 + C(column)"}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a variance may lie on its border, which leaves coefficients as they are
        fitted = model.fit(reml=True)
    by_set = _differences(used, others, reference)
    return pd.DataFrame(
        {
            "variant": others,
            "n": [int((used["variant"] == variant).sum()) for variant in others],
            "estimate": [float(fitted.params[variant]) for variant in others],
            "std_error": [float(fitted.bse[variant]) for variant in others],
            "conf_low": [float(fitted.params[variant] - _Z * fitted.bse[variant]) for variant in others],
            "conf_high": [float(fitted.params[variant] + _Z * fitted.bse[variant]) for variant in others],
            "std_error_over_data_sets": by_set[others].sem().to_list(),
        }
    )


def _differences(used: pd.DataFrame, others: list[str], reference: str) -> pd.DataFrame:
    """Mean difference from the reference in each data set."""
    means = used.groupby(["name", "variant"])["fidelity"].mean().unstack("variant")
    return means[others].sub(means[reference], axis=0)
