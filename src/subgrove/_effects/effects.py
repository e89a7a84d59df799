"""`Effects`: the curves of several features, from predictions that are made together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from subgrove._core.text import quote
from subgrove._data.from_containers import names_and_rows
from subgrove._data.table import read_once
from subgrove._effects.effect import Kind, effects_in_memory
from subgrove._effects.plan import EffectSpec
from subgrove._effects.result import Effect
from subgrove._scale import is_large
from subgrove._subgroups import Subgroups
from subgrove.exceptions import ParameterError


class Effects(Mapping[str, Effect]):
    """Effects of several features, by feature, as returned by `Effects.compute`.

    Parameters
    ----------
    effects : mapping
        Feature -> its effect.

    Examples
    --------
    >>> import subgrove as sg
    >>> X = sg.datasets.bike().X
    >>> found = sg.Effects.compute(lambda X: 100 * X["temp"] - 2 * X["hum"], X, features=["temp", "hum"])
    >>> list(found), found["hum"].kind
    (['temp', 'hum'], 'pdp')
    """

    def __init__(self, effects: Mapping[str, Effect]) -> None:
        self._effects = dict(effects)

    @classmethod
    def compute(
        cls,
        model: Any,
        X: Any,
        *,
        features: Sequence[str] | None = None,
        kind: Kind = "pdp",
        subgroups: Subgroups | Literal["auto"] | None = "auto",
        interactions: bool | int = False,
        grid_resolution: int = 20,
        output: Any = None,
        response_method: str | None = None,
        sample_weight: Any = None,
        n_jobs: int | None = None,
    ) -> Effects:
        """Compute the curves of several features, as `effect` does for one.

        For tree ensembles, one pass over the trees serves all features, and 256 rows are predicted for all of them
        together (a few more if 256 is not a multiple of the number of features); they are counted in the first effect.

        Parameters
        ----------
        model : object with predict or predict_proba, or function
            A fitted model, or a function of a table.
        X : pandas or polars frame, pyarrow table or 2-d array
            Rows to average over.
        features : list of str, optional
            The features; all columns by default.
        kind, subgroups, interactions, grid_resolution, output, response_method, sample_weight, n_jobs
            As in `effect`; `subgroups` is "auto", None or a result of `find_subgroups` with all features.

        Returns
        -------
        Effects
            A mapping from feature to `Effect`.
        """
        if is_large(X):
            raise ParameterError("X must be a table in memory. For large data, call effect for each feature.")
        names, _ = names_and_rows(X)
        if isinstance(features, str) or (features is not None and not len(features)):
            raise ParameterError(f"features must be a list of columns; got {features!r}.")
        wanted = [*names] if features is None else [str(name) for name in features]
        if unknown := [name for name in wanted if name not in names]:
            raise ParameterError(f"features has {quote(unknown)}, but X has the columns {quote(names[:30])}.")
        options = output, response_method, n_jobs
        specs = [EffectSpec.of(each, kind, subgroups, interactions, None, grid_resolution, *options) for each in wanted]
        with read_once(X):
            specs = [spec.with_subgroups(X, sample_weight) for spec in specs]
            effects = effects_in_memory(model, X, sample_weight, specs)
        return cls(dict(zip(wanted, effects, strict=True)))

    def __getitem__(self, feature: str) -> Effect:
        return self._effects[feature]

    def __iter__(self) -> Iterator[str]:
        return iter(self._effects)

    def __len__(self) -> int:
        return len(self._effects)

    def __repr__(self) -> str:
        return f"<Effects of {len(self)} feature{'s' * (len(self) != 1)}>"
