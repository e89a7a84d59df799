"""Every error and warning that subgrove raises on purpose.

::

    SubgroveError
    ├── InputError (also ValueError)        a table, a column or weights cannot be used as given
    │   ├── ColumnError                     one column is at fault; the message names it
    │   └── LengthError                     two inputs that belong together differ in length
    ├── ParameterError (also ValueError)    an argument is outside what it may be
    ├── FormatError (also ValueError)       a saved object cannot be read back
    ├── ModelError (also RuntimeError)      the model raised, or gave what is no prediction
    ├── SamplerError (also RuntimeError)    a sampler raised, or gave what is no redraw
    ├── ChunkError (also RuntimeError)  a piece of partitioned data could not be read or worked on
    └── ClusterError (also RuntimeError)    a cluster cannot be reached, or not any more

    SubgroveWarning (UserWarning)           a result that is computed but easily misread
    ├── UnseenValueWarning                  new rows hold a level, or missing values, that training did not
    ├── SameRowsWarning                     subgroups were grown on the rows that they are used on
    ├── SingletonSubgroupWarning            a row is alone in its subgroup, so it has no donor
    └── FallbackWarning                     a compiled part is missing, so numbers differ from other machines

Each message says what was given, what is expected and what to do about it.
``docs/errors.md`` has an entry for each class.
"""

from __future__ import annotations

__all__ = [
    "ChunkError",
    "ClusterError",
    "ColumnError",
    "FallbackWarning",
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
    """Base of every error that subgrove raises on purpose."""


class InputError(SubgroveError, ValueError):
    """A table, a column or weights cannot be used as given."""


class ColumnError(InputError):
    """One column cannot be used; the message names it."""


class LengthError(InputError):
    """Two inputs that belong together differ in length."""


class ParameterError(SubgroveError, ValueError):
    """An argument is outside what it may be."""


class FormatError(SubgroveError, ValueError):
    """A saved object cannot be read back."""


class ModelError(SubgroveError, RuntimeError):
    """The model raised, or gave what is no prediction; the message says for which feature and repeat."""


class SamplerError(SubgroveError, RuntimeError):
    """A sampler raised, or gave what is no redraw; the message says for which feature and repeat."""


class ChunkError(SubgroveError, RuntimeError):
    """A piece of partitioned data could not be read or worked on; the message names it and how to go on."""


class ClusterError(SubgroveError, RuntimeError):
    """A cluster cannot be reached, or not any more; the message says what is kept."""


class SubgroveWarning(UserWarning):
    """A result that is computed but easily misread."""


class UnseenValueWarning(SubgroveWarning):
    """New rows hold a level, or missing values, that the training rows did not."""


class SameRowsWarning(SubgroveWarning):
    """Subgroups were grown on the same rows that they are now used on."""


class SingletonSubgroupWarning(SubgroveWarning):
    """A row is alone in its subgroup: no other row can give it a value, so it keeps its own."""


class FallbackWarning(SubgroveWarning):
    """A compiled part is not installed, and its replacement gives other random draws."""
