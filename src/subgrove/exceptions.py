"""Errors and warnings of subgrove.

::

    SubgroveError
    ├── InputError (also ValueError)        a table, a column or weights are invalid
    │   ├── ColumnError                     one column is invalid; the message names it
    │   └── LengthError                     two inputs differ in length
    ├── ParameterError (also ValueError)    an argument is invalid
    │   └── ArgumentNameError (also TypeError)  a function has no such argument; the message names the right one
    ├── FormatError (also ValueError)       a saved object cannot be loaded
    ├── ModelError (also RuntimeError)      the model raised an error, or returned an invalid prediction
    ├── SamplerError (also RuntimeError)    a sampler raised an error, or returned invalid values
    ├── ChunkError (also RuntimeError)      a chunk of large data could not be read or processed
    └── ClusterError (also RuntimeError)    a cluster cannot be reached, or a process was lost

    SubgroveWarning (UserWarning)           a result that is easily misread
    ├── UnseenValueWarning                  new rows have a level, or missing values, that training did not
    ├── SameRowsWarning                     test rows are also training rows
    ├── FewRowsWarning                      there are too few test rows for reliable intervals
    ├── SingletonSubgroupWarning            a subgroup has one row, which has no donor
    └── FallbackWarning                     a compiled part is missing, so numbers differ from other machines

Each message states what was passed, what is expected and what to do.
``docs/errors.md`` has an entry for each class.
"""

from __future__ import annotations

__all__ = [
    "ArgumentNameError",
    "ChunkError",
    "ClusterError",
    "ColumnError",
    "FallbackWarning",
    "FewRowsWarning",
    "FormatError",
    "InputError",
    "LengthError",
    "ModelError",
    "ParameterError",
    "SameRowsWarning",
    "SamplerError",
    "SingletonSubgroupWarning",
    "SubgroveError",
    "SubgroveWarning",
    "UnseenValueWarning",
]


class SubgroveError(Exception):
    """Base of all errors of subgrove."""


class InputError(SubgroveError, ValueError):
    """A table, a column or weights are invalid."""


class ColumnError(InputError):
    """One column is invalid; the message names it."""


class LengthError(InputError):
    """Two inputs that must have the same number of rows differ in length."""


class ParameterError(SubgroveError, ValueError):
    """An argument is invalid."""


class ArgumentNameError(ParameterError, TypeError):
    """A function has no such argument; the message names the right one."""


class FormatError(SubgroveError, ValueError):
    """A saved object cannot be loaded."""


class ModelError(SubgroveError, RuntimeError):
    """The model raised an error, or returned an invalid prediction; the message names the feature and repeat."""


class SamplerError(SubgroveError, RuntimeError):
    """A sampler raised an error, or returned invalid values; the message names the feature and repeat."""


class ChunkError(SubgroveError, RuntimeError):
    """A chunk of large data could not be read or processed; the message names it and how to continue."""


class ClusterError(SubgroveError, RuntimeError):
    """A cluster cannot be reached, or a process was lost; the message states which chunks are finished."""


class SubgroveWarning(UserWarning):
    """A result that is easily misread."""


class UnseenValueWarning(SubgroveWarning):
    """New rows have a level, or missing values, that the training rows did not have."""


class SameRowsWarning(SubgroveWarning):
    """Test rows are also training rows of the sampler or of subgroups."""


class FewRowsWarning(SubgroveWarning):
    """There are too few test rows for reliable intervals."""


class SingletonSubgroupWarning(SubgroveWarning):
    """A subgroup has a single row: it has no donor, so its value is not resampled."""


class FallbackWarning(SubgroveWarning):
    """A compiled part is not installed, and its replacement gives other random draws."""
