"""Every error and warning that subgrove raises on purpose.

::

    SubgroveError
    ├── InputError (also ValueError)        a table, a column or weights cannot be used as given
    │   ├── ColumnError                     one column is at fault; the message names it
    │   └── LengthError                     two inputs that belong together differ in length
    ├── ParameterError (also ValueError)    an argument is outside what it may be
    └── FormatError (also ValueError)       a saved object cannot be read back

    SubgroveWarning (UserWarning)           a result that is computed but easily misread
    └── UnseenValueWarning                  new rows hold a level, or missing values, that training did not

Each message says what was given, what is expected and what to do about it.
``docs/errors.md`` has an entry for each class.
"""

from __future__ import annotations

__all__ = [
    "ColumnError",
    "FormatError",
    "InputError",
    "LengthError",
    "ParameterError",
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


class SubgroveWarning(UserWarning):
    """A result that is computed but easily misread."""


class UnseenValueWarning(SubgroveWarning):
    """New rows hold a level, or missing values, that the training rows did not."""
